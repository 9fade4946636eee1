#include "consumer/outputs/postgres/postgres_sql.h"

#include <random>
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

std::string ArraysFrom(const PgTable& target, std::size_t first) {
  std::string arrays;
  for (std::size_t i = 0; i < target.columns.size(); ++i) {
    arrays += fmt::format(", ${}", first + i);
  }
  return arrays;
}

std::string CellNames(const PgTable& target) {
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
    " ('{}' || count(*))::boolean END AS every FROM led)";

// Where the ledger comes into a write: the columns of `u` that are its own, the CTEs that use it,
// whether a row of `u` is new, and what the statement answers.
struct OfLedger {
  std::string_view arrays, columns;
  std::string ctes;
  std::string fresh;
  std::string answer, from;  // SELECT list and what follows it
  std::size_t next = 0;      // the first parameter that is not the ledger's
};

OfLedger LedgerOf(const PgTarget& target, Part part) {
  if (!target.by_position) {
    const bool optional = Planted("postgres_effect_of_a_known_id");
    const std::string every = optional ? "true" : "(SELECT every FROM taken)";
    return {.arrays = "$3, $4, $5, $6",
            .columns = "record_id, token, source, crc",
            .ctes = fmt::format(kLedgerInsert, target.ledger,
                                optional ? " ON CONFLICT DO NOTHING" : "", LedgerMark()),
            .fresh = every,
            .answer = every,
            .from = "",
            .next = 7};
  }
  std::string ctes = ForLedger(target, sql::postgres_known_positions);
  if (part == Part::kWhole) ctes += ", " + ForLedger(target, sql::postgres_write_positions);
  // A hashed subplan whatever the planner believes of the sizes; written as a join it is a nested
  // loop or a merge join, quadratic or sorted, as soon as an estimate is off. Most batches have
  // nothing in `known`.
  return {.arrays = "$9, $10",
          .columns = "part, off",
          .ctes = std::move(ctes),
          .fresh =
              "CASE WHEN u.part IN (SELECT n FROM known) THEN NOT EXISTS (SELECT FROM known k"
              " WHERE k.n = u.part AND k.known @> u.off) ELSE true END",
          .answer = part == Part::kEffects ? "1"
                                           : "part.n, part.known::text, part.token, part.worker,"
                                             " part.anchors, part.forgotten",
          .from = part == Part::kEffects ? "" : " FROM part ORDER BY part.n",
          .next = 11};
}

// `u`, the records of the batch.
std::string Records(const OfLedger& ledger) {
  return fmt::format("u AS MATERIALIZED (SELECT * FROM unnest({}) WITH ORDINALITY AS u({}, n)), {}",
                     ledger.arrays, ledger.columns, ledger.ctes);
}

}  // namespace

std::string CellSql(const PgColumn& column, std::string_view cell) {
  return column.bytes() ? std::string(cell) : fmt::format("{}::{}", cell, column.cast);
}

std::string WriteSql(const PgTarget& target, const PgTable& table) {
  const std::string values =
      Listed(table.columns.size(), [&](std::size_t i) { return Value(table.columns[i], "u", i); });
  const OfLedger ledger = LedgerOf(target, Part::kWhole);
  return fmt::format(
      "WITH u AS MATERIALIZED (SELECT * FROM unnest({}{}) AS u({}{})), {},"
      " eff AS (INSERT INTO {} ({}) SELECT {} FROM u WHERE {}) SELECT {}{}",
      ledger.arrays, ArraysFrom(table, ledger.next), ledger.columns, CellNames(table), ledger.ctes,
      table.name, Names(table), values, ledger.fresh, ledger.answer, ledger.from);
}

std::string LedgerSql(const PgTarget& target) {
  const OfLedger ledger = LedgerOf(target, Part::kWhole);
  return fmt::format("WITH {} SELECT {}{}", Records(ledger), ledger.answer, ledger.from);
}

// Of the ledger, and pipeline and worker.
std::vector<Oid> LedgerTypes(const PgTarget& target) {
  if (!target.by_position) {
    return {kTextOid, kTextOid, kTextArrayOid, kInt8ArrayOid, kTextArrayOid, kInt8ArrayOid};
  }
  return {kTextOid,      kTextOid,      kTextArrayOid, kTextArrayOid, kInt8ArrayOid,
          kTextArrayOid, kInt8ArrayOid, kTextArrayOid, kInt8ArrayOid, kInt8ArrayOid};
}

