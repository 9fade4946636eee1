// The PostgreSQL output, for the files that implement it: postgres.cc writes, postgres_ledger.cc
// looks up, deletes and prunes, postgres_positions.cc has the ledger by position.
#pragma once

#include <arpa/inet.h>
#include <endian.h>

#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "consumer/outputs/ledger/ledger_output.h"
#include "consumer/outputs/postgres/postgres_connection.h"
#include "consumer/outputs/postgres/postgres_dsn.h"
#include "consumer/outputs/postgres/postgres_schema.h"
#include "consumer/outputs/postgres/postgres_sql.h"

namespace fencepost::consumer {

// An array parameter in PostgreSQL's binary format; keeps its memory from use to use.
// One-dimensional: dimensions, has-null flag, element type, length, lower bound; then each element
// as length (-1: NULL) and bytes; all big-endian.
class BinaryArray {
 public:
  void Begin(Oid element, std::size_t length) {
    bytes_.clear();
    PutInt32(1);
    PutInt32(1);  // there may be NULLs
    PutInt32(static_cast<std::uint32_t>(element));
    PutInt32(static_cast<std::uint32_t>(length));
    PutInt32(1);
  }
  void Add(std::optional<std::string_view> element) {
    if (!element) return PutInt32(0xffffffffu);
    PutInt32(static_cast<std::uint32_t>(element->size()));
    bytes_.append(*element);
  }
  void Add(std::uint64_t element) {
    PutInt32(8);
    const std::uint64_t big = htobe64(element);
    char raw[sizeof big];
    std::memcpy(raw, &big, sizeof big);
    bytes_.append(raw, sizeof raw);
  }
  void Add(bool element) {
    PutInt32(1);
    bytes_.push_back(element ? '\1' : '\0');
  }
  [[nodiscard]] PgParam Param() const {
    return {.data = bytes_.data(), .size = static_cast<int>(bytes_.size()), .binary = true};
  }

 private:
  void PutInt32(std::uint32_t value) {
    const std::uint32_t big = htonl(value);
    char raw[sizeof big];
    std::memcpy(raw, &big, sizeof big);
    bytes_.append(raw, sizeof raw);
  }
  std::string bytes_;
};

class PostgresOutput final : public LedgerOutput {
 public:
  PostgresOutput(const PostgresOptions& options, std::string pipeline, std::string worker,
                 OutputTerms terms)
      : LedgerOutput(std::move(pipeline), std::move(worker), std::move(terms), options.max_records,
                     ShapesOf(options)),
        options_(options),
        connection_(ConnectionString(options), options.password,
                    fmt::format("fencepost/{}/{}", pipeline_, worker_)) {}

  [[nodiscard]] std::vector<std::string> Advice() const override { return target_.advice; }
  void Interrupt() override { connection_.Interrupt(); }

 private:
  // After a known id, transactions. Each that meets one as new is written twice, so at most one in
  // so many is.
  static constexpr std::size_t kCarefulFor = 100;

  tl::expected<void, PgFailure> PrepareStatements();
  [[nodiscard]] std::string Where() const override { return connection_.where(); }
  Answer<void> Connect() override;
  void Disconnect() override { connection_.Drop(); }
  [[nodiscard]] bool Connected() const override { return connection_.open(); }
  std::span<CellTypes* const> Cells() override { return types_; }
  Answer<void> WriteRows(Outcomes& outcomes) override;
  Answer<Known> BeginApart() override;
  Answer<Refusals> WriteParts(const std::vector<Records>& parts) override;
  Answer<void> EndApart() override;
  void RollBack() override;
  void Explain(OutputError& refusal) override;
  Answer<Entries> LookUpIds(const std::vector<std::string>& ids) override;
  Answer<std::size_t> ForgetIds(const std::vector<std::string>& ids) override;
  Answer<void> VisitOldRows(std::chrono::seconds keep, const std::string& from, bool behind,
                            const std::function<bool(OldRow)>& visit) override;
  Answer<std::size_t> DeleteRows(const std::vector<OldRow>& rows) override;
  Answer<PositionMemory::Rows> ReadPositions(const Parts& parts) override;
  Answer<std::size_t> TakeBack(const Parts& parts) override;
  Answer<bool> HasTopic(const std::string& topic) override;
  Answer<bool> FindsNewer() override;
  tl::expected<PgResult, PgFailure> OfIds(const char* statement,
                                          const std::vector<std::string>& ids);
  [[nodiscard]] bool several() const { return rows_.tables() > 1; }  // tables
  [[nodiscard]] bool plain() const;  // by the write for one row a record
  using Steps = std::vector<PgConnection::Step>;
  // The write of all of rows_, as new: one statement, or where there are several tables the
  // ledger's and each table's. By id:
  [[nodiscard]] Steps FilledWrite();
  // The same once it is known what is: the ledger's rows that give way go first.
  [[nodiscard]] Steps NewSteps();
  // With its first two parameters, and so many of arrays_.
  [[nodiscard]] PgConnection::Step WriteStep(const std::string& statement,
                                             std::size_t arrays) const;
  // What inserts the rows of these tables; a step each.
  [[nodiscard]] Steps EffectSteps(std::size_t ledger_arrays);
  void AddRows(std::size_t table, PgConnection::Step& write);
  // `write`: the answers of its steps, which are the last.
  using Answers = std::vector<PgResult>;
  void TakeRows(const Answers& write, Outcomes& outcomes) const;
  using Tables = std::vector<std::size_t>;
  [[nodiscard]] std::vector<std::size_t> LostOf(const Answers& write, const Tables& written) const;
  [[nodiscard]] std::vector<std::size_t> LostOf(std::size_t table, const PgResult& answer) const;
  // Puts the effect before what its step was refused with; `step` of the write.
  void NameEffect(OutputError& error, std::size_t step, const Tables& written) const;
  void EndFrozen(const PgFailure& failure);
  // Those of rows_ that are not known, where any may be.
  Answer<void> WriteUnknown(Outcomes& outcomes);
  Answer<Known> LookUpKnown();
  // `table`: the one that the server names; a trigger that drops its rows may do so each time.
  [[nodiscard]] tl::unexpected<OutputError> RowIsGone(std::string_view table) const;

