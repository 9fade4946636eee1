#include "consumer/outputs/postgres/postgres_sql.h"

#include <string_view>

#include <fmt/format.h>

#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

constexpr Oid kTimestampOid = 1114;
constexpr Oid kTimestamptzOid = 1184;
constexpr Oid kBoolArrayOid = 1000;

// A hashed subplan whatever the planner believes of the sizes; written as a join it is a nested
// loop or a merge join, quadratic or sorted, as soon as an estimate is off.
constexpr std::string_view kIfInserted =
    "CASE WHEN (u.record_id, u.source) IN (SELECT record_id, source FROM led) THEN {} ELSE {} END";

std::string IfInserted(std::string_view then, std::string_view otherwise) {
  return fmt::format(kIfInserted, then, otherwise);
}

std::string Value(const PgColumn& column, const Column& from, std::string_view row,
                  std::size_t index) {
  return CellSql(column, from, fmt::format("{}.c{}", row, index));
}

std::string ArraysFrom(const PgTarget& target, std::size_t first) {
  std::string arrays;
  for (std::size_t i = 0; i < target.columns.size(); ++i) {
    arrays += fmt::format(", ${}", first + i);
  }
  return arrays;
}

std::string CellNames(const PgTarget& target) {
  std::string names;
  for (std::size_t i = 0; i < target.columns.size(); ++i) names += fmt::format(", c{}", i);
  return names;
}

std::string LedgerInsert(const PgTarget& target, Ids ids) {
  return fmt::format(
      "led AS (INSERT INTO {}"
      " (pipeline, record_id, token, worker, source, content_crc, completed_at)"
      " SELECT $1, record_id, token, $2, source, crc, now() FROM u ORDER BY record_id COLLATE \"C\""
      "{})",
      target.ledger,
      ids == Ids::kNew
          ? " RETURNING 1"
          : " ON CONFLICT (pipeline, record_id) DO NOTHING RETURNING record_id, source");
}

// Of new ids: a row that the ledger did not take rolls back all. Who reads it comes after the
// ledger, so that a known id is met before anything is done for it. The cast is no constant, which
// would fail as soon as it is planned.
constexpr std::string_view kAllTaken =
    ", taken AS MATERIALIZED (SELECT CASE WHEN count(*) = cardinality($3) THEN true ELSE"
    " ('fencepost: the ledger took ' || count(*))::boolean END AS every FROM led)";

// The row of the partition that `p` names, in a subquery of its own, so that it is looked up by its
// key whatever the planner believes of the table's size.
std::string PositionRow(std::string_view ledger, std::string_view columns, std::string_view more) {
  return fmt::format(
      "CROSS JOIN LATERAL (SELECT {} FROM {} l WHERE l.pipeline = $1 AND l.cluster = p.cluster"
      " AND l.topic = p.topic AND l.partition = p.partition::int4{} OFFSET 0) l",
      columns, ledger, more);
}

// `done * range` once a partition: what is asked row by row is only the small part of `done` that
// lies in the batch, and mostly there is none. The row is locked, so `done` stays what it is here.
std::string PositionLedger(const PgTarget& target) {
  return fmt::format(
      "part AS MATERIALIZED (SELECT p.n, p.cluster, p.topic, p.partition::int4 AS partition,"
      " p.range::int8multirange AS range, p.token AS new_token, p.anchors AS new_anchors,"
      " l.done * p.range::int8multirange AS known, l.token, l.worker, l.anchors, l.forgotten"
      " FROM unnest($3, $4, $5, $6, $7, $8) WITH ORDINALITY"
      " AS p(cluster, topic, partition, range, token, anchors, n) {0}),"
      " known AS MATERIALIZED (SELECT n, known FROM part WHERE NOT isempty(known)),"
      " done AS (UPDATE {1} l SET done = l.done + p.range, token = p.new_token, worker = $2,"
      " anchors = coalesce(nullif(p.new_anchors, ''), l.anchors), updated_at = now() FROM part p "
      "WHERE l.pipeline = $1"
      " AND l.cluster = p.cluster AND l.topic = p.topic AND l.partition = p.partition"
      " AND p.known <> p.range)",
      PositionRow(target.ledger, "done, token, worker, anchors, forgotten", ""), target.ledger);
}

// Where the ledger comes into a write: the columns of `u` that are its own, the CTEs that use it,
// whether a row of `u` is new, and what the statement answers.
struct LedgerSql {
  std::string_view arrays, columns;
  std::string ctes;
  std::string fresh;
  std::string answer, from;  // SELECT list and what follows it
  std::size_t next = 0;      // the first parameter that is not the ledger's
};

