#include "consumer/outputs/mysql/mysql_positions.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

constexpr std::size_t kRows = 500;  // of one statement
constexpr unsigned kDuplicateEntry = 1062;
constexpr unsigned kDeadlock = 1213;
constexpr unsigned kCrashedTable = 1194;

constexpr std::string_view kColumns =
    "(pipeline, cluster, topic, `partition`, done, token, worker, anchors, forgotten, updated_at)";

MysqlFailure NoRanges() {
  return {.kind = MysqlFailure::Kind::kServer,
          .code = kCrashedTable,
          .sqlstate = "HY000",
          .text = "fencepost_positions.done holds no ranges: it was changed by hand"};
}

}  // namespace

void MysqlPositions::AppendKey(const PositionKey& key, std::string& sql) const {
  AppendText(pipeline_, sql);
  sql += ", ";
  AppendBytes(key.cluster, sql);
  sql += ", ";
  AppendBytes(key.where.topic, sql);
  fmt::format_to(std::back_inserter(sql), ", {}", key.where.partition);
}

std::string MysqlPositions::Is(const PositionKey& key) const {
  std::string sql = "(pipeline = ";
  AppendText(pipeline_, sql);
  sql += " AND cluster = ";
  AppendBytes(key.cluster, sql);
  sql += " AND topic = ";
  AppendBytes(key.where.topic, sql);
  return sql + fmt::format(" AND `partition` = {})", key.where.partition);
}

MysqlPositions::Maybe<void> MysqlPositions::Run(const std::string& sql) {
  auto done = connection_.Query(sql);
  if (!done) return tl::unexpected(done.error());
  return {};
}

// By the primary key and nothing else, however few rows the table has: a scan would wait for the
// locks of all partitions. The server reads the keys in their order, and so locks in it.
MysqlPositions::Maybe<MysqlPositions::Rows> MysqlPositions::Select(
    const std::vector<PositionPart>& parts, std::string_view how) {
  Rows rows(parts.size());
  for (std::size_t begin = 0; begin < parts.size(); begin += kRows) {
    const std::size_t end = std::min(parts.size(), begin + kRows);
    std::string sql =
        "SELECT cluster, topic, `partition`, done, token, worker, anchors, forgotten,"
        " concat(left(date_format(updated_at, '%Y-%m-%dT%H:%i:%s.%f'), 23), 'Z') FROM " +
        ledger_ + " FORCE INDEX (PRIMARY) WHERE ";
    for (std::size_t i = begin; i < end; ++i) sql += (i == begin ? "" : " OR ") + Is(parts[i].key);
    sql += how;
    const auto found = connection_.Query(sql);
    if (!found) return tl::unexpected(found.error());
    for (const auto& row : *found) {
      const PositionKey key{*row[0], {*row[1], MysqlNumber<std::int32_t>(row[2])}};
      const auto part = std::ranges::lower_bound(parts, key, {}, &PositionPart::key);
      if (part == parts.end() || part->key != key) continue;
      auto done = PositionRanges::Parse(*row[3]);
      if (!done) return tl::unexpected(NoRanges());  // for empty, every effect would happen again
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

MysqlPositions::Maybe<void> MysqlPositions::Lock() {
  const std::vector<PositionPart>& parts = changes_.parts();
  auto rows = Select(parts, Planted("mysql_rows_are_not_locked") ? "" : " FOR UPDATE");
  if (!rows) return tl::unexpected(rows.error());
  std::string sql;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if ((*rows)[i]) continue;
    sql += sql.empty() ? fmt::format("INSERT INTO {} {} VALUES (", ledger_, kColumns) : ", (";
    AppendKey(parts[i].key, sql);
    sql += ", '{}', 0, '', '', 0, now(6))";
  }
  changes_.OnLocked(std::move(*rows));
  if (sql.empty()) return {};
  auto inserted = Run(sql);
  if (!inserted && inserted.error().code == kDuplicateEntry) inserted.error().code = kDeadlock;
  return inserted;
}

MysqlPositions::Maybe<void> MysqlPositions::Store() {
  std::string sql;
  for (const auto& [key, row] : changes_.Changed("")) {
    sql += sql.empty() ? fmt::format("INSERT INTO {} {} VALUES (", ledger_, kColumns) : ", (";
    AppendKey(key, sql);
    fmt::format_to(std::back_inserter(sql), ", '{}', {}, ", row.done.Text(),
                   static_cast<std::int64_t>(row.token.value()));
    AppendText(row.worker, sql);
    fmt::format_to(std::back_inserter(sql), ", '{}', {}, now(6))", row.anchors.Text(),
                   row.forgotten);
  }
  if (sql.empty()) return {};
  return Run(
      sql +
      " ON DUPLICATE KEY UPDATE done = VALUES(done), token = VALUES(token),"
      " worker = VALUES(worker), anchors = VALUES(anchors), updated_at = VALUES(updated_at)");
}

MysqlPositions::Maybe<std::size_t> MysqlPositions::TakeBack(
    const std::vector<PositionPart>& parts) {
  if (auto begun = Run("START TRANSACTION READ WRITE"); !begun) {
    return tl::unexpected(begun.error());
  }
  auto rows = Select(parts, " FOR UPDATE");
  if (!rows) return tl::unexpected(rows.error());
  std::size_t gone = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::optional<PositionRow>& row = (*rows)[i];
    const std::size_t taken = row ? consumer::TakeBack(parts[i].ranges, *row) : 0;
    if (taken == 0) continue;
    gone += taken;
    const std::string sql =
        fmt::format("UPDATE {} SET done = '{}', anchors = '{}', forgotten = {} WHERE {}", ledger_,
                    row->done.Text(), row->anchors.Text(), row->forgotten, Is(parts[i].key));
    if (auto stored = Run(sql); !stored) return tl::unexpected(stored.error());
  }
  if (auto done = Run("COMMIT"); !done) return tl::unexpected(done.error());
  return gone;
}

MysqlPositions::Maybe<bool> MysqlPositions::KnowsTopic(const std::string& topic) {
  std::string sql = "SELECT 1 FROM " + ledger_ + " WHERE pipeline = ";
  AppendText(pipeline_, sql);
  sql += " AND topic = ";
  AppendBytes(topic, sql);
  const auto found = connection_.Query(sql + " AND done <> '{}' LIMIT 1");
  if (!found) return tl::unexpected(found.error());
  return !found->empty();
}

}  // namespace fencepost::consumer
