// The ledger by id in an SQLite file: found, inserted, deleted from, pruned.
#include <utility>

#include "consumer/outputs/ledger/ledger.h"
#include "consumer/outputs/sqlite/sqlite_output.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {

// The file is locked.
SqliteOutput::Answer<SqliteOutput::Entries> SqliteOutput::LockIds(
    const std::vector<std::string>& ids) {
  if (Planted("sqlite_effect_of_a_known_id")) return Entries(ids.size());
  return LookUpIds(ids);
}

SqliteOutput::Answer<void> SqliteOutput::InsertIds(const Records& fresh) {
  const std::string now = Time();
  for (const std::size_t record : fresh) {
    const WriteItem& item = rows_.item(record);
    sqlite3_stmt* insert =
        Bound(kInsertId, {pipeline_, item.record_id, worker_, rows_.source(record), now});
    sqlite3_bind_int64(insert, 6, static_cast<sqlite3_int64>(TokenOf(record).value()));
    sqlite3_bind_int64(insert, 7, static_cast<std::int64_t>(item.crc));
    if (auto done = Run(insert); !done) return done;
  }
  return {};
}

SqliteOutput::Answer<SqliteOutput::Entries> SqliteOutput::LookUpIds(
    const std::vector<std::string>& ids) {
  Entries entries(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    sqlite3_stmt* row = Bound(kFindId, {pipeline_, ids[i]});
    const auto found = Step(row);
    if (!found) return tl::unexpected(found.error());
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

// Within the transaction.
SqliteOutput::Answer<std::size_t> SqliteOutput::DeleteNothingWritten(
    const std::vector<std::string>& ids) {
  std::size_t gone = 0;
  for (const std::string& id : ids) {
    if (auto done = Run(Bound(kDeleteNothingWritten, {pipeline_, id})); !done) {
      return tl::unexpected(done.error());
    }
    gone += static_cast<std::size_t>(sqlite3_changes64(connection_.db()));
  }
  return gone;
}

SqliteOutput::Answer<std::size_t> SqliteOutput::DeleteRows(const std::vector<OldRow>& rows) {
  return DeleteEach(rows, [this](const OldRow& row) {
    return Bound(kDeleteOldId, {pipeline_, row.id, row.source, row.completed_at});
  });
}

SqliteOutput::Answer<void> SqliteOutput::VisitOldRows(std::chrono::seconds keep,
                                                      const std::string& from, bool behind,
                                                      const std::function<bool(OldRow)>& visit) {
  const std::string begin = from + (behind ? "!" : "");  // '!' is before any later time
  const std::string end = Timestamp(prune_clock_.At(clock_()) - keep);
  sqlite3_stmt* row = Bound(kOldIds, {pipeline_, begin, end});
  sqlite3_bind_int64(row, 4, static_cast<sqlite3_int64>(kPruneWindow));
  auto more = Step(row);
  while (more && *more) {
    const bool on = visit({std::string(SqliteText(row, 0)), std::string(SqliteText(row, 1)),
                           std::string(SqliteText(row, 2))});
    if (!on) break;
    more = Step(row);
  }
  sqlite3_reset(row);
  if (!more) return tl::unexpected(more.error());
  return {};
}

}  // namespace fencepost::consumer
