#include "consumer/outputs/postgres/postgres_sql.h"

#include <string_view>

#include <fmt/format.h>

#include "consumer/outputs/ledger/sql.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

constexpr Oid kBoolArrayOid = 1000;

std::string Value(const PgColumn& column, std::string_view row, std::size_t index) {
  return CellSql(column, fmt::format("{}.c{}", row, index));
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

// A row that the ledger did not take rolls back all. Who reads `taken` comes after the ledger, so
// that a known id is met before anything is done for it. The cast is no constant, which would fail
// as soon as it is planned.
constexpr std::string_view kLedgerInsert =
    "led AS (INSERT INTO {} (pipeline, record_id, token, worker, source, content_crc, completed_at)"
    " SELECT $1, record_id, token, $2, source, crc, now() FROM u ORDER BY record_id COLLATE \"C\""
    "{} RETURNING 1),"
    " taken AS MATERIALIZED (SELECT CASE WHEN count(*) = cardinality($3) THEN true ELSE"
    " ('fencepost: the ledger took ' || count(*))::boolean END AS every FROM led)";

// Where the ledger comes into a write: the columns of `u` that are its own, the CTEs that use it,
// whether a row of `u` is new, and what the statement answers.
struct LedgerSql {
  std::string_view arrays, columns;
  std::string ctes;
  std::string fresh;
  std::string answer, from;  // SELECT list and what follows it
  std::size_t next = 0;      // the first parameter that is not the ledger's
};

LedgerSql LedgerOf(const PgTarget& target) {
  if (!target.by_position) {
    const bool optional = Planted("postgres_effect_of_a_known_id");
    const std::string every = optional ? "true" : "(SELECT every FROM taken)";
    return {.arrays = "$3, $4, $5, $6",
            .columns = "record_id, token, source, crc",
            .ctes = fmt::format(kLedgerInsert, target.ledger,
                                optional ? " ON CONFLICT DO NOTHING" : ""),
            .fresh = every,
            .answer = every,
            .from = "",
            .next = 7};
  }
  // A hashed subplan whatever the planner believes of the sizes; written as a join it is a nested
  // loop or a merge join, quadratic or sorted, as soon as an estimate is off. Most batches have
  // nothing in `known`.
  return {.arrays = "$9, $10",
          .columns = "part, off",
          .ctes = ForLedger(target, sql::postgres_write_positions),
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

std::string CellSql(const PgColumn& column, std::string_view cell) {
  return column.bytes() ? std::string(cell) : fmt::format("{}::{}", cell, column.cast);
}

std::string WriteSql(const PgTarget& target) {
  const std::string values = Listed(
      target.columns.size(), [&](std::size_t i) { return Value(target.columns[i], "u", i); });
  const LedgerSql ledger = LedgerOf(target);
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

std::vector<Oid> PlainEffectsTypes(const PgTarget& target) {
  std::vector<Oid> types;
  for (const PgColumn& column : target.columns) {
    types.push_back(column.bytes() ? kBytesArrayOid : kTextArrayOid);
  }
  return types;
}

std::string PlainEffectsSql(const PgTarget& target) {
  const std::string values = Listed(
      target.columns.size(), [&](std::size_t i) { return Value(target.columns[i], "u", i); });
  return fmt::format("INSERT INTO {} ({}) SELECT {} FROM unnest({}) AS u({})", target.table,
                     Names(target), values, ArraysFrom(target, 1).substr(2),
                     CellNames(target).substr(2));
}

std::vector<Oid> WriteTypes(const PgTarget& target) {
  std::vector<Oid> types = LedgerTypes(target);
  const std::vector<Oid> cells = PlainEffectsTypes(target);
  types.insert(types.end(), cells.begin(), cells.end());
  return types;
}

std::string RowsSql(const PgTarget& target, const RowShape& shape) {
  std::string values;
  for (std::size_t i = 0; i < target.columns.size(); ++i) {
    const PgColumn& column = target.columns[i];
    // Keys and fences are compared here as they are in the table.
    const bool collate = !column.collation.empty() && (shape.IsKey(i) || shape.fence == i);
    values += fmt::format(", {}{}{} AS v{}", Value(column, "e", i), collate ? " COLLATE " : "",
                          collate ? column.collation : "", i);
  }
  // A hashed subplan, as in LedgerOf.
  constexpr std::string_view kOfInserted =
      "CASE WHEN e.n IN (SELECT n FROM fresh) THEN true ELSE false END";
  const LedgerSql ledger = LedgerOf(target);
  const std::string omitted =
      shape.MayOmit() ? fmt::format(", ${}", ledger.next + 2 + target.columns.size()) : "";
  std::string sql = fmt::format(
      "WITH RECURSIVE u AS MATERIALIZED (SELECT * FROM unnest({}) WITH ORDINALITY"
      " AS u({}, n)), {},"
      " fresh AS MATERIALIZED (SELECT n FROM u WHERE {}),"
      " e AS MATERIALIZED (SELECT e.ord, e.del{}{} FROM unnest(${}, ${}{}{}) WITH ORDINALITY"
      " AS e(n, del{}{}, ord) WHERE {})",
      ledger.arrays, ledger.columns, ledger.ctes, ledger.fresh,
      omitted.empty() ? "" : ", e.omitted", values, ledger.next, ledger.next + 1,
      ArraysFrom(target, ledger.next + 2), omitted, CellNames(target),
      omitted.empty() ? "" : ", omitted", kOfInserted);
  if (!shape.statement) sql += EffectsSql(target, shape);
  sql += " SELECT " + ledger.answer;
  if (shape.statement) {
    const std::string args =
        Listed(target.columns.size(), [](std::size_t i) { return fmt::format("e.v{}", i); });
    sql += fmt::format(", (SELECT count({}({})) FROM (SELECT * FROM e ORDER BY ord OFFSET 0) e)",
                       target.function, args);
  } else if (shape.fence) {
    sql += ", " + WeighedSql(target, shape);
  }
  return sql + ledger.from;
}

std::vector<Oid> RowsTypes(const PgTarget& target, const RowShape& shape) {
  std::vector<Oid> types = WriteTypes(target);
  if (shape.MayOmit()) types.push_back(kTextArrayOid);
  types.insert(types.begin() + static_cast<std::ptrdiff_t>(LedgerTypes(target).size()),
               {kInt8ArrayOid, kBoolArrayOid});
  return types;
}

std::string ForLedger(const PgTarget& target, const char* statement) {
  std::string text = statement;
  const auto replace = [&](std::string_view name, std::string_view value) {
    for (auto at = text.find(name); at != std::string::npos;
         at = text.find(name, at + value.size()))
      text.replace(at, name.size(), value);
  };
  replace("{lock}", Planted("postgres_rows_are_not_locked") ? "" : "FOR UPDATE");
  replace("{ledger}", target.ledger);
  replace("{ids}", target.ids);
  return text;
}

std::string KnowsTopicSql(const PgTarget& target) {
  return fmt::format("SELECT 1 FROM {} WHERE pipeline = $1 AND {} LIMIT 1", target.ledger,
                     target.by_position ? "topic = $2 AND NOT isempty(done)"
                                        : "starts_with(source, $2::text || '/')");
}

}  // namespace fencepost::consumer
