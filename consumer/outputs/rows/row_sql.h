// SQL on the table of effects that is the same in several databases. Pure; any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "consumer/outputs/rows/row_rules.h"

namespace fencepost::consumer {

// "a ""b""": any text as one SQL identifier.
std::string QuoteIdentifier(std::string_view name, char quote = '"');
// The fence `a` is lower than `b`, NULL than any other: the one rule of what a fence lets through.
std::string LowerFenceSql(std::string_view a, std::string_view b);
// Of PostgreSQL and SQLite, where the table of effects is `t`: what an INSERT says behind its rows.
std::string OnConflictSql(const RowShape& shape);

// The statements of one row. It is compared with the table's by its key and its fence alone.
struct RowSql {
  const RowShape& shape;
  std::string_view table;
  char quote = '"';
  std::function<std::string(std::size_t column)> cell;  // its value
  std::function<bool(std::size_t column)> omits = [](std::size_t) { return false; };

  // Of an INSERT: "a, b" and "1, 2".
  [[nodiscard]] std::string Names() const;
  [[nodiscard]] std::string Values() const;
  // Where the table's row has a lower fence. Nothing to set is a row that stays as it is.
  [[nodiscard]] std::string Update() const;
  [[nodiscard]] std::string Delete() const;
  // The table's row of this key; if its fence is higher.
  [[nodiscard]] std::string Find() const;
  [[nodiscard]] std::string FindNewer() const;

 private:
  [[nodiscard]] std::string Name(std::size_t column) const;
  [[nodiscard]] std::string Where() const;
  [[nodiscard]] std::string IfLower() const;
};

}  // namespace fencepost::consumer
