// The SQLite output: for one host. Many processes may share the file; one writes at a time.
#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "consumer/flow/ports/ledger_duplicate.h"
#include "consumer/outputs/ledger/ledger.h"
#include "consumer/outputs/ledger/ledger_output.h"
#include "consumer/outputs/rows/batch_rows.h"
#include "consumer/outputs/rows/cell_values.h"
#include "consumer/outputs/sqlite/sqlite_connection.h"
#include "consumer/outputs/sqlite/sqlite_ledger.h"
#include "consumer/outputs/sqlite/sqlite_positions.h"
#include "consumer/outputs/sqlite/sqlite_schema.h"
#include "consumer/outputs/sqlite/sqlite_sql.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

// What `convert` says; all else is text, which the column's affinity makes a number where it is
// one.
class SqliteCells final : public CellTypes {
 public:
  explicit SqliteCells(const RowShape& shape) : shape_(shape) {}
  [[nodiscard]] std::string_view Name(std::size_t /*column*/) const override { return ""; }
  tl::expected<void, std::string> Convert(std::size_t column, std::optional<JsonType> /*type*/,
                                          std::string& text, std::size_t at) override {
    const Conversion conversion = shape_.columns[column].conversion;
    if (conversion == Conversion::kNone) return {};
    const std::string_view cell = std::string_view(text).substr(at);
    if (!IsTime(conversion)) {
      auto bytes = Decoded(cell, conversion);
      if (!bytes) return tl::unexpected(bytes.error());
      text.replace(at, std::string::npos, *bytes);
      return {};
    }
    const auto point = PointInTimeOf(cell, conversion);
    if (!point) return tl::unexpected(point.error());
    text.resize(at);
    AppendDateTime(*point, 'T', 6, text);
    text += 'Z';
    return {};
  }

 private:
  const RowShape& shape_;
};

class SqliteOutput final : public LedgerOutput {
 public:
  SqliteOutput(const SqliteOptions& options, std::string pipeline, std::string worker,
               OutputTerms terms)
      : LedgerOutput(std::move(pipeline), std::move(worker), std::move(terms), options.max_records,
                     ShapeOfRows(options.columns, options.rules)),
        options_(options),
        connection_(options.path),
        ledger_(connection_, pipeline_),
        prune_clock_(clock_()),
        cells_(rows_.shape()) {
    if (terms_.by_position) positions_.emplace(connection_, pipeline_, memory_);
  }
  ~SqliteOutput() override { Disconnect(); }

  tl::expected<std::vector<WriteOutcome>, OutputError> Write(const WriteRequest& request) override;
  tl::expected<bool, OutputError> KnowsTopic(const std::string& topic) override;
  void Interrupt() override { connection_.Interrupt(); }

 private:
  template <typename T>
  using Maybe = tl::expected<T, SqliteFailure>;

  // Opens the file that its path leads to now.
  Answer<void> Connect() override;
  void Disconnect() override;
  Maybe<void> PrepareStatements();
  Answer<void> PrepareIfNeedBe() override;
  Answer<Entries> LookUpIds(const std::vector<std::string>& ids) override;
  Answer<std::size_t> ForgetIds(const std::vector<std::string>& ids) override;
  Answer<std::size_t> PruneIds(const PruneScope& scope, std::size_t limit) override;
  Answer<PositionMemory::Rows> ReadPositions(const Parts& parts) override;
  Answer<std::size_t> TakeBack(const Parts& parts) override;

  // All of rows_, in the order of the request.
  Maybe<void> Transaction(Outcomes& outcomes);
  Maybe<WriteOutcome> WriteRecord(std::size_t record);
  Maybe<WriteOutcome> WriteRows(std::size_t record);  // its effect
  Maybe<void> WriteRow(std::size_t record, std::size_t row);
  bool AllText(Outcomes& outcomes) const;
  // A column that takes no bytes that are not text.
  [[nodiscard]] std::optional<std::size_t> NotText(std::size_t record) const;
  Maybe<WriteOutcome> WhatStands(std::size_t record);
  void RollBack();
  tl::expected<std::size_t, OutputError> Deleted(const Maybe<std::size_t>& gone);

  OutputError Fail(const SqliteFailure& failure);
  // Of a transaction: the file stays open where it only refused a record.
  OutputError Refused(const SqliteFailure& failure);

  const SqliteOptions options_;
  SqliteConnection connection_;
  SqliteLedger ledger_;
  const PruneClock prune_clock_;
  std::optional<HeldFile> file_;  // the one that was prepared last
  SqliteCells cells_;
  SqliteTarget target_;
  std::string now_;
  SqliteStatement insert_ledger_, insert_effect_, delete_effect_;
  std::optional<SqlitePositions> positions_;  // by position, in place of ledger_
};

