// The ledger by position in MySQL: a row a partition, whose `done` is a text of ranges.
//
// Within a transaction the rows of the batch are locked first, each by its whole key and in the
// order of the keys, then read: InnoDB's locking read has what was committed last, whatever the
// transaction saw before. Rows that are missing are inserted, and are locked by that. Where another
// writer inserts one at the same time, the transaction is rolled back and done again at once.
#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "consumer/outputs/mysql/mysql_output.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

// `between`: what comes before cluster, topic and partition.
void AppendKey(const std::string& pipeline, const PositionKey& key,
               const std::array<std::string_view, 3>& between, std::string& sql) {
  AppendText(pipeline, sql);
  sql += between[0];
  AppendBytes(key.cluster, sql);
  sql += between[1];
  AppendBytes(key.where.topic, sql);
  fmt::format_to(std::back_inserter(sql), "{}{}", between[2], key.where.partition);
}
constexpr std::array<std::string_view, 3> kCommas{", ", ", ", ", "};

}  // namespace

// By the primary key and nothing else, however few rows the table has: a scan would wait for the
// locks of all partitions. The server reads the keys in their order, and so locks in it.
MysqlOutput::Answer<PositionMemory::Rows> MysqlOutput::SelectPositions(const Parts& parts,
                                                                       std::string_view how) {
  PositionMemory::Rows rows(parts.size());
  for (std::size_t begin = 0; begin < parts.size(); begin += kRows) {
    const std::size_t end = std::min(parts.size(), begin + kRows);
    std::string sql =
        "SELECT cluster, topic, `partition`, done, token, worker, anchors, forgotten,"
        " concat(left(date_format(updated_at, '%Y-%m-%dT%H:%i:%s.%f'), 23), 'Z') FROM " +
        target_.ledger + " FORCE INDEX (PRIMARY) WHERE ";
    for (std::size_t i = begin; i < end; ++i) {
      sql += i == begin ? "(pipeline = " : " OR (pipeline = ";
      AppendKey(pipeline_, parts[i].key,
                {" AND cluster = ", " AND topic = ", " AND `partition` = "}, sql);
      sql += ")";
    }
    const auto found = Ask(sql.append(how));
    if (!found) return tl::unexpected(found.error());
    for (const auto& row : *found) {
      const PositionKey key{*row[0], {*row[1], MysqlNumber<std::int32_t>(row[2])}};
      const auto part = std::ranges::lower_bound(parts, key, {}, &PositionPart::key);
      if (part == parts.end() || part->key != key) continue;
      auto done = PositionRanges::Parse(*row[3]);
      if (!done) return tl::unexpected(InvalidRanges(Where()));
      rows[static_cast<std::size_t>(part - parts.begin())] =
          PositionRow{.done = std::move(*done),
                      .token = locking::Token(MysqlUnsigned(row[4])),
                      .worker = *row[5],
                      .anchors = PositionAnchors::Parse(*row[6]),
                      .forgotten = MysqlNumber<std::int64_t>(row[7]),
                      .updated_at = *row[8]};
    }
  }
  return rows;
}

MysqlOutput::Answer<PositionMemory::Rows> MysqlOutput::LockPositions(const Parts& parts) {
  return SelectPositions(parts, Planted("mysql_rows_are_not_locked") ? "" : " FOR UPDATE");
}

template <typename Each, typename Append>
std::string MysqlOutput::InsertSql(const Each& rows, Append append) const {
  std::string sql;
  for (const auto& row : rows) {
    sql += sql.empty() ? "INSERT INTO " + target_.ledger +
                             " (pipeline, cluster, topic, `partition`, done, token, worker,"
                             " anchors, forgotten, updated_at) VALUES ("
                       : ", (";
    append(row, sql);
    sql += ')';
  }
  return sql;
}

MysqlOutput::Answer<void> MysqlOutput::AddPositions(const std::vector<PositionKey>& keys) {
  const std::string sql = InsertSql(keys, [this](const PositionKey& key, std::string& to) {
    AppendKey(pipeline_, key, kCommas, to);
    to += ", '{}', 0, '', '', 0, now(6)";
  });
  return sql.empty() ? Answer<void>() : Insert(sql);
}

MysqlOutput::Answer<void> MysqlOutput::StorePositions(const Changes& changes) {
  const auto append = [this](const PositionChanges::Change& change, std::string& to) {
    const PositionRow& row = change.row;
    AppendKey(pipeline_, change.key, kCommas, to);
    fmt::format_to(std::back_inserter(to), ", '{}', {}, ", row.done.Text(),
                   static_cast<std::int64_t>(row.token.value()));
    AppendText(row.worker, to);
    fmt::format_to(std::back_inserter(to), ", '{}', {}, ", row.anchors.Text(), row.forgotten);
    // 2026-11-22T13:05:00.250Z, as SelectPositions writes it.
    to += row.updated_at.empty()
              ? "now(6)"
              : fmt::format("'{} {}'", row.updated_at.substr(0, 10), row.updated_at.substr(11, 12));
  };
  const std::string sql = InsertSql(changes, append);
  if (sql.empty()) return {};
  return Run(sql +
             " ON DUPLICATE KEY UPDATE done = VALUES(done), token = VALUES(token),"
             " worker = VALUES(worker), anchors = VALUES(anchors), forgotten = VALUES(forgotten),"
             " updated_at = VALUES(updated_at)");
}

// Numbers only are behind a prefix that ends with its last slash.
MysqlOutput::Answer<void> MysqlOutput::ForgetLetters(const PositionKey& key,
                                                     const PositionRange& range) {
  const std::string prefix = PositionPrefix(key);
  std::string sql = "DELETE FROM " + target_.ids + " WHERE pipeline = " + Quoted(pipeline_) +
                    " AND token = 0 AND record_id > ";
  AppendBytes(prefix, sql);
  AppendBytes(prefix.substr(0, prefix.size() - 1) + '0', sql += " AND record_id < ");
  return Run(fmt::format("{} AND cast(substring(record_id, {}) AS unsigned) BETWEEN {} AND {}", sql,
                         prefix.size() + 1, range.begin, range.end - 1));
}

}  // namespace fencepost::consumer
