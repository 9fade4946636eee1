// The MySQL output, for the files that implement it: mysql.cc connects and writes, mysql_ledger.cc
// has the ledger by id, mysql_positions.cc that by position.
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

namespace fencepost::consumer {

// The statements that write a batch's effects, by the rules. Pure; any thread.
class MysqlEffects {
 public:
  // `distinct`: no statement has two rows of one key.
  MysqlEffects(const MysqlTarget& target, const RowShape& shape, std::size_t max_statement,
               bool distinct = false);

  struct Row {
    std::size_t record = 0, row = 0;
  };
  // Carries a statement out, which inserts, updates or deletes these rows (none: a SELECT). How
  // many rows a SELECT found.
  using Rows = std::vector<Row>;
  using Visit = std::function<tl::expected<std::size_t, OutputError>(const std::string& sql,
                                                                     const Rows& rows)>;
  // Visits the statements for these records of the batch, in their order, until a visit fails. Rows
  // that follow each other are inserted together, as far as a statement's size allows. One that
  // leaves columns out is asked for, then updated or inserted: an INSERT would need them all.
  tl::expected<void, OutputError> Write(const BatchRows& rows,
                                        const std::vector<std::size_t>& records,
                                        const Visit& visit) const;
  // Finds those of these whose row in the table has a higher fence: their places.
  [[nodiscard]] std::string NewerSql(const BatchRows& rows, const Rows& of) const;
  // Of two of them with one key it says nothing.
  [[nodiscard]] bool DistinctKeys(const BatchRows& rows, const Rows& of) const;
  // All of the batch is one statement, which InnoDB undoes where it fails.
  [[nodiscard]] bool IsOneStatement(const BatchRows& rows) const;

 private:
  using Has = std::function<bool(std::size_t column)>;  // the row does not leave it out

  void AppendCell(const BatchRows& rows, std::size_t record, std::size_t row, std::size_t column,
                  std::string& sql) const;
  void AppendRow(const BatchRows& rows, std::size_t record, std::size_t row, const Has& has,
                 std::string& sql) const;
  [[nodiscard]] std::string InsertInto(const Has& has) const;
  [[nodiscard]] std::string OnDuplicateKey(const Has& has) const;
  // " WHERE …": the row of this key; `fenced`: where a lower fence wrote it.
  [[nodiscard]] std::string WhereSql(const BatchRows& rows, std::size_t record, std::size_t row,
                                     bool fenced) const;
  [[nodiscard]] std::string UpdateSql(const BatchRows& rows, std::size_t record, std::size_t row,
                                      const Has& has) const;
  tl::expected<void, OutputError> WritePartly(const BatchRows& rows, std::size_t record,
                                              std::size_t row, const Visit& visit) const;

  const MysqlTarget& target_;
  const RowShape& shape_;
  const bool distinct_;
  const std::size_t most_;
  std::string insert_;        // INSERT INTO … VALUES
  std::string on_duplicate_;  // behind the rows
};

class MysqlOutput final : public StepwiseOutput {
 public:
  MysqlOutput(const MysqlOptions& options, std::string pipeline, std::string worker,
              OutputTerms terms)
      : StepwiseOutput(std::move(pipeline), std::move(worker), std::move(terms),
                       options.max_records, ShapeOfRows(options.columns, options.rules)),
        options_(options),
        connection_(options) {}

  [[nodiscard]] std::vector<std::string> Advice() const override { return target_.advice; }
  void Interrupt() override { connection_.Interrupt(); }

 private:
  static constexpr std::size_t kRows = 500;  // of one statement
  static constexpr std::size_t kCarefulFor = 100;

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
  CellTypes* Cells() override { return &cells_; }

  Answer<void> Begin() override { return Run("START TRANSACTION READ WRITE"); }
  Answer<void> Commit() override;
  Answer<void> Execute(const char* sql) override { return Run(sql); }
  void RollBack() override;
  Answer<void> WriteEffects(const Records& fresh) override;
  [[nodiscard]] bool IsUndoneAlone() const override;
  // After a statement that wrote these and was refused.
  Records RefusedOf(const MysqlEffects::Rows& written);
  // After a statement that wrote these: which had no effect, since the table has a higher fence.
  Answer<void> FindLost(const MysqlEffects& effects, const MysqlEffects::Rows& written);

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
  Answer<bool> FindsNewer() override;

  Answer<PositionMemory::Rows> ReadPositions(const Parts& parts) override {
    return SelectPositions(parts, "");
  }
  Answer<PositionMemory::Rows> LockPositions(const Parts& parts) override;
  Answer<void> AddPositions(const std::vector<PositionKey>& keys) override;
  Answer<void> StorePositions(const Changes& changes) override;
  Answer<void> ForgetLetters(const PositionKey& key, const PositionRange& range) override;
  [[nodiscard]] std::string Time() const override { return ""; }  // the server's
  // "INSERT … VALUES (…), (…)" of these, "" of none.
  template <typename Rows, typename Append>
  std::string InsertSql(const Rows& rows, Append append) const;
  Answer<PositionMemory::Rows> SelectPositions(const Parts& parts, std::string_view how);

  Answer<MysqlConnection::Rows> Ask(const std::string& sql);
  Answer<void> Run(const std::string& sql);
  // The same, where a row that is there already is another writer's: all is done again at once.
  Answer<void> Insert(const std::string& sql);
  // "pipeline = … AND record_id IN (…)" of ids[begin, end).
  [[nodiscard]] std::string OfIds(const std::vector<std::string>& ids, std::size_t begin,
                                  std::size_t end) const;
  [[nodiscard]] OutputError Refused(const MysqlFailure& failure) const;
  [[nodiscard]] std::optional<std::size_t> RefusedColumn(const MysqlFailure& failure) const;

  const MysqlOptions options_;
  MysqlConnection connection_;
  std::optional<Incarnation> incarnation_;  // of the last connection that was prepared
  MysqlTarget target_;
  MysqlCells cells_;
  // So many transactions are to have no key twice in a statement: a row of one before lost to a
  // fence, and which of those of its key it was is not known then.
  std::size_t careful_ = 0;
};

}  // namespace fencepost::consumer