void SqliteOutput::Disconnect() {
  insert_ledger_.reset();
  insert_effect_.reset();
  delete_effect_.reset();
  ledger_.Reset();
  if (positions_) positions_->Reset();
  connection_.Close();
}

OutputError SqliteOutput::Fail(const SqliteFailure& failure) {
  OutputError error = ToOutputError(failure, options_.path);
  if (connection_.interrupted()) {
    error.error.code = "interrupted";
    error.error.hint.clear();
  }
  const int code = failure.code & 0xff;
  if (code != SQLITE_BUSY && code != SQLITE_LOCKED) Disconnect();
  return error;
}

OutputError SqliteOutput::Refused(const SqliteFailure& failure) {
  if (connection_.interrupted() || FailureOf(failure) != WriteFailure::kRefused) {
    return Fail(failure);
  }
  OutputError error = ToOutputError(failure, options_.path);
  error.failure = WriteFailure::kRefused;
  error.detail = failure.text;
  return error;
}

SqliteOutput::Answer<void> SqliteOutput::Connect() {
  Disconnect();
  if (auto fine = CheckShape("output.sqlite", options_.path); !fine) return fine;
  if (auto opened = connection_.Open(); !opened) return tl::unexpected(Fail(opened.error()));
  auto target = LearnTarget(connection_, options_, *shape_,
                            {.pipeline = pipeline_,
                             .by_position = terms_.by_position,
                             .missing = IfLedgerIsMissing(terms_, file_.has_value())});
  if (!target) return tl::unexpected(target.error());
  target_ = std::move(*target);
  if (auto prepared = PrepareStatements(); !prepared) return tl::unexpected(Fail(prepared.error()));
  const HeldFile& file = connection_.file();
  const bool same = file_ && file_->id() == file.id();
  auto complete = CheckLostCommits(same, options_.path, "another file took its place");
  if (complete) file_ = file;
  return complete;
}

SqliteOutput::Maybe<void> SqliteOutput::PrepareStatements() {
  struct Entry {
    SqliteStatement& statement;
    std::string sql;
  };
  const std::array<Entry, 3> entries{
      {{insert_ledger_,
        positions_
            ? "SELECT 1"
            : "INSERT INTO fencepost_ledger"
              " (pipeline, record_id, token, worker, source, content_crc, completed_at)"
              " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (pipeline, record_id) DO NOTHING"},
       {insert_effect_, InsertSql(target_, *shape_)},
       {delete_effect_, shape_->deletes() ? DeleteSql(target_, *shape_) : "SELECT 1"}}};
  for (const Entry& entry : entries) {
    auto statement = connection_.Prepare(entry.sql);
    if (!statement) return tl::unexpected(statement.error());
    entry.statement = std::move(*statement);
  }
  return positions_ ? positions_->Prepare() : ledger_.Prepare();
}

SqliteOutput::Answer<void> SqliteOutput::PrepareIfNeedBe() {
  if (connection_.interrupted()) {
    return tl::unexpected(Fail({SQLITE_INTERRUPT, "interrupted for shutdown"}));
  }
  if (connection_.open() && !connection_.Moved()) return {};
  return Prepare();
}

tl::expected<std::vector<WriteOutcome>, OutputError> SqliteOutput::Write(
    const WriteRequest& request) {
  const std::vector<WriteItem>& items = request.items;
  Outcomes outcomes(items.size());
  if (positions_ && !PositionBatch::AllArePositions(items, outcomes)) return outcomes;
  if (shape_) {
    auto filled = FillRows(items, outcomes, &cells_, options_.path);
    if (!filled) return tl::unexpected(filled.error());
    if (rows_.size() == 0) return outcomes;
  }
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  if (!AllText(outcomes)) return outcomes;
  if (positions_) {
    positions_->changes().Fill(rows_);
    auto same = CheckLogs(items, positions_->changes().parts());
    if (!same) return tl::unexpected(same.error());
  }
  if (const auto done = Transaction(outcomes); !done) {
    RollBack();
    return tl::unexpected(Refused(done.error()));
  }
  // The file went away during the write: nobody will find in it what was committed. Written again,
  // it is into the file that is there now.
  if (connection_.Moved()) {
    return tl::unexpected(
        OutputError{.error = {.code = "output_replaced",
                              .what = "the file was moved or replaced while it was written to",
                              .where = options_.path,
                              .hint = "the batch is written again"},
                    .retry_at_once = true});
  }
  if (!positions_) {
    lost_commits_.Remember(clock_(), items, outcomes);
  } else if (auto stands = positions_->changes().OnCommitted(); !stands) {
    return tl::unexpected(stands.error());
  }
  return outcomes;
}

