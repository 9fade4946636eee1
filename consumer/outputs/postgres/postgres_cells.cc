#include "consumer/outputs/postgres/postgres_cells.h"

#include <charconv>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "consumer/json/json_text.h"
#include "consumer/outputs/rows/cell_values.h"
#include "locking/base/check.h"

namespace fencepost::consumer {
namespace {

constexpr Oid kInt2 = 21, kInt4 = 23, kJson = 114, kJsonb = 3802;
constexpr Oid kDate = 1082, kTimestamp = 1114, kTimestamptz = 1184;

bool IsJson(Oid type) { return type == kJson || type == kJsonb; }
bool IsInteger(Oid type) { return type == kInt2 || type == kInt4 || type == kInt8Oid; }

std::pair<std::int64_t, std::int64_t> Range(Oid type) {
  const auto of = [](auto limits) {
    return std::pair<std::int64_t, std::int64_t>{limits.min(), limits.max()};
  };
  if (type == kInt2) return of(std::numeric_limits<std::int16_t>());
  if (type == kInt4) return of(std::numeric_limits<std::int32_t>());
  return of(std::numeric_limits<std::int64_t>());
}

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

// JSON text, read from the front. It is valid: a parser has been over it.
class JsonScanner {
 public:
  explicit JsonScanner(std::string_view text) : rest_(text) {}

  [[nodiscard]] bool empty() {
    SkipSpace();
    return rest_.empty();
  }
  [[nodiscard]] char front() {
    SkipSpace();
    return rest_.empty() ? '\0' : rest_.front();
  }
  void Skip() { rest_.remove_prefix(1); }
  // The next token as it is written: a string with its quotes, a literal, or a whole object.
  std::string_view Token() {
    SkipSpace();
    std::size_t end = 0;
    int depth = 0;
    do {
      const char c = rest_[end];
      if (c == '"') {
        end = StringEnd(end);
        continue;
      }
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') --depth;
      ++end;
    } while (end < rest_.size() &&
             (depth > 0 || !(rest_[end] == ',' || rest_[end] == ']' || rest_[end] == '}')));
    std::string_view token = rest_.substr(0, end);
    rest_.remove_prefix(end);
    while (!token.empty() && IsSpace(token.back())) token.remove_suffix(1);
    return token;
  }

 private:
  static bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
  void SkipSpace() {
    while (!rest_.empty() && IsSpace(rest_.front())) rest_.remove_prefix(1);
  }
  [[nodiscard]] std::size_t StringEnd(std::size_t begin) const {
    std::size_t at = begin + 1;
    while (at < rest_.size() && rest_[at] != '"') at += rest_[at] == '\\' ? 2 : 1;
    return at + 1;
  }
  std::string_view rest_;
};

void AppendUtf8(std::uint32_t code, std::string& out) {
  const auto add = [&](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xc0 | code >> 6);
    add(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    add(0xe0 | code >> 12);
    add(0x80 | (code >> 6 & 0x3f));
    add(0x80 | (code & 0x3f));
  } else {
    add(0xf0 | code >> 18);
    add(0x80 | (code >> 12 & 0x3f));
    add(0x80 | (code >> 6 & 0x3f));
    add(0x80 | (code & 0x3f));
  }
}

std::uint32_t Hex4(std::string_view digits) {
  std::uint32_t code = 0;
  std::from_chars(digits.data(), digits.data() + 4, code, 16);
  return code;
}

// Of a string in quotes. nullopt: it has a NUL, which PostgreSQL has no text for.
std::optional<std::string> Unescaped(std::string_view quoted) {
  std::string text;
  const std::string_view in = quoted.substr(1, quoted.size() - 2);
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i] != '\\') {
      text.push_back(in[i]);
      continue;
    }
    constexpr std::string_view kNames = "bfnrt", kCodes = "\b\f\n\r\t";
    const char c = in[++i];
    if (const auto at = kNames.find(c); at != std::string_view::npos) {
      text.push_back(kCodes[at]);
    } else if (c != 'u') {
      text.push_back(c);
    } else {
      std::uint32_t code = Hex4(in.substr(i + 1));
      i += 4;
      if (code == 0) return std::nullopt;
      if (code >= 0xd800 && code < 0xdc00) {  // the next is the other half
        code = 0x10000 + ((code - 0xd800) << 10) + (Hex4(in.substr(i + 3)) - 0xdc00);
        i += 6;
      }
      AppendUtf8(code, text);
    }
  }
  return text;
}

