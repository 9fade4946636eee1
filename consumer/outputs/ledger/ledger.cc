#include "consumer/outputs/ledger/ledger.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "consumer/record/position_id.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

// COLLATE "C": bytes are compared, which is fast, and an upgrade of the system's collations cannot
// break the primary key that exactly-once rests on.
//
// The second index is for pruning. A btree, not BRIN: pruning frees old pages for new rows, after
// which every block range of a BRIN spans all times and each pruning reads the whole table. All
// rows of a transaction share completed_at and sit side by side, so the btree keeps them as one
// deduplicated entry; measured, it costs under a tenth of the write.
constexpr const char* kPostgresLedger =
    "CREATE TABLE IF NOT EXISTS fencepost_ledger (\n"
    "  pipeline     text COLLATE \"C\" NOT NULL,\n"
    "  record_id    text COLLATE \"C\" NOT NULL,\n"
    "  token        bigint NOT NULL,\n"
    "  worker       text NOT NULL,\n"
    "  source       text NOT NULL,\n"
    "  content_crc  bigint NOT NULL,\n"
    "  completed_at timestamptz NOT NULL DEFAULT now(),\n"
    "  PRIMARY KEY (pipeline, record_id)\n"
    ");\n"
    "CREATE INDEX IF NOT EXISTS fencepost_ledger_completed_at\n"
    "  ON fencepost_ledger (pipeline, completed_at);\n";

// Each transaction changes its rows: with room on their page they stay there, and no index has to
// follow (HOT).
constexpr const char* kPostgresPositions =
    "CREATE TABLE IF NOT EXISTS fencepost_positions (\n"
    "  pipeline   text COLLATE \"C\" NOT NULL,\n"
    "  cluster    text COLLATE \"C\" NOT NULL,\n"
    "  topic      text COLLATE \"C\" NOT NULL,\n"
    "  partition  integer NOT NULL,\n"
    "  done       int8multirange NOT NULL,\n"
    "  token      bigint NOT NULL,\n"
    "  worker     text NOT NULL,\n"
    "  anchors    text NOT NULL,\n"
    "  forgotten  bigint NOT NULL DEFAULT 0,\n"
    "  updated_at timestamptz NOT NULL,\n"
    "  PRIMARY KEY (pipeline, cluster, topic, partition)\n"
    ") WITH (fillfactor = 50);\n";

// WITHOUT ROWID: the primary key is the table, one tree less to write.
constexpr const char* kSqliteLedger =
    "CREATE TABLE IF NOT EXISTS fencepost_ledger (\n"
    "  pipeline     text NOT NULL,\n"
    "  record_id    text NOT NULL,\n"
    "  token        bigint NOT NULL,\n"
    "  worker       text NOT NULL,\n"
    "  source       text NOT NULL,\n"
    "  content_crc  bigint NOT NULL,\n"
    "  completed_at timestamptz NOT NULL,\n"
    "  PRIMARY KEY (pipeline, record_id)\n"
    ") WITHOUT ROWID;\n"
    "CREATE INDEX IF NOT EXISTS fencepost_ledger_completed_at\n"
    "  ON fencepost_ledger (pipeline, completed_at);\n";

constexpr const char* kSqlitePositions =
    "CREATE TABLE IF NOT EXISTS fencepost_positions (\n"
    "  pipeline    text NOT NULL,\n"
    "  cluster     text NOT NULL,\n"
    "  topic       text NOT NULL,\n"
    "  \"partition\" integer NOT NULL,\n"
    "  done        text NOT NULL,\n"
    "  token       bigint NOT NULL,\n"
    "  worker      text NOT NULL,\n"
    "  anchors     text NOT NULL,\n"
    "  forgotten   bigint NOT NULL DEFAULT 0,\n"
    "  updated_at  timestamptz NOT NULL,\n"
    "  PRIMARY KEY (pipeline, cluster, topic, \"partition\")\n"
    ") WITHOUT ROWID;\n";

// varbinary: bytes are compared, and no space at the end is lost, as in MySQL's text.
constexpr const char* kMysqlLedger =
    "CREATE TABLE IF NOT EXISTS fencepost_ledger (\n"
    "  pipeline     varbinary(255) NOT NULL,\n"
    "  record_id    varbinary(512) NOT NULL,\n"
    "  token        bigint NOT NULL,\n"
    "  worker       text CHARACTER SET utf8mb4 NOT NULL,\n"
    "  source       text CHARACTER SET utf8mb4 NOT NULL,\n"
    "  content_crc  bigint NOT NULL,\n"
    "  completed_at datetime(6) NOT NULL,\n"
    "  PRIMARY KEY (pipeline, record_id),\n"
    "  KEY fencepost_ledger_completed_at (pipeline, completed_at)\n"
    ") ENGINE=InnoDB;\n";

