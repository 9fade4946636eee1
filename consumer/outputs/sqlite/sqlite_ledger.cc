#include "consumer/outputs/sqlite/sqlite_ledger.h"

#include <array>
#include <chrono>
#include <utility>

#include "consumer/outputs/ledger/ledger.h"
#include "locking/base/planted.h"
#include "locking/base/time_text.h"

namespace fencepost::consumer {

void BindText(sqlite3_stmt* statement, int at, std::string_view text) {
  sqlite3_bind_text64(statement, at, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

std::string SqliteTimestamp(std::chrono::system_clock::time_point at) {
  return Rfc3339(std::chrono::floor<std::chrono::milliseconds>(at.time_since_epoch()));
}

SqliteLedger::Maybe<void> SqliteLedger::Prepare() {
  struct Entry {
    SqliteStatement& statement;
    const char* sql;
  };
  const std::array<Entry, 4> entries{
      {{look_,
        "SELECT token, source, content_crc, worker, completed_at FROM fencepost_ledger"
        " WHERE pipeline = ?1 AND record_id = ?2"},
       {delete_, Planted("forget_of_all_pipelines")
                     ? "DELETE FROM fencepost_ledger WHERE ?1 <> '' AND record_id = ?2"
                     : "DELETE FROM fencepost_ledger WHERE pipeline = ?1 AND record_id = ?2"},
       {old_,
        "SELECT record_id, source, completed_at FROM fencepost_ledger WHERE pipeline = ?1"
        " AND completed_at >= ?2 AND completed_at < ?3 ORDER BY completed_at LIMIT ?4"},
       {delete_old_,
        "DELETE FROM fencepost_ledger WHERE pipeline = ?1 AND record_id = ?2 AND source = ?3"
        " AND completed_at = ?4"}}};
  for (const Entry& entry : entries) {
    auto statement = connection_.Prepare(entry.sql);
    if (!statement) return tl::unexpected(statement.error());
    entry.statement = std::move(*statement);
  }
  return {};
}

void SqliteLedger::Reset() {
  look_.reset();
  delete_.reset();
  old_.reset();
  delete_old_.reset();
}

SqliteLedger::Maybe<std::optional<LedgerEntry>> SqliteLedger::Find(std::string_view id) {
  sqlite3_stmt* row = look_.get();
  BindText(row, 1, pipeline_);
  BindText(row, 2, id);
  const auto found = connection_.Step(row);
  if (!found) return tl::unexpected(found.error());
  if (!*found) return std::nullopt;
  LedgerEntry entry{
      .token = locking::Token(static_cast<std::uint64_t>(sqlite3_column_int64(row, 0))),
      .crc = static_cast<locking::ContentCrc>(sqlite3_column_int64(row, 2)),
      .worker = std::string(SqliteText(row, 3)),
      .source = std::string(SqliteText(row, 1)),
      .completed_at = std::string(SqliteText(row, 4))};
  sqlite3_reset(row);
  return entry;
}

template <typename Each, typename Bind>
SqliteLedger::Maybe<std::size_t> SqliteLedger::DeleteEach(sqlite3_stmt* statement,
                                                          const std::vector<Each>& all, Bind bind) {
  if (auto begun = connection_.Exec("BEGIN IMMEDIATE"); !begun) {
    return tl::unexpected(begun.error());
  }
  std::size_t gone = 0;
  for (const Each& one : all) {
    BindText(statement, 1, pipeline_);
    bind(one);
    if (auto done = connection_.Step(statement); !done) return tl::unexpected(done.error());
    gone += static_cast<std::size_t>(sqlite3_changes64(connection_.db()));
  }
  if (auto done = connection_.Exec("COMMIT"); !done) return tl::unexpected(done.error());
  return gone;
}

SqliteLedger::Maybe<std::size_t> SqliteLedger::Delete(const std::vector<std::string>& ids) {
  sqlite3_stmt* statement = delete_.get();
  return DeleteEach(statement, ids, [&](const std::string& id) { BindText(statement, 2, id); });
}

SqliteLedger::Maybe<std::size_t> SqliteLedger::DeleteOld(const std::vector<OldRow>& rows) {
  sqlite3_stmt* statement = delete_old_.get();
  return DeleteEach(statement, rows, [&](const OldRow& row) {
    BindText(statement, 2, row.id);
    BindText(statement, 3, row.source);
    BindText(statement, 4, row.completed_at);
  });
}

SqliteLedger::Maybe<std::vector<SqliteLedger::OldRow>> SqliteLedger::PrunableRows(
    const PruneScope& scope, locking::WallTime before, std::size_t limit) {
  const std::string end = SqliteTimestamp(before);
  sqlite3_stmt* row = old_.get();
  BindText(row, 1, pipeline_);
  BindText(row, 2, prune_from_);
  BindText(row, 3, end);
  sqlite3_bind_int64(row, 4, static_cast<sqlite3_int64>(kPruneWindow));
  std::vector<OldRow> rows;
  std::string last;
  std::size_t seen = 0;
  while (rows.size() < limit) {
    const auto more = connection_.Step(row);
    if (!more) return tl::unexpected(more.error());
    if (!*more) break;
    ++seen;
    last = SqliteText(row, 2);
    const std::string source(SqliteText(row, 1));
    if (MayPrune(scope, source)) rows.push_back({std::string(SqliteText(row, 0)), source, last});
  }
  sqlite3_reset(row);
  if (rows.size() == limit) {
    prune_from_ = last;
  } else if (seen < kPruneWindow) {
    prune_from_.clear();
  } else {
    // All rows of a window may have one time: then it is passed over as a whole. '!' is behind it
    // and before any later time.
    prune_from_ = last == prune_from_ ? last + '!' : last;
  }
  return rows;
}

}  // namespace fencepost::consumer
