// What stands in the database: the table of effects with its columns' types, and the ledger; and
// the statements that are made for them. One thread.
#pragma once

#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/options.h"
#include "consumer/outputs/postgres_connection.h"

namespace fencepost::consumer {

inline constexpr Oid kTextOid = 25;
inline constexpr Oid kTextArrayOid = 1009;
inline constexpr Oid kBytesOid = 17;
inline constexpr Oid kBytesArrayOid = 1001;
inline constexpr Oid kInt8Oid = 20;
inline constexpr Oid kInt8ArrayOid = 1016;

struct PgColumn {
  std::string name;
  Oid base = 0;  // the type below any domains
  std::string
      cast;  // its name in SQL, without a length: the assignment checks lengths, a cast cuts
  [[nodiscard]] bool bytes() const { return base == kBytesOid; }
};

struct PgTarget {
  std::string table;              // qualified and quoted
  std::string ledger;             // likewise
  std::vector<PgColumn> columns;  // in the order of the options' columns
};

// Reads the catalog, and creates the ledger where it is missing. Checks what can be checked before
// the first record: columns, rights, the ledger's shape.
tl::expected<PgTarget, OutputError> LearnTarget(PgConnection& connection,
                                                const PostgresOptions& options);

// $1 pipeline, $2 worker, $3 record ids, $4 tokens, $5 sources, $6 checksums, $7… one array a
// column. Answers one row: how many ledger rows it inserted.
std::string WriteSql(const PgTarget& target, const std::vector<Column>& columns);
std::vector<Oid> WriteTypes(const PgTarget& target);
// $1 pipeline. In the same transaction, after the write: the record ids that it did not insert,
// with the ledger's token, source and content_crc.
std::string RestSql(const PgTarget& target);
// $1 pipeline, $2 seconds to keep, $3 limit.
std::string PruneSql(const PgTarget& target);

}  // namespace fencepost::consumer
