// JSON: another parser agrees on what is JSON; a text and the same one written differently (members
// turned round, escapes, white space) have one digest; numbers that a double does not hold are
// found.
#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "consumer/handlers/jq/jq_numbers.h"
#include "consumer/json/json_digest.h"
#include "consumer/json/json_reader.h"
#include "consumer/json/json_text.h"
#include "consumer/record/text.h"
#include "tests/fuzz/target.h"

namespace fencepost::fuzz {
namespace {

using namespace consumer;

// A text escaped in a way of its own: every second letter as \uXXXX.
std::string Escaped(const std::string& text) {
  const std::string plain = nlohmann::json(text).dump(-1, ' ', true);  // ASCII
  std::string escaped;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const auto byte = static_cast<unsigned char>(plain[i]);
    if (byte == '\\') {
      const std::size_t size = plain[i + 1] == 'u' ? 6 : 2;
      escaped.append(plain, i, size);
      i += size - 1;
    } else if (i % 2 == 1 && std::isalpha(byte) != 0) {
      escaped += fmt::format("\\u{:04x}", byte);
    } else {
      escaped += plain[i];
    }
  }
  return escaped;
}

// The same JSON written differently, made while another parser walks over it.
class OtherWay : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return Put("null"); }
  bool boolean(bool value) override { return Put(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return Put(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return Put(std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) override { return Put(text); }
  bool string(string_t& value) override { return Put(Escaped(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return Open(); }
  bool key(string_t& value) override {
    levels_.back().name = Escaped(value);
    has_twice_ = has_twice_ || !levels_.back().names.insert(value).second;
    return true;
  }
  bool end_object() override { return Close("{ ", "\t}\n", true); }
  bool start_array(std::size_t) override { return Open(); }
  bool end_array() override { return Close(" [\r\n", " ] ", false); }
  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::detail::exception& error) override {
    constexpr int kNoDouble = 406;
    no_double_ = error.id == kNoDouble;
    return false;
  }
  [[nodiscard]] bool no_double() const { return no_double_; }  // a number that is none ended it
  [[nodiscard]] bool has_twice() const { return has_twice_; }  // a name in an object
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  struct Level {
    std::string name;
    std::set<std::string> names;
    std::vector<std::string> parts;
  };
  bool Open() {
    levels_.emplace_back();
    return true;
  }
  bool Put(std::string part) {
    if (levels_.empty()) {
      text_ = std::move(part);
    } else {
      Level& level = levels_.back();
      level.parts.push_back(level.name.empty() ? part : level.name + " : " + part);
    }
    return true;
  }
  bool Close(std::string_view open, std::string_view close, bool turn) {
    std::vector<std::string> parts = std::move(levels_.back().parts);
    levels_.pop_back();
    if (turn) std::ranges::reverse(parts);
    return Put(fmt::format("{}{}{}", open, fmt::join(parts, " , "), close));
  }

  std::vector<Level> levels_;
  std::string text_;
  bool no_double_ = false;
  bool has_twice_ = false;
};

std::optional<std::uint64_t> DigestOf(JsonReader& reader, std::string_view text) {
  std::uint64_t digest = 0;
  reader.Begin(text);
  if (reader.Digest("", digest) == JsonFound::kMalformed) return std::nullopt;
  return digest;
}

void CheckNumber(std::string_view text) {
  if (!IsJsonNumber(text)) return;
  std::string once;
  AppendCanonicalNumber(text, once);
  std::string twice;
  AppendCanonicalNumber(once, twice);
  FENCEPOST_CHECK(once == twice && IsJsonNumber(once), Shown(text));
  const double value = std::strtod(std::string(text).c_str(), nullptr);
  const bool exact = FindInexactNumbers(text).empty();
  FENCEPOST_CHECK(std::isfinite(value) || !exact, Shown(text));
  if (!exact) return;
  // What is let through to doubles comes back as the same number.
  std::string back;
  AppendCanonicalNumber(fmt::format("{}", value), back);
  FENCEPOST_CHECK(back == once || (value == 0 && once == "0"), Shown(text));
}

void CheckPointer(JsonReader& reader, std::string_view text) {
  for (const std::string_view pointer : {"/a", "/0", "/a/b", "/a~1b/~0/1", "/"}) {
    std::string value;
    reader.Begin(text);
    const JsonFound found = reader.Append(pointer, value);
    if (found == JsonFound::kMalformed) {
      FENCEPOST_CHECK(value.empty() && IsOneLine(reader.problem()), Shown(text));
      continue;
    }
    reader.Begin(text);
    std::string raw;
    FENCEPOST_CHECK(reader.AppendRaw(pointer, raw) == found, Shown(text));
    if (found != JsonFound::kValue) continue;
    FENCEPOST_CHECK(DigestOf(reader, raw).has_value(), Shown(raw));
  }
}

// nlohmann-json takes a byte order mark and equal names, and for it a NUL is the end.
void CheckVerdict(std::string_view input, const OtherWay* other, bool digested) {
  const bool fine = JsonProblem(input).empty();
  FENCEPOST_CHECK(fine == digested, Shown(input));
  const bool shallow = std::ranges::count(input, '[') + std::ranges::count(input, '{') < 200;
  const bool same = shallow && !input.starts_with('\xef') && input.find('\0') == input.npos;
  if (other != nullptr && same) FENCEPOST_CHECK(fine != other->has_twice(), Shown(input));
}

}  // namespace

void OneInput(std::string_view input) {
  static JsonReader reader;
  CheckNumber(input);
  CheckPointer(reader, input);
  const auto digest = DigestOf(reader, input);
  OtherWay other;
  const bool json = nlohmann::json::sax_parse(input, &other);
  CheckVerdict(input, json ? &other : nullptr, digest.has_value());
  if (!digest) {
    FENCEPOST_CHECK(!reader.problem().empty() && IsOneLine(reader.problem()),
                    Shown(reader.problem()));
    return;
  }
  if (other.no_double()) return;
  FENCEPOST_CHECK(json && IsUtf8(input), Shown(input));
  FENCEPOST_CHECK(DigestOf(reader, other.text()) == digest, Shown(other.text()));
  std::string raw;
  reader.Begin(input);
  if (reader.AppendRaw("", raw) == JsonFound::kNull) return;
  FENCEPOST_CHECK(raw.find('\n') == std::string::npos, Shown(raw));
  FENCEPOST_CHECK(DigestOf(reader, raw) == digest, Shown(raw));
}

}  // namespace fencepost::fuzz
