// The SQLite output: for one host. Many processes may share the file; one writes at a time.
#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "consumer/outputs/batch_rows.h"
#include "consumer/outputs/ledger.h"
#include "consumer/outputs/output.h"
#include "consumer/outputs/sqlite_connection.h"
#include "consumer/outputs/sqlite_schema.h"
#include "consumer/outputs/sqlite_sql.h"

namespace fencepost::consumer {
namespace {

// UTC with milliseconds: in the order of time as text, too.
std::string Timestamp(std::chrono::system_clock::time_point at) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(at);
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(at - whole).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(whole)), millis);
}

class SqliteOutput final : public Output {
 public:
  SqliteOutput(const SqliteOptions& options, std::string pipeline, std::string worker)
      : options_(options),
        pipeline_(std::move(pipeline)),
        worker_(std::move(worker)),
        connection_(options.path),
        shape_(ShapeOfRows(options.columns, options.rules)),
        rows_(shape_.value_or(RowShape{}), worker_) {}
  ~SqliteOutput() override { Drop(); }

  tl::expected<void, OutputError> Prepare() override;
  tl::expected<std::vector<WriteOutcome>, OutputError> Write(const WriteRequest& request) override;
  tl::expected<std::vector<std::optional<LedgerEntry>>, OutputError> Lookup(
      const std::vector<std::string>& ids) override;
  tl::expected<std::size_t, OutputError> Forget(const std::vector<std::string>& ids) override;
  tl::expected<std::size_t, OutputError> Prune(std::chrono::seconds keep,
                                               std::size_t limit) override;
  void Interrupt() override { connection_.Interrupt(); }

 private:
  using Outcomes = std::vector<WriteOutcome>;
  using Rows = std::vector<std::size_t>;
  template <typename T>
  using Maybe = tl::expected<T, SqliteFailure>;

  Maybe<void> PrepareStatements();
  tl::expected<void, OutputError> PrepareIfNeedBe();

  // All records in one transaction. Careful: each in a savepoint, so that one can be refused alone;
  // that copies pages for each row, and so it is done only after a refusal.
  tl::expected<void, OutputError> WriteRows(Rows rows, bool careful, Outcomes& outcomes);
  enum class Pass : std::uint8_t { kAll, kAgainCarefully, kAgain };
  Maybe<Pass> WriteEach(const Rows& rows, bool careful, Outcomes& outcomes);
  Maybe<WriteOutcome> WriteRecord(std::size_t record, bool* refused);
  Maybe<WriteOutcome> WriteEffect(std::size_t record, std::size_t row, bool* refused);
  // false: not text, and the column takes no other bytes.
  bool BindCell(sqlite3_stmt* statement, int at, std::size_t record, std::size_t column,
                std::size_t row);
  Maybe<WriteOutcome> WhatStands(std::size_t record);
  // The statement stands on the ledger's row of this id, or there is none.
  Maybe<bool> Look(std::string_view record_id);
  Maybe<std::size_t> DeleteEach(const std::vector<std::string>& ids);
  void RollBack();

  OutputError Fail(const SqliteFailure& failure);
  void Drop();

  const SqliteOptions options_;
  const std::string pipeline_;
  const std::string worker_;
  SqliteConnection connection_;
  const tl::expected<RowShape, RowProblem> shape_;
  BatchRows rows_;
  SqliteTarget target_;
  std::string now_;
  SqliteStatement insert_ledger_, insert_effect_, delete_effect_, look_, forget_, prune_;
};

