#include "consumer/json/json_text.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <simdjson.h>
#include <nlohmann/json.hpp>

#include "consumer/json/json_digest.h"

namespace fencepost::consumer {
namespace {

constexpr std::string_view kCutOff = "it is cut off";
constexpr std::string_view kComment = "it has a comment";
constexpr std::string_view kLiteral = "a literal is neither a number nor true, false or null";
constexpr std::string_view kNoEscape = "a string has an escape that JSON does not have";

constexpr std::string_view kSpace = " \t\r\n";
constexpr bool IsSpace(char c) { return kSpace.find(c) != std::string_view::npos; }

// Bytes that a string takes as they are.
constexpr std::array<bool, 256> kPlain = [] {
  std::array<bool, 256> plain{};
  for (std::size_t c = 0x20; c < plain.size(); ++c) plain[c] = c != '"' && c != '\\';
  return plain;
}();

// Of what is neither a number nor a word of JSON.
std::string_view LiteralProblem(std::string_view text) {
  std::string word;
  for (const char c : text.substr(0, 10)) word.push_back(static_cast<char>(c | 0x20));
  const std::string_view bare =
      std::string_view(word).substr(text.front() == '-' || text.front() == '+' ? 1 : 0);
  if (bare == "nan") return "NaN is not JSON";
  return bare == "infinity" || bare == "inf" ? "Infinity is not JSON" : kLiteral;
}

// It may become a literal of JSON when more of it comes.
bool MayGoOn(std::string_view literal) {
  for (const std::string_view word : {"true", "false", "null"}) {
    if (word.starts_with(literal)) return true;
  }
  return IsJsonNumber(std::string(literal) + "0");
}

class Grammar {
 public:
  Grammar(std::string_view text, int most_levels)
      : at_(text.data()), end_(at_ + text.size()), most_levels_(most_levels) {
    names_.reserve(32);
  }

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
  [[nodiscard]] std::string_view problem() const { return problem_; }

