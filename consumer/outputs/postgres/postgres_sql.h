// The statements that are made for a target. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "consumer/outputs/postgres/postgres_schema.h"

namespace fencepost::consumer {

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

// The message by which the database refuses an id that the ledger has begins so. It differs in each
// process: a record whose value a message quotes cannot say it. Thread-safe.
const std::string& LedgerMark();

// The columns of a table of effects.
std::string Names(const PgTable& table);
// CTEs behind `e`, the rows of the records that were inserted: ord (the order in which they count),
// del, and the columns' values v0, v1, …
std::string EffectsSql(const PgTable& table, const RowShape& shape);

// A scalar behind them, of a shape with a fence: "ord key fence ord key fence …", numbers that are
// equal and ordered as the database has them; ord 0: a row that the table had before. NULL: every
// row took effect.
std::string WeighedSql(const PgTable& table, const RowShape& shape);

// How the text of a cell becomes a value of the column, in SQL.
std::string CellSql(const PgColumn& column, std::string_view cell);

// The plain case, one row inserted a record. $1 pipeline, $2 worker, $3 record ids, $4 tokens,
// $5 sources, $6 checksums, $7… one array a column. An id that the ledger has is an error that
// rolls back all (IsOfLedger).
std::string WriteSql(const PgTarget& target, const PgTable& table);
std::vector<Oid> WriteTypes(const PgTarget& target, const PgTable& table);
// The effects of the plain case alone. $1… one array a column.
std::string PlainEffectsSql(const PgTable& table);
std::vector<Oid> PlainEffectsTypes(const PgTable& table);
// Any number of rows a record, by the rules. The same, but $7 the rows' records (counted from 1),
// $8 whether they delete, $9… one array a column; rows in the order in which they count. Where
// columns may be left out (RowShape::MayOmit), one array more: which are, "0" or "1" a column. With
// a fence the answer's last column is WeighedSql.
enum class Part : std::uint8_t { kWhole, kEffects };
std::string RowsSql(const PgTarget& target, const PgTable& table, const RowShape& shape, Part part);
std::vector<Oid> RowsTypes(const PgTarget& target, const PgTable& table, const RowShape& shape,
                           Part part);
// Where there are several tables each has its effects in a statement of its own, kEffects: by id
// without the ledger's parameters, behind the ledger's statement; by position with all of them, and
// before it. It answers one row, whose last column is WeighedSql with a fence.
std::string LedgerSql(const PgTarget& target);
std::vector<Oid> LedgerTypes(const PgTarget& target);
// By position (PgTarget::by_position) the write has other ledger parameters: $3
// clusters, $4 topics, $5 partitions, $6 ranges as text, $7 tokens, $8 anchors of the partitions,
// $9 the records' partitions (counted from 1), $10 their offsets; what follows is as above. It
// answers one row a partition: its number; which of its ranges were done before, token, worker and
// anchors as they were before; and `forgotten`.

// A statement of consumer/outputs/sql, for the target's ledger.
std::string ForLedger(const PgTarget& target, const char* statement);
// What postgres_lock_positions fails with where a row is missing.
inline constexpr std::string_view kRowsMissingState = "22P02";
// $1 pipeline, $2 topic. Of either ledger; a row, or none.
std::string KnowsTopicSql(const PgTarget& target);

}  // namespace fencepost::consumer
