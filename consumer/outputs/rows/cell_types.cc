#include "consumer/outputs/rows/cell_types.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <simdjson.h>

#include "consumer/decode/avro_text.h"
#include "consumer/json/json_text.h"
#include "consumer/outputs/rows/cell_values.h"
#include "consumer/outputs/rows/row_rules.h"
#include "consumer/record/text.h"

namespace fencepost::consumer {
namespace {

using Done = tl::expected<void, std::string>;
using Problem = tl::unexpected<std::string>;

bool IsTimes(CellKind kind) { return kind >= CellKind::kDate; }
bool IsNumeric(CellKind kind) {
  return kind == CellKind::kWhole || kind == CellKind::kDecimal || kind == CellKind::kFloat;
}

// UTF-8 has one byte of another form for each character but its first.
std::size_t Characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

// JSON text with the escape of a NUL in it.
bool EscapesNul(std::string_view json) {
  for (auto at = json.find('\\'); at < json.size() - 1; at = json.find('\\', at + 2)) {
    if (json.substr(at + 1, 5) == "u0000") return true;
  }
  return false;
}

// Without its sign, and without zeros before its first digit.
std::string_view WithoutZeros(std::string_view number, bool& negative) {
  negative = number.starts_with('-');
  if (negative || number.starts_with('+')) number.remove_prefix(1);
  while (number.size() > 1 && number[0] == '0' && number[1] >= '0' && number[1] <= '9') {
    number.remove_prefix(1);
  }
  return number;
}

// What people and other databases write for a JSON number: also +1, 007, .5, 5. and blanks around
// it.
std::string AsJsonNumber(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  bool negative = false;
  std::string_view plain = WithoutZeros(text, negative);
  if (plain.size() > 1 && plain.ends_with('.')) plain.remove_suffix(1);
  return fmt::format("{}{}{}", negative ? "-" : "", plain.starts_with('.') ? "0" : "", plain);
}
// "{"scale": 2, "value": "BAg="}", as Debezium writes a decimal of no fixed scale.
struct Unscaled {
  std::string value;
  std::int64_t scale = 0;
};
std::optional<Unscaled> UnscaledOf(std::string_view object) {
  constexpr std::size_t kMost = 64 << 10;  // no decimal is so long
  if (object.size() > kMost) return std::nullopt;
  simdjson::dom::parser parser;
  simdjson::dom::element document;
  std::string_view value;
  Unscaled out;
  if (parser.parse(object.data(), object.size()).get(document) != simdjson::SUCCESS ||
      document["value"].get(value) != simdjson::SUCCESS ||
      document["scale"].get(out.scale) != simdjson::SUCCESS) {
    return std::nullopt;
  }
  out.value = value;
  return out;
}

class Cell {
 public:
  Cell(const CellType& to, const Column& from, std::optional<JsonType> type, std::string& text,
       std::size_t at)
      : to_(to), from_(from), type_(type), text_(text), at_(at) {
    if (!type_ && IsNumber(from.selector)) type_ = JsonType::kNumber;
  }

  Done Make() {
    if (IsTime(from_.conversion)) return MakeCellTime(to_, from_.conversion, text_, at_);
    if (auto read = Read(); !read) return read;
    if (to_.kind == CellKind::kBytes) return Bytes();
    if (auto text = IsText(); !text) return text;
    switch (to_.kind) {
      case CellKind::kText:
        return Text();
      case CellKind::kJson:
        return Json();
      case CellKind::kWhole:
      case CellKind::kDecimal:
      case CellKind::kFloat:
        return Number();
      case CellKind::kBoolean:
        return Boolean();
      case CellKind::kBits:
        return Bits();
      case CellKind::kChoice:
        return Choice();
      case CellKind::kMap:
        return Map();
      case CellKind::kRange:
        if (auto text = IsNoJson(); !text) return text;
        return MakeCellRange(to_, text_, at_);
      case CellKind::kDate:
      case CellKind::kTime:
      case CellKind::kDateTime:
      case CellKind::kInterval:
        return Time();
      case CellKind::kOther:
        return IsNoJson();
      case CellKind::kBytes:
        break;
    }
    return {};
  }

 private:
  [[nodiscard]] std::string_view cell() const { return std::string_view(text_).substr(at_); }
  void Become(std::string_view text) { text_.replace(at_, std::string::npos, text); }

