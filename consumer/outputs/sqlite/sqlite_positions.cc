#include "consumer/outputs/sqlite/sqlite_positions.h"

#include <utility>

#include "consumer/outputs/sqlite/sqlite_ledger.h"

namespace fencepost::consumer {

SqlitePositions::Maybe<void> SqlitePositions::Prepare() {
  struct Entry {
    SqliteStatement& statement;
    const char* sql;
  };
  const Entry entries[] = {
      {look_,
       "SELECT done, token, worker, anchors, forgotten, updated_at FROM fencepost_positions"
       " WHERE pipeline = ?1 AND cluster = ?2 AND topic = ?3 AND \"partition\" = ?4"},
      {store_,
       "INSERT OR REPLACE INTO fencepost_positions (pipeline, cluster, topic, \"partition\", done,"
       " token, worker, anchors, forgotten, updated_at)"
       " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"},
      {knows_,
       "SELECT 1 FROM fencepost_positions WHERE pipeline = ?1 AND topic = ?2 AND done <> '{}'"
       " LIMIT 1"}};
  for (const Entry& entry : entries) {
    auto statement = connection_.Prepare(entry.sql);
    if (!statement) return tl::unexpected(statement.error());
    entry.statement = std::move(*statement);
  }
  return {};
}

void SqlitePositions::Reset() {
  look_.reset();
  store_.reset();
  knows_.reset();
}

void SqlitePositions::BindKey(sqlite3_stmt* statement, const PositionKey& key) {
  BindText(statement, 1, pipeline_);
  BindText(statement, 2, key.cluster);
  BindText(statement, 3, key.where.topic);
  sqlite3_bind_int64(statement, 4, key.where.partition);
}

SqlitePositions::Maybe<std::vector<std::optional<PositionRow>>> SqlitePositions::Read(
    const std::vector<PositionPart>& parts) {
  std::vector<std::optional<PositionRow>> rows;
  sqlite3_stmt* row = look_.get();
  for (const PositionPart& part : parts) {
    rows.emplace_back();
    BindKey(row, part.key);
    const auto found = connection_.Step(row);
    if (!found) return tl::unexpected(found.error());
    if (!*found) continue;
    auto done = PositionRanges::Parse(SqliteText(row, 0));
    PositionRow read{
        .token = locking::Token(static_cast<std::uint64_t>(sqlite3_column_int64(row, 1))),
        .worker = std::string(SqliteText(row, 2)),
        .anchors = PositionAnchors::Parse(SqliteText(row, 3)),
        .forgotten = sqlite3_column_int64(row, 4),
        .updated_at = std::string(SqliteText(row, 5))};
    sqlite3_reset(row);
    // Taken for empty, every effect would happen again.
    if (!done) {
      return tl::unexpected(SqliteFailure{
          SQLITE_CORRUPT, "fencepost_positions.done holds no ranges: it was changed by hand"});
    }
    read.done = std::move(*done);
    rows.back() = std::move(read);
  }
  return rows;
}

SqlitePositions::Maybe<void> SqlitePositions::Lock() {
  auto rows = Read(changes_.parts());
  if (!rows) return tl::unexpected(rows.error());
  changes_.OnLocked(std::move(*rows));
  return {};
}

SqlitePositions::Maybe<void> SqlitePositions::Store(const PositionKey& key,
                                                    const PositionRow& row) {
  const std::string done = row.done.Text();
  const std::string anchors = row.anchors.Text();
  sqlite3_stmt* statement = store_.get();
  BindKey(statement, key);
  BindText(statement, 5, done);
  sqlite3_bind_int64(statement, 6, static_cast<sqlite3_int64>(row.token.value()));
  BindText(statement, 7, row.worker);
  BindText(statement, 8, anchors);
  sqlite3_bind_int64(statement, 9, row.forgotten);
  BindText(statement, 10, row.updated_at);
  if (auto done_now = connection_.Step(statement); !done_now) {
    return tl::unexpected(done_now.error());
  }
  return {};
}

SqlitePositions::Maybe<void> SqlitePositions::Store(std::string_view now) {
  for (const auto& [key, row] : changes_.Changed(now)) {
    if (auto stored = Store(key, row); !stored) return stored;
  }
  return {};
}

SqlitePositions::Maybe<std::size_t> SqlitePositions::TakeBack(
    const std::vector<PositionPart>& parts) {
  if (auto begun = connection_.Exec("BEGIN IMMEDIATE"); !begun) {
    return tl::unexpected(begun.error());
  }
  auto rows = Read(parts);
  if (!rows) return tl::unexpected(rows.error());
  std::size_t gone = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!(*rows)[i]) continue;
    const std::size_t taken = consumer::TakeBack(parts[i].ranges, *(*rows)[i]);
    gone += taken;
    if (taken == 0) continue;
    if (auto stored = Store(parts[i].key, *(*rows)[i]); !stored) {
      return tl::unexpected(stored.error());
    }
  }
  if (auto done = connection_.Exec("COMMIT"); !done) return tl::unexpected(done.error());
  return gone;
}

SqlitePositions::Maybe<bool> SqlitePositions::KnowsTopic(std::string_view topic) {
  BindText(knows_.get(), 1, pipeline_);
  BindText(knows_.get(), 2, topic);
  const auto found = connection_.Step(knows_.get());
  if (!found) return tl::unexpected(found.error());
  if (*found) sqlite3_reset(knows_.get());
  return *found;
}

}  // namespace fencepost::consumer