 private:
  bool Fail(std::string_view why) {
    problem_ = why;
    return false;
  }
  // What else is there, or that there is no more.
  bool Missing(std::string_view why) { return Fail(at_ == end_ ? kCutOff : why); }
  // The same between values.
  bool MissingPart(std::string_view why) {
    if (at_ < end_ && *at_ == '/') return Fail(kComment);
    if (at_ < end_ && *at_ == '\'') return Fail("it has single quotes, and JSON has double ones");
    return Missing(why);
  }
  void Space() {
    while (at_ < end_ && IsSpace(*at_)) ++at_;
  }
  bool Next(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  bool Value(int level) {
    if (Next('"')) return String();
    const bool object = Next('{');
    if (!object && !Next('[')) return Literal();
    if (level > most_levels_) return Fail("it is nested deeper than 200 levels");
    return object ? Object(level) : Array(level);
  }

  bool Object(int level) {
    const std::size_t first = names_.size();
    Space();
    if (Next('}')) return true;
    while (true) {
      if (!Next('"')) return MissingPart("a name in quotes is missing in an object");
      if (!Name()) return false;
      Space();
      if (!Next(':')) return MissingPart("a colon is missing behind a name");
      Space();
      if (!Value(level + 1)) return false;
      Space();
      if (Next('}')) return EachOnce(first);
      if (!NextPart("a comma is missing in an object", '}')) return false;
    }
  }

  bool Array(int level) {
    Space();
    if (Next(']')) return true;
    while (true) {
      if (!Value(level + 1)) return false;
      Space();
      if (Next(']')) return true;
      if (!NextPart("a comma is missing in an array", ']')) return false;
    }
  }

  bool NextPart(std::string_view without_comma, char end) {
    if (!Next(',')) return MissingPart(without_comma);
    Space();
    return at_ == end_ || *at_ != end || Fail("a comma has nothing behind it");
  }

  // Behind its first quote, as a string is.
  bool Name() {
    const char* const begin = at_;
    if (!String()) return false;
    const std::string_view raw(begin, static_cast<std::size_t>(at_ - 1 - begin));
    const bool plain = raw.find('\\') == std::string_view::npos;
    names_.push_back(DigestText(JsonKind::kString, plain ? raw : Unescaped(raw)));
    return true;
  }
  std::string_view Unescaped(std::string_view raw) {
    return name_ = nlohmann::json::parse(fmt::format("\"{}\"", raw)).get<std::string>();
  }
  // The names from `first` on, which are those of one object.
  bool EachOnce(std::size_t first) {
    const std::span names = std::span(names_).subspan(first);
    std::ranges::sort(names);
    const bool once = std::ranges::adjacent_find(names) == names.end();
    names_.resize(first);
    return once || Fail("an object has a name twice");
  }

  // Behind its first quote.
  bool String() {
    while (true) {
      while (at_ < end_ && kPlain[static_cast<unsigned char>(*at_)]) ++at_;
      if (Next('"')) return true;
      if (!Next('\\')) return Missing("a string has a control character that is not escaped");
      if (!Escape()) return false;
    }
  }
  bool Escape() {
    if (Next('u')) return CodePoint();
    constexpr std::string_view kEscapes = "\"\\/bfnrt";
    if (at_ == end_ || kEscapes.find(*at_) == std::string_view::npos) return Missing(kNoEscape);
    ++at_;
    return true;
  }
  bool CodePoint() {
    const auto unit = CodeUnit();
    if (!unit) return Missing(kNoEscape);
    if (*unit < 0xd800 || *unit >= 0xe000) return true;
    if (*unit < 0xdc00 && Next('\\') && Next('u')) {
      const auto second = CodeUnit();
      if (!second) return Missing(kNoEscape);
      if (*second >= 0xdc00 && *second < 0xe000) return true;
    }
    return Missing("a string has half a surrogate pair");
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
    if (IsJsonNumber(text) || text == "true" || text == "false" || text == "null") return true;
    if (text.empty()) return Missing("a value is missing");
    if (at_ == end_ && MayGoOn(text)) return Fail(kCutOff);
    at_ = begin;
    return MissingPart(LiteralProblem(text));
  }

  const char* at_;
  const char* const end_;
  const int most_levels_;
  std::string_view problem_;
  std::vector<std::uint64_t> names_;  // of the objects that are open: their digests
  std::string name_;
};

// With its mark, or every second one of the first bytes is zero and the other begins JSON.
bool IsUtf16(std::string_view text) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) return true;
  const auto begins = [&](std::size_t at, std::size_t zero) {
    constexpr std::string_view kBegin = "{[\"-0123456789tfn \t\r\n";
    return text[zero] == '\0' && kBegin.find(text[at]) != std::string_view::npos &&
           (text.size() < 4 || (text[zero + 2] == '\0' && text[at + 2] != '\0'));
  };
  return text.size() >= 2 && (begins(0, 1) || begins(1, 0));
}

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

std::string_view JsonProblem(std::string_view text, int most_levels) {
  if (text.empty()) return "it is empty";
  if (text.starts_with("\xef\xbb\xbf")) return "it begins with a byte order mark";
  if (IsUtf16(text)) return "it is UTF-16, and JSON is UTF-8";
  if (Trimmed(text).empty()) return "it is white space alone";
  if (!simdjson::validate_utf8(text.data(), text.size())) return "it is not UTF-8";
  Grammar first(text, most_levels);
  if (!first.Document() || first.rest().empty()) return first.problem();
  Grammar second(first.rest(), most_levels);
  if (second.Document()) return "it has two documents or more";
  return second.problem() == kComment ? kComment : "something follows the JSON document";
}

std::vector<std::string_view> JsonElements(std::string_view array) {
  std::vector<std::string_view> elements;
  array = Trimmed(array);
  array.remove_prefix(1);  // its brackets
  array.remove_suffix(1);
  if (Trimmed(array).empty()) return elements;
  int depth = 0;
  bool quoted = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < array.size(); ++i) {
    const char c = array[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      elements.push_back(Trimmed(array.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  elements.push_back(Trimmed(array.substr(begin)));
  return elements;
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
