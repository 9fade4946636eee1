#include "consumer/outputs/postgres/postgres_schema.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <simdjson.h>

#include "consumer/json/json_text.h"

namespace fencepost::consumer {
namespace {

constexpr const char* kNotText = "has a string that stands for no text";
constexpr std::string_view kNoNul = ", which PostgreSQL has no text for";

// By the oids of pg_type.dat, which are the same in each PostgreSQL.
CellKind KindOf(Oid type) {
  constexpr std::array<std::pair<Oid, CellKind>, 25> kKinds{
      {{16, CellKind::kBoolean},    {17, CellKind::kBytes},      {18, CellKind::kText},
       {19, CellKind::kText},       {20, CellKind::kWhole},      {21, CellKind::kWhole},
       {23, CellKind::kWhole},      {25, CellKind::kText},       {26, CellKind::kWhole},
       {114, CellKind::kJson},      {700, CellKind::kFloat},     {701, CellKind::kFloat},
       {790, CellKind::kDecimal},   {1042, CellKind::kText},     {1043, CellKind::kText},
       {1082, CellKind::kDate},     {1083, CellKind::kTime},     {1114, CellKind::kDateTime},
       {1184, CellKind::kDateTime}, {1186, CellKind::kInterval}, {1266, CellKind::kTime},
       {1560, CellKind::kBits},     {1562, CellKind::kBits},     {1700, CellKind::kDecimal},
       {3802, CellKind::kJson}}};
  const auto* const found = std::ranges::find(kKinds, type, &std::pair<Oid, CellKind>::first);
  return found == kKinds.end() ? CellKind::kOther : found->second;
}

template <typename Int>
void SetRange(CellType& cell) {
  cell.least = std::numeric_limits<Int>::min();
  cell.most = static_cast<std::uint64_t>(std::numeric_limits<Int>::max());
}

void AppendQuoted(std::string_view text, std::string& out) {
  out.push_back('"');
  for (const char c : text) {
    if (c == '"' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  out.push_back('"');
}

tl::expected<void, std::string> AppendElement(simdjson::ondemand::value value,
                                              const CellType& element, std::string& out);

tl::expected<void, std::string> AppendArray(simdjson::ondemand::value value,
                                            const CellType& element, std::string& out) {
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

// The element's text, as a selector finds it.
tl::expected<JsonType, std::string> TextOf(simdjson::ondemand::value value, std::string& text) {
  using Type = simdjson::ondemand::json_type;
  Type type{};
  if (value.type().get(type) != simdjson::SUCCESS) return tl::unexpected<std::string>(kNotText);
  std::string_view found;
  const auto read = type == Type::string   ? value.get_string().get(found)
                    : type == Type::object ? simdjson::to_json_string(value).get(found)
                                           : simdjson::SUCCESS;
  if (read != simdjson::SUCCESS) return tl::unexpected<std::string>(kNotText);
  if (type != Type::string && type != Type::object) found = Trimmed(value.raw_json_token());
  text = found;
  if (type == Type::string) return JsonType::kString;
  if (type == Type::object) return JsonType::kObject;
  return type == Type::number ? JsonType::kNumber : JsonType::kBoolean;
}

tl::expected<void, std::string> AppendElement(simdjson::ondemand::value value,
                                              const CellType& element, std::string& out) {
  using Type = simdjson::ondemand::json_type;
  if (value.type() == Type::array) return AppendArray(value, element, out);
  if (value.is_null()) {
    out += "NULL";
    return {};
  }
  static const Column kPlain{.name = "", .selector = {.kind = Selector::Kind::kJson}};
  std::string text;
  const auto type = TextOf(value, text);
  if (!type) return tl::unexpected(type.error());
  if (auto made = MakeCell(element, kPlain, *type, text, 0); !made) {
    return tl::unexpected("has an element that " + made.error());
  }
  const bool bare = *type == JsonType::kNumber || *type == JsonType::kBoolean;
  if (bare && element.kind != CellKind::kJson) {
    out += text;
  } else {
    AppendQuoted(text, out);
  }
  return {};
}

// Its elements need no look of our own, so that an array's text is for PostgreSQL to read.
bool ReadsText(const CellType& element) {
  return element.kind == CellKind::kOther || element.kind == CellKind::kWhole ||
         element.kind == CellKind::kText || element.kind == CellKind::kBoolean;
}

}  // namespace

CellType PgCellType(Oid base, int modifier, char category) {
  CellType cell{.kind = KindOf(base), .no_nul = kNoNul};
  const auto length = static_cast<std::size_t>(std::max(modifier - 4, 0));
  if (cell.kind == CellKind::kOther && category == 'S') cell.kind = CellKind::kText;
  switch (base) {
    case 18:  // "char"
      cell.octets = 1;
      break;
    case 19:  // name
      cell.octets = 63;
      break;
    case 20:
      SetRange<std::int64_t>(cell);
      break;
    case 21:
      SetRange<std::int16_t>(cell);
      break;
    case 23:
      SetRange<std::int32_t>(cell);
      break;
    case 26:
      SetRange<std::uint32_t>(cell);
      break;
    case 114:  // json keeps the escape
      cell.no_nul = {};
      break;
    case 790:  // money
      cell.digits = 2;
      break;
    case 1042:
    case 1043:
      cell.characters = length;
      cell.padded = base == 1042;
      break;
    case 1700:
      cell.infinite = true;  // the scale has eleven bits, with a sign
      if (modifier >= 4) cell.digits = (((modifier - 4) & 0x7ff) ^ 0x400) - 0x400;
      break;
    default:
      break;
  }
  if (cell.kind == CellKind::kFloat) {
    cell.single = base == 700;
    cell.infinite = true;
  }
  if (cell.kind >= CellKind::kTime) {
    const bool interval = cell.kind == CellKind::kInterval;
    cell.digits = modifier < 0 || interval ? 6 : modifier;
    cell.zoned = base == 1184 || base == 1266;
  }
  return cell;
}

tl::expected<std::string, std::string> PgArrayLiteral(std::string_view array,
                                                      const CellType& element) {
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

std::string_view PgCells::Name(std::size_t column) const { return (*columns_)[column].declared; }

tl::expected<void, std::string> PgCells::Convert(std::size_t column, std::optional<JsonType> type,
                                                 std::string& text, std::size_t at) {
  const PgColumn& to = (*columns_)[column];
  if (to.element && type == JsonType::kArray) {
    const auto literal = PgArrayLiteral(std::string_view(text).substr(at), *to.element);
    if (!literal) return tl::unexpected(literal.error());
    text.replace(at, std::string::npos, *literal);
    return {};
  }
  if (to.element && !ReadsText(*to.element)) {
    return tl::unexpected<std::string>("is no JSON array");
  }
  return MakeCell(to.cell, shape_->columns[column], type, text, at);
}

}  // namespace fencepost::consumer