  // What `convert` says, but for times.
  Done Read() {
    if (auto encoded = IsEncoded(); !encoded) return encoded;
    switch (from_.conversion) {
      case Conversion::kBase64:
      case Conversion::kHex:
        if (auto decoded = DecodeCell(from_.conversion, text_, at_); !decoded) return decoded;
        return to_.bits > 0 ? ReadBits() : Done();
      case Conversion::kDecimal:
        return ReadDecimal();
      case Conversion::kJson:
        return ReadDocument();
      case Conversion::kInt32:
      case Conversion::kInt64:
        return ReadInteger(from_.conversion == Conversion::kInt64 ? 8 : 4);
      case Conversion::kBool:
        if (type_ != JsonType::kBoolean && cell() != "0" && cell() != "1") {
          return Problem("is neither 0 nor 1");
        }
        if (type_ != JsonType::kBoolean) Become(cell() == "1" ? "true" : "false");
        type_ = JsonType::kBoolean;
        if (IsNumeric(to_.kind)) Become(cell() == "true" ? "1" : "0");
        return {};
      default:
        return {};
    }
  }
  // Of JSON strings alone are bytes; and a decimal may be an object.
  [[nodiscard]] Done IsEncoded() const {
    constexpr std::array<std::string_view, 5> kWords{"a string", "a number", "a boolean",
                                                     "an object", "an array"};
    const Conversion how = from_.conversion;
    const bool decimal = how == Conversion::kDecimal;
    const bool encoded = decimal || how == Conversion::kBase64 || how == Conversion::kHex ||
                         how == Conversion::kInt32 || how == Conversion::kInt64;
    if (!encoded || !type_ || *type_ == JsonType::kString) return {};
    if (decimal && *type_ == JsonType::kObject) return {};
    return Problem(fmt::format(
        "is {}, and `convert: {}` reads a string{}", kWords[static_cast<std::size_t>(*type_)],
        WordOf(how), decimal && *type_ == JsonType::kNumber ? ": a number needs no convert" : ""));
  }
  Done ReadDecimal() {
    Unscaled unscaled{.value = std::string(cell()), .scale = from_.scale};
    if (type_ == JsonType::kObject) {
      auto own = UnscaledOf(cell());
      if (!own) return Problem("is no object of scale and value");
      unscaled = std::move(*own);
    } else if (from_.scale < 0) {
      return Problem("is no object of scale and value; of a text, write decimal:SCALE");
    }
    if (unscaled.scale < -kMostScale || unscaled.scale > kMostScale) {
      return Problem(fmt::format("has a scale that is not within -{0} and {0}", kMostScale));
    }
    const auto zeros = static_cast<std::size_t>(std::max<std::int64_t>(-unscaled.scale, 0));
    const auto scale = static_cast<std::size_t>(std::max<std::int64_t>(unscaled.scale, 0));
    // With its =, so that fewer numbers in texts look like it.
    const auto bytes = FromBase64(unscaled.value);
    std::string number;
    if (!bytes || bytes->empty() || ToBase64(*bytes) != unscaled.value ||
        !avro::AppendDecimal(*bytes, scale, number)) {
      const bool plain = IsJsonNumber(AsJsonNumber(cell()));
      return Problem(std::string("is no base64 of a decimal")
                         .append(plain ? ": a number in a text needs no convert" : ""));
    }
    Become(number.append(zeros, '0'));
    type_ = JsonType::kNumber;
    return {};
  }
  Done ReadDocument() {
    if (type_ && type_ != JsonType::kString) return {};
    if (const std::string_view why = JsonProblem(cell()); !why.empty()) {
      return Problem(fmt::format("is a text that is no JSON document: {}", why));
    }
    const bool object = Trimmed(cell()).starts_with('{');
    type_ = object ? JsonType::kObject : JsonType::kArray;  // or another, but no text any more
    return {};
  }
  // Of Debezium's bytes, the lowest first.
  Done ReadBits() {
    std::string bits;
    for (const char byte : cell()) {
      for (int bit = 0; bit < 8; ++bit) bits.push_back((byte >> bit & 1) != 0 ? '1' : '0');
    }
    if (bits.find('1', to_.bits) != std::string::npos) {
      return Problem(fmt::format("has more bits than the column's {}", to_.bits));
    }
    bits.resize(to_.bits, '0');
    std::ranges::reverse(bits);
    if (to_.kind == CellKind::kWhole) {
      bits = std::to_string(std::stoull(bits, nullptr, 2));
      type_ = JsonType::kNumber;
    }
    Become(bits);
    return {};
  }
  Done ReadInteger(std::size_t size) {
    if (cell().size() != size) {
      return Problem(fmt::format("has {} bytes, and `convert: {}` reads {}", cell().size(),
                                 WordOf(from_.conversion), size));
    }
    std::uint64_t bits = (cell().front() & 0x80) != 0 ? ~std::uint64_t{0} : 0;
    for (const char c : cell()) bits = bits << 8 | static_cast<unsigned char>(c);
    Become(std::to_string(static_cast<std::int64_t>(bits)));
    type_ = JsonType::kNumber;
    return {};
  }

