#include "config/text/scalar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>

#include <fmt/format.h>

namespace fencepost::config {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};
constexpr std::array<Unit, 5> kDurationUnits{
    {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}}};
constexpr std::array<Unit, 4> kSizeUnits{
    {{"GiB", 1ull << 30}, {"MiB", 1ull << 20}, {"KiB", 1ull << 10}, {"B", 1}}};

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

// In the largest unit that is exact; the units begin with the largest.
template <std::size_t kCount>
std::string InUnits(std::uint64_t number, const std::array<Unit, kCount>& units) {
  const auto exact = std::ranges::find_if(
      units, [&](const Unit& unit) { return number > 0 && number % unit.factor == 0; });
  const Unit& unit = exact == units.end() ? units.back() : *exact;
  return fmt::format("{}{}", number / unit.factor, unit.name);
}

}  // namespace

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

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
  return InUnits(static_cast<std::uint64_t>(duration.count()), kDurationUnits);
}

std::string SizeText(std::uint64_t bytes) { return InUnits(bytes, kSizeUnits); }

std::vector<std::string_view> SplitAtCommas(std::string_view text) {
  std::vector<std::string_view> parts;
  const auto trimmed = [](std::string_view part) {
    const std::size_t first = std::min(part.find_first_not_of(" \t"), part.size());
    return part.substr(first, part.find_last_not_of(" \t") + 1 - first);
  };
  for (std::size_t comma = text.find(','); comma != std::string_view::npos;) {
    const std::string_view rest = text.substr(comma + 1);
    const bool in_login = rest.substr(0, rest.find("://")).find('@') != std::string_view::npos;
    const std::string_view part = text.substr(0, comma);
    const bool in_bounds =  // of a pattern: ^a{1,3}
        part.starts_with('^') && std::ranges::count(part, '{') > std::ranges::count(part, '}');
    const bool parted = !in_login && !in_bounds;
    if (parted) {
      parts.push_back(trimmed(part));
      text = rest;
    }
    comma = text.find(',', parted ? 0 : comma + 1);
  }
  parts.push_back(trimmed(text));
  return parts;
}

}  // namespace fencepost::config
