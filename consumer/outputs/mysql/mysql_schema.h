// What is in the database: the table of effects with its columns' types, and the ledger. One
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
#include "consumer/outputs/rows/row_rules.h"

namespace fencepost::consumer {

inline std::string QuoteName(std::string_view name) { return QuoteIdentifier(name, '`'); }

enum class MysqlType : std::uint8_t {
  kInteger,
  kNumber,  // decimal, float, double
  kBit,
  kText,  // also enum and set
  kJson,  // MariaDB: a text that is checked to be JSON
  kBytes,
  kDate,
  kDateTime,  // also timestamp; UTC
  kOther,     // taken as text
};

struct MysqlColumn {
  std::string name;
  std::string declared;  // as in the table: varchar(10)
  MysqlType type = MysqlType::kOther;
  std::int64_t least = 0, most = 0;  // of kInteger
  int digits = 0;                    // of kDateTime: behind the seconds
};

struct MysqlTarget {
  std::string table;                 // quoted
  std::string ledger;                // likewise
  std::vector<MysqlColumn> columns;  // in the order of the shape's
  std::vector<std::string> advice{};
};

// Reads the catalog, and creates the ledger where it is missing. Checks what can be checked before
// the first record.
tl::expected<MysqlTarget, OutputError> LearnTarget(MysqlConnection& connection,
                                                   const MysqlOptions& options,
                                                   const RowShape& shape, const LedgerTerms& terms);

// What the columns' types make of a cell (table in README.md).
class MysqlCells final : public CellTypes {
 public:
  MysqlCells() = default;
  MysqlCells(const std::vector<MysqlColumn>& columns, const RowShape& shape)
      : columns_(&columns), shape_(&shape) {}
  [[nodiscard]] std::string_view Name(std::size_t column) const override {
    return (*columns_)[column].declared;
  }
  tl::expected<void, std::string> Convert(std::size_t column, std::optional<JsonType> type,
                                          std::string& text, std::size_t at) override;

 private:
  const std::vector<MysqlColumn>* columns_ = nullptr;
  const RowShape* shape_ = nullptr;
};

}  // namespace fencepost::consumer