// A replay's id may name any cluster and topic that fit into an id. The texts are of what fencepost
// writes itself.
constexpr const char* kMysqlPositions =
    "CREATE TABLE IF NOT EXISTS fencepost_positions (\n"
    "  pipeline    varbinary(255) NOT NULL,\n"
    "  cluster     varbinary(512) NOT NULL,\n"
    "  topic       varbinary(512) NOT NULL,\n"
    "  `partition` int NOT NULL,\n"
    "  done        longtext CHARACTER SET ascii NOT NULL,\n"
    "  token       bigint NOT NULL,\n"
    "  worker      text CHARACTER SET utf8mb4 NOT NULL,\n"
    "  anchors     text CHARACTER SET ascii NOT NULL,\n"
    "  forgotten   bigint NOT NULL DEFAULT 0,\n"
    "  updated_at  datetime(6) NOT NULL,\n"
    "  PRIMARY KEY (pipeline, cluster, topic, `partition`)\n"
    ") ENGINE=InnoDB;\n";

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

constexpr LedgerTable kIds{.name = kLedgerTable,
                           .columns = kIdColumns,
                           .key = "pipeline, record_id",
                           .updates = false,
                           .postgres = kPostgresLedger,
                           .mysql = kMysqlLedger,
                           .sqlite = kSqliteLedger};
constexpr LedgerTable kPositions{.name = kPositionsTable,
                                 .columns = kPositionColumns,
                                 .key = "pipeline, cluster, topic, partition",
                                 .updates = true,
                                 .postgres = kPostgresPositions,
                                 .mysql = kMysqlPositions,
                                 .sqlite = kSqlitePositions};

}  // namespace

const LedgerTable& TableOfLedger(bool by_position) { return by_position ? kPositions : kIds; }

OutputError LedgerMissing(std::string_view table, const std::string& where, std::string_view ddl) {
  return {.error = {.code = "ledger_missing",
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
                    "they are of another record_id{}: let those workers "
                    "commit all that they have done and stop, then delete their rows (DELETE "
                    "FROM {} WHERE pipeline = '{}'); or give the pipeline another name",
                    by_position ? ", or of a version before" : "", other, pipeline)}};
}

OutputError InvalidRanges(std::string where) {
  return {.error = {
              .code = "output_unavailable",
              .what = "fencepost_positions.done is not a valid range list: it was changed by hand",
              .where = std::move(where),
              .hint = "bring back what it was; the batch waits"}};
}

std::string QuoteIdentifier(std::string_view name, char quote) {
  std::string quoted(1, quote);
  for (const char c : name) {
    if (c == quote) quoted += quote;
    quoted += c;
  }
  return quoted + quote;
}

std::string HigherFenceSql(const RowShape& shape, const std::string& fence) {
  const std::string stands = "t." + QuoteIdentifier(shape.columns[*shape.fence].name);
  return fmt::format("({0} < {1} OR ({0} IS NULL AND {1} IS NOT NULL))", stands, fence);
}

std::string OnConflictSql(const RowShape& shape) {
  if (shape.on_conflict == OnConflict::kError) return "";
  if (shape.on_conflict == OnConflict::kIgnore) return " ON CONFLICT DO NOTHING";
  const auto quoted = [&](std::size_t column) {
    return QuoteIdentifier(shape.columns[column].name);
  };
  std::string key, set;
  for (const std::size_t place : shape.key) key += (key.empty() ? "" : ", ") + quoted(place);
  for (std::size_t i = 0; i < shape.columns.size(); ++i) {
    if (shape.IsKey(i)) continue;
    set += fmt::format("{0}{1} = excluded.{1}", set.empty() ? "" : ", ", quoted(i));
  }
  if (set.empty()) return fmt::format(" ON CONFLICT ({}) DO NOTHING", key);
  const std::string where =
      shape.fence ? " WHERE " + HigherFenceSql(shape, "excluded." + quoted(*shape.fence)) : "";
  return fmt::format(" ON CONFLICT ({}) DO UPDATE SET {}{}", key, set, where);
}

tl::expected<std::vector<std::string>, std::string> SplitTableName(std::string_view table) {
  const auto bad = [](std::string what) { return tl::unexpected(std::move(what)); };
  std::vector<std::string> parts;
  std::size_t at = 0;
  for (;;) {
    std::string part;
    if (at < table.size() && table[at] == '"') {
      for (++at;; ++at) {
        if (at == table.size()) return bad("a double quote in the table's name stays open");
        if (table[at] == '"' && (at + 1 == table.size() || table[at + 1] != '"')) break;
        if (table[at] == '"') ++at;
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
  if (std::ranges::find(scope.topics, position->topic) == scope.topics.end()) return true;
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
