// What is in the database: the tables of effects with their columns' types, or what the user's own
// statements take; and the ledger. One thread.
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
#include "consumer/outputs/rows/cell_types.h"
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
  std::string collation;  // its name in SQL, where it is not the database's own
  std::string declared;   // its name in SQL, with its length and precision
  CellType cell{};
  std::optional<CellType> element{};  // of an array: what its elements are
  std::string fallback{};             // SQL: its DEFAULT, or NULL
  [[nodiscard]] bool bytes() const { return base == kBytesOid; }
};

struct PgTable {
  std::string name;               // qualified and quoted; empty: the user's own statement
  std::string function;           // of that
  std::vector<PgColumn> columns;  // in the order of the shape's columns
};

struct PgTarget {
  std::string ledger;  // qualified and quoted: fencepost_ledger, by position fencepost_positions
  std::string ids;     // likewise: fencepost_ledger
  bool by_position = false;
  std::vector<PgTable> tables;  // in the order of the effects
  std::vector<std::string> advice;
};

// What a type takes, by what is below its domains, and its type modifier (-1: none).
CellType PgCellType(Oid base, int modifier, char category = 'U');
// 0: it is no array.
inline std::optional<CellType> PgElementType(Oid element, int modifier) {
  if (element == 0) return std::nullopt;
  return PgCellType(element, modifier);
}

// Cells as PostgreSQL's columns take them: cell_types.h. One thread.
class PgCells final : public CellTypes {
 public:
  PgCells() = default;
  PgCells(const std::vector<PgColumn>& columns, const RowShape& shape)
      : columns_(&columns), shape_(&shape) {}

  [[nodiscard]] std::string_view Name(std::size_t column) const override {
    return (*columns_)[column].declared;
  }
  [[nodiscard]] const CellType* Type(std::size_t column) const override {
    const PgColumn& to = (*columns_)[column];
    return to.element ? &*to.element : &to.cell;
  }
  tl::expected<void, std::string> Convert(std::size_t column, std::optional<JsonType> type,
                                          std::string& text, std::size_t at) override;

 private:
  const std::vector<PgColumn>* columns_ = nullptr;
  const RowShape* shape_ = nullptr;
};

// Reads the catalog, and creates the ledger where it is missing and may be created. Checks what can
// be checked before the first record: columns, rights, the ledger's shape, and that the database
// can do what the rules ask.
tl::expected<PgTarget, OutputError> LearnTarget(PgConnection& connection,
                                                const PostgresOptions& options,
                                                const EffectShapes& effects,
                                                const LedgerTerms& terms);

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
// `place` tells it from others of the session.
tl::expected<std::vector<PgColumn>, OutputError> LearnStatement(PgConnection& connection,
                                                                const EffectShape& effect,
                                                                std::size_t place);

}  // namespace fencepost::consumer