// What was not inserted is handed to the next statement within the session, so that the arrays are
// sent once, and that statement is planned for the ledger as it is now: a plan made while it was
// empty would read all of it for every row.
std::string Answer() {
  return fmt::format(
      "(SELECT count(*) FROM led),"
      " set_config('fencepost.rest', ARRAY(SELECT crc || ' ' || record_id FROM u WHERE {})::text,"
      " true),"
      " set_config('plan_cache_mode', 'force_custom_plan', true)",
      IfInserted("false", "true"));
}

LedgerSql LedgerOf(const PgTarget& target, Ids ids) {
  if (!target.by_position) {
    const bool all_new = ids == Ids::kNew;
    const std::string_view known = Planted("postgres_effect_of_a_known_id") ? "true" : "false";
    return {.arrays = "$3, $4, $5, $6",
            .columns = "record_id, token, source, crc",
            .ctes = LedgerInsert(target, ids).append(all_new ? kAllTaken : ""),
            .fresh = all_new ? "(SELECT every FROM taken)" : IfInserted("true", known),
            .answer = all_new ? "(SELECT every FROM taken)" : Answer(),
            .from = "",
            .next = 7};
  }
  // As kIfInserted; most batches have nothing in `known`.
  return {.arrays = "$9, $10",
          .columns = "part, off",
          .ctes = PositionLedger(target),
          .fresh =
              "CASE WHEN u.part IN (SELECT n FROM known) THEN NOT EXISTS (SELECT FROM known k"
              " WHERE k.n = u.part AND k.known @> u.off) ELSE true END",
          .answer =
              "part.n, part.known::text, part.token, part.worker, part.anchors,"
              " part.forgotten",
          .from = " FROM part ORDER BY part.n",
          .next = 11};
}

}  // namespace

// `timestamp` gives milliseconds since 1970.
std::string CellSql(const PgColumn& column, const Column& from, std::string_view cell) {
  if (from.selector.kind == Selector::Kind::kTimestamp && from.conversion == Conversion::kNone &&
      (column.base == kTimestamptzOid || column.base == kTimestampOid)) {
    return fmt::format("(timestamptz 'epoch' + {}::bigint * interval '1 millisecond'){}", cell,
                       column.base == kTimestampOid ? " AT TIME ZONE 'UTC'" : "");
  }
  return column.bytes() ? std::string(cell) : fmt::format("{}::{}", cell, column.cast);
}

std::string WriteSql(const PgTarget& target, const RowShape& shape, Ids ids) {
  const std::string values = Listed(target.columns.size(), [&](std::size_t i) {
    return Value(target.columns[i], shape.columns[i], "u", i);
  });
  const LedgerSql ledger = LedgerOf(target, ids);
  return fmt::format(
      "WITH u AS MATERIALIZED (SELECT * FROM unnest({}{}) AS u({}{})), {},"
      " eff AS (INSERT INTO {} ({}) SELECT {} FROM u WHERE {}) SELECT {}{}",
      ledger.arrays, ArraysFrom(target, ledger.next), ledger.columns, CellNames(target),
      ledger.ctes, target.table, Names(target), values, ledger.fresh, ledger.answer, ledger.from);
}

// Of the ledger, and pipeline and worker.
std::vector<Oid> LedgerTypes(const PgTarget& target) {
  if (!target.by_position) {
    return {kTextOid, kTextOid, kTextArrayOid, kInt8ArrayOid, kTextArrayOid, kInt8ArrayOid};
  }
  return {kTextOid,      kTextOid,      kTextArrayOid, kTextArrayOid, kInt8ArrayOid,
          kTextArrayOid, kInt8ArrayOid, kTextArrayOid, kInt8ArrayOid, kInt8ArrayOid};
}

std::vector<Oid> WriteTypes(const PgTarget& target) {
  std::vector<Oid> types = LedgerTypes(target);
  for (const PgColumn& column : target.columns) {
    types.push_back(column.bytes() ? kBytesArrayOid : kTextArrayOid);
  }
  return types;
}