  Done IsText() const {
    if (!IsUtf8(cell())) return Problem("is not UTF-8 text" + OfBytes());
    // In JSON it becomes an escape.
    if (to_.no_nul.empty() || to_.kind == CellKind::kJson ||
        cell().find('\0') == std::string_view::npos) {
      return {};
    }
    return Problem(fmt::format("has a NUL{}{}", to_.no_nul, OfBytes()));
  }
  Done Map() {
    if (type_ == JsonType::kObject) return MakeCellMap(text_, at_);
    if (type_ && type_ != JsonType::kString) return Problem("is no JSON object");
    if (!Trimmed(cell()).starts_with('{')) return {};
    return Problem("is a text of JSON (convert: json reads it)");
  }
  [[nodiscard]] Done IsNoJson() const {
    const bool json = type_ == JsonType::kObject || type_ == JsonType::kArray;
    if (to_.reads_json || !json) return {};
    return Problem("is a JSON object or array, and the type reads a text: a handler can make one");
  }
  // What may be meant by a key or a header of so many bytes.
  [[nodiscard]] std::string OfBytes() const {
    const bool integer = cell().size() == 4 || cell().size() == 8;
    if (type_ || !integer || !IsNumeric(to_.kind)) return "";
    return fmt::format(" (convert: int{} reads the bytes of a number)", cell().size() * 8);
  }

  Done Bytes() const {
    if (to_.padded && cell().size() != to_.octets) {
      return Problem(fmt::format("has {} bytes, and the column has {}", cell().size(), to_.octets));
    }
    if (to_.octets == 0 || cell().size() <= to_.octets) return {};
    return Problem(fmt::format("is too long: {} bytes of at most {}", cell().size(), to_.octets));
  }

  Done Text() const {
    if (to_.characters > 0 && cell().size() > to_.characters) {
      if (const std::size_t all = Characters(cell()); all > to_.characters) {
        return Problem(
            fmt::format("is too long: {} characters of at most {}", all, to_.characters));
      }
    }
    if (to_.octets > 0 && cell().size() > to_.octets) {
      return Problem(fmt::format("is too long: {} bytes of at most {}", cell().size(), to_.octets));
    }
    const bool full = to_.filled && Characters(cell()) == to_.characters;
    if (to_.padded && !full && cell().ends_with(' ')) {
      return Problem("ends in a blank, which the column does not keep");
    }
    return {};
  }

  Done Json() {
    if (auto made = MakeCellJson(from_.selector, type_, text_, at_); !made) return made;
    if (to_.no_nul.empty() || !EscapesNul(cell())) return {};
    return Problem(fmt::format("has a NUL{}", to_.no_nul));
  }

  Done Number() {
    if (type_ == JsonType::kBoolean && (to_.booleans || from_.conversion == Conversion::kBool)) {
      if (cell() == "true" || cell() == "false") Become(cell() == "true" ? "1" : "0");
      return {};
    }
    const bool finite = cell() != "NaN" && cell() != "Infinity" && cell() != "-Infinity";
    if (!finite && to_.infinite) return {};
    if (type_ != JsonType::kNumber) {
      const std::string number = AsJsonNumber(cell());
      if (!IsJsonNumber(number)) return NoNumber();
      if (number != cell()) Become(number);
    }
    if (to_.kind == CellKind::kWhole) return MakeCellWhole(to_.least, to_.most, text_, at_);
    if (to_.digits) {
      const auto decimal = DecimalOf(cell());
      if (decimal && !decimal->digits.empty() && decimal->exponent < -*to_.digits) {
        return Problem(fmt::format("has {} digits behind the point, and the column keeps {}",
                                   -decimal->exponent, *to_.digits));
      }
    }
    if (to_.kind == CellKind::kDecimal) return {};
    if (to_.also_64 && MakeCellWhole(to_.least, to_.most, text_, at_)) return {};
    return to_.single ? FloatOf<float>(cell()).map([](float) {})
                      : FloatOf<double>(cell()).map([](double) {});
  }
  [[nodiscard]] Done NoNumber() const {
    const bool object = type_ == JsonType::kObject;
    const bool encoded =
        object ? UnscaledOf(cell()).has_value()
               : type_ == JsonType::kString && Decoded(cell(), Conversion::kBase64).has_value();
    if (to_.kind == CellKind::kWhole || !encoded) return Problem("is not a number" + OfBytes());
    return Problem(fmt::format("is not a number (of Debezium's decimals, convert says {})",
                               object ? "decimal" : "decimal:SCALE"));
  }

