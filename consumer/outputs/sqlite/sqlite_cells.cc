// What SQLite's columns take: by the declared type, whatever else its affinity would keep.
#include <charconv>
#include <initializer_list>

#include "consumer/json/json_text.h"
#include "consumer/outputs/sqlite/sqlite_output.h"

namespace fencepost::consumer {

CellType SqliteCellType(std::string_view type, bool strict) {
  const auto holds = [&](std::initializer_list<std::string_view> parts) {
    for (const std::string_view part : parts) {
      if (type.find(part) != std::string_view::npos) return true;
    }
    return false;
  };
  CellType cell{.most = std::numeric_limits<std::int64_t>::max(),
                .booleans = true,
                .as_text = true,
                .no_nul = "; a BLOB column takes any bytes"};
  // SQLite's own order of the first four.
  if (holds({"INT"})) {
    cell.kind = CellKind::kWhole;
  } else if (holds({"CHAR", "CLOB", "TEXT"}) || type.empty() || (strict && type == "ANY")) {
    cell.kind = CellKind::kText;
  } else if (holds({"BLOB"})) {
    cell.kind = CellKind::kBytes;
  } else if (holds({"REAL", "FLOA", "DOUB"})) {
    cell.kind = CellKind::kFloat;
  } else if (holds({"DEC", "NUM", "MONEY"})) {
    cell.kind = CellKind::kFloat;
    cell.also_64 = true;
  } else if (holds({"BOOL"})) {
    cell.kind = CellKind::kWhole;
    cell.least = 0;
    cell.most = 1;
  } else if (holds({"DATETIME", "TIMESTAMP"})) {
    cell.kind = CellKind::kDateTime;
  } else if (holds({"DATE"})) {
    cell.kind = CellKind::kDate;
  } else if (holds({"TIME"})) {
    cell.kind = CellKind::kTime;
  } else if (holds({"JSON"})) {
    cell.kind = CellKind::kJson;
    cell.no_nul = {};
  }
  // There are no arrays; a text is one, and what says that it is.
  cell.elements = cell.kind == CellKind::kText || holds({"ARRAY"});
  return cell;
}

// What its numeric affinity takes for a number: also " 12 ", ".5" and "5.", of whatever size.
static bool IsNumberOfSqlite(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n\v\f\r";
  const auto skip = [&text](std::string_view some) {
    const std::size_t end = std::min(text.find_first_not_of(some), text.size());
    text.remove_prefix(end);
    return end;
  };
  const auto sign = [&text] {
    if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  };
  skip(kBlanks);
  sign();
  std::size_t digits = skip("0123456789");
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    digits += skip("0123456789");
  }
  if (digits == 0) return false;
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    sign();
    if (skip("0123456789") == 0) return false;
  }
  skip(kBlanks);
  return text.empty();
}

tl::expected<void, std::string> SqliteCells::Convert(std::size_t column,
                                                     std::optional<JsonType> type,
                                                     std::string& text, std::size_t at) {
  const CellType& to = table_->cells[column];
  // Of a type that says nothing SQLite makes a number of each text that looks like one.
  CellType number = to;
  number.kind = CellKind::kFloat;
  number.also_64 = true;
  if (to.kind != CellKind::kOther) {
    auto made = MakeCell(to, shape_->columns[column], type, text, at);
    const bool is =
        made && to.kind == CellKind::kJson && IsNumberOfSqlite(std::string_view(text).substr(at));
    if (!is) return made;
    return MakeCell(number, shape_->columns[column], JsonType::kNumber, text, at);
  }
  const bool is_number = type == JsonType::kNumber || IsNumber(shape_->columns[column].selector);
  if (is_number) return MakeCell(number, shape_->columns[column], type, text, at);
  if (type == JsonType::kBoolean || !IsNumberOfSqlite(std::string_view(text).substr(at))) {
    return MakeCell(to, shape_->columns[column], type, text, at);
  }
  return tl::unexpected<std::string>(
      "is a text that SQLite makes a number of in a column of this type: declare it TEXT");
}

}  // namespace fencepost::consumer
