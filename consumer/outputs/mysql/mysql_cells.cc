#include <utility>

#include "consumer/outputs/mysql/mysql_schema.h"
#include "consumer/outputs/rows/cell_values.h"

namespace fencepost::consumer {
namespace {

using Converted = tl::expected<void, std::string>;

// RFC 3339 with an offset, as UTC without one. Anything else stays as it is, for the server.
std::optional<std::string> InUtc(std::string_view text) {
  const auto time = ParseDateTime(text);
  if (!time || !time->has_offset) return std::nullopt;
  std::string utc;
  AppendDateTime(time->point, ' ', time->digits, utc);
  return utc;
}

TimeForm TimeFormOf(const MysqlColumn& to) {
  if (to.type == MysqlType::kDate) return {.date = true};
  if (to.type != MysqlType::kDateTime) return {};
  return {.separator = ' ', .digits = to.digits, .zone = false};
}

}  // namespace

Converted MysqlCells::Convert(std::size_t column, std::optional<JsonType> type, std::string& text,
                              std::size_t at) {
  const MysqlColumn& to = (*columns_)[column];
  const Column& from = shape_->columns[column];
  const std::string_view cell = std::string_view(text).substr(at);
  if (IsTime(from.conversion)) {
    return MakeCellTime(from.conversion, TimeFormOf(to), text, at);
  }
  if (from.conversion != Conversion::kNone) {
    if (to.type == MysqlType::kBytes) return DecodeCell(from.conversion, text, at);
    return tl::unexpected<std::string>("is bytes, and the column is not binary");
  }
  if (to.type == MysqlType::kBytes) return {};
  if (to.type == MysqlType::kJson) return MakeCellJson(from.selector, type, text, at);
  if (!BatchRows::IsText(cell)) return tl::unexpected(NotText(cell, "binary"));
  if (to.type == MysqlType::kInteger && type == JsonType::kNumber) {
    return MakeCellWhole(to.least, to.most, text, at);
  }
  if ((to.type == MysqlType::kInteger || to.type == MysqlType::kBit) &&
      type == JsonType::kBoolean) {
    text.replace(at, std::string::npos, cell == "true" ? "1" : "0");
  } else if (to.type == MysqlType::kDateTime) {
    if (from.selector.kind == Selector::Kind::kTimestamp) {
      return MakeCellTime(Conversion::kMillis, TimeFormOf(to), text, at);
    }
    if (const auto utc = InUtc(cell)) text.replace(at, std::string::npos, *utc);
  }
  return {};
}

}  // namespace fencepost::consumer