  Done Boolean() {
    if (type_ != JsonType::kNumber) return {};
    bool negative = false;
    const std::string_view plain = WithoutZeros(cell(), negative);
    if (plain != "0" && plain != "1") return Problem("is neither true nor false, 0 nor 1");
    Become(plain == "1" ? "true" : "false");
    return {};
  }
  Done Bits() {
    if (type_ == JsonType::kBoolean) Become(cell() == "true" ? "1" : "0");
    if (type_ == JsonType::kNumber && cell() != "0" && cell() != "1") {
      return Problem("is a number, and the column takes a text of 0 and 1");
    }
    if (cell().find_first_not_of("01") != std::string_view::npos) {
      const bool encoded = to_.bits > 0 && Decoded(cell(), Conversion::kBase64).has_value();
      return Problem(std::string("is not a text of 0 and 1")
                         .append(encoded ? " (of Debezium's bits, convert says base64)" : ""));
    }
    const std::size_t most = to_.bits > 0 ? to_.bits : to_.characters;
    if (cell().size() == to_.bits || most == 0 || (to_.bits == 0 && cell().size() <= most)) {
      return {};
    }
    return Problem(fmt::format("has {} bits, and the column has {}{}", cell().size(),
                               to_.bits > 0 ? "" : "at most ", most));
  }
  [[nodiscard]] Done Choice() const {
    std::string_view rest = cell();
    while (!rest.empty() || !to_.several) {
      const std::size_t end = to_.several ? std::min(rest.find(','), rest.size()) : rest.size();
      if (std::ranges::find(to_.choices, rest.substr(0, end)) == to_.choices.end()) {
        return Problem("is none of the values that the column names");
      }
      if (end == rest.size()) break;
      rest.remove_prefix(end + 1);
    }
    return {};
  }
  Done Time() {
    Conversion unit = Conversion::kNone;
    if (type_ == JsonType::kNumber) {
      if (from_.selector.kind != Selector::Kind::kTimestamp) {
        return Problem(
            "is a number, and nothing says what it counts: convert says the unit (d, s, "
            "ms, us or ns)");
      }
      unit = Conversion::kMillis;
    }
    return MakeCellTime(to_, unit, text_, at_);
  }

  const CellType& to_;
  const Column& from_;
  std::optional<JsonType> type_;
  std::string& text_;
  const std::size_t at_;
};

}  // namespace

Done Takes(const CellType& to, Conversion conversion) {
  const bool text = to.kind == CellKind::kText;
  const auto only = [](bool takes, const char* words) -> Done {
    if (takes) return {};
    return Problem(words);
  };
  switch (conversion) {
    case Conversion::kNone:
      return {};
    case Conversion::kBase64:
    case Conversion::kHex:
      return only(to.kind == CellKind::kBytes || to.bits > 0,
                  "it is for binary columns, and for bits of a given number");
    case Conversion::kBool:
      return only(
          to.kind == CellKind::kBoolean || to.kind == CellKind::kBits || text || IsNumeric(to.kind),
          "it is for booleans, numbers and text");
    case Conversion::kJson:
      return only(text || to.kind == CellKind::kJson || to.kind == CellKind::kMap,
                  "it is for JSON and text");
    case Conversion::kInt32:
    case Conversion::kInt64:
    case Conversion::kDecimal:
      return only(text || IsNumeric(to.kind), "it is for numbers and text");
    case Conversion::kDays:
      if (to.kind == CellKind::kTime) return Problem("a time of day has no days");
      [[fallthrough]];
    default:
      return only(text || IsTimes(to.kind), "it is for times, dates and text");
  }
}

Done MakeCell(const CellType& to, const Column& from, std::optional<JsonType> type,
              std::string& text, std::size_t at) {
  const bool each = from.conversion != Conversion::kNone && from.conversion != Conversion::kJson;
  if (to.elements && type == JsonType::kArray && each) {
    return MakeCellArray(to, from, ArrayForm::kJson, text, at);
  }
  return Cell(to, from, type, text, at).Make();
}

}  // namespace fencepost::consumer
