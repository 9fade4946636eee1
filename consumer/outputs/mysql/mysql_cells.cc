#include <utility>

#include <fmt/format.h>

#include "consumer/json/json_text.h"
#include "consumer/outputs/mysql/mysql_schema.h"
#include "consumer/outputs/rows/cell_values.h"

namespace fencepost::consumer {
namespace {

using Converted = tl::expected<void, std::string>;

// Selectors whose text is a document of its own, or a number: not quoted in a json column.
bool IsJsonAsItIs(Selector::Kind kind) {
  switch (kind) {
    case Selector::Kind::kValue:
    case Selector::Kind::kPartition:
    case Selector::Kind::kOffset:
    case Selector::Kind::kTimestamp:
    case Selector::Kind::kToken:
      return true;
    default:
      return false;
  }
}

// RFC 3339 with an offset, as UTC without one. Anything else stays as it is, for the server.
std::optional<std::string> InUtc(std::string_view text) {
  const auto time = ParseDateTime(text);
  if (!time || !time->has_offset) return std::nullopt;
  std::string utc;
  AppendDateTime(time->point, ' ', time->digits, utc);
  return utc;
}

Converted ToTime(Conversion unit, const MysqlColumn& to, std::string& text, std::size_t at) {
  const auto point = PointInTimeOf(std::string_view(text).substr(at), unit);
  if (!point) return tl::unexpected(point.error());
  text.resize(at);
  if (to.type == MysqlType::kDate) {
    AppendDate(*point, text);
  } else if (to.type == MysqlType::kDateTime) {
    AppendDateTime(*point, ' ', to.digits, text);
  } else {
    AppendDateTime(*point, 'T', 9, text);
    text += 'Z';
  }
  return {};
}

}  // namespace

Converted MysqlCells::Convert(std::size_t column, std::optional<JsonType> type, std::string& text,
                              std::size_t at) {
  const MysqlColumn& to = (*columns_)[column];
  const Column& from = shape_->columns[column];
  const std::string_view cell = std::string_view(text).substr(at);
  const auto replace = [&](const std::string& by) { text.replace(at, std::string::npos, by); };
  if (IsTime(from.conversion)) return ToTime(from.conversion, to, text, at);
  if (from.conversion != Conversion::kNone) {
    auto bytes = Decoded(cell, from.conversion);
    if (!bytes) return tl::unexpected(bytes.error());
    if (to.type != MysqlType::kBytes) {
      return tl::unexpected<std::string>("is bytes, and the column is not binary");
    }
    replace(*bytes);
    return {};
  }
  if (to.type == MysqlType::kBytes) return {};
  if (!BatchRows::IsText(cell)) {
    return tl::unexpected<std::string>("is not UTF-8 text");
  }
  if (to.type == MysqlType::kJson) {
    const bool string = type ? *type == JsonType::kString : !IsJsonAsItIs(from.selector.kind);
    if (!string) return {};
    scratch_.clear();
    AppendJsonString(cell, scratch_);
    replace(scratch_);
  } else if (to.type == MysqlType::kInteger && type == JsonType::kNumber) {
    const auto whole = WholeNumber(cell, to.least, to.most);
    if (!whole) return tl::unexpected(whole.error());
    replace(fmt::format("{}", *whole));
  } else if ((to.type == MysqlType::kInteger || to.type == MysqlType::kBit) &&
             type == JsonType::kBoolean) {
    replace(cell == "true" ? "1" : "0");
  } else if (to.type == MysqlType::kDateTime) {
    if (from.selector.kind == Selector::Kind::kTimestamp) {
      return ToTime(Conversion::kMillis, to, text, at);
    }
    if (const auto utc = InUtc(cell)) replace(*utc);
  }
  return {};
}

}  // namespace fencepost::consumer
