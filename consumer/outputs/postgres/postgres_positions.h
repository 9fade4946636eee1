// The ledger by position in PostgreSQL: a row a partition, whose `done` is an int8multirange. One
// thread, the connection's.
//
// A transaction has these statements, sent in one go: rows are inserted where there are none yet;
// all rows of the batch are locked, in the order of their keys; then the write (postgres_sql.h).
// The lock is a statement of its own, so that the write's snapshot is taken with the lock in hand:
// it sees all that the writer before it committed, in every table.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/outputs/ledger/position_changes.h"
#include "consumer/outputs/ledger/position_memory.h"
#include "consumer/outputs/postgres/postgres_array.h"
#include "consumer/outputs/postgres/postgres_connection.h"
#include "consumer/outputs/postgres/postgres_schema.h"
#include "consumer/outputs/rows/batch_rows.h"

namespace fencepost::consumer {

class PgPositions {
 public:
  template <typename T>
  using Maybe = tl::expected<T, PgFailure>;

  PgPositions(PgConnection& connection, const std::string& pipeline, PositionMemory& memory,
              PositionChanges& changes)
      : connection_(connection), pipeline_(pipeline), memory_(memory), changes_(changes) {}

  Maybe<void> Prepare(const PgTarget& target);

  // --- the write ---
  // Of these rows, which `changes` holds. Rows of the database that were not seen on this
  // connection are read.
  Maybe<void> Fill(const BatchRows& rows);
  // $3 to $10 of the write.
  void AddParams(std::vector<PgParam>& params) const;
  // What the write answered.
  Maybe<PgResult> Transact(PgConnection::Step write);
  // The lock found less rows than there must be: somebody deleted one. Nothing was written.
  [[nodiscard]] bool RowIsMissing(const PgFailure& failure) const;
  // From the write's answer: the rows under their locks.
  [[nodiscard]] PositionMemory::Rows Before(const PgResult& answer) const;

  // --- questions ---
  // One a part, with the done ones of its ranges. A name that the database's encoding lacks is in
  // no row.
  Maybe<std::vector<std::optional<PositionRow>>> Read(const std::vector<PositionPart>& parts);
  // Takes the parts' ranges out of what is done; how many offsets of them were.
  Maybe<std::size_t> TakeBack(const std::vector<PositionPart>& parts);
  Maybe<bool> KnowsTopic(const std::string& topic);

 private:
  // Clusters, topics and partitions; then ranges, tokens and anchors; then the records' parts and
  // offsets.
  static constexpr std::size_t kKeyArrays = 3;
  static constexpr std::size_t kAllArrays = 8;
  [[nodiscard]] bool AtLock(const PgFailure& failure) const;
  void FillKeys(const std::vector<PositionPart>& parts);
  // As FillKeys, and the ranges: the parameters of a statement on parts.
  std::vector<PgParam> KeysAndRanges(const std::vector<PositionPart>& parts);
  [[nodiscard]] std::vector<PgParam> Keys() const;

  PgConnection& connection_;
  const std::string& pipeline_;
  PositionMemory& memory_;
  PositionChanges& changes_;
  std::string ledger_;  // its name, quoted
  std::string insert_statement_, lock_statement_;
  bool insert_ = false;  // a row of the batch may be missing
  std::array<BinaryArray, kAllArrays> arrays_;
};

}  // namespace fencepost::consumer
