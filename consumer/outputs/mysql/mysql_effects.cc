// The statements on the tables of effects.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "consumer/json/json_text.h"
#include "consumer/outputs/mysql/mysql_output.h"
#include "consumer/outputs/rows/cell_values.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

constexpr std::size_t kStatement = std::size_t{1} << 20;  // about so large, at most
constexpr std::size_t kWorthAsking = 6;  // rows; of fewer, which is refused is tried as soon

// Digits, perhaps with a sign and a point: exact in SQL, where an exponent makes a double.
bool IsPlainNumber(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !text.empty() && digit(text.front()) && digit(text.back()) && text.size() <= 60 &&
         std::ranges::count(text, '.') <= 1 &&
         std::ranges::all_of(text, [&](char c) { return digit(c) || c == '.'; });
}

// Of another form or more digits, the same; empty: SQL has no such exact number.
std::string ExactNumber(std::string_view text) {
  constexpr std::int64_t kMostDigits = 65, kMostScale = 30;
  const auto decimal = IsJsonNumber(text) ? DecimalOf(text) : std::nullopt;
  if (!decimal || decimal->digits.empty()) return "";
  const std::int64_t scale = std::max<std::int64_t>(-decimal->exponent, 0);
  const std::int64_t zeros = std::max<std::int64_t>(decimal->exponent, 0);
  const auto length = static_cast<std::int64_t>(decimal->digits.size());
  if (scale > kMostScale || std::max(length, scale) + zeros > kMostDigits) return "";
  std::string digits(static_cast<std::size_t>(std::max<std::int64_t>(scale + 1 - length, 0)), '0');
  digits.append(decimal->digits).append(static_cast<std::size_t>(zeros), '0');
  if (scale > 0) digits.insert(digits.size() - static_cast<std::size_t>(scale), 1, '.');
  return (decimal->negative ? "-" : "") + digits;
}

}  // namespace

std::size_t MysqlOutput::most_bytes() const {
  return std::min(kStatement, connection_.max_statement() / 2);
}

void MysqlOutput::AppendCell(const Row& row, std::size_t column, std::string& sql) const {
  const auto cell = rows_.of(row.table).cell(row.record, column, row.row);
  const CellKind kind = target_.tables[row.table].columns[column].cell.kind;
  if (!cell) {
    sql += "NULL";
  } else if (kind == CellKind::kBytes) {
    AppendBytes(*cell, sql);
  } else if (kind != CellKind::kWhole && kind != CellKind::kDecimal && kind != CellKind::kFloat) {
    AppendText(*cell, sql);
  } else if (IsPlainNumber(*cell)) {
    sql += *cell;  // compared with a column exactly; as text of a bit it is a character
  } else if (const std::string exact = ExactNumber(*cell); !exact.empty()) {
    sql += exact;
  } else {
    AppendText(*cell, sql);
  }
}

RowSql MysqlOutput::SqlOf(const Row& row) const {
  return {.shape = rows_.of(row.table).shape(),
          .table = target_.tables[row.table].name,
          .quote = '`',
          .cell =
              [this, row](std::size_t column) {
                std::string sql;
                AppendCell(row, column, sql);
                return sql;
              },
          .omits = [rows = rows_.of(row.table),
                    row](std::size_t column) { return rows.omits(row.record, column, row.row); }};
}

