// The ledger by id in an SQLite file: found, inserted, deleted from, pruned.
#include <utility>

#include "consumer/flow/ports/ledger_duplicate.h"
#include "consumer/outputs/ledger/ledger.h"
#include "consumer/outputs/sqlite/sqlite_output.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {

SqliteOutput::Answer<std::optional<LedgerEntry>> SqliteOutput::Find(std::string_view id) {
  sqlite3_stmt* row = Bound(kFindId, {pipeline_, id});
  const auto found = Step(row);
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

SqliteOutput::Answer<SqliteOutput::Known> SqliteOutput::LockIds() {
  Known known(rows_.size());
  for (std::size_t record = 0; record < rows_.size(); ++record) {
    const WriteItem& item = rows_.item(record);
    const auto found = Find(item.record_id);
    if (!found) return tl::unexpected(found.error());
    if (!*found || Planted("sqlite_effect_of_a_known_id")) continue;
    const LedgerEntry& entry = **found;
    known[record] = DuplicateOrConflict(
        {.token = entry.token.value(), .source = entry.source, .crc = entry.crc}, item,
        rows_.source(record));
  }
  return known;
}

SqliteOutput::Answer<void> SqliteOutput::InsertIds(const Records& fresh) {
  const std::string now = Time();
  for (const std::size_t record : fresh) {
    const WriteItem& item = rows_.item(record);
    sqlite3_stmt* insert =
        Bound(kInsertId, {pipeline_, item.record_id, worker_, rows_.source(record), now});
    sqlite3_bind_int64(insert, 6, static_cast<sqlite3_int64>(item.token.value()));
    sqlite3_bind_int64(insert, 7, static_cast<std::int64_t>(item.crc));
    if (auto done = Run(insert); !done) return done;
  }
  return {};
}

SqliteOutput::Answer<SqliteOutput::Entries> SqliteOutput::LookUpIds(
    const std::vector<std::string>& ids) {
  Entries entries;
  for (const std::string& id : ids) {
    auto found = Find(id);
    if (!found) return tl::unexpected(found.error());
    entries.push_back(std::move(*found));
  }
  return entries;
}

SqliteOutput::Answer<bool> SqliteOutput::HasTopic(const std::string& topic) {
  sqlite3_stmt* row = Bound(kHasTopic, {pipeline_, topic});
  auto found = Step(row);
  sqlite3_reset(row);
  return found;
}

template <typename Each, typename BoundTo>
SqliteOutput::Answer<std::size_t> SqliteOutput::DeleteEach(const std::vector<Each>& all,
                                                           BoundTo bound) {
  std::size_t gone = 0;
  auto done = Begin();
  for (const Each& one : all) {
    if (done) done = Run(bound(one));
    if (done) gone += static_cast<std::size_t>(sqlite3_changes64(connection_.db()));
  }
  if (done) done = Commit();
  if (done) return gone;
  RollBack();
  return tl::unexpected(done.error());
}

SqliteOutput::Answer<std::size_t> SqliteOutput::ForgetIds(const std::vector<std::string>& ids) {
  return DeleteEach(ids, [this](const std::string& id) {
    return Bound(kDeleteId, {pipeline_, id});
  });
}

// Those that are still the same rows: one that was forgotten and written again since is young.
SqliteOutput::Answer<std::size_t> SqliteOutput::PruneIds(const PruneScope& scope,
                                                         std::size_t limit) {
  const auto rows = PrunableRows(scope, prune_clock_.At(clock_()) - scope.keep, limit);
  if (!rows) return tl::unexpected(rows.error());
  if (rows->empty()) return 0;
  return DeleteEach(*rows, [this](const OldRow& row) {
    return Bound(kDeleteOldId, {pipeline_, row.id, row.source, row.completed_at});
  });
}

SqliteOutput::Answer<std::vector<SqliteOutput::OldRow>> SqliteOutput::PrunableRows(
    const PruneScope& scope, locking::WallTime before, std::size_t limit) {
  const std::string end = Timestamp(before);
  sqlite3_stmt* row = Bound(kOldIds, {pipeline_, prune_from_, end});
  sqlite3_bind_int64(row, 4, static_cast<sqlite3_int64>(kPruneWindow));
  std::vector<OldRow> rows;
  std::string last;
  std::size_t seen = 0;
  while (rows.size() < limit) {
    const auto more = Step(row);
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