std::string RowsSql(const PgTarget& target, const RowShape& shape, Ids ids) {
  std::string values;
  for (std::size_t i = 0; i < target.columns.size(); ++i) {
    const PgColumn& column = target.columns[i];
    // Keys and fences are compared here as they are in the table.
    const bool collate = !column.collation.empty() && (shape.IsKey(i) || shape.fence == i);
    values += fmt::format(", {}{}{} AS v{}", Value(column, shape.columns[i], "e", i),
                          collate ? " COLLATE " : "", collate ? column.collation : "", i);
  }
  // As with IfInserted.
  constexpr std::string_view kOfInserted =
      "CASE WHEN e.n IN (SELECT n FROM fresh) THEN true ELSE false END";
  const LedgerSql ledger = LedgerOf(target, ids);
  std::string sql = fmt::format(
      "WITH RECURSIVE u AS MATERIALIZED (SELECT * FROM unnest({}) WITH ORDINALITY"
      " AS u({}, n)), {},"
      " fresh AS MATERIALIZED (SELECT n FROM u WHERE {}),"
      " e AS MATERIALIZED (SELECT e.ord, e.del{} FROM unnest(${}, ${}{}) WITH ORDINALITY"
      " AS e(n, del{}, ord) WHERE {})",
      ledger.arrays, ledger.columns, ledger.ctes, ledger.fresh, values, ledger.next,
      ledger.next + 1, ArraysFrom(target, ledger.next + 2), CellNames(target), kOfInserted);
  if (!shape.statement) sql += EffectsSql(target, shape);
  sql += " SELECT " + ledger.answer;
  if (shape.statement) {
    const std::string args =
        Listed(target.columns.size(), [](std::size_t i) { return fmt::format("e.v{}", i); });
    sql += fmt::format(", (SELECT count({}({})) FROM (SELECT * FROM e ORDER BY ord OFFSET 0) e)",
                       target.function, args);
  }
  return sql + ledger.from;
}

std::vector<Oid> RowsTypes(const PgTarget& target) {
  std::vector<Oid> types = WriteTypes(target);
  types.insert(types.begin() + static_cast<std::ptrdiff_t>(LedgerTypes(target).size()),
               {kInt8ArrayOid, kBoolArrayOid});
  return types;
}

std::string InsertPositionsSql(const PgTarget& target) {
  return fmt::format(
      "INSERT INTO {} (pipeline, cluster, topic, partition, done, token, worker, anchors,"
      " updated_at) SELECT $1, cluster, topic, partition::int4, '{{}}', 0, '', '', now()"
      " FROM unnest($2, $3, $4) AS p(cluster, topic, partition)"
      " ON CONFLICT (pipeline, cluster, topic, partition) DO NOTHING",
      target.ledger);
}

// The subqueries are run one after the other, in the order of the arrays, and each takes its lock.
// The cast is no constant, which would fail as soon as it is planned.
std::string LockPositionsSql(const PgTarget& target) {
  return fmt::format(
      "SELECT CASE WHEN count(*) < cardinality($2) THEN"
      " ('fencepost: a row of the ledger is missing, there are ' || count(*))::bigint END"
      " FROM unnest($2, $3, $4) AS p(cluster, topic, partition) {}",
      PositionRow(target.ledger, "1",
                  Planted("postgres_rows_are_not_locked") ? "" : " FOR UPDATE"));
}

std::string ReadPositionsSql(const PgTarget& target) {
  return fmt::format(
      "SELECT p.n, (l.done * p.range::int8multirange)::text, l.token, l.worker, l.anchors,"
      " l.forgotten,"
      " to_char(l.updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')"
      " FROM unnest($2::text[], $3::text[], $4::bigint[], $5::text[]) WITH ORDINALITY"
      " AS p(cluster, topic, partition, range, n) {} ORDER BY p.n",
      PositionRow(target.ledger, "*", ""));
}

std::string TakeBackPositionsSql(const PgTarget& target) {
  return fmt::format(
      "WITH was AS MATERIALIZED (SELECT p.cluster, p.topic, p.partition::int4 AS partition,"
      " p.range::int8multirange AS range, l.done * p.range::int8multirange AS gone"
      " FROM unnest($2::text[], $3::text[], $4::bigint[], $5::text[])"
      " AS p(cluster, topic, partition, range) {})"
      " UPDATE {} l SET done = l.done - w.range, forgotten = l.forgotten + 1,"
      " anchors = CASE WHEN isempty(l.done - w.range) THEN '' ELSE l.anchors END FROM was w"
      " WHERE l.pipeline = $1 AND l.cluster = w.cluster AND l.topic = w.topic"
      " AND l.partition = w.partition AND NOT isempty(w.gone) RETURNING w.gone::text",
      PositionRow(target.ledger, "done", " FOR UPDATE"), target.ledger);
}