// Assignments take effect one after the other, so the fence comes last: the others are compared
// with what it was. A row that another unique index found, not the key, is no row to update: what
// comes first is error 1242 then.
std::string MysqlOutput::OnDuplicateKey(const Row& row) const {
  const TableRows rows = rows_.of(row.table);
  const RowShape& shape = rows.shape();
  const MysqlTable& table = target_.tables[row.table];
  if (shape.on_conflict == OnConflict::kError) return "";
  const auto name = [&](std::size_t column) { return QuoteName(table.columns[column].name); };
  const auto stands = [&](std::size_t column) { return table.name + "." + name(column); };
  const auto given = [&](std::size_t column) { return fmt::format("VALUES({})", name(column)); };
  std::string set;
  const auto assign = [&](std::size_t column) {
    std::string value = given(column);
    if (shape.fence) {
      value =
          fmt::format("IF({}, {}, {})", LowerFenceSql(stands(*shape.fence), given(*shape.fence)),
                      value, stands(column));
    }
    set += fmt::format("{}{} = {}", set.empty() ? "" : ", ", name(column), value);
  };
  if (shape.updates()) {
    std::string same_key;
    for (const std::size_t place : shape.key) {
      same_key +=
          fmt::format("{}{} <=> {}", same_key.empty() ? "" : " AND ", stands(place), given(place));
    }
    const std::size_t first = shape.key.front();
    set = fmt::format("{} = IF({}, {}, (SELECT 1 UNION SELECT 2))", name(first), same_key,
                      stands(first));
    if (shape.fence && Planted("mysql_fence_goes_first")) assign(*shape.fence);
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      const bool left_out = rows.omits(row.record, i, row.row);
      if (!left_out && !shape.IsKey(i) && shape.fence != i) assign(i);
    }
    if (shape.fence) assign(*shape.fence);
  }
  return " ON DUPLICATE KEY UPDATE " +
         (set.empty() ? fmt::format("{} = {}", name(0), stands(0)) : set);
}

std::string MysqlOutput::InsertRows(const Rows& rows) const {
  const std::size_t place = rows.front().table;
  const TableRows table = rows_.of(place);
  std::string sql = fmt::format("INSERT INTO {} ({}) VALUES ", target_.tables[place].name,
                                SqlOf(rows.front()).Names());
  for (const Row& row : rows) {
    sql += &row == &rows.front() ? "(" : ", (";
    std::string_view comma;
    for (std::size_t column = 0; column < table.columns(); ++column) {
      if (table.omits(row.record, column, row.row)) continue;
      AppendCell(row, column, sql.append(std::exchange(comma, ", ")));
    }
    sql += ')';
  }
  return sql + OnDuplicateKey(rows.front());
}

MysqlOutput::Answer<std::size_t> MysqlOutput::ChangeRows(Change change, const Rows& rows) {
  writing_ = rows;
  const auto done = Run(change == Change::kInsert   ? InsertRows(rows)
                        : change == Change::kUpdate ? SqlOf(rows.front()).Update()
                                                    : SqlOf(rows.front()).Delete());
  writing_.clear();
  return done.map([&] { return connection_.Unchanged(rows.size()); });
}

MysqlOutput::Answer<bool> MysqlOutput::FindsRow(const Row& row) {
  return Ask(SqlOf(row).Find() + " FOR UPDATE").map([](const auto& found) {
    return !found.empty();
  });
}

MysqlOutput::Answer<MysqlOutput::Rows> MysqlOutput::FindNewer(const Rows& rows) {
  constexpr std::size_t kAtOnce = 200;
  Rows newer;
  for (std::size_t begin = 0; begin < rows.size(); begin += kAtOnce) {
    std::string sql;
    for (std::size_t i = begin; i < std::min(rows.size(), begin + kAtOnce); ++i) {
      sql += fmt::format("{}SELECT {} FROM DUAL WHERE EXISTS ({})", i == begin ? "" : " UNION ALL ",
                         i, SqlOf(rows[i]).FindNewer());
    }
    const auto found = Ask(sql);
    if (!found) return tl::unexpected(found.error());
    for (const auto& row : *found) newer.push_back(rows[MysqlNumber<std::size_t>(row.front())]);
  }
  return newer;
}

// Only MariaDB names the row, since 10.7.
MysqlOutput::Rows MysqlOutput::RefusedOf(const Rows& rows) {
  if (!connection_.NamesRows() || rows.size() < kWorthAsking ||
      !connection_.Query("GET DIAGNOSTICS CONDITION 1 @fencepost_row = ROW_NUMBER")) {
    return {};
  }
  const auto named = connection_.Query("SELECT @fencepost_row");
  const auto row = named ? MysqlNumber<std::size_t>(named->front().front()) : 0;
  if (row == 0 || row > rows.size()) return {};
  return {rows[row - 1]};
}

}  // namespace fencepost::consumer
