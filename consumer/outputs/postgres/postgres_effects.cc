// The part of a write that changes a table of effects, by the rules.

#include <string_view>

#include <fmt/format.h>

#include "consumer/outputs/ledger/ledger.h"
#include "consumer/outputs/ledger/sql.h"
#include "consumer/outputs/postgres/postgres_sql.h"
#include "consumer/outputs/rows/row_sql.h"

namespace fencepost::consumer {
namespace {

class Effects {
 public:
  Effects(const PgTable& table, const RowShape& shape) : table_(table), shape_(shape) {}

  [[nodiscard]] std::string Sql() const {
    const std::string removed =
        !shape_.deletes() ? "" : ", " + (shape_.fence ? DeleteFenced() : Delete());
    return fmt::format("{}{}, eff AS (INSERT INTO {} AS t ({}) SELECT {} FROM {}{})", Held(),
                       removed, table_.name, Names(table_),
                       Listed(table_.columns.size(), [this](std::size_t i) { return Inserted(i); }),
                       Rows(), OnConflictSql(shape_) + (shape_.fence ? " RETURNING 1" : ""));
  }

  // ord 0 is the table's row as it was before this statement. Keys and fences are ranks here, as
  // the database compares them.
  [[nodiscard]] std::string Weighed() const {
    const std::string keys = Keys();
    const std::string fence = fmt::format("v{}", *shape_.fence);
    std::string standing;
    for (const std::size_t place : shape_.key) standing += fmt::format("t.{}, ", Quoted(place));
    const std::string_view gone = shape_.deletes() ? " + (SELECT count(*) FROM gone)" : "";
    return fmt::format(
        "CASE WHEN (SELECT count(*) FROM eff){5} < (SELECT count(*) FROM e) THEN"
        " (SELECT string_agg(concat_ws(' ', ord, key, fence), ' ' ORDER BY ord) FROM (SELECT ord,"
        " dense_rank() OVER (ORDER BY {0}) AS key,"
        " rank() OVER (PARTITION BY {0} ORDER BY {1} NULLS FIRST) AS fence"
        " FROM (SELECT ord, {0}, {1} FROM e UNION ALL SELECT 0, {2}t.{3} FROM"
        " (SELECT DISTINCT {0} FROM e) d JOIN {4} AS t ON {6}) x) y) END",
        keys, fence, standing, Quoted(*shape_.fence), table_.name, gone, SameKey("d"));
  }

 private:
  [[nodiscard]] std::string Keys() const {
    return Listed(shape_.key.size(),
                  [&](std::size_t i) { return fmt::format("v{}", shape_.key[i]); });
  }
  [[nodiscard]] std::string Quoted(std::size_t column) const {
    return QuoteIdentifier(table_.columns[column].name);
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

  // The table's rows of which this batch leaves columns out; locked, so that they stay what they
  // are. No row of the batch comes before such a one of its key (BatchRows).
  [[nodiscard]] std::string Held() const {
    if (!shape_.MayOmit() || !shape_.updates()) return "";
    std::string columns;
    for (std::size_t i = 0; i < table_.columns.size(); ++i) {
      if (!shape_.IsKey(i) && !shape_.MayOmit(i)) continue;
      columns += fmt::format("{}t.{} AS h{}", columns.empty() ? "" : ", ", Quoted(i), i);
    }
    return fmt::format(
        ", held AS MATERIALIZED (SELECT {}, true AS held FROM (SELECT DISTINCT {} FROM e"
        " WHERE NOT del AND strpos(omitted, '1') > 0) d JOIN {} AS t ON {} ORDER BY {}"
        " FOR UPDATE OF t),"
        // Keys whose texts differ may be one key to the database (a uuid in capitals, 1 and 1.0).
        " first AS MATERIALIZED (SELECT CASE WHEN bool_or(late) THEN ('fencepost: a row that leaves"
        " columns out follows another of its key' || count(*))::bigint END AS fine FROM (SELECT"
        " strpos(omitted, '1') > 0 AND NOT del AND ord > min(ord) OVER (PARTITION BY {}) AS late"
        " FROM e) x)",
        columns, Keys(), table_.name, SameKey("d"),
        Listed(shape_.key.size(), [this](std::size_t i) { return "t." + Quoted(shape_.key[i]); }),
        Keys());
  }
  // Behind the rows that are inserted or update.
  [[nodiscard]] std::string JoinHeld() const {
    if (!shape_.MayOmit() || !shape_.updates()) return "";
    std::string same;
    for (const std::size_t place : shape_.key) {
      same += fmt::format("{0}h.h{1} = e.v{1}", same.empty() ? "" : " AND ", place);
    }
    return fmt::format(" LEFT JOIN held h ON {}", same);
  }
  [[nodiscard]] std::string IfFirst() const {
    return shape_.MayOmit() && shape_.updates() ? "(SELECT fine FROM first) IS NULL" : "";
  }
  // A column that is left out stays as it is in the row of the table, and has its default in a new
  // one.
  [[nodiscard]] std::string Inserted(std::size_t column) const {
    std::string value = fmt::format("e.v{}", column);
    if (!shape_.MayOmit(column)) return value;
    const PgColumn& to = table_.columns[column];
    std::string left = fmt::format("({})::{}", to.fallback, to.cast);
    if (shape_.updates())
      left = fmt::format("CASE WHEN h.held THEN h.h{} ELSE {} END", column, left);
    return fmt::format("CASE WHEN substr(e.omitted, {}, 1) = '1' THEN {} ELSE {} END", column + 1,
                       left, value);
  }

  // Without a fence every deletion counts, and once is enough.
  [[nodiscard]] std::string Delete() const {
    return fmt::format(
        "gone AS (DELETE FROM {} AS t USING (SELECT DISTINCT ON ({}) * FROM e WHERE del) d"
        " WHERE {} RETURNING 1)",
        table_.name, Keys(), SameKey("d"));
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
        keys, fence, standing, table_.name, SameKey("d"));
    return fmt::format(
        "{}, {}, {}, gone AS (DELETE FROM {} AS t USING (SELECT s.* FROM left_over l"
        " JOIN step s ON s.n = l.n AND s.step = 1 WHERE l.gone) d WHERE {} RETURNING 1)",
        rows, steps, sql::postgres_walk, table_.name, SameKey("d"));
  }

