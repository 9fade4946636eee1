#include "consumer/outputs/postgres/postgres_schema.h"

#include <iterator>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <simdjson.h>

#include "consumer/outputs/rows/cell_values.h"

namespace fencepost::consumer {
namespace {

constexpr Oid kInt2 = 21, kInt4 = 23, kJson = 114, kJsonb = 3802;
constexpr const char* kNotText = "has a string that stands for no text";
constexpr const char* kNul = "has a NUL, which PostgreSQL has no text for";
constexpr Oid kDate = 1082, kTimestamp = 1114, kTimestamptz = 1184;

bool IsJson(Oid type) { return type == kJson || type == kJsonb; }
// In JSON.
bool HasEscapedNul(std::string_view text) {
  for (std::size_t at = text.find('\\'); at < text.size(); at = text.find('\\', at + 2)) {
    if (text.substr(at).starts_with("\\u0000")) return true;
  }
  return false;
}
bool IsInteger(Oid type) { return type == kInt2 || type == kInt4 || type == kInt8Oid; }

std::pair<std::int64_t, std::int64_t> Range(Oid type) {
  const auto of = [](auto limits) {
    return std::pair<std::int64_t, std::int64_t>{limits.min(), limits.max()};
  };
  if (type == kInt2) return of(std::numeric_limits<std::int16_t>());
  if (type == kInt4) return of(std::numeric_limits<std::int32_t>());
  return of(std::numeric_limits<std::int64_t>());
}

void AppendQuoted(std::string_view text, std::string& out) {
  out.push_back('"');
  for (const char c : text) {
    if (c == '"' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  out.push_back('"');
}

tl::expected<void, std::string> AppendElement(simdjson::ondemand::value value, PgElement element,
                                              std::string& out);

tl::expected<void, std::string> AppendArray(simdjson::ondemand::value value, PgElement element,
                                            std::string& out) {
  simdjson::ondemand::array array;
  if (value.get_array().get(array) != simdjson::SUCCESS)
    return tl::unexpected<std::string>(kNotText);
  out.push_back('{');
  bool first = true;
  for (auto each : array) {
    simdjson::ondemand::value inner;
    if (each.get(inner) != simdjson::SUCCESS) return tl::unexpected<std::string>(kNotText);
    if (!first) out.push_back(',');
    first = false;
    if (auto done = AppendElement(inner, element, out); !done) return done;
  }
  out.push_back('}');
  return {};
}

tl::expected<void, std::string> AppendElement(simdjson::ondemand::value value, PgElement element,
                                              std::string& out) {
  using Type = simdjson::ondemand::json_type;
  Type type{};
  if (value.type().get(type) != simdjson::SUCCESS) return tl::unexpected<std::string>(kNotText);
  if (type == Type::array) return AppendArray(value, element, out);
  std::string_view text;
  if (type == Type::string && element != PgElement::kJson) {
    if (value.get_string().get(text) != simdjson::SUCCESS)
      return tl::unexpected<std::string>(kNotText);
    if (text.find('\0') != std::string_view::npos) {
      return tl::unexpected<std::string>(kNul);
    }
    AppendQuoted(text, out);
    return {};
  }
  if (type != Type::object) {
    text = value.raw_json_token();
  } else if (simdjson::to_json_string(value).get(text) != simdjson::SUCCESS) {
    return tl::unexpected<std::string>(kNotText);
  }
  text = text.substr(0, text.find_last_not_of(" \t\n\r") + 1);
  if (type == Type::null) {
    out += "NULL";
  } else if (element == PgElement::kJson || type == Type::object) {
    AppendQuoted(text, out);
  } else if (element == PgElement::kInteger && type == Type::number) {
    const auto [least, most] = Range(kInt8Oid);
    const auto whole = WholeNumber(text, least, most);
    if (!whole) return tl::unexpected("has an element that " + whole.error());
    fmt::format_to(std::back_inserter(out), "{}", *whole);
  } else {
    out += text;
  }
  return {};
}

PgElement ElementOf(Oid type) {
  if (IsJson(type)) return PgElement::kJson;
  return IsInteger(type) ? PgElement::kInteger : PgElement::kText;
}

TimeForm TimeFormOf(Oid type) {
  if (type == kDate) return {.date = true};
  if (type == kTimestamp) return {.separator = ' ', .digits = 6, .zone = false};
  return {.digits = type == kTimestamptz ? 6 : 9};
}

}  // namespace

tl::expected<std::string, std::string> PgArrayLiteral(std::string_view array, PgElement element) {
  thread_local simdjson::ondemand::parser parser;
  const simdjson::padded_string padded(array);
  simdjson::ondemand::document document;
  simdjson::ondemand::value value;
  if (parser.iterate(padded).get(document) != simdjson::SUCCESS ||
      document.get_value().get(value) != simdjson::SUCCESS) {
    return tl::unexpected<std::string>(kNotText);
  }
  std::string out;
  if (auto done = AppendArray(value, element, out); !done) return tl::unexpected(done.error());
  return out;
}

std::string_view PgCells::Name(std::size_t column) const { return (*columns_)[column].cast; }

tl::expected<void, std::string> PgCells::Convert(std::size_t column, std::optional<JsonType> type,
                                                 std::string& text, std::size_t at) {
  const PgColumn& to = (*columns_)[column];
  const Column& from = shape_->columns[column];
  if (IsTime(from.conversion)) {
    return MakeCellTime(from.conversion, TimeFormOf(to.base), text, at);
  }
  if (from.conversion != Conversion::kNone) {
    if (to.bytes()) return DecodeCell(from.conversion, text, at);
    return tl::unexpected<std::string>("is bytes, and the column is not bytea");
  }
  if (to.bytes()) return {};
  if (IsJson(to.base)) {
    auto made = MakeCellJson(from.selector, type, text, at);
    const bool nul = made && to.base == kJsonb && HasEscapedNul(std::string_view(text).substr(at));
    return nul ? tl::unexpected<std::string>(kNul) : made;
  }
  if (text.find('\0', at) != std::string::npos) return tl::unexpected<std::string>(kNul);
  if (type == JsonType::kArray && to.element != 0) {
    const auto literal = PgArrayLiteral(std::string_view(text).substr(at), ElementOf(to.element));
    if (!literal) return tl::unexpected(literal.error());
    text.replace(at, std::string::npos, *literal);
  } else if (type == JsonType::kNumber && IsInteger(to.base)) {
    const auto [least, most] = Range(to.base);
    return MakeCellWhole(least, most, text, at);
  }
  return {};
}

}  // namespace fencepost::consumer