// An uncorrelated subquery runs once, and only where there is a row to go with. The cast says what
// is wrong in the server's log; it is no constant, which would fail as soon as it is planned.
std::string RestSql(const PgTarget& target) {
  return fmt::format(
      "SELECT r.record_id, l.token, l.source, l.content_crc,"
      " (SELECT pg_logical_emit_message(true, 'fencepost', '')),"
      " CASE WHEN $2 AND l.content_crc <> r.crc AND l.content_crc >> 32 = r.crc >> 32 THEN"
      " ('fencepost: rolled back, since the id of ' || l.source || ' has come with other content')"
      "::bigint END"
      " FROM (SELECT split_part(t, ' ', 1)::bigint AS crc, substr(t, strpos(t, ' ') + 1) AS"
      " record_id FROM unnest(nullif(current_setting('fencepost.rest', true), '')::text[]) t) r"
      " LEFT JOIN LATERAL (SELECT token, source, content_crc FROM {} l"
      " WHERE l.pipeline = $1 AND l.record_id = r.record_id OFFSET 0) l ON true",
      target.ledger);
}

// One worker of a pipeline prunes at a time; the others find nothing to do. (FOR UPDATE SKIP LOCKED
// would need the right to UPDATE the ledger, which nobody should have.)
//
// $1 pipeline, $2 keep in seconds, $3 most rows to delete, $4 most rows to look at, $5 where to
// begin, $6 $7 $8 topic, partition and offset of what is committed, $9 all topics. The answer: rows
// deleted, rows looked at, and the last row's time. The window is walked by the index (pipeline,
// completed_at), and the rows are deleted by their place (ctid), which in a partitioned ledger
// names one row a partition: so the rule is asked for again, as it must be of a row that another
// session changes while this statement waits for it.
std::string PruneSql(const PgTarget& target) {
  constexpr std::string_view kOld =
      "pipeline = $1 AND completed_at < now() - make_interval(secs => $2::float8)";
  // MayPrune (ledger.h) in SQL.
  constexpr std::string_view kAllowed =
      "CASE WHEN source !~ '^[^/]+/[0-9]{1,9}/[0-9]{1,18}$' THEN false"
      " WHEN split_part(source, '/', 1) <> ALL ($9::text[]) THEN true"
      " ELSE EXISTS (SELECT FROM unnest($6::text[], $7::bigint[], $8::bigint[]) c(topic, part, "
      "next)"
      " WHERE c.topic = split_part(source, '/', 1)"
      " AND c.part = split_part(source, '/', 2)::bigint"
      " AND split_part(source, '/', 3)::bigint < c.next) END";
  return fmt::format(
      "WITH mine AS MATERIALIZED (SELECT pg_try_advisory_xact_lock("
      "hashtextextended('fencepost prune ' || $1, 0)) AS got),"
      " seen AS MATERIALIZED (SELECT ctid AS at, completed_at, source FROM {0}"
      " WHERE (SELECT got FROM mine) AND {1} AND completed_at >= $5::timestamptz"
      " ORDER BY completed_at LIMIT $4::bigint),"
      " gone AS (DELETE FROM {0} WHERE {1} AND {2} AND ctid = ANY (ARRAY("
      "SELECT at FROM seen WHERE {2} LIMIT $3::bigint)) RETURNING 1)"
      " SELECT (SELECT count(*) FROM gone), count(*), max(completed_at)::text,"
      " (max(completed_at) + interval '1 microsecond')::text FROM seen",
      target.ledger, kOld, kAllowed);
}

std::string LookupSql(const PgTarget& target) {
  return fmt::format(
      "SELECT l.token, l.content_crc, l.worker, l.source,"
      " to_char(l.completed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')"
      " FROM unnest($2::text[]) WITH ORDINALITY r(record_id, n) LEFT JOIN LATERAL"
      " (SELECT * FROM {} l WHERE l.pipeline = $1 AND l.record_id = r.record_id OFFSET 0) l ON true"
      " ORDER BY r.n",
      target.ledger);
}

std::string KnowsTopicSql(const PgTarget& target) {
  return fmt::format("SELECT 1 FROM {} WHERE pipeline = $1 AND {} LIMIT 1", target.ledger,
                     target.by_position ? "topic = $2 AND NOT isempty(done)"
                                        : "starts_with(source, $2::text || '/')");
}

std::string ForgetSql(const PgTarget& target) {
  return fmt::format("DELETE FROM {} WHERE pipeline = $1 AND record_id = ANY ($2::text[])",
                     target.ledger);
}

}  // namespace fencepost::consumer
