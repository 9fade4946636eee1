// The MySQL output, for the files that implement it: mysql.cc writes, mysql_ledger.cc looks up,
// deletes and prunes.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "consumer/outputs/ledger/ledger_output.h"
#include "consumer/outputs/mysql/mysql_connection.h"
#include "consumer/outputs/mysql/mysql_positions.h"
#include "consumer/outputs/mysql/mysql_schema.h"

namespace fencepost::consumer {

class MysqlOutput final : public LedgerOutput {
 public:
  MysqlOutput(const MysqlOptions& options, std::string pipeline, std::string worker,
              OutputTerms terms)
      : LedgerOutput(std::move(pipeline), std::move(worker), std::move(terms), options.max_records,
                     ShapeOfRows(options.columns, options.rules)),
        options_(options),
        connection_(options) {
    if (terms_.by_position) positions_.emplace(connection_, pipeline_, memory_);
  }

  tl::expected<std::vector<WriteOutcome>, OutputError> Write(const WriteRequest& request) override;
  tl::expected<bool, OutputError> KnowsTopic(const std::string& topic) override;
  void Interrupt() override { connection_.Interrupt(); }

 private:
  static constexpr const char* kPruneFirst = "1000-01-01 00:00:00";
  static constexpr std::size_t kIds = 500;  // of one statement
  using Done = tl::expected<void, MysqlFailure>;

  // Which server, since when, and which ledger: while it stays the same, nothing was lost.
  struct Incarnation {
    std::string server;
    std::int64_t started = 0;  // seconds; a second more or less is the same
    [[nodiscard]] bool IsSame(const Incarnation& other) const {
      return server == other.server && std::abs(started - other.started) <= 2;
    }
  };
  tl::expected<Incarnation, MysqlFailure> LearnIncarnation();
  // Whether the database that was connected still has what it had acknowledged.
  Answer<void> CheckIncarnation();

  Answer<void> Connect() override;
  void Disconnect() override { connection_.Close(); }
  Answer<void> PrepareIfNeedBe() override;
  Answer<Entries> LookUpIds(const std::vector<std::string>& ids) override;
  Answer<std::size_t> ForgetIds(const std::vector<std::string>& ids) override;
  Answer<std::size_t> PruneIds(const PruneScope& scope, std::size_t limit) override;
  Answer<PositionMemory::Rows> ReadPositions(const Parts& parts) override;
  Answer<std::size_t> TakeBack(const Parts& parts) override;

  // All of rows_.
  Done Transaction(Outcomes& outcomes);
  // What the ledger knows of each record, locked until the transaction's end.
  using Known = std::vector<std::optional<WriteOutcome>>;
  tl::expected<Known, MysqlFailure> Lock();
  tl::expected<Known, MysqlFailure> LockIds();
  // The others, in the order of the request.
  std::vector<std::size_t> Fresh(Known known, Outcomes& outcomes) const;
  Done InsertLedger(std::vector<std::size_t> fresh);
  Done RollBack(MysqlFailure failure);
  Done Run(const std::string& sql);
  // "pipeline = … AND record_id IN (…)" of ids[begin, end).
  [[nodiscard]] std::string OfIds(const std::vector<std::string>& ids, std::size_t begin,
                                  std::size_t end) const;

  OutputError Refused(const MysqlFailure& failure);
  [[nodiscard]] std::optional<std::size_t> RefusedColumn(const MysqlFailure& failure) const;
  // The next call connects again and reads the catalog again.
  OutputError Fail(const MysqlFailure& failure);

  const MysqlOptions options_;
  MysqlConnection connection_;
  std::optional<Incarnation> incarnation_;  // of the last connection that was prepared
  MysqlTarget target_;
  MysqlCells cells_;
  std::optional<MysqlPositions> positions_;  // by position
  std::string prune_from_ = kPruneFirst;     // where the next window of Prune begins
  bool prune_behind_ = false;                // behind that time, not at it
};

}  // namespace fencepost::consumer
