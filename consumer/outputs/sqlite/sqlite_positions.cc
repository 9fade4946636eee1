// The ledger by position in an SQLite file: a row a partition, whose `done` is a text of ranges. It
// is read, changed and stored within one transaction, under the file's write lock.
#include <utility>

#include "consumer/outputs/ledger/ledger.h"
#include "consumer/outputs/sqlite/sqlite_output.h"

namespace fencepost::consumer {

SqliteOutput::Answer<PositionMemory::Rows> SqliteOutput::ReadPositions(const Parts& parts) {
  PositionMemory::Rows rows;
  for (const PositionPart& part : parts) {
    rows.emplace_back();
    sqlite3_stmt* row = Bound(kReadPosition, {pipeline_, part.key.cluster, part.key.where.topic});
    sqlite3_bind_int64(row, 4, part.key.where.partition);
    const auto found = Step(row);
    if (!found) return tl::unexpected(found.error());
    if (!*found) continue;
    auto done = PositionRanges::Parse(SqliteText(row, 0));
    if (done) {
      rows.back() = PositionRow{
          .done = std::move(*done),
          .token = locking::Token(static_cast<std::uint64_t>(sqlite3_column_int64(row, 1))),
          .worker = std::string(SqliteText(row, 2)),
          .anchors = PositionAnchors::Parse(SqliteText(row, 3)),
          .forgotten = sqlite3_column_int64(row, 4),
          .updated_at = std::string(SqliteText(row, 5))};
    }
    sqlite3_reset(row);
    if (!rows.back()) return tl::unexpected(InvalidRanges(Where()));
  }
  return rows;
}

SqliteOutput::Answer<void> SqliteOutput::StorePositions(const Changes& changes) {
  for (const auto& [key, row] : changes) {
    const std::string done = row.done.Text();
    const std::string anchors = row.anchors.Text();
    sqlite3_stmt* store = Bound(kStorePosition, {pipeline_, key.cluster, key.where.topic,
                                                 row.worker, done, anchors, row.updated_at});
    sqlite3_bind_int64(store, 8, key.where.partition);
    sqlite3_bind_int64(store, 9, static_cast<sqlite3_int64>(row.token.value()));
    sqlite3_bind_int64(store, 10, row.forgotten);
    if (auto stored = Run(store); !stored) return stored;
  }
  return {};
}

SqliteOutput::Answer<void> SqliteOutput::ForgetLetters(const PositionKey& key,
                                                       const PositionRange& range) {
  const std::string prefix = PositionPrefix(key);
  const std::string end = prefix.substr(0, prefix.size() - 1) + '0';  // behind a slash
  sqlite3_stmt* forget = Bound(kForgetLetters, {pipeline_, prefix, end});
  sqlite3_bind_int64(forget, 4, range.begin);
  sqlite3_bind_int64(forget, 5, range.end);
  return Run(forget);
}

}  // namespace fencepost::consumer
