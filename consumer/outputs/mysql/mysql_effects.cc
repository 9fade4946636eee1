#include <algorithm>
#include <set>

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
                           std::size_t max_statement, bool distinct)
    : target_(target),
      shape_(shape),
      distinct_(distinct),
      most_(std::min(kStatement, max_statement / 2)) {
  const Has all = [](std::size_t) { return true; };
  insert_ = InsertInto(all);
  on_duplicate_ = OnDuplicateKey(all);
}

std::string MysqlEffects::InsertInto(const Has& has) const {
  std::string names;
  for (std::size_t i = 0; i < target_.columns.size(); ++i) {
    if (has(i)) names += (names.empty() ? "" : ", ") + QuoteName(target_.columns[i].name);
  }
  return fmt::format("INSERT INTO {} ({}) VALUES ", target_.table, names);
}

// Assignments take effect one after the other, so the fence comes last: the others are compared
// with what it was. A row that another unique index found, not the key, is no row to update: what
// comes first is error 1242 then.
std::string MysqlEffects::OnDuplicateKey(const Has& has) const {
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
    if (has(i) && !shape_.IsKey(i) && shape_.fence != i) assign(i);
  }
  if (shape_.updates() && shape_.fence && !shape_.IsKey(*shape_.fence)) assign(*shape_.fence);
  return " ON DUPLICATE KEY UPDATE " + (set.empty() ? same(0) : set);
}

void MysqlEffects::AppendCell(const BatchRows& rows, std::size_t record, std::size_t row,
                              std::size_t column, std::string& sql) const {
  const auto cell = rows.cell(record, column, row);
  const CellKind kind = target_.columns[column].cell.kind;
  if (!cell) {
    sql += "NULL";
  } else if (kind == CellKind::kBytes) {
    AppendBytes(*cell, sql);
  } else if (IsPlainNumber(*cell) &&
             (kind == CellKind::kWhole || kind == CellKind::kDecimal || kind == CellKind::kFloat)) {
    sql += *cell;  // compared with a column exactly; as text of a bit it is a character
  } else {
    AppendText(*cell, sql);
  }
}

std::string MysqlEffects::WhereSql(const BatchRows& rows, std::size_t record, std::size_t row,
                                   bool fenced) const {
  std::string sql = " WHERE ";
  for (const std::size_t place : shape_.key) {
    if (place != shape_.key.front()) sql += " AND ";
    sql += QuoteName(target_.columns[place].name) + " = ";
    AppendCell(rows, record, row, place, sql);
  }
  if (fenced && shape_.fence) {
    const std::string fence = QuoteName(target_.columns[*shape_.fence].name);
    std::string value;
    AppendCell(rows, record, row, *shape_.fence, value);
    sql += fmt::format(" AND ({0} < {1} OR ({0} IS NULL AND {1} IS NOT NULL))", fence, value);
  }
  return sql;
}

std::string MysqlEffects::NewerSql(const BatchRows& rows, const Rows& of) const {
  std::string sql;
  for (std::size_t i = 0; i < of.size(); ++i) {
    const auto& [record, row] = of[i];
    std::string fence;
    AppendCell(rows, record, row, *shape_.fence, fence);
    sql += fmt::format(
        "{0}SELECT {1} FROM {2}{3} AND ({4} > {5} OR ({4} IS NOT NULL AND {5} IS NULL))",
        i == 0 ? "" : " UNION ALL ", i, target_.table, WhereSql(rows, record, row, false),
        QuoteName(target_.columns[*shape_.fence].name), fence);
  }
  return sql;
}

bool MysqlEffects::DistinctKeys(const BatchRows& rows, const Rows& of) const {
  std::set<std::string> keys;
  return std::ranges::all_of(of, [&](const Row& one) {
    return keys.insert(WhereSql(rows, one.record, one.row, false)).second;
  });
}