  // --- by position ---
  Answer<void> WritePositions(Outcomes& outcomes);
  Answer<Known> LockPositions();
  // The ledger's arrays, from changes_. Rows that were not seen on this connection are read.
  Answer<void> FillPositions();
  // Those of changes_, and of its records in rows_; with `ranges`, which become done, or without.
  enum class Ranges : std::uint8_t { kNone, kDone };
  void FillArrays(Ranges ranges);
  [[nodiscard]] Steps FilledPositionWrite(Ranges ranges);
  // The rows are inserted where they may be missing, and locked.
  [[nodiscard]] Steps LockSteps() const;
  // The first four arrays.
  void FillKeys(const Parts& parts);
  // Of dead letters or replays: ids, clusters, topics, partitions, offsets; sources, checksums.
  using RecordArrays = std::array<BinaryArray, 7>;
  void FillRecords(const std::vector<std::size_t>& records, RecordArrays& arrays) const;
  [[nodiscard]] std::vector<PgParam> RecordParams(const RecordArrays& arrays) const;
  // What comes between the lock and the write.
  void AddReplays(Steps& steps);
  void AddLetters(Steps& steps);
  // `before`: steps that come before the write's.
  [[nodiscard]] tl::unexpected<OutputError> PositionsRefused(PgFailure failure, std::size_t before);

  // The pipeline, and the first `arrays` of arrays_.
  [[nodiscard]] std::vector<PgParam> Params(std::size_t arrays) const;
  // Of a transaction, or of pruning. `before`: steps that come before the write's.
  OutputError Refused(const PgFailure& failure, std::size_t before = 0);
  // Of the only record of rows_, the first column whose type does not take its cell.
  std::optional<ColumnOf> RefusedColumn(const OutputError& refusal);
  std::optional<ColumnOf> QuotedColumn(const OutputError& refusal) const;
  [[nodiscard]] tl::expected<PgResult, PgFailure> Cast(const PgColumn& to,
                                                       std::optional<std::string_view> cell);
  // Whether the database that was connected still has what it had acknowledged.
  Answer<void> CheckIncarnation();
  // Of a question.
  [[nodiscard]] tl::unexpected<OutputError> Failed(const PgFailure& failure) const {
    return tl::unexpected(ToOutputError(failure, connection_.where()));
  }

  const PostgresOptions options_;
  PgConnection connection_;
  std::optional<PgIncarnation> incarnation_;  // of the last connection that was prepared
  PgTarget target_;
  std::vector<PgCells> cells_;     // by table
  std::vector<CellTypes*> types_;  // the same
  // The names of statements; the last writes to the log, so that COMMIT waits for the standbys.
  std::string write_statement_, replace_statement_, logged_statement_;
  std::vector<std::string> rows_statements_;  // by table; of several behind ledger_statement_
  std::string ledger_statement_;
  // By id: before so many transactions what is known is looked up. Ids that come again (after a
  // restart, from a topic that is read anew) come many at a time.
  std::size_t careful_ = 0;
  BinaryArray replaced_ids_;  // ids of NewSteps
  // By position: the names of the statements before the write, and whether a row may be missing.
  std::string insert_statement_, lock_statement_, read_statement_;
  std::string reopen_statement_, letters_statement_;
  std::string effects_statement_;  // of a part, where no order matters
  bool insert_ = false;
  RecordArrays replays_, letters_;
  // The ledger's: by id four, record ids, tokens, sources and checksums; by position eight,
  // clusters, topics and partitions, ranges, tokens and anchors, then the records' parts and
  // offsets.
  static constexpr std::size_t kIdArrays = 4, kPositionArrays = 8;
  std::array<BinaryArray, kPositionArrays> arrays_;
  // By table.
  struct RowArrays {
    BinaryArray records, deletes;
    std::vector<BinaryArray> cells;  // by column
    BinaryArray omitted;             // which columns are left out
  };
  std::vector<RowArrays> row_arrays_;
  Tables written_;  // of the last EffectSteps: those that have rows
};

}  // namespace fencepost::consumer