  // Which rows are left when deletions and upserts of one key are weighed by their fences.
  [[nodiscard]] std::string RowsFenced() const {
    std::string values =
        Listed(table_.columns.size(), [](std::size_t i) { return fmt::format("v{}", i); });
    if (shape_.MayOmit()) values += ", omitted";
    return fmt::format(
        "((SELECT DISTINCT ON ({0}) {1} FROM r WHERE NOT mixed ORDER BY {0}, v{2} DESC NULLS LAST,"
        " ord) UNION ALL SELECT {1} FROM r JOIN left_over l ON l.ord = r.ord) e{3}"
        " WHERE (SELECT count(*) FROM gone) >= 0{4} ORDER BY {0}",
        Keys(), values, *shape_.fence, JoinHeld(), IfFirst().empty() ? "" : " AND " + IfFirst());
  }

  // Which rows are inserted or update, in the order of their keys, so that two writers take row
  // locks in one order. After the deletions: the count is known only when they are done.
  [[nodiscard]] std::string Rows() const {
    std::string after =
        shape_.deletes() ? " WHERE NOT del AND (SELECT count(*) FROM gone) >= 0" : "";
    if (shape_.fence && shape_.deletes()) return RowsFenced();
    if (shape_.updates()) {
      // ON CONFLICT DO UPDATE takes no row twice: the last of a key counts, or the highest fence
      // (among equals the first, since only a higher one overwrites).
      const std::string wins =
          shape_.fence ? fmt::format("v{} DESC NULLS LAST, ord", *shape_.fence) : "ord DESC";
      if (!IfFirst().empty()) after += (after.empty() ? " WHERE " : " AND ") + IfFirst();
      return fmt::format(
          "(SELECT DISTINCT ON ({0}) * FROM e ORDER BY {0}, {1}) e{3}{2} ORDER BY {0}", Keys(),
          wins, after, JoinHeld());
    }
    const std::string order = shape_.key.empty() ? "ord" : Keys() + ", ord";
    if (!shape_.deletes()) return "e ORDER BY " + order;
    // What a later deletion removes again is not inserted at all.
    return fmt::format(
        "(SELECT *, max(ord) FILTER (WHERE del) OVER (PARTITION BY {}) AS removed FROM e) e{}"
        " AND ord > coalesce(removed, 0) ORDER BY {}",
        Keys(), after, order);
  }

  const PgTable& table_;
  const RowShape& shape_;
};

}  // namespace

std::string Names(const PgTable& table) {
  return Listed(table.columns.size(),
                [&](std::size_t i) { return QuoteIdentifier(table.columns[i].name); });
}

std::string EffectsSql(const PgTable& table, const RowShape& shape) {
  return Effects(table, shape).Sql();
}

std::string WeighedSql(const PgTable& table, const RowShape& shape) {
  return Effects(table, shape).Weighed();
}

}  // namespace fencepost::consumer
