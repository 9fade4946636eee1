// What the MySQL output does with its ledger apart from writing.
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "consumer/outputs/ledger/ledger.h"
#include "consumer/outputs/mysql/mysql_output.h"

namespace fencepost::consumer {

tl::expected<MysqlOutput::Incarnation, MysqlFailure> MysqlOutput::LearnIncarnation() {
  const auto rows = connection_.Query(
      "SELECT concat_ws(' ', @@hostname, @@port, @@server_id, @@datadir), unix_timestamp()");
  if (!rows) return tl::unexpected(rows.error());
  const auto status = connection_.Query("SHOW GLOBAL STATUS LIKE 'Uptime'");
  if (!status) return tl::unexpected(status.error());
  const std::int64_t up = status->empty() ? 0 : MysqlNumber<std::int64_t>(status->front()[1]);
  return Incarnation{.server = rows->front()[0].value_or(""),
                     .started = MysqlNumber<std::int64_t>(rows->front()[1]) - up};
}

MysqlOutput::Answer<void> MysqlOutput::CheckIncarnation() {
  auto incarnation = LearnIncarnation();
  if (!incarnation) return tl::unexpected(Fail(incarnation.error()));
  const bool same = incarnation_ && incarnation_->IsSame(*incarnation);
  auto complete = CheckLostCommits(same, connection_.where(), "");
  if (complete) incarnation_ = std::move(*incarnation);
  return complete;
}

std::string MysqlOutput::OfIds(const std::vector<std::string>& ids, std::size_t begin,
                               std::size_t end) const {
  std::string sql = "pipeline = ";
  AppendText(pipeline_, sql);
  sql += " AND record_id IN (";
  for (std::size_t i = begin; i < end; ++i) {
    if (i > begin) sql += ", ";
    AppendBytes(ids[i], sql);
  }
  return sql + ")";
}

MysqlOutput::Answer<MysqlOutput::Entries> MysqlOutput::LookUpIds(
    const std::vector<std::string>& ids) {
  Entries entries(ids.size());
  for (std::size_t begin = 0; begin < ids.size(); begin += kIds) {
    const std::size_t end = std::min(ids.size(), begin + kIds);
    const auto rows = connection_.Query(
        "SELECT record_id, token, content_crc, worker, source,"
        " concat(left(date_format(completed_at, '%Y-%m-%dT%H:%i:%s.%f'), 23), 'Z') FROM " +
        target_.ledger + " WHERE " + OfIds(ids, begin, end));
    if (!rows) return tl::unexpected(Fail(rows.error()));
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

MysqlOutput::Answer<std::size_t> MysqlOutput::ForgetIds(const std::vector<std::string>& ids) {
  std::size_t gone = 0;
  for (std::size_t begin = 0; begin < ids.size(); begin += kIds) {
    const auto done = Run("DELETE FROM " + target_.ledger + " WHERE " +
                          OfIds(ids, begin, std::min(ids.size(), begin + kIds)));
    if (!done) return tl::unexpected(Fail(done.error()));
    gone += connection_.affected();
  }
  return gone;
}

MysqlOutput::Answer<PositionMemory::Rows> MysqlOutput::ReadPositions(const Parts& parts) {
  auto rows = positions_->Read(parts);
  if (!rows) return tl::unexpected(Fail(rows.error()));
  return std::move(*rows);
}

MysqlOutput::Answer<std::size_t> MysqlOutput::TakeBack(const Parts& parts) {
  const auto gone = positions_->TakeBack(parts);
  if (gone) return *gone;
  (void)RollBack(gone.error());
  return tl::unexpected(Fail(gone.error()));
}

tl::expected<bool, OutputError> MysqlOutput::KnowsTopic(const std::string& topic) {
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  if (positions_) {
    const auto knows = positions_->KnowsTopic(topic);
    if (!knows) return tl::unexpected(Fail(knows.error()));
    return *knows;
  }
  std::string sql = "SELECT 1 FROM " + target_.ledger + " WHERE pipeline = ";
  AppendText(pipeline_, sql);
  fmt::format_to(std::back_inserter(sql), " AND left(source, {}) = ", topic.size() + 1);
  AppendText(topic + "/", sql);
  const auto found = connection_.Query(sql + " LIMIT 1");
  if (!found) return tl::unexpected(Fail(found.error()));
  return !found->empty();
}

MysqlOutput::Answer<std::size_t> MysqlOutput::PruneIds(const PruneScope& scope, std::size_t limit) {
  std::string sql =
      "SELECT record_id, source, completed_at FROM " + target_.ledger + " WHERE pipeline = ";
  AppendText(pipeline_, sql);
  sql += prune_behind_ ? " AND completed_at > " : " AND completed_at >= ";
  AppendText(prune_from_, sql);
  sql +=
      fmt::format(" AND completed_at < now(6) - INTERVAL {} SECOND ORDER BY completed_at LIMIT {}",
                  scope.keep.count(), kPruneWindow);
  const auto rows = connection_.Query(sql);
  if (!rows) return tl::unexpected(Refused(rows.error()));
  // Those that are still the same rows: one that was forgotten and written again since is young.
  std::string old;
  std::string last = prune_from_;
  std::size_t count = 0;
  for (const auto& row : *rows) {
    last = *row[2];
    if (!MayPrune(scope, *row[1])) continue;
    old += old.empty() ? "(" : ", (";
    AppendBytes(*row[0], old);
    old += ", ";
    AppendText(*row[2], old);
    old += ")";
    if (++count == limit) break;
  }
  if (count < limit) {
    // All rows of a window may have one time: then it is passed over as a whole.
    if (rows->size() < kPruneWindow) {
      prune_from_ = kPruneFirst;
      prune_behind_ = false;
    } else {
      prune_behind_ = last == prune_from_;
      prune_from_ = last;
    }
  }
  if (count == 0) return 0;
  std::string gone = "DELETE FROM " + target_.ledger + " WHERE pipeline = ";
  AppendText(pipeline_, gone);
  const auto done = Run(gone + " AND (record_id, completed_at) IN (" + old + ")");
  if (!done) return tl::unexpected(Refused(done.error()));
  return connection_.affected();
}

}  // namespace fencepost::consumer
