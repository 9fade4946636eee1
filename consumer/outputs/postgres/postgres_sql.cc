#include "consumer/outputs/postgres/postgres_sql.h"

#include <string_view>

#include <fmt/format.h>

#include "consumer/outputs/ledger/ledger.h"
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

// "{a}, {b}, …" of what `part` makes of the columns.
template <typename Part>
std::string Listed(std::size_t count, Part part) {
  std::string list;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) list += ", ";
    list += part(i);
  }
  return list;
}

std::string Value(const PgColumn& column, const Column& from, std::string_view row,
                  std::size_t index) {
  return CellSql(column, from, fmt::format("{}.c{}", row, index));
}

std::string Names(const PgTarget& target) {
  return Listed(target.columns.size(),
                [&](std::size_t i) { return QuoteIdentifier(target.columns[i].name); });
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

// What the rows that were inserted do to the table, by the rules. They are in `e`: ord (the order
// in which they count), del, and the columns' values v0, v1, …
class Effects {
 public:
  Effects(const PgTarget& target, const RowShape& shape) : target_(target), shape_(shape) {}

  [[nodiscard]] std::string Sql() const {
    const std::string removed =
        !shape_.deletes() ? "" : ", " + (shape_.fence ? DeleteFenced() : Delete());
    return fmt::format(
        "{}, eff AS (INSERT INTO {} AS t ({}) SELECT {} FROM {}{})", removed, target_.table,
        Names(target_),
        Listed(target_.columns.size(), [](std::size_t i) { return fmt::format("v{}", i); }), Rows(),
        OnConflictSql());
  }

 private:
  [[nodiscard]] std::string Keys() const {
    return Listed(shape_.key.size(),
                  [&](std::size_t i) { return fmt::format("v{}", shape_.key[i]); });
  }
  [[nodiscard]] std::string Quoted(std::size_t column) const {
    return QuoteIdentifier(target_.columns[column].name);
  }
  // A row's fence is higher than the one in the table; NULL is lower than any.
  [[nodiscard]] std::string Higher(const std::string& fence) const {
    const std::string stands = "t." + Quoted(*shape_.fence);
    return fmt::format("({0} < {1} OR ({0} IS NULL AND {1} IS NOT NULL))", stands, fence);
  }

  // "t.key = ROW.v0 AND …"
  [[nodiscard]] std::string SameKey(std::string_view row) const {
    std::string same;
    for (const std::size_t place : shape_.key) {
      same +=
          fmt::format("{}t.{} = {}.v{}", same.empty() ? "" : " AND ", Quoted(place), row, place);
    }
    return same;
  }

  // Without a fence every deletion counts, and once is enough.
  [[nodiscard]] std::string Delete() const {
    return fmt::format(
        "gone AS (DELETE FROM {} AS t USING (SELECT DISTINCT ON ({}) * FROM e WHERE del) d"
        " WHERE {} RETURNING 1)",
        target_.table, Keys(), SameKey("d"));
  }

  // With a fence, what a deletion does depends on all that came before it, and what comes after it
  // on what it did. So a key that has deletions is gone through step by step, from the row that
  // stands (locked, so that it stays what it is); all others are weighed at once (Rows).
  //   r     the batch's rows; mixed: their key has deletions; step: runs of upserts and of
  //         deletions, in which only the highest fence counts, counted from 1
  //   step  of the mixed keys one row a step, and step 0 for a row of the table; `height` is the
  //         fence's rank within its key, from 1, so that NULL and types are no matter any more
  //   walk  after each step: the height that is left (0: no row), the batch's row that is left
  //   (NULL:
  //         the table's own, or none), and whether the table's own has been deleted
  //   left_over  after the last step
  [[nodiscard]] std::string DeleteFenced() const {
    const std::string keys = Keys();
    const std::string fence = fmt::format("v{}", *shape_.fence);
    std::string standing;
    for (const std::size_t place : shape_.key) {
      standing += fmt::format("t.{} AS v{}, ", Quoted(place), place);
    }
    standing += fmt::format("t.{} AS {}", Quoted(*shape_.fence), fence);
    const std::string rows = fmt::format(
        "r AS MATERIALIZED (SELECT *, count(*) FILTER (WHERE del IS DISTINCT FROM was)"
        " OVER (PARTITION BY {0} ORDER BY ord) AS step FROM (SELECT *,"
        " bool_or(del) OVER (PARTITION BY {0}) AS mixed,"
        " lag(del) OVER (PARTITION BY {0} ORDER BY ord) AS was FROM e) r)",
        keys);
    const std::string steps = fmt::format(
        "standing AS MATERIALIZED (SELECT {2} FROM (SELECT DISTINCT {0} FROM r WHERE mixed) d"
        " JOIN {3} AS t ON {4} ORDER BY {0} FOR UPDATE OF t),"
        " step AS MATERIALIZED (SELECT *, dense_rank() OVER (ORDER BY {0}) AS n,"
        " rank() OVER (PARTITION BY {0} ORDER BY {1} NULLS FIRST) AS height FROM"
        " ((SELECT DISTINCT ON ({0}, step) {0}, {1}, step, del, ord FROM r WHERE mixed"
        " ORDER BY {0}, step, {1} DESC NULLS LAST, ord)"
        " UNION ALL SELECT {0}, {1}, 0, false, NULL FROM standing) s)",
        keys, fence, standing, target_.table, SameKey("d"));
    constexpr std::string_view kWalk =
        "walk AS (SELECT n, 0::bigint AS step, coalesce(max(height) FILTER (WHERE step = 0), 0)"
        " AS height, NULL::bigint AS ord, false AS gone FROM step GROUP BY n"
        " UNION ALL SELECT w.n, s.step,"
        " CASE WHEN s.height <= w.height THEN w.height WHEN s.del THEN 0 ELSE s.height END,"
        " CASE WHEN s.height <= w.height THEN w.ord WHEN s.del THEN NULL ELSE s.ord END,"
        " w.gone OR (s.del AND w.height > 0 AND s.height > w.height)"
        " FROM walk w JOIN step s ON s.n = w.n AND s.step = w.step + 1),"
        " left_over AS MATERIALIZED"
        " (SELECT DISTINCT ON (n) n, ord, gone FROM walk ORDER BY n, walk.step DESC)";
    return fmt::format(
        "{}, {}, {}, gone AS (DELETE FROM {} AS t USING (SELECT s.* FROM left_over l"
        " JOIN step s ON s.n = l.n AND s.step = 1 WHERE l.gone) d WHERE {} RETURNING 1)",
        rows, steps, kWalk, target_.table, SameKey("d"));
  }

  // Which rows are left when deletions and upserts of one key are weighed by their fences.
  [[nodiscard]] std::string RowsFenced() const {
    const std::string values =
        Listed(target_.columns.size(), [](std::size_t i) { return fmt::format("v{}", i); });
    return fmt::format(
        "((SELECT DISTINCT ON ({0}) {1} FROM r WHERE NOT mixed ORDER BY {0}, v{2} DESC NULLS LAST,"
        " ord) UNION ALL SELECT {1} FROM r JOIN left_over l ON l.ord = r.ord) e"
        " WHERE (SELECT count(*) FROM gone) >= 0 ORDER BY {0}",
        Keys(), values, *shape_.fence);
  }

  // Which rows are inserted or update, in the order of their keys, so that two writers take row
  // locks in one order. After the deletions: the count is known only when they are done.
  [[nodiscard]] std::string Rows() const {
    const std::string_view after =
        shape_.deletes() ? " WHERE NOT del AND (SELECT count(*) FROM gone) >= 0" : "";
    if (shape_.fence && shape_.deletes()) return RowsFenced();
    if (shape_.updates()) {
      // ON CONFLICT DO UPDATE takes no row twice: the last of a key counts, or the highest fence
      // (among equals the first, since only a higher one overwrites).
      const std::string wins =
          shape_.fence ? fmt::format("v{} DESC NULLS LAST, ord", *shape_.fence) : "ord DESC";
      return fmt::format("(SELECT DISTINCT ON ({0}) * FROM e ORDER BY {0}, {1}) e{2} ORDER BY {0}",
                         Keys(), wins, after);
    }
    const std::string order = shape_.key.empty() ? "ord" : Keys() + ", ord";
    if (!shape_.deletes()) return "e ORDER BY " + order;
    // What a later deletion removes again is not inserted at all.
    return fmt::format(
        "(SELECT *, max(ord) FILTER (WHERE del) OVER (PARTITION BY {}) AS removed FROM e) e{}"
        " AND ord > coalesce(removed, 0) ORDER BY {}",
        Keys(), after, order);
  }

  [[nodiscard]] std::string OnConflictSql() const {
    if (shape_.on_conflict == OnConflict::kError) return "";
    if (shape_.on_conflict == OnConflict::kIgnore) return " ON CONFLICT DO NOTHING";
    const std::string key =
        Listed(shape_.key.size(), [&](std::size_t i) { return Quoted(shape_.key[i]); });
    std::string set;
    for (std::size_t i = 0; i < target_.columns.size(); ++i) {
      if (shape_.IsKey(i)) continue;
      set += fmt::format("{0}{1} = excluded.{1}", set.empty() ? "" : ", ", Quoted(i));
    }
    if (set.empty()) return fmt::format(" ON CONFLICT ({}) DO NOTHING", key);
    const std::string where =
        shape_.fence ? " WHERE " + Higher("excluded." + Quoted(*shape_.fence)) : "";
    return fmt::format(" ON CONFLICT ({}) DO UPDATE SET {}{}", key, set, where);
  }

  const PgTarget& target_;
  const RowShape& shape_;
};

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
  if (!shape.statement) sql += Effects(target, shape).Sql();
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

std::string ReadPositionsSql(const std::string& ledger) {
  return fmt::format(
      "SELECT p.n, (l.done * p.range::int8multirange)::text, l.token, l.worker, l.anchors,"
      " l.forgotten,"
      " to_char(l.updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')"
      " FROM unnest($2::text[], $3::text[], $4::bigint[], $5::text[]) WITH ORDINALITY"
      " AS p(cluster, topic, partition, range, n) {} ORDER BY p.n",
      PositionRow(ledger, "*", ""));
}

std::string TakeBackPositionsSql(const std::string& ledger) {
  return fmt::format(
      "WITH was AS MATERIALIZED (SELECT p.cluster, p.topic, p.partition::int4 AS partition,"
      " p.range::int8multirange AS range, l.done * p.range::int8multirange AS gone"
      " FROM unnest($2::text[], $3::text[], $4::bigint[], $5::text[])"
      " AS p(cluster, topic, partition, range) {})"
      " UPDATE {} l SET done = l.done - w.range, forgotten = l.forgotten + 1,"
      " anchors = CASE WHEN isempty(l.done - w.range) THEN '' ELSE l.anchors END FROM was w"
      " WHERE l.pipeline = $1 AND l.cluster = w.cluster AND l.topic = w.topic"
      " AND l.partition = w.partition AND NOT isempty(w.gone) RETURNING w.gone::text",
      PositionRow(ledger, "done", " FOR UPDATE"), ledger);
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
  return fmt::format("SELECT 1 FROM {} WHERE pipeline = $1 AND starts_with(source, $2) LIMIT 1",
                     target.ledger);
}

std::string ForgetSql(const PgTarget& target) {
  return fmt::format("DELETE FROM {} WHERE pipeline = $1 AND record_id = ANY ($2::text[])",
                     target.ledger);
}

}  // namespace fencepost::consumer