void AppendQuoted(std::string_view text, std::string& out) {
  out.push_back('"');
  for (const char c : text) {
    if (c == '"' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  out.push_back('"');
}

tl::expected<void, std::string> AppendElement(std::string_view token, PgElement element,
                                              std::string& out) {
  if (token == "null") {
    out += "NULL";
  } else if (element == PgElement::kJson) {
    AppendQuoted(token, out);
  } else if (token.front() == '"') {
    const auto text = Unescaped(token);
    if (!text) return tl::unexpected<std::string>("has a string with a NUL in it");
    AppendQuoted(*text, out);
  } else if (token.front() == '{') {
    AppendQuoted(token, out);
  } else if (element == PgElement::kInteger && IsJsonNumber(token)) {
    const auto [least, most] = Range(kInt8Oid);
    const auto whole = WholeNumber(token, least, most);
    if (!whole) return tl::unexpected("has an element that " + whole.error());
    fmt::format_to(std::back_inserter(out), "{}", *whole);
  } else {
    out += token;
  }
  return {};
}

PgElement ElementOf(Oid type) {
  if (IsJson(type)) return PgElement::kJson;
  return IsInteger(type) ? PgElement::kInteger : PgElement::kText;
}

// What `unit` makes of a number, for a column of this type.
tl::expected<void, std::string> ConvertTime(Conversion unit, Oid type, std::string& text,
                                            std::size_t at) {
  const auto point = PointInTimeOf(std::string_view(text).substr(at), unit);
  if (!point) return tl::unexpected(point.error());
  text.resize(at);
  if (type == kDate) {
    AppendDate(*point, text);
    return {};
  }
  const bool plain = type == kTimestamp;
  AppendDateTime(*point, plain ? ' ' : 'T', type == kTimestamp || type == kTimestamptz ? 6 : 9,
                 text);
  if (!plain) text += 'Z';
  return {};
}

}  // namespace

tl::expected<std::string, std::string> PgArrayLiteral(std::string_view array, PgElement element) {
  std::string out;
  JsonScanner scanner(array);
  while (!scanner.empty()) {
    switch (scanner.front()) {
      case '[':
        out.push_back('{');
        scanner.Skip();
        break;
      case ']':
        out.push_back('}');
        scanner.Skip();
        break;
      case ',':
        out.push_back(',');
        scanner.Skip();
        break;
      default:
        if (auto done = AppendElement(scanner.Token(), element, out); !done) {
          return tl::unexpected(done.error());
        }
    }
  }
  return out;
}

std::string_view PgCells::Name(std::size_t column) const { return (*columns_)[column].cast; }

tl::expected<void, std::string> PgCells::Convert(std::size_t column, std::optional<JsonType> type,
                                                 std::string& text, std::size_t at) {
  const PgColumn& to = (*columns_)[column];
  const Column& from = shape_->columns[column];
  if (IsTime(from.conversion)) return ConvertTime(from.conversion, to.base, text, at);
  const std::string_view cell = std::string_view(text).substr(at);
  const auto replace = [&](std::string_view by) { text.replace(at, std::string::npos, by); };
  if (from.conversion != Conversion::kNone) {
    auto bytes = Decoded(cell, from.conversion);
    if (!bytes) return tl::unexpected(bytes.error());
    if (!to.bytes()) return tl::unexpected<std::string>("is bytes, and the column is not bytea");
    replace(*bytes);
    return {};
  }
  if (IsJson(to.base)) {
    const bool string = type ? *type == JsonType::kString : !IsJsonAsItIs(from.selector.kind);
    if (!string) return {};
    if (!BatchRows::IsText(cell)) return tl::unexpected<std::string>("is not UTF-8 text");
    scratch_.clear();
    AppendJsonString(cell, scratch_);
    replace(scratch_);
  } else if (type == JsonType::kArray && to.element != 0) {
    auto literal = PgArrayLiteral(cell, ElementOf(to.element));
    if (!literal) return tl::unexpected(literal.error());
    replace(*literal);
  } else if (type == JsonType::kNumber && IsInteger(to.base)) {
    const auto [least, most] = Range(to.base);
    const auto whole = WholeNumber(cell, least, most);
    if (!whole) return tl::unexpected(whole.error());
    replace(fmt::format("{}", *whole));
  }
  return {};
}

}  // namespace fencepost::consumer
