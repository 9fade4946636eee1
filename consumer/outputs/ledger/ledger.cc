#include "consumer/outputs/ledger/ledger.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "consumer/outputs/ledger/sql.h"
#include "consumer/outputs/rows/row_sql.h"
#include "consumer/record/position_id.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

constexpr std::array<LedgerColumn, 7> kIdColumns{{{"pipeline", "text"},
                                                  {"record_id", "text"},
                                                  {"token", "bigint"},
                                                  {"worker", "text"},
                                                  {"source", "text"},
                                                  {"content_crc", "bigint"},
                                                  {"completed_at", "timestamp with time zone"}}};
constexpr std::array<LedgerColumn, 10> kPositionColumns{
    {{"pipeline", "text"},
     {"cluster", "text"},
     {"topic", "text"},
     {"partition", "integer"},
     {"done", "int8multirange"},
     {"token", "bigint"},
     {"worker", "text"},
     {"anchors", "text"},
     {"forgotten", "bigint"},
     {"updated_at", "timestamp with time zone"}}};

}  // namespace

const LedgerTable& TableOfLedger(bool by_position) {
  static const LedgerTable ids{.name = kLedgerTable,
                               .columns = kIdColumns,
                               .key = "pipeline, record_id",
                               .updates = false,
                               .written = "token <> 0",
                               .postgres = sql::postgres_ledger,
                               .mysql = sql::mysql_ledger,
                               .sqlite = sql::sqlite_ledger};
  static const LedgerTable positions{.name = kPositionsTable,
                                     .columns = kPositionColumns,
                                     .key = "pipeline, cluster, topic, partition",
                                     .updates = true,
                                     .written = "1 = 1",
                                     .postgres = sql::postgres_positions,
                                     .mysql = sql::mysql_positions,
                                     .sqlite = sql::sqlite_positions};
  return by_position ? positions : ids;
}

OutputError InvalidRanges(std::string where) {
  return {.error = {
              .code = "output_unavailable",
              .what = "fencepost_positions.done is not a valid range list: it was changed by hand",
              .where = std::move(where),
              .hint = "bring back what it was; the batch waits"}};
}

OutputError LedgerMissing(std::string_view table, const std::string& where, std::string_view ddl) {
  return {.error = {.code = std::string(kLedgerMissing),
                    .what = fmt::format("there is no ledger {} yet", table),
                    .where = where,
                    .hint = ddl.empty() ? "a worker makes it when it starts"
                                        : fmt::format("a worker makes it when it starts, where "
                                                      "its role may create tables; else make it "
                                                      "by {}",
                                                      ddl)}};
}

OutputError LedgerGone(std::string_view table, std::string where) {
  return {.error = {.code = "ledger_gone",
                    .what = fmt::format("the ledger {} that this worker has written to is gone: "
                                        "without it every effect could happen again",
                                        table),
                    .where = std::move(where),
                    .hint = "was it dropped or renamed, the database replaced, or the role's "
                            "search_path changed? Bring it back, then start the workers; a worker "
                            "that starts without one makes an empty one"},
          .fatal = true};
}

OutputError OtherRowsLeft(std::string_view pipeline, std::string where, bool by_position) {
  const std::string_view other = by_position ? kLedgerTable : kPositionsTable;
  return {
      .error = {.code = "output_schema",
                .what = fmt::format("{} has rows of pipeline {}, and {} has none: with "
                                    "record_id: {} only the second is read, and what "
                                    "the first has as done could take effect again",
                                    other, pipeline, by_position ? kPositionsTable : kLedgerTable,
                                    by_position ? "position" : "an id"),
                .where = std::move(where),
                .hint = fmt::format(
                    "they are of another record_id: let those workers "
                    "commit all that they have done and stop, then delete their rows (DELETE "
                    "FROM {} WHERE pipeline = '{}'); or give the pipeline another name",
                    other, pipeline)}};
}

std::string TableInWords(const std::vector<std::string>& parts, char quote) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  std::string name;
  for (const std::string& part : parts) {
    const bool bare = std::ranges::all_of(part, plain) && (part[0] < '0' || part[0] > '9');
    name += (name.empty() ? "" : ".") + (bare ? part : QuoteIdentifier(part, quote));
  }
  return name;
}

tl::expected<std::vector<std::string>, std::string> SplitTableName(std::string_view table) {
  const auto bad = [](std::string what) { return tl::unexpected(std::move(what)); };
  std::vector<std::string> parts;
  std::size_t at = 0;
  for (;;) {
    std::string part;
    const char quote = at < table.size() ? table[at] : '\0';
    if (quote == '"' || quote == '`') {
      for (++at;; ++at) {
        if (at == table.size()) return bad("a quote in the table's name stays open");
        if (table[at] == quote && (at + 1 == table.size() || table[at + 1] != quote)) break;
        if (table[at] == quote) ++at;
        part += table[at];
      }
      ++at;
    } else {
      while (at < table.size() && table[at] != '.') part += table[at++];
    }
    if (part.empty()) return bad("the table's name has an empty part");
    if (part.find('\0') != std::string::npos) return bad("a table's name has no NUL");
    parts.push_back(std::move(part));
    if (at == table.size()) break;
    if (table[at] != '.') return bad("text follows a closing quote in the table's name");
    ++at;
  }
  if (parts.size() > 2) return bad("a table is NAME or SCHEMA.NAME");
  return parts;
}

bool MayPrune(const PruneScope& scope, std::string_view source) {
  const std::string id = fmt::format("-/{}", source);
  const auto position = ParsePositionId(id);
  if (!position || position->cluster != "-") return false;
  if (!scope.topics.Has(position->topic)) return true;
  return std::ranges::any_of(scope.committed, [&](const SourceOffset& committed) {
    return committed.where.partition == position->partition &&
           committed.where.topic == position->topic &&
           position->offset < committed.next + (Planted("next_to_come_is_pruned") ? 1 : 0);
  });
}

locking::WallTime PruneClock::At(locking::Now now) const {
  const auto since =
      std::chrono::duration_cast<locking::WallTime::duration>(now.boot - start_.boot);
  return std::min(now.wall, start_.wall + since);
}

}  // namespace fencepost::consumer
