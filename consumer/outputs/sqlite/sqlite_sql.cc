#include "consumer/outputs/sqlite/sqlite_sql.h"

#include <string_view>

#include <fmt/format.h>

#include "consumer/outputs/ledger/ledger.h"

namespace fencepost::consumer {
namespace {

std::string Quoted(const RowShape& shape, std::size_t column) {
  return QuoteIdentifier(shape.columns[column].name);
}

// The row's fence is higher than the one in the table; NULL is lower than any. The column's
// affinity holds for what it is compared with.
std::string Higher(const RowShape& shape, const std::string& fence) {
  const std::string stands = Quoted(shape, *shape.fence);
  return fmt::format("({0} < {1} OR ({0} IS NULL AND {1} IS NOT NULL))", stands, fence);
}

std::string OnConflictSql(const RowShape& shape) {
  if (shape.on_conflict == OnConflict::kError) return "";
  if (shape.on_conflict == OnConflict::kIgnore) return " ON CONFLICT DO NOTHING";
  std::string key;
  for (const std::size_t place : shape.key) {
    key += (key.empty() ? "" : ", ") + Quoted(shape, place);
  }
  std::string set;
  for (std::size_t i = 0; i < shape.columns.size(); ++i) {
    if (shape.IsKey(i)) continue;
    set += fmt::format("{0}{1} = excluded.{1}", set.empty() ? "" : ", ", Quoted(shape, i));
  }
  if (set.empty()) return fmt::format(" ON CONFLICT ({}) DO NOTHING", key);
  const std::string where =
      shape.fence ? " WHERE " + Higher(shape, "excluded." + Quoted(shape, *shape.fence)) : "";
  return fmt::format(" ON CONFLICT ({}) DO UPDATE SET {}{}", key, set, where);
}

}  // namespace

std::string InsertSql(const SqliteTarget& target, const RowShape& shape) {
  std::string names;
  std::string marks;
  for (std::size_t i = 0; i < shape.columns.size(); ++i) {
    const std::string_view comma = i == 0 ? "" : ", ";
    names += fmt::format("{}{}", comma, Quoted(shape, i));
    marks += fmt::format("{}?{}", comma, i + 1);
  }
  return fmt::format("INSERT INTO {} ({}) VALUES ({}){}", target.table, names, marks,
                     OnConflictSql(shape));
}

std::string DeleteSql(const SqliteTarget& target, const RowShape& shape) {
  std::string where;
  for (const std::size_t place : shape.key) {
    where +=
        fmt::format("{}{} = ?{}", where.empty() ? "" : " AND ", Quoted(shape, place), place + 1);
  }
  if (shape.fence) where += " AND " + Higher(shape, fmt::format("?{}", *shape.fence + 1));
  return fmt::format("DELETE FROM {} WHERE {}", target.table, where);
}

}  // namespace fencepost::consumer