// As a selector's refusal (BatchRows::Fill): known before anything is written, and then nothing is.
bool SqliteOutput::AllText(Outcomes& outcomes) const {
  bool fine = true;
  for (std::size_t record = 0; record < rows_.size(); ++record) {
    const auto column = NotText(record);
    if (!column) continue;
    fine = false;
    const Column& from = shape_->columns[*column];
    WriteOutcome& outcome = outcomes[rows_.index(record)];
    outcome.result = WriteResult::kBadRecord;
    outcome.detail = outcome.shown =
        fmt::format("column {} from {}: not UTF-8 text; a BLOB column takes any bytes", from.name,
                    from.selector.InWords());
  }
  for (std::size_t record = 0; !fine && record < rows_.size(); ++record) {
    WriteOutcome& outcome = outcomes[rows_.index(record)];
    if (outcome.result != WriteResult::kBadRecord) outcome.result = WriteResult::kNotWritten;
  }
  return fine;
}

std::optional<std::size_t> SqliteOutput::NotText(std::size_t record) const {
  for (std::size_t row = 0; row < rows_.rows(record); ++row) {
    for (std::size_t column = 0; column < rows_.columns(); ++column) {
      const auto cell = rows_.cell(record, column, row);
      if (cell && !target_.blobs[column] && !BatchRows::IsText(*cell)) return column;
    }
  }
  return std::nullopt;
}

void SqliteOutput::RollBack() {
  if (connection_.open() && sqlite3_get_autocommit(connection_.db()) == 0) {
    (void)connection_.Exec("ROLLBACK");
  }
}

// Behind an id conflict nothing of its chain is written.
SqliteOutput::Maybe<void> SqliteOutput::Transaction(Outcomes& outcomes) {
  now_ = SqliteTimestamp(std::chrono::system_clock::now());
  std::vector<std::size_t> order(rows_.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [this](std::size_t record) { return rows_.index(record); });
  const bool apart = Planted("sqlite_without_a_transaction");
  if (auto begun = connection_.Exec(apart ? "SELECT 1" : "BEGIN IMMEDIATE"); !begun) return begun;
  if (positions_) {
    if (auto locked = positions_->Lock(); !locked) return locked;
  }
  std::set<std::uint64_t> held;
  for (const std::size_t record : order) {
    WriteOutcome& outcome = outcomes[rows_.index(record)];
    const std::uint64_t chain = rows_.item(record).chain;
    if (held.contains(chain)) {
      outcome.result = WriteResult::kNotWritten;
      continue;
    }
    auto written = WriteRecord(record);
    if (!written) return tl::unexpected(written.error());
    outcome = std::move(*written);
    if (chain != 0 && outcome.result == WriteResult::kIdConflict) held.insert(chain);
  }
  if (positions_) {
    if (auto stored = positions_->Store(now_); !stored) return stored;
  }
  return connection_.Exec(apart ? "SELECT 1" : "COMMIT");
}

SqliteOutput::Maybe<WriteOutcome> SqliteOutput::WriteRecord(std::size_t record) {
  if (positions_) {
    auto before = positions_->changes().DoneBefore(record, rows_.item(record));
    if (before) return *before;
    return WriteRows(record);
  }
  const WriteItem& item = rows_.item(record);
  sqlite3_stmt* statement = insert_ledger_.get();
  BindText(statement, 1, pipeline_);
  BindText(statement, 2, item.record_id);
  sqlite3_bind_int64(statement, 3, static_cast<sqlite3_int64>(item.token.value()));
  BindText(statement, 4, worker_);
  BindText(statement, 5, rows_.source(record));
  sqlite3_bind_int64(statement, 6, static_cast<std::int64_t>(item.crc));
  BindText(statement, 7, now_);
  if (auto done = connection_.Step(statement); !done) return tl::unexpected(done.error());
  const bool known = sqlite3_changes64(connection_.db()) == 0;
  if (known && !Planted("sqlite_effect_of_a_known_id")) return WhatStands(record);
  return WriteRows(record);
}

SqliteOutput::Maybe<WriteOutcome> SqliteOutput::WriteRows(std::size_t record) {
  for (std::size_t row = 0; row < rows_.rows(record); ++row) {
    if (auto done = WriteRow(record, row); !done) return tl::unexpected(done.error());
  }
  return WriteOutcome{.took_rows = rows_.takes_rows(record)};
}