void BindText(sqlite3_stmt* statement, int at, std::string_view text) {
  sqlite3_bind_text64(statement, at, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

void SqliteOutput::Drop() {
  insert_ledger_.reset();
  insert_effect_.reset();
  delete_effect_.reset();
  look_.reset();
  forget_.reset();
  prune_.reset();
  connection_.Close();
}

OutputError SqliteOutput::Fail(const SqliteFailure& failure) {
  OutputError error = ToOutputError(failure, options_.path);
  if (connection_.interrupted()) {
    error.error.code = "interrupted";
    error.error.hint.clear();
  }
  const int code = failure.code & 0xff;
  if (code != SQLITE_BUSY && code != SQLITE_LOCKED) Drop();
  return error;
}

tl::expected<void, OutputError> SqliteOutput::Prepare() {
  Drop();
  if (!shape_) {
    return tl::unexpected(OutputError{.error = {.code = "output_schema",
                                                .what = "output.sqlite: " + shape_.error().what,
                                                .where = options_.path,
                                                .hint = shape_.error().hint}});
  }
  if (auto opened = connection_.Open(); !opened) return tl::unexpected(Fail(opened.error()));
  auto target = LearnTarget(connection_, options_, *shape_);
  if (!target) {
    Drop();
    return tl::unexpected(target.error());
  }
  target_ = std::move(*target);
  if (auto prepared = PrepareStatements(); !prepared) return tl::unexpected(Fail(prepared.error()));
  return {};
}

SqliteOutput::Maybe<void> SqliteOutput::PrepareStatements() {
  struct Entry {
    SqliteStatement& statement;
    std::string sql;
  };
  const std::array<Entry, 6> entries{
      {{insert_ledger_,
        "INSERT INTO fencepost_ledger"
        " (pipeline, record_id, token, worker, source, content_crc, completed_at)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (pipeline, record_id) DO NOTHING"},
       {insert_effect_, InsertSql(target_, *shape_)},
       {delete_effect_, shape_->deletes() ? DeleteSql(target_, *shape_) : "SELECT 1"},
       {look_,
        "SELECT token, source, content_crc, worker, completed_at FROM fencepost_ledger"
        " WHERE pipeline = ?1 AND record_id = ?2"},
       {forget_, "DELETE FROM fencepost_ledger WHERE pipeline = ?1 AND record_id = ?2"},
       {prune_,
        "DELETE FROM fencepost_ledger WHERE pipeline = ?1 AND record_id IN (SELECT record_id"
        " FROM fencepost_ledger WHERE pipeline = ?1 AND completed_at < ?2"
        " ORDER BY completed_at LIMIT ?3)"}}};
  for (const Entry& entry : entries) {
    auto statement = connection_.Prepare(entry.sql);
    if (!statement) return tl::unexpected(statement.error());
    entry.statement = std::move(*statement);
  }
  return {};
}

tl::expected<void, OutputError> SqliteOutput::PrepareIfNeedBe() {
  if (connection_.interrupted()) {
    return tl::unexpected(Fail({SQLITE_INTERRUPT, "interrupted for shutdown"}));
  }
  if (connection_.open()) return {};
  return Prepare();
}

tl::expected<std::vector<WriteOutcome>, OutputError> SqliteOutput::Write(
    const WriteRequest& request) {
  const std::vector<WriteItem>& items = request.items;
  Outcomes outcomes(items.size());
  if (shape_) rows_.Fill(items, outcomes);
  if (shape_ && rows_.size() == 0) return outcomes;
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  Rows rows(rows_.size());
  for (std::size_t row = 0; row < rows.size(); ++row) rows[row] = row;
  if (auto done = WriteRows(std::move(rows), false, outcomes); !done) {
    return tl::unexpected(done.error());
  }
  return outcomes;
}

void SqliteOutput::RollBack() {
  if (connection_.open() && sqlite3_get_autocommit(connection_.db()) == 0) {
    (void)connection_.Exec("ROLLBACK");
  }
}

tl::expected<void, OutputError> SqliteOutput::WriteRows(Rows rows, bool careful,
                                                        Outcomes& outcomes) {
  now_ = Timestamp(std::chrono::system_clock::now());
  for (;;) {
    std::erase_if(rows, [&](std::size_t row) {
      return outcomes[rows_.index(row)].result == WriteResult::kBadRecord;
    });
    if (rows.empty()) return {};
    if (auto begun = connection_.Exec("BEGIN IMMEDIATE"); !begun) {
      return tl::unexpected(Fail(begun.error()));
    }
    const auto pass = WriteEach(rows, careful, outcomes);
    if (!pass) {
      RollBack();
      return tl::unexpected(Fail(pass.error()));
    }
    if (*pass == Pass::kAll) break;
    RollBack();
    careful = true;
  }
  const auto committed = connection_.Exec("COMMIT");
  if (committed) return {};
  RollBack();
  if (!RefusesRecord(committed.error())) return tl::unexpected(Fail(committed.error()));
  // A deferred foreign key: COMMIT does not tell whose.
  std::erase_if(rows, [&](std::size_t row) {
    return outcomes[rows_.index(row)].result == WriteResult::kBadRecord;
  });
  if (rows.size() == 1) {
    outcomes[rows_.index(rows[0])] = {WriteResult::kBadRecord, committed.error().text, true};
    return {};
  }
  const auto middle = rows.begin() + static_cast<std::ptrdiff_t>(rows.size() / 2);
  if (auto first = WriteRows(Rows(rows.begin(), middle), careful, outcomes); !first) return first;
  return WriteRows(Rows(middle, rows.end()), careful, outcomes);
}

SqliteOutput::Maybe<SqliteOutput::Pass> SqliteOutput::WriteEach(const Rows& rows, bool careful,
                                                                Outcomes& outcomes) {
  for (const std::size_t row : rows) {
    if (careful) {
      if (auto begun = connection_.Exec("SAVEPOINT one"); !begun)
        return tl::unexpected(begun.error());
    }
    bool refused = false;
    auto outcome = WriteRecord(row, &refused);
    if (!outcome) return tl::unexpected(outcome.error());
    if (refused && !careful) return Pass::kAgainCarefully;
    outcomes[rows_.index(row)] = std::move(*outcome);
    // A trigger's RAISE(ROLLBACK) or a constraint's ON CONFLICT ROLLBACK took the whole
    // transaction.
    if (refused && sqlite3_get_autocommit(connection_.db()) != 0) return Pass::kAgain;
    if (careful) {
      const auto ended = connection_.Exec(refused ? "ROLLBACK TO one; RELEASE one" : "RELEASE one");
      if (!ended) return tl::unexpected(ended.error());
    }
  }
  return Pass::kAll;
}

SqliteOutput::Maybe<WriteOutcome> SqliteOutput::WriteRecord(std::size_t record, bool* refused) {
  const WriteItem& item = rows_.item(record);
  sqlite3_stmt* statement = insert_ledger_.get();
  BindText(statement, 1, pipeline_);
  BindText(statement, 2, item.record_id);
  sqlite3_bind_int64(statement, 3, static_cast<sqlite3_int64>(item.token.value()));
  BindText(statement, 4, worker_);
  BindText(statement, 5, rows_.source(record));
  sqlite3_bind_int64(statement, 6, item.crc);
  BindText(statement, 7, now_);
  if (auto done = connection_.Step(statement); !done) return tl::unexpected(done.error());
  if (sqlite3_changes64(connection_.db()) == 0) return WhatStands(record);
  for (std::size_t row = 0; row < rows_.rows(record); ++row) {
    auto outcome = WriteEffect(record, row, refused);
    if (!outcome || *refused) return outcome;
  }
  return WriteOutcome{};
}

bool SqliteOutput::BindCell(sqlite3_stmt* statement, int at, std::size_t record, std::size_t column,
                            std::size_t row) {
  const auto cell = rows_.cell(record, column, row);
  if (!cell) {
    sqlite3_bind_null(statement, at);
  } else if (target_.blobs[column]) {
    sqlite3_bind_blob64(statement, at, cell->data(), cell->size(), SQLITE_STATIC);
  } else if (BatchRows::IsText(*cell)) {
    // The column's affinity makes it a number where it is one.
    BindText(statement, at, *cell);
  } else {
    return false;
  }
  return true;
}

// A deletion has the same parameters, and uses those of key and fence.
SqliteOutput::Maybe<WriteOutcome> SqliteOutput::WriteEffect(std::size_t record, std::size_t row,
                                                            bool* refused) {
  const bool deletes = rows_.deletes(record, row);
  sqlite3_stmt* statement = deletes ? delete_effect_.get() : insert_effect_.get();
  for (std::size_t column = 0; column < rows_.columns(); ++column) {
    if (deletes && !shape_->IsKey(column) && shape_->fence != column) continue;
    if (BindCell(statement, static_cast<int>(column) + 1, record, column, row)) continue;
    *refused = true;
    const Column& from = shape_->columns[column];
    return WriteOutcome{
        WriteResult::kBadRecord,
        fmt::format("column {} from {}: not UTF-8 text; a BLOB column takes any bytes", from.name,
                    from.selector.Text())};
  }
  const auto done = connection_.Step(statement);
  if (done) return WriteOutcome{};
  if (!RefusesRecord(done.error())) return tl::unexpected(done.error());
  *refused = true;
  return WriteOutcome{WriteResult::kBadRecord, done.error().text, true};
}

SqliteOutput::Maybe<bool> SqliteOutput::Look(std::string_view record_id) {
  BindText(look_.get(), 1, pipeline_);
  BindText(look_.get(), 2, record_id);
  return connection_.Step(look_.get());
}

SqliteOutput::Maybe<WriteOutcome> SqliteOutput::WhatStands(std::size_t record) {
  const WriteItem& item = rows_.item(record);
  const auto found = Look(item.record_id);
  if (!found) return tl::unexpected(found.error());
  if (!*found) {
    return tl::unexpected(
        SqliteFailure{SQLITE_ERROR, "the ledger refused a row that it does not hold"});
  }
  sqlite3_stmt* statement = look_.get();
  WriteOutcome outcome =
      Classify({.token = static_cast<std::uint64_t>(sqlite3_column_int64(statement, 0)),
                .source = SqliteText(statement, 1),
                .content_crc = sqlite3_column_int64(statement, 2)},
               item, rows_.source(record));
  sqlite3_reset(statement);
  return outcome;
}

tl::expected<std::vector<std::optional<LedgerEntry>>, OutputError> SqliteOutput::Lookup(
    const std::vector<std::string>& ids) {
  std::vector<std::optional<LedgerEntry>> entries(ids.size());
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  sqlite3_stmt* row = look_.get();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto found = Look(ids[i]);
    if (!found) return tl::unexpected(Fail(found.error()));
    if (!*found) continue;
    entries[i] = LedgerEntry{
        .token = locking::Token(static_cast<std::uint64_t>(sqlite3_column_int64(row, 0))),
        .crc = static_cast<locking::ContentCrc>(sqlite3_column_int64(row, 2)),
        .worker = std::string(SqliteText(row, 3)),
        .source = std::string(SqliteText(row, 1)),
        .completed_at = std::string(SqliteText(row, 4))};
    sqlite3_reset(row);
  }
  return entries;
}

SqliteOutput::Maybe<std::size_t> SqliteOutput::DeleteEach(const std::vector<std::string>& ids) {
  if (auto begun = connection_.Exec("BEGIN IMMEDIATE"); !begun) {
    return tl::unexpected(begun.error());
  }
  std::size_t gone = 0;
  for (const std::string& id : ids) {
    BindText(forget_.get(), 1, pipeline_);
    BindText(forget_.get(), 2, id);
    if (auto done = connection_.Step(forget_.get()); !done) return tl::unexpected(done.error());
    gone += static_cast<std::size_t>(sqlite3_changes64(connection_.db()));
  }
  if (auto done = connection_.Exec("COMMIT"); !done) return tl::unexpected(done.error());
  return gone;
}

tl::expected<std::size_t, OutputError> SqliteOutput::Forget(const std::vector<std::string>& ids) {
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  const auto gone = DeleteEach(ids);
  if (gone) return *gone;
  RollBack();
  return tl::unexpected(Fail(gone.error()));
}

tl::expected<std::size_t, OutputError> SqliteOutput::Prune(std::chrono::seconds keep,
                                                           std::size_t limit) {
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  const std::string before = Timestamp(std::chrono::system_clock::now() - keep);
  BindText(prune_.get(), 1, pipeline_);
  BindText(prune_.get(), 2, before);
  sqlite3_bind_int64(prune_.get(), 3, static_cast<sqlite3_int64>(limit));
  if (auto done = connection_.Step(prune_.get()); !done) return tl::unexpected(Fail(done.error()));
  return static_cast<std::size_t>(sqlite3_changes64(connection_.db()));
}

}  // namespace

std::unique_ptr<Output> MakeSqliteOutput(const SqliteOptions& options, std::string pipeline,
                                         std::string worker) {
  return std::make_unique<SqliteOutput>(options, std::move(pipeline), std::move(worker));
}

}  // namespace fencepost::consumer