std::vector<Oid> PlainEffectsTypes(const PgTable& table) {
  std::vector<Oid> types;
  for (const PgColumn& column : table.columns) {
    types.push_back(column.bytes() ? kBytesArrayOid : kTextArrayOid);
  }
  return types;
}

std::string PlainEffectsSql(const PgTable& table) {
  const std::string values =
      Listed(table.columns.size(), [&](std::size_t i) { return Value(table.columns[i], "u", i); });
  return fmt::format("INSERT INTO {} ({}) SELECT {} FROM unnest({}) AS u({})", table.name,
                     Names(table), values, ArraysFrom(table, 1).substr(2),
                     CellNames(table).substr(2));
}

std::vector<Oid> WriteTypes(const PgTarget& target, const PgTable& table) {
  std::vector<Oid> types = LedgerTypes(target);
  const std::vector<Oid> cells = PlainEffectsTypes(table);
  types.insert(types.end(), cells.begin(), cells.end());
  return types;
}

std::string RowsSql(const PgTarget& target, const PgTable& table, const RowShape& shape,
                    Part part) {
  std::string values;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const PgColumn& column = table.columns[i];
    // Keys and fences are compared here as they are in the table.
    const bool collate = !column.collation.empty() && (shape.IsKey(i) || shape.fence == i);
    values += fmt::format(", {}{}{} AS v{}", Value(column, "e", i), collate ? " COLLATE " : "",
                          collate ? column.collation : "", i);
  }
  OfLedger ledger = LedgerOf(target, part);
  const bool all = part == Part::kEffects && !target.by_position;  // what is known is left out
  if (all) ledger.next = 1;
  const std::string omitted =
      shape.MayOmit() ? fmt::format(", ${}", ledger.next + 2 + table.columns.size()) : "";
  // A hashed subplan, as in LedgerOf.
  const std::string fresh =
      all ? ""
          : fmt::format("{}, fresh AS MATERIALIZED (SELECT n FROM u WHERE {}), ", Records(ledger),
                        ledger.fresh);
  std::string sql = fmt::format(
      "WITH RECURSIVE {}e AS MATERIALIZED (SELECT e.ord, e.del{}{} FROM unnest(${}, ${}{}{})"
      " WITH ORDINALITY AS e(n, del{}{}, ord) WHERE {})",
      fresh, omitted.empty() ? "" : ", e.omitted", values, ledger.next, ledger.next + 1,
      ArraysFrom(table, ledger.next + 2), omitted, CellNames(table),
      omitted.empty() ? "" : ", omitted",
      all ? "true" : "CASE WHEN e.n IN (SELECT n FROM fresh) THEN true ELSE false END");
  if (!shape.statement) sql += EffectsSql(table, shape);
  sql += " SELECT " + (all ? std::string("1") : ledger.answer);
  if (shape.statement) {
    const std::string args =
        Listed(table.columns.size(), [](std::size_t i) { return fmt::format("e.v{}", i); });
    sql += fmt::format(", (SELECT count({}({})) FROM (SELECT * FROM e ORDER BY ord OFFSET 0) e)",
                       table.function, args);
  } else if (shape.fence) {
    sql += ", " + WeighedSql(table, shape);
  }
  return all ? sql : sql + ledger.from;
}

std::vector<Oid> RowsTypes(const PgTarget& target, const PgTable& table, const RowShape& shape,
                           Part part) {
  std::vector<Oid> types;
  if (part == Part::kWhole || target.by_position) types = LedgerTypes(target);
  types.insert(types.end(), {kInt8ArrayOid, kBoolArrayOid});
  const std::vector<Oid> cells = PlainEffectsTypes(table);
  types.insert(types.end(), cells.begin(), cells.end());
  if (shape.MayOmit()) types.push_back(kTextArrayOid);
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

const std::string& LedgerMark() {
  static const std::string mark = [] {
    std::random_device random;
    return fmt::format("fencepost: {:08x}{:08x}: the ledger took ", random(), random());
  }();
  return mark;
}

}  // namespace fencepost::consumer