// An escaped cell has twice its size at most, with less than kAround bytes around it.
bool MysqlEffects::IsOneStatement(const BatchRows& rows) const {
  constexpr std::size_t kAround = 32;
  std::size_t bytes = rows.size() * rows.columns() * kAround;
  for (std::size_t record = 0; record < rows.size(); ++record) bytes += 2 * rows.bytes(record);
  return rows.one_row_each() && !distinct_ && bytes + insert_.size() < most_;
}

std::string MysqlEffects::UpdateSql(const BatchRows& rows, std::size_t record, std::size_t row,
                                    const Has& has) const {
  std::string sql = "UPDATE " + target_.table + " SET ";
  bool first = true;
  for (std::size_t i = 0; i < target_.columns.size(); ++i) {
    if (!has(i) || (shape_.IsKey(i) && i != shape_.key.front())) continue;
    sql += (first ? "" : ", ") + QuoteName(target_.columns[i].name) + " = ";
    first = false;
    if (shape_.IsKey(i)) {  // as it is, so that the list is never empty
      sql += QuoteName(target_.columns[i].name);
    } else {
      AppendCell(rows, record, row, i, sql);
    }
  }
  return sql + WhereSql(rows, record, row, true);
}

void MysqlEffects::AppendRow(const BatchRows& rows, std::size_t record, std::size_t row,
                             const Has& has, std::string& sql) const {
  sql += '(';
  bool first = true;
  for (std::size_t column = 0; column < rows.columns(); ++column) {
    if (!has(column)) continue;
    if (!first) sql += ", ";
    first = false;
    AppendCell(rows, record, row, column, sql);
  }
  sql += ')';
}

tl::expected<void, OutputError> MysqlEffects::WritePartly(const BatchRows& rows, std::size_t record,
                                                          std::size_t row,
                                                          const Visit& visit) const {
  const Has has = [&](std::size_t column) { return !rows.omits(record, column, row); };
  const auto ended = [](const auto& done) -> tl::expected<void, OutputError> {
    if (!done) return tl::unexpected(done.error());
    return {};
  };
  if (shape_.updates()) {
    const auto found = visit(
        "SELECT 1 FROM " + target_.table + WhereSql(rows, record, row, false) + " FOR UPDATE", {});
    if (!found) return tl::unexpected(found.error());
    if (*found > 0) return ended(visit(UpdateSql(rows, record, row, has), {{record, row}}));
  }
  std::string sql = InsertInto(has);
  AppendRow(rows, record, row, has, sql);
  return ended(visit(sql + OnDuplicateKey(has), {{record, row}}));
}

tl::expected<void, OutputError> MysqlEffects::Write(const BatchRows& rows,
                                                    const std::vector<std::size_t>& records,
                                                    const Visit& visit) const {
  const Has all = [](std::size_t) { return true; };
  std::string sql;
  Rows together;
  std::set<std::string> keys;
  const auto flush = [&]() -> tl::expected<void, OutputError> {
    if (sql.empty()) return {};
    const auto done = visit(sql + on_duplicate_, together);
    sql.clear();
    together.clear();
    if (!done) return tl::unexpected(done.error());
    return {};
  };
  for (const std::size_t record : records) {
    for (std::size_t row = 0; row < rows.rows(record); ++row) {
      if (rows.deletes(record, row)) {
        if (auto done = flush(); !done) return done;
        const auto gone = visit("DELETE FROM " + target_.table + WhereSql(rows, record, row, true),
                                {{record, row}});
        if (!gone) return tl::unexpected(gone.error());
        continue;
      }
      if (rows.omits_any(record, row)) {
        if (auto done = flush(); !done) return done;
        if (auto done = WritePartly(rows, record, row, visit); !done) return done;
        continue;
      }
      if (distinct_ && !keys.insert(WhereSql(rows, record, row, false)).second) {
        if (auto done = flush(); !done) return done;
        keys = {WhereSql(rows, record, row, false)};
      }
      sql += sql.empty() ? insert_ : ", ";
      AppendRow(rows, record, row, all, sql);
      together.push_back({record, row});
      if (sql.size() < most_) continue;
      if (auto done = flush(); !done) return done;
    }
  }
  return flush();
}

}  // namespace fencepost::consumer
