// What is in the database: the tables of effects with their columns' types, and the ledger. One
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/outputs/ledger/ledger.h"
#include "consumer/outputs/mysql/mysql_connection.h"
#include "consumer/outputs/rows/batch_rows.h"
#include "consumer/outputs/rows/cell_types.h"
#include "consumer/outputs/rows/row_rules.h"
#include "consumer/outputs/rows/row_sql.h"

namespace fencepost::consumer {

inline std::string QuoteName(std::string_view name) { return QuoteIdentifier(name, '`'); }

struct MysqlColumn {
  std::string name;
  std::string declared;  // as in the table: varchar(10)
  CellType cell{};
};

struct MysqlTable {
  std::string name;                  // quoted
  std::vector<MysqlColumn> columns;  // in the order of the shape's
};

struct MysqlTarget {
  std::string ledger;              // quoted: fencepost_ledger, by position fencepost_positions
  std::string ids;                 // likewise: fencepost_ledger
  std::vector<MysqlTable> tables;  // in the order of the effects
  std::vector<std::string> advice{};
};

// What a column takes, by information_schema.columns.
struct MysqlTypeFacts {
  std::string data_type, declared;          // in lower case; as in the table
  std::size_t characters = 0, octets = 0;   // at most
  std::optional<int> precision{}, scale{};  // of numbers
  int digits = 0;                           // behind the second
};
CellType MysqlCellType(const MysqlTypeFacts& facts);

// Reads the catalog, and creates the ledger where it is missing. Checks what can be checked before
// the first record.
tl::expected<MysqlTarget, OutputError> LearnTarget(MysqlConnection& connection,
                                                   const MysqlOptions& options,
                                                   const EffectShapes& effects,
                                                   const LedgerTerms& terms);

// What the columns take: cell_types.h.
class MysqlCells final : public CellTypes {
 public:
  MysqlCells() = default;
  MysqlCells(const std::vector<MysqlColumn>& columns, const RowShape& shape)
      : columns_(&columns), shape_(&shape) {}
  [[nodiscard]] std::string_view Name(std::size_t column) const override {
    return (*columns_)[column].declared;
  }
  [[nodiscard]] const CellType* Type(std::size_t column) const override {
    return &(*columns_)[column].cell;
  }
  tl::expected<void, std::string> Convert(std::size_t column, std::optional<JsonType> type,
                                          std::string& text, std::size_t at) override {
    return MakeCell((*columns_)[column].cell, shape_->columns[column], type, text, at);
  }

 private:
  const std::vector<MysqlColumn>* columns_ = nullptr;
  const RowShape* shape_ = nullptr;
};

}  // namespace fencepost::consumer
