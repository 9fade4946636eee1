#include <algorithm>

#include <fmt/format.h>

#include "consumer/outputs/mysql/mysql_output.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

// Digits, perhaps with a sign and a point: exact in SQL, where an exponent makes a double.
bool IsPlainNumber(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !text.empty() && digit(text.front()) && digit(text.back()) && text.size() <= 60 &&
         std::ranges::count(text, '.') <= 1 &&
         std::ranges::all_of(text, [&](char c) { return digit(c) || c == '.'; });
}

constexpr std::size_t kStatement = std::size_t{1} << 20;  // about so large, at most

}  // namespace

MysqlEffects::MysqlEffects(const MysqlTarget& target, const RowShape& shape,
                           std::size_t max_statement)
    : target_(target), shape_(shape), most_(std::min(kStatement, max_statement / 2)) {
  insert_ = "INSERT INTO " + target_.table + " (";
  for (std::size_t i = 0; i < target_.columns.size(); ++i) {
    insert_ += (i == 0 ? "" : ", ") + QuoteName(target_.columns[i].name);
  }
  insert_ += ") VALUES ";
  on_duplicate_ = OnDuplicateKey();
}

// Assignments take effect one after the other, so the fence comes last: the others are compared
// with what it was. A row that another unique index found, not the key, is no row to update: what
// comes first is error 1242 then.
std::string MysqlEffects::OnDuplicateKey() const {
  if (shape_.on_conflict == OnConflict::kError) return "";
  const auto same = [&](std::size_t column) {
    return fmt::format("{0} = {1}.{0}", QuoteName(target_.columns[column].name), target_.table);
  };
  std::string set;
  const auto assign = [&](std::size_t column) {
    const std::string name = QuoteName(target_.columns[column].name);
    std::string value = fmt::format("VALUES({})", name);
    if (shape_.fence) {
      const std::string fence = QuoteName(target_.columns[*shape_.fence].name);
      value = fmt::format(
          "IF({0}.{1} < VALUES({1}) OR ({0}.{1} IS NULL AND VALUES({1}) IS NOT NULL), {2}, "
          "{0}.{3})",
          target_.table, fence, value, name);
    }
    set += fmt::format("{}{} = {}", set.empty() ? "" : ", ", name, value);
  };
  if (shape_.updates()) {
    std::string same_key;
    for (const std::size_t place : shape_.key) {
      const std::string name = QuoteName(target_.columns[place].name);
      same_key += fmt::format("{}{}.{} <=> VALUES({})", same_key.empty() ? "" : " AND ",
                              target_.table, name, name);
    }
    set = fmt::format("{0} = IF({1}, {2}.{0}, (SELECT 1 UNION SELECT 2))",
                      QuoteName(target_.columns[shape_.key.front()].name), same_key, target_.table);
  }
  if (shape_.updates() && shape_.fence && Planted("mysql_fence_goes_first")) assign(*shape_.fence);
  for (std::size_t i = 0; shape_.updates() && i < target_.columns.size(); ++i) {
    if (!shape_.IsKey(i) && shape_.fence != i) assign(i);
  }
  if (shape_.updates() && shape_.fence && !shape_.IsKey(*shape_.fence)) assign(*shape_.fence);
  return " ON DUPLICATE KEY UPDATE " + (set.empty() ? same(0) : set);
}

void MysqlEffects::AppendCell(const BatchRows& rows, std::size_t record, std::size_t row,
                              std::size_t column, std::string& sql) const {
  const auto cell = rows.cell(record, column, row);
  const MysqlType type = target_.columns[column].type;
  if (!cell) {
    sql += "NULL";
  } else if (type == MysqlType::kBytes) {
    AppendBytes(*cell, sql);
  } else if (IsPlainNumber(*cell) && (type == MysqlType::kInteger || type == MysqlType::kNumber ||
                                      type == MysqlType::kBit)) {
    sql += *cell;  // compared with a column exactly; as text of a bit it is a character
  } else {
    AppendText(*cell, sql);
  }
}

// Of one key; with a fence, of a row that a lower one wrote.
std::string MysqlEffects::DeleteSql(const BatchRows& rows, std::size_t record,
                                    std::size_t row) const {
  std::string sql = "DELETE FROM " + target_.table + " WHERE ";
  for (const std::size_t place : shape_.key) {
    if (place != shape_.key.front()) sql += " AND ";
    sql += QuoteName(target_.columns[place].name) + " = ";
    AppendCell(rows, record, row, place, sql);
  }
  if (shape_.fence) {
    const std::string fence = QuoteName(target_.columns[*shape_.fence].name);
    std::string value;
    AppendCell(rows, record, row, *shape_.fence, value);
    sql += fmt::format(" AND ({0} < {1} OR ({0} IS NULL AND {1} IS NOT NULL))", fence, value);
  }
  return sql;
}

tl::expected<void, OutputError> MysqlEffects::Write(
    const BatchRows& rows, const std::vector<std::size_t>& records,
    const std::function<tl::expected<void, OutputError>(const std::string& sql)>& visit) const {
  std::string sql;
  const auto flush = [&]() -> tl::expected<void, OutputError> {
    if (sql.empty()) return {};
    sql += on_duplicate_;
    auto done = visit(sql);
    sql.clear();
    return done;
  };
  for (const std::size_t record : records) {
    for (std::size_t row = 0; row < rows.rows(record); ++row) {
      if (rows.deletes(record, row)) {
        if (auto done = flush(); !done) return done;
        if (auto done = visit(DeleteSql(rows, record, row)); !done) return done;
        continue;
      }
      sql += sql.empty() ? insert_ + "(" : ", (";
      for (std::size_t column = 0; column < rows.columns(); ++column) {
        if (column > 0) sql += ", ";
        AppendCell(rows, record, row, column, sql);
      }
      sql += ')';
      if (sql.size() < most_) continue;
      if (auto done = flush(); !done) return done;
    }
  }
  return flush();
}

}  // namespace fencepost::consumer
