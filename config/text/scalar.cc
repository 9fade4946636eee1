#include "config/text/scalar.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <numeric>
#include <vector>

#include <fmt/format.h>

namespace fencepost::config {
namespace {

constexpr std::size_t kMaxFileBytes = 1 << 20;

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};
constexpr std::array<Unit, 5> kDurationUnits{
    {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}}};
constexpr std::array<Unit, 4> kSizeUnits{
    {{"GiB", 1ull << 30}, {"MiB", 1ull << 20}, {"KiB", 1ull << 10}, {"B", 1}}};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Digits without a leading zero, within 63 bits.
std::optional<std::uint64_t> Digits(std::string_view text) {
  if (text.empty() || (text.size() > 1 && text.front() == '0')) return std::nullopt;
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  const auto largest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (error != std::errc() || stopped != end || number > largest) return std::nullopt;
  return number;
}

template <std::size_t kCount>
std::optional<std::uint64_t> WithUnit(std::string_view text,
                                      const std::array<Unit, kCount>& units) {
  const std::size_t digits = std::find_if_not(text.begin(), text.end(), IsDigit) - text.begin();
  const std::optional<std::uint64_t> number = Digits(text.substr(0, digits));
  const auto unit = std::find_if(units.begin(), units.end(),
                                 [&](const Unit& u) { return u.name == text.substr(digits); });
  if (!number || unit == units.end()) return std::nullopt;
  const auto largest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (*number > largest / unit->factor / 1'000'000) return std::nullopt;  // fits as nanoseconds too
  return *number * unit->factor;
}

bool IsVariableName(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
  };
  return !name.empty() && letter(name.front()) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || IsDigit(c); });
}

// What stands between ${ and }.
tl::expected<std::string, std::string> Resolve(std::string_view inside, const Environment& env) {
  if (inside.starts_with("file:")) {
    const std::string path(inside.substr(5));
    auto text = env.read_file(path);
    if (!text) return tl::unexpected(fmt::format("${{file:{}}}: {}", path, text.error()));
    while (!text->empty() && (text->back() == '\n' || text->back() == '\r')) text->pop_back();
    return text;
  }
  const std::size_t dash = inside.find(":-");
  const std::string name(inside.substr(0, dash));
  if (!IsVariableName(name)) {
    return tl::unexpected<std::string>(
        "what stands in ${…} is no variable name; a literal ${ is written $${");
  }
  std::optional<std::string> value = env.variable(name);
  if (dash != std::string_view::npos && (!value || value->empty())) {
    return std::string(inside.substr(dash + 2));
  }
  if (!value) {
    return tl::unexpected(
        fmt::format("the variable {} is not set; ${{{}:-default}} gives a default", name, name));
  }
  return *value;
}

tl::expected<std::string, std::string> ReadSmallFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return tl::unexpected(fmt::format("cannot be read: {}", std::strerror(errno)));
  std::string text(kMaxFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || (file.gcount() == 0 && !file.eof())) {
    return tl::unexpected(fmt::format("cannot be read: {}", std::strerror(errno)));
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMaxFileBytes) return tl::unexpected<std::string>("is larger than 1 MiB");
  return text;
}

}  // namespace

Environment Environment::Process() {
  Environment environment;
  environment.variable = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  };
  environment.read_file = ReadSmallFile;
  return environment;
}

tl::expected<std::string, std::string> Expand(std::string_view text, const Environment& env) {
  std::string out;
  while (!text.empty()) {
    const std::size_t dollar = std::min(text.find('$'), text.size());
    out.append(text.substr(0, dollar));
    text.remove_prefix(dollar);
    if (text.starts_with("$${")) {
      out.append("${");
      text.remove_prefix(3);
    } else if (text.starts_with("${")) {
      const std::size_t end = text.find('}');
      if (end == std::string_view::npos) {
        return tl::unexpected<std::string>("a ${ has no }; a literal ${ is written $${");
      }
      const auto value = Resolve(text.substr(2, end - 2), env);
      if (!value) return tl::unexpected(value.error());
      out.append(*value);
      text.remove_prefix(end + 1);
    } else if (!text.empty()) {
      out.push_back('$');
      text.remove_prefix(1);
    }
  }
  return out;
}

tl::expected<Milliseconds, std::string> ParseDuration(std::string_view text) {
  if (const auto millis = WithUnit(text, kDurationUnits)) {
    return Milliseconds(static_cast<std::int64_t>(*millis));
  }
  return tl::unexpected<std::string>("is not a duration; write 250ms, 10s, 5m, 24h or 7d");
}

tl::expected<std::uint64_t, std::string> ParseSize(std::string_view text) {
  if (const auto bytes = WithUnit(text, kSizeUnits)) return *bytes;
  return tl::unexpected<std::string>("is not a size; write 512B, 64KiB, 10MiB or 1GiB");
}

tl::expected<std::int64_t, std::string> ParseInteger(std::string_view text) {
  const bool negative = text.starts_with('-');
  const auto number = Digits(text.substr(negative ? 1 : 0));
  if (!number) return tl::unexpected<std::string>("is not a whole number such as 64");
  const auto value = static_cast<std::int64_t>(*number);
  return negative ? -value : value;
}

tl::expected<std::int64_t, std::string> ParseThousandths(std::string_view text) {
  constexpr std::size_t kDecimals = 3;
  const std::size_t point = text.find('.');
  const bool whole = point == std::string_view::npos;
  std::string decimals(whole ? std::string_view() : text.substr(point + 1));
  const bool good = whole || (!decimals.empty() && decimals.size() <= kDecimals &&
                              std::all_of(decimals.begin(), decimals.end(), IsDigit));
  const auto number = Digits(text.substr(0, point));
  if (!good || !number || *number > 1'000'000'000) {
    return tl::unexpected<std::string>("is not a number such as 2 or 1.5");
  }
  decimals.resize(kDecimals, '0');
  return static_cast<std::int64_t>(*number) * 1000 + std::stoi(decimals);
}

tl::expected<bool, std::string> ParseBoolean(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return tl::unexpected<std::string>("is neither true nor false");
}

std::string DurationText(Milliseconds duration) {
  const auto millis = static_cast<std::uint64_t>(duration.count());
  for (const Unit& unit : kDurationUnits) {
    if (millis > 0 && millis % unit.factor == 0) {
      return fmt::format("{}{}", millis / unit.factor, unit.name);
    }
  }
  return fmt::format("{}ms", millis);
}

// Damerau-Levenshtein (optimal string alignment): a swap of neighbours is one slip.
std::size_t EditDistance(std::string_view a, std::string_view b) {
  constexpr std::size_t kLongest = 64;
  if (a.size() > kLongest || b.size() > kLongest) return std::max(a.size(), b.size());
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  std::iota(cost[0].begin(), cost[0].end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace fencepost::config
