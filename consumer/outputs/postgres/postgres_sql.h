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

// The columns of the table of effects.
std::string Names(const PgTarget& target);
// CTEs behind `e`, the rows of the records that were inserted: ord (the order in which they count),
// del, and the columns' values v0, v1, …
std::string EffectsSql(const PgTarget& target, const RowShape& shape);

// A scalar behind them, of a shape with a fence: "ord key fence ord key fence …", numbers that are
// equal and ordered as the database has them; ord 0: a row that the table had before. NULL: every
// row took effect.
std::string WeighedSql(const PgTarget& target, const RowShape& shape);

// How the text of a cell becomes a value of the column, in SQL.
std::string CellSql(const PgColumn& column, std::string_view cell);

// The plain case, one row inserted a record. $1 pipeline, $2 worker, $3 record ids, $4 tokens,
// $5 sources, $6 checksums, $7… one array a column. An id that the ledger has is an error that
// rolls back all (IsOfLedger).
std::string WriteSql(const PgTarget& target);
std::vector<Oid> WriteTypes(const PgTarget& target);
// The effects of the plain case alone. $1… one array a column.
std::string PlainEffectsSql(const PgTarget& target);
std::vector<Oid> PlainEffectsTypes(const PgTarget& target);
// Any number of rows a record, by the rules. The same, but $7 the rows' records (counted from 1),
// $8 whether they delete, $9… one array a column; rows in the order in which they count. Where
// columns may be left out (RowShape::MayOmit), one array more: which are, "0" or "1" a column. With
// a fence the answer's last column is WeighedSql.
std::string RowsSql(const PgTarget& target, const RowShape& shape);
std::vector<Oid> RowsTypes(const PgTarget& target, const RowShape& shape);
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
