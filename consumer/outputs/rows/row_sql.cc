#include "consumer/outputs/rows/row_sql.h"

#include <fmt/format.h>

namespace fencepost::consumer {

std::string QuoteIdentifier(std::string_view name, char quote) {
  std::string quoted(1, quote);
  for (const char c : name) {
    if (c == quote) quoted += quote;
    quoted += c;
  }
  return quoted + quote;
}

std::string LowerFenceSql(std::string_view a, std::string_view b) {
  return fmt::format("({0} < {1} OR ({0} IS NULL AND {1} IS NOT NULL))", a, b);
}

std::string OnConflictSql(const RowShape& shape) {
  if (shape.on_conflict == OnConflict::kError) return "";
  if (shape.on_conflict == OnConflict::kIgnore) return " ON CONFLICT DO NOTHING";
  const auto quoted = [&](std::size_t column) {
    return QuoteIdentifier(shape.columns[column].name);
  };
  std::string key, set;
  for (const std::size_t place : shape.key) key += (key.empty() ? "" : ", ") + quoted(place);
  for (std::size_t i = 0; i < shape.columns.size(); ++i) {
    if (shape.IsKey(i)) continue;
    set += fmt::format("{0}{1} = excluded.{1}", set.empty() ? "" : ", ", quoted(i));
  }
  if (set.empty()) return fmt::format(" ON CONFLICT ({}) DO NOTHING", key);
  std::string where;
  if (shape.fence) {
    const std::string fence = quoted(*shape.fence);
    where = " WHERE " + LowerFenceSql("t." + fence, "excluded." + fence);
  }
  return fmt::format(" ON CONFLICT ({}) DO UPDATE SET {}{}", key, set, where);
}

std::string RowSql::Name(std::size_t column) const {
  return QuoteIdentifier(shape.columns[column].name, quote);
}

std::string RowSql::Names() const {
  std::string names;
  for (std::size_t i = 0; i < shape.columns.size(); ++i) {
    if (!omits(i)) names += (names.empty() ? "" : ", ") + Name(i);
  }
  return names;
}

std::string RowSql::Values() const {
  std::string values;
  for (std::size_t i = 0; i < shape.columns.size(); ++i) {
    if (!omits(i)) values += (values.empty() ? "" : ", ") + cell(i);
  }
  return values;
}

std::string RowSql::Where() const {
  std::string where;
  for (const std::size_t place : shape.key) {
    where += fmt::format("{} {} = {}", where.empty() ? " WHERE" : " AND", Name(place), cell(place));
  }
  return where;
}

std::string RowSql::IfLower() const {
  return shape.fence ? " AND " + LowerFenceSql(Name(*shape.fence), cell(*shape.fence)) : "";
}

std::string RowSql::Update() const {
  std::string set;
  for (std::size_t i = 0; i < shape.columns.size(); ++i) {
    if (omits(i) || (shape.IsKey(i) && i != shape.key.front())) continue;
    set += fmt::format("{}{} = {}", set.empty() ? "" : ", ", Name(i),
                       shape.IsKey(i) ? Name(i) : cell(i));
  }
  return fmt::format("UPDATE {} SET {}{}{}", table, set, Where(), IfLower());
}

std::string RowSql::Delete() const {
  return fmt::format("DELETE FROM {}{}{}", table, Where(), IfLower());
}

std::string RowSql::Find() const { return fmt::format("SELECT 1 FROM {}{}", table, Where()); }

std::string RowSql::FindNewer() const {
  return Find() + " AND " + LowerFenceSql(cell(*shape.fence), Name(*shape.fence));
}

}  // namespace fencepost::consumer