// A deletion has the same parameters, and uses those of key and fence.
SqliteOutput::Maybe<void> SqliteOutput::WriteRow(std::size_t record, std::size_t row) {
  const bool deletes = rows_.deletes(record, row);
  sqlite3_stmt* statement = deletes ? delete_effect_.get() : insert_effect_.get();
  for (std::size_t column = 0; column < rows_.columns(); ++column) {
    if (deletes && !shape_->IsKey(column) && shape_->fence != column) continue;
    const int at = static_cast<int>(column) + 1;
    const auto cell = rows_.cell(record, column, row);
    if (!cell) {
      sqlite3_bind_null(statement, at);
    } else if (target_.blobs[column]) {
      sqlite3_bind_blob64(statement, at, cell->data(), cell->size(), SQLITE_STATIC);
    } else {
      BindText(statement, at, *cell);  // the column's affinity makes it a number where it is one
    }
  }
  if (auto done = connection_.Step(statement); !done) return tl::unexpected(done.error());
  return {};
}

SqliteOutput::Maybe<WriteOutcome> SqliteOutput::WhatStands(std::size_t record) {
  const WriteItem& item = rows_.item(record);
  const auto found = ledger_.Find(item.record_id);
  if (!found) return tl::unexpected(found.error());
  if (!*found) {
    return tl::unexpected(
        SqliteFailure{SQLITE_ERROR, "the ledger refused a row that it does not hold"});
  }
  const LedgerEntry& entry = **found;
  return DuplicateOrConflict(
      {.token = entry.token.value(), .source = entry.source, .crc = entry.crc}, item,
      rows_.source(record));
}

SqliteOutput::Answer<SqliteOutput::Entries> SqliteOutput::LookUpIds(
    const std::vector<std::string>& ids) {
  Entries entries(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    auto found = ledger_.Find(ids[i]);
    if (!found) return tl::unexpected(Fail(found.error()));
    entries[i] = std::move(*found);
  }
  return entries;
}

SqliteOutput::Answer<PositionMemory::Rows> SqliteOutput::ReadPositions(const Parts& parts) {
  auto rows = positions_->Read(parts);
  if (!rows) return tl::unexpected(Fail(rows.error()));
  return std::move(*rows);
}

tl::expected<bool, OutputError> SqliteOutput::KnowsTopic(const std::string& topic) {
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  if (positions_) {
    const auto knows = positions_->KnowsTopic(topic);
    if (!knows) return tl::unexpected(Fail(knows.error()));
    return *knows;
  }
  const auto row = connection_.Prepare(
      "SELECT 1 FROM fencepost_ledger WHERE pipeline = ?1 AND substr(source, 1, length(?2)) = ?2"
      " LIMIT 1");
  if (!row) return tl::unexpected(Fail(row.error()));
  BindText(row->get(), 1, pipeline_);
  const std::string beginning = topic + "/";
  BindText(row->get(), 2, beginning);
  const auto found = connection_.Step(row->get());
  if (!found) return tl::unexpected(Fail(found.error()));
  return *found;
}

SqliteOutput::Answer<std::size_t> SqliteOutput::ForgetIds(const std::vector<std::string>& ids) {
  return Deleted(ledger_.Delete(ids));
}

SqliteOutput::Answer<std::size_t> SqliteOutput::TakeBack(const Parts& parts) {
  return Deleted(positions_->TakeBack(parts));
}

tl::expected<std::size_t, OutputError> SqliteOutput::Deleted(const Maybe<std::size_t>& gone) {
  if (gone) return *gone;
  RollBack();
  return tl::unexpected(Fail(gone.error()));
}

SqliteOutput::Answer<std::size_t> SqliteOutput::PruneIds(const PruneScope& scope,
                                                         std::size_t limit) {
  const auto rows = ledger_.PrunableRows(scope, prune_clock_.At(clock_()) - scope.keep, limit);
  if (!rows) return tl::unexpected(Fail(rows.error()));
  if (rows->empty()) return 0;
  return Deleted(ledger_.DeleteOld(*rows));
}

}  // namespace

std::unique_ptr<Output> MakeSqliteOutput(const SqliteOptions& options, std::string pipeline,
                                         std::string worker, OutputTerms terms) {
  return std::make_unique<SqliteOutput>(options, std::move(pipeline), std::move(worker),
                                        std::move(terms));
}

}  // namespace fencepost::consumer
