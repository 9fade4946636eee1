// The ledger by id in MySQL: locked, inserted, looked up, deleted from, pruned.
#include <algorithm>
#include <iterator>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "consumer/outputs/ledger/ledger.h"
#include "consumer/outputs/mysql/mysql_output.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {

std::string MysqlOutput::OfIds(const std::vector<std::string>& ids, std::size_t begin,
                               std::size_t end) const {
  std::string sql = "pipeline = " + Quoted(pipeline_) + " AND record_id IN (";
  for (std::size_t i = begin; i < end; ++i) {
    if (i > begin) sql += ", ";
    AppendBytes(ids[i], sql);
  }
  return sql + ")";
}

// A row of another transaction that is not committed yet is waited for.
MysqlOutput::Answer<MysqlOutput::Entries> MysqlOutput::LockIds(
    const std::vector<std::string>& ids) {
  return SelectIds(ids, " FOR UPDATE");
}

// In the byte order of the ids, so that no two writers deadlock. Another transaction may have
// inserted one since it was looked for: then all of this is done again at once.
MysqlOutput::Answer<void> MysqlOutput::InsertIds(const Records& fresh) {
  Records sorted = fresh;
  std::ranges::sort(sorted, {},
                    [this](std::size_t record) { return rows_.item(record).record_id; });
  for (std::size_t begin = 0; begin < sorted.size(); begin += kRows) {
    const bool optional = Planted("mysql_ledger_row_is_optional");
    std::string sql = (optional ? "INSERT IGNORE INTO " : "INSERT INTO ") + target_.ids +
                      " (pipeline, record_id, token, worker, source, content_crc, completed_at)"
                      " VALUES ";
    for (std::size_t i = begin; i < std::min(sorted.size(), begin + kRows); ++i) {
      const WriteItem& item = rows_.item(sorted[i]);
      sql += i == begin ? "(" : ", (";
      AppendText(pipeline_, sql);
      sql += ", ";
      AppendBytes(item.record_id, sql);
      fmt::format_to(std::back_inserter(sql), ", {}, ",
                     static_cast<std::int64_t>(TokenOf(sorted[i]).value()));
      AppendText(worker_, sql);
      sql += ", ";
      AppendText(rows_.source(sorted[i]), sql);
      fmt::format_to(std::back_inserter(sql), ", {}, now(6))", static_cast<std::int64_t>(item.crc));
    }
    if (auto done = Insert(sql); !done) return done;
  }
  return {};
}

MysqlOutput::Answer<MysqlOutput::Entries> MysqlOutput::SelectIds(
    const std::vector<std::string>& ids, std::string_view how) {
  Entries entries(ids.size());
  for (std::size_t begin = 0; begin < ids.size(); begin += kRows) {
    const std::size_t end = std::min(ids.size(), begin + kRows);
    const auto rows =
        Ask("SELECT record_id, token, content_crc, worker, source,"
            " concat(left(date_format(completed_at, '%Y-%m-%dT%H:%i:%s.%f'), 23), 'Z') FROM " +
            target_.ids + " WHERE " + OfIds(ids, begin, end).append(how));
    if (!rows) return tl::unexpected(rows.error());
    std::unordered_map<std::string_view, LedgerEntry> found;
    for (const auto& row : *rows) {
      found.emplace(*row[0],
                    LedgerEntry{.token = locking::Token(MysqlUnsigned(row[1])),
                                .crc = static_cast<locking::ContentCrc>(MysqlUnsigned(row[2])),
                                .worker = *row[3],
                                .source = *row[4],
                                .completed_at = *row[5]});
    }
    for (std::size_t i = begin; i < end; ++i) {
      const auto entry = found.find(ids[i]);
      if (entry != found.end()) entries[i] = entry->second;
    }
  }
  return entries;
}

MysqlOutput::Answer<std::size_t> MysqlOutput::DeleteIds(const std::vector<std::string>& ids,
                                                        std::string_view which) {
  std::size_t gone = 0;
  for (std::size_t begin = 0; begin < ids.size(); begin += kRows) {
    const auto done = Run("DELETE FROM " + target_.ids + " WHERE " +
                          OfIds(ids, begin, std::min(ids.size(), begin + kRows)).append(which));
    if (!done) return tl::unexpected(done.error());
    gone += connection_.affected();
  }
  return gone;
}

MysqlOutput::Answer<bool> MysqlOutput::HasTopic(const std::string& topic) {
  std::string sql = "SELECT 1 FROM " + target_.ledger + " WHERE pipeline = " + Quoted(pipeline_);
  if (terms_.by_position) {
    AppendBytes(topic, sql += " AND done <> '{}' AND topic = ");
  } else {
    sql += fmt::format(" AND left(source, {}) = {}", topic.size() + 1, Quoted(topic + "/"));
  }
  const auto found = Ask(sql + " LIMIT 1");
  if (!found) return tl::unexpected(found.error());
  return !found->empty();
}

MysqlOutput::Answer<void> MysqlOutput::VisitOldRows(std::chrono::seconds keep,
                                                    const std::string& from, bool behind,
                                                    const std::function<bool(OldRow)>& visit) {
  const auto rows = Ask(fmt::format(
      "SELECT record_id, source, completed_at FROM {} WHERE pipeline = {} AND completed_at {} {}"
      " AND completed_at < now(6) - INTERVAL {} SECOND ORDER BY completed_at LIMIT {}",
      target_.ids, Quoted(pipeline_), behind ? ">" : ">=",
      Quoted(from.empty() ? "1000-01-01 00:00:00" : from), keep.count(), kPruneWindow));
  if (!rows) return tl::unexpected(rows.error());
  for (const auto& row : *rows) {
    if (!visit({*row[0], *row[1], *row[2]})) break;
  }
  return {};
}

MysqlOutput::Answer<std::size_t> MysqlOutput::DeleteRows(const std::vector<OldRow>& rows) {
  std::string sql =
      fmt::format("DELETE FROM {} WHERE pipeline = {} AND (record_id, completed_at) IN (",
                  target_.ids, Quoted(pipeline_));
  for (const OldRow& row : rows) {
    sql += &row == &rows.front() ? "(" : ", (";
    AppendBytes(row.id, sql);
    sql += ", ";
    AppendText(row.completed_at, sql);
    sql += ')';
  }
  const auto done = Run(sql + ")");
  if (!done) return tl::unexpected(done.error());
  return connection_.affected();
}

}  // namespace fencepost::consumer
