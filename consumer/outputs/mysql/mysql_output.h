// The MySQL output, for the files that implement it: mysql.cc connects, mysql_effects.cc writes the
// table of effects, mysql_ledger.cc has the ledger by id, mysql_positions.cc that by position.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "consumer/outputs/ledger/stepwise_output.h"
#include "consumer/outputs/mysql/mysql_connection.h"
#include "consumer/outputs/mysql/mysql_schema.h"
#include "consumer/outputs/rows/row_sql.h"

namespace fencepost::consumer {

class MysqlOutput final : public StepwiseOutput {
 public:
  MysqlOutput(const MysqlOptions& options, std::string pipeline, std::string worker,
              OutputTerms terms)
      : StepwiseOutput(std::move(pipeline), std::move(worker), std::move(terms),
                       options.max_records, ShapesOf(options)),
        options_(options),
        connection_(options) {}

  [[nodiscard]] std::vector<std::string> Advice() const override { return target_.advice; }
  void Interrupt() override { connection_.Interrupt(); }

 private:
  static constexpr std::size_t kRows = 500;  // of one statement

  // Which server, since when, and which ledger: while it stays the same, nothing was lost.
  struct Incarnation {
    std::string server;
    std::int64_t started = 0;  // seconds; a second more or less is the same
    [[nodiscard]] bool IsSame(const Incarnation& other) const {
      return server == other.server && std::abs(started - other.started) <= 2;
    }
  };
  Answer<Incarnation> LearnIncarnation();

  [[nodiscard]] std::string Where() const override { return connection_.where(); }
  Answer<void> Connect() override;
  void Disconnect() override { connection_.Close(); }
  [[nodiscard]] bool Connected() const override {
    return connection_.open() && !connection_.IdleTooLong();
  }
  std::span<CellTypes* const> Cells() override { return types_; }

  Answer<void> Begin() override { return Run("START TRANSACTION READ WRITE"); }
  Answer<void> Commit() override;
  Answer<void> Execute(const char* sql) override { return Run(sql); }
  void RollBack() override;
  Answer<std::size_t> ChangeRows(Change change, const Rows& rows) override;
  [[nodiscard]] std::size_t most_bytes() const override;
  Answer<bool> FindsRow(const Row& row) override;
  Answer<Rows> FindNewer(const Rows& rows) override;
  Rows RefusedOf(const Rows& rows) override;
  [[nodiscard]] RowSql SqlOf(const Row& row) const;
  void AppendCell(const Row& row, std::size_t column, std::string& sql) const;
  [[nodiscard]] std::string InsertRows(const Rows& rows) const;
  [[nodiscard]] std::string OnDuplicateKey(const Row& row) const;

  Answer<Entries> LockIds(const std::vector<std::string>& ids) override;
  Answer<void> InsertIds(const Records& fresh) override;
  Answer<Entries> LookUpIds(const std::vector<std::string>& ids) override {
    return SelectIds(ids, "");
  }
  Answer<Entries> SelectIds(const std::vector<std::string>& ids, std::string_view how);
  Answer<std::size_t> DeleteIds(const std::vector<std::string>& ids, std::string_view which);
  Answer<std::size_t> ForgetIds(const std::vector<std::string>& ids) override {
    return DeleteIds(ids, "");
  }
  Answer<std::size_t> DeleteNothingWritten(const std::vector<std::string>& ids) override {
    return DeleteIds(ids, " AND token = 0");
  }
  Answer<void> VisitOldRows(std::chrono::seconds keep, const std::string& from, bool behind,
                            const std::function<bool(OldRow)>& visit) override;
  Answer<std::size_t> DeleteRows(const std::vector<OldRow>& rows) override;
  Answer<bool> HasTopic(const std::string& topic) override;

  Answer<PositionMemory::Rows> ReadPositions(const Parts& parts) override {
    return SelectPositions(parts, "");
  }
  Answer<PositionMemory::Rows> LockPositions(const Parts& parts) override;
  Answer<void> AddPositions(const std::vector<PositionKey>& keys) override;
  Answer<void> StorePositions(const Changes& changes) override;
  Answer<void> ForgetLetters(const PositionKey& key, const PositionRange& range) override;
  [[nodiscard]] std::string Time() const override { return ""; }  // the server's
  // "INSERT … VALUES (…), (…)" of these, "" of none.
  template <typename Each, typename Append>
  std::string InsertSql(const Each& rows, Append append) const;
  Answer<PositionMemory::Rows> SelectPositions(const Parts& parts, std::string_view how);

  Answer<MysqlConnection::Rows> Ask(const std::string& sql);
  Answer<void> Run(const std::string& sql);
  // The same, where a row that is there already is another writer's: all is done again at once.
  Answer<void> Insert(const std::string& sql);
  // "pipeline = … AND record_id IN (…)" of ids[begin, end).
  [[nodiscard]] std::string OfIds(const std::vector<std::string>& ids, std::size_t begin,
                                  std::size_t end) const;
  [[nodiscard]] OutputError Refused(const MysqlFailure& failure) const;
  [[nodiscard]] std::optional<ColumnOf> RefusedColumn(const MysqlFailure& failure) const;

  const MysqlOptions options_;
  MysqlConnection connection_;
  std::optional<Incarnation> incarnation_;  // of the last connection that was prepared
  MysqlTarget target_;
  Rows writing_;                   // of the statement that is run
  std::vector<MysqlCells> cells_;  // by table
  std::vector<CellTypes*> types_;  // the same
};

}  // namespace fencepost::consumer
