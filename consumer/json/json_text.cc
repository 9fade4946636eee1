#include "consumer/json/json_text.h"

#include <openssl/evp.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>

#include <fmt/format.h>
#include <simdjson.h>

namespace fencepost::consumer {
namespace {

constexpr int kMaxDepth = 1024;  // the check is recursive, and so is what reads the text behind it
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

constexpr std::string_view kSpace = " \t\r\n";
constexpr bool IsSpace(char c) { return kSpace.find(c) != std::string_view::npos; }

// Bytes that a string takes as they are.
constexpr std::array<bool, 256> kPlain = [] {
  std::array<bool, 256> plain{};
  for (std::size_t c = 0x20; c < plain.size(); ++c) plain[c] = c != '"' && c != '\\';
  return plain;
}();

class Grammar {
 public:
  explicit Grammar(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

  // Behind it is the end, or what else there is.
  bool Document() {
    Space();
    if (!Value(1)) return false;
    Space();
    return true;
  }
  [[nodiscard]] std::string_view rest() const {
    return {at_, static_cast<std::size_t>(end_ - at_)};
  }
  [[nodiscard]] const JsonVerdict& verdict() const { return verdict_; }

 private:
  bool Fail(std::string_view why) {
    verdict_.problem = why;
    return false;
  }
  // What else is there, or that there is no more.
  bool Missing(std::string_view why) { return Fail(at_ == end_ ? "it is cut off" : why); }
  void Space() {
    while (at_ < end_ && IsSpace(*at_)) ++at_;
  }
  bool Next(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  bool Value(int depth) {
    if (depth > kMaxDepth) return Fail("it is nested deeper than 1024 levels");
    if (Next('{')) return Object(depth);
    if (Next('[')) return Array(depth);
    return Next('"') ? String() : Literal();
  }

  bool Object(int depth) {
    Space();
    if (Next('}')) return true;
    while (true) {
      Space();
      if (!Next('"')) return Missing("a name in quotes is missing in an object");
      if (!String()) return false;
      Space();
      if (!Next(':')) return Missing("a colon is missing behind a name");
      Space();
      if (!Value(depth + 1)) return false;
      Space();
      if (Next('}')) return true;
      if (!Next(',')) return Missing("a comma is missing in an object");
    }
  }

  bool Array(int depth) {
    Space();
    if (Next(']')) return true;
    while (true) {
      Space();
      if (!Value(depth + 1)) return false;
      Space();
      if (Next(']')) return true;
      if (!Next(',')) return Missing("a comma is missing in an array");
    }
  }

  // Behind its first quote.
  bool String() {
    while (true) {
      while (at_ < end_ && kPlain[static_cast<unsigned char>(*at_)]) ++at_;
      if (Next('"')) return true;
      if (!Next('\\')) return Missing("a string has a control character that is not escaped");
      if (!Escape()) return Missing("a string has an escape that JSON does not have");
    }
  }
  bool Escape() {
    if (Next('u')) return CodePoint();
    constexpr std::string_view kEscapes = "\"\\/bfnrt";
    if (at_ == end_ || kEscapes.find(*at_) == std::string_view::npos) return false;
    ++at_;
    return true;
  }
  bool CodePoint() {
    const auto unit = CodeUnit();
    if (!unit) return false;
    const bool high = *unit >= 0xd800 && *unit < 0xdc00;
    const bool low = *unit >= 0xdc00 && *unit < 0xe000;
    if (high && rest().starts_with("\\u")) {
      const char* const before = at_;
      at_ += 2;
      const auto second = CodeUnit();
      if (!second) return false;
      if (*second >= 0xdc00 && *second < 0xe000) return true;
      at_ = before;
    }
    verdict_.half_pairs = verdict_.half_pairs || high || low;
    return true;
  }
  std::optional<std::uint32_t> CodeUnit() {
    std::uint32_t unit = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      if (at_ == end_) return std::nullopt;
      const char lower = static_cast<char>(*at_ | 0x20);
      if (*at_ >= '0' && *at_ <= '9') {
        unit = unit << 4 | static_cast<std::uint32_t>(*at_ - '0');
      } else if (lower >= 'a' && lower <= 'f') {
        unit = unit << 4 | static_cast<std::uint32_t>(lower - 'a' + 10);
      } else {
        return std::nullopt;
      }
    }
    return unit;
  }

  bool Literal() {
    const char* const begin = at_;
    while (at_ < end_ && !IsSpace(*at_) && *at_ != ',' && *at_ != '}' && *at_ != ']') ++at_;
    const std::string_view text(begin, static_cast<std::size_t>(at_ - begin));
    if (text.empty()) return Missing("a value is missing");
    if (IsJsonNumber(text) || text == "true" || text == "false" || text == "null") return true;
    return Fail("a literal is neither a number nor true, false or null");
  }

  const char* at_;
  const char* const end_;
  JsonVerdict verdict_;
};

}  // namespace

std::string_view Trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

bool IsJsonNumber(std::string_view text) {
  std::size_t at = 0;
  const auto digits = [&] {
    const std::size_t from = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    return at - from;
  };
  if (at < text.size() && text[at] == '-') ++at;
  const bool leading_zero = at < text.size() && text[at] == '0';
  const std::size_t whole = digits();
  if (whole == 0 || (leading_zero && whole > 1)) return false;
  if (at < text.size() && text[at] == '.') {
    ++at;
    if (digits() == 0) return false;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    if (digits() == 0) return false;
  }
  return at == text.size();
}

JsonVerdict CheckJson(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) return {.problem = "it begins with a byte order mark"};
  if (Trimmed(text).empty()) return {.problem = "it is empty"};
  Grammar first(text);
  if (!first.Document() || first.rest().empty()) return first.verdict();
  const bool more = Grammar(first.rest()).Document();
  return {.problem =
              more ? "it has more than one JSON document" : "something follows the JSON document"};
}

void AppendJsonString(std::string_view text, std::string& out) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

std::string ToBase64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // and a NUL, which OpenSSL writes
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                   reinterpret_cast<const unsigned char*>(bytes.data()),
                                   static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

void AppendJsonBytes(std::string_view bytes, std::string& out) {
  if (simdjson::validate_utf8(bytes.data(), bytes.size())) return AppendJsonString(bytes, out);
  out.append(R"({"base64":")").append(ToBase64(bytes)).append(R"("})");
}

}  // namespace fencepost::consumer
