// The output of a database that reads the ledger's rows, under their locks, before it writes: one
// transaction, step by step. One thread.
//
// By position a row is a text of ranges, which is read under its lock, changed here and stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "consumer/outputs/ledger/ledger_output.h"

namespace fencepost::consumer {

class StepwiseOutput : public LedgerOutput {
 protected:
  using LedgerOutput::LedgerOutput;
  // --- the steps of a transaction ---
  virtual Answer<void> Begin() = 0;
  virtual Answer<void> Commit() = 0;
  virtual Answer<void> Execute(const char* sql) = 0;  // of a savepoint
  // By position the last two of these are of dead letters.
  // As LookUpIds, under the rows' locks. The ids are in byte order.
  virtual Answer<Entries> LockIds(const std::vector<std::string>& ids) = 0;
  virtual Answer<void> InsertIds(const Records& fresh) = 0;
  // Those of them whose rows have the token 0; how many.
  virtual Answer<std::size_t> DeleteNothingWritten(const std::vector<std::string>& ids) = 0;
  // As ReadPositions, with all that is done of each partition.
  virtual Answer<PositionMemory::Rows> LockPositions(const Parts& parts) = 0;
  // Rows that LockPositions did not find. One that is there by now is an error.
  virtual Answer<void> AddPositions(const std::vector<PositionKey>& /*keys*/) { return {}; }
  // Their `updated_at` is that of a row that was read, or Time().
  using Changes = std::vector<PositionChanges::Change>;
  virtual Answer<void> StorePositions(const Changes& changes) = 0;
  // The rows with the token 0 of the ids in this range of a partition.
  virtual Answer<void> ForgetLetters(const PositionKey& key, const PositionRange& range) = 0;
  [[nodiscard]] virtual std::string Time() const = 0;  // of this transaction

  // --- the tables of effects ---
  Answer<bool> FindsNewer() override;
  struct Row {
    std::size_t table = 0, record = 0, row = 0;
  };
  using Rows = std::vector<Row>;  // of one table
  enum class Change : std::uint8_t { kInsert, kUpdate, kDelete };
  // One statement: an INSERT of rows that have all columns, or any of one row, which is inserted
  // without the columns that it leaves out. How many rows had no effect.
  virtual Answer<std::size_t> ChangeRows(Change change, const Rows& rows) = 0;
  // An INSERT of several rows has about so many bytes, at most, and the database leaves nothing of
  // it where it fails; 0: it has one row.
  [[nodiscard]] virtual std::size_t most_bytes() const { return 0; }
  // Whether the table has a row of this key, which nobody else changes from now on.
  virtual Answer<bool> FindsRow(const Row& row) = 0;
  // Those of them, at least one, for which the table has a higher fence.
  virtual Answer<Rows> FindNewer(const Rows& rows) = 0;
  // Those of the rows of a statement that was refused which the database names. The transaction
  // goes on, without that statement.
  virtual Rows RefusedOf(const Rows& rows) = 0;
  // Of these records, table by table, in their order: rows that follow each other are inserted
  // together. Notes in lost_ those that lost to a higher fence.
  virtual Answer<void> WriteEffects(const Records& fresh);

 private:
  Answer<void> WriteRows(Outcomes& outcomes) final;
  Answer<Known> BeginApart() final;
  Answer<Refusals> WriteParts(const std::vector<Records>& parts) final;
  Answer<void> EndApart() final;
  Answer<std::optional<PartRefusal>> WritePart();
  Answer<std::size_t> TakeBack(const Parts& parts) final;
  Answer<void> Steps(Outcomes& outcomes);
  Answer<std::size_t> TakeBackSteps(const Parts& parts);
  Answer<Known> LockRecords();
  Answer<Known> LockChanges();
  Answer<void> InsertNew(const Records& records);
  Answer<void> StoreChanges();
  Answer<void> DeleteReplayed();
  Answer<void> AddLetters();
  Answer<void> WriteTable(std::size_t table, const Records& fresh, bool careful);
  Answer<void> WriteAlone(const Row& row);
  Answer<void> Carry(Change change, const Rows& rows);
  // Notes in named_ which records the database names, and in the error the effect.
  void TellRefused(Change change, const Rows& rows, OutputError& error);
  // Writes halves of them, until one row alone is refused. `error` becomes the last one that came,
  // which may be of the server. nullopt: none is refused.
  std::optional<Row> FindRefused(Change change, Rows rows, OutputError& error);
  // All of rows_ is one statement that is undone where it fails.
  [[nodiscard]] bool IsUndoneAlone() const;
  [[nodiscard]] std::size_t BytesOf(const Row& row) const;

  // So many transactions are to have no key twice in a statement: a row of one before lost to a
  // fence, and which of those of its key it was is not known then.
  std::size_t careful_ = 0;
};

}  // namespace fencepost::consumer
