// What is in the database: the table of effects with its columns' types, or what the user's own
// statement takes; and the ledger. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/outputs/ledger/ledger.h"
#include "consumer/outputs/postgres/postgres_connection.h"
#include "consumer/outputs/rows/batch_rows.h"
#include "consumer/outputs/rows/row_rules.h"
#include "consumer/pipeline/options.h"

namespace fencepost::consumer {

inline constexpr Oid kTextOid = 25;
inline constexpr Oid kTextArrayOid = 1009;
inline constexpr Oid kBytesOid = 17;
inline constexpr Oid kBytesArrayOid = 1001;
inline constexpr Oid kBoolOid = 16;
inline constexpr Oid kInt8Oid = 20;
inline constexpr Oid kInt8ArrayOid = 1016;

struct PgColumn {
  std::string name;
  Oid base = 0;  // the type below any domains
  std::string
      cast;  // its name in SQL, without a length: the assignment checks lengths, a cast cuts
  std::string collation;   // its name in SQL, where it is not the database's own
  Oid element = 0;         // of an array: the type of its elements, below any domains
  std::string declared;    // its name in SQL, with its length and precision
  std::size_t length = 0;  // most characters; 0: no limit
  std::string fallback{};  // SQL: its DEFAULT, or NULL
  [[nodiscard]] bool bytes() const { return base == kBytesOid; }
};

struct PgTarget {
  std::string table;   // qualified and quoted; empty: the user's own statement
  std::string ledger;  // likewise: fencepost_ledger, by position fencepost_positions
  bool by_position = false;
  std::string function;           // the user's own statement
  std::vector<PgColumn> columns;  // in the order of the shape's columns
  std::vector<std::string> advice{};
};

// Cells as the types of PostgreSQL's columns take them: JSON strings stay strings in json columns,
// JSON arrays become array literals, whole numbers such as 1.0 and 1e3 go into integer columns, and
// what `convert` says is done. Everything else is text, which PostgreSQL reads as the column's
// type. The table of it: README.md. Pure but for its memory; one thread.
class PgCells final : public CellTypes {
 public:
  PgCells() = default;
  PgCells(const std::vector<PgColumn>& columns, const RowShape& shape)
      : columns_(&columns), shape_(&shape) {}

  [[nodiscard]] std::string_view Name(std::size_t column) const override;
  tl::expected<void, std::string> Convert(std::size_t column, std::optional<JsonType> type,
                                          std::string& text, std::size_t at) override;

 private:
  const std::vector<PgColumn>* columns_ = nullptr;
  const RowShape* shape_ = nullptr;
};

// What becomes of JSON in a column. `array` is valid JSON. For PgCells and its tests.
enum class PgElement : std::uint8_t { kText, kInteger, kJson };
tl::expected<std::string, std::string> PgArrayLiteral(std::string_view array, PgElement element);

// Reads the catalog, and creates the ledger where it is missing and may be created. Checks what can
// be checked before the first record: columns, rights, the ledger's shape, and that the database
// can do what the rules ask.
tl::expected<PgTarget, OutputError> LearnTarget(PgConnection& connection,
                                                const PostgresOptions& options,
                                                const RowShape& shape, const LedgerTerms& terms);

// What tells one database from another that took its place: while both stay the same, the server
// has run all the time, and the ledger is the very table.
struct PgIncarnation {
  std::string started;   // of the postmaster
  std::string ledger;    // oid and file of the table
  std::string timeline;  // for people; empty where the role may not know
  [[nodiscard]] bool IsSame(const PgIncarnation& other) const {
    return started == other.started && ledger == other.ledger;
  }
};
tl::expected<PgIncarnation, PgFailure> LearnIncarnation(PgConnection& connection,
                                                        const PgTarget& target);

// The user's statement as a function of this session, of this name (postgres_statement.cc); the
// types of its parameters.
std::string StatementFunction(const std::string& statement);
tl::expected<std::vector<PgColumn>, OutputError> LearnStatement(PgConnection& connection,
                                                                const std::string& statement,
                                                                const RowShape& shape);

}  // namespace fencepost::consumer
