#include "consumer/json/json_digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

namespace fencepost::consumer {

std::uint64_t DigestText(JsonKind kind, std::string_view text) {
  return XXH3_64bits_withSeed(text.data(), text.size(), static_cast<std::uint64_t>(kind));
}

std::uint64_t DigestPair(JsonKind kind, std::uint64_t first, std::uint64_t second) {
  const std::array<std::uint64_t, 2> both{first, second};
  return XXH3_64bits_withSeed(both.data(), sizeof both, static_cast<std::uint64_t>(kind));
}

void AppendCanonicalNumber(std::string_view number, std::string& out) {
  const std::size_t end = std::min(number.find_first_of("eE"), number.size());
  const bool negative = number.front() == '-';
  std::string digits;
  for (const char c : number.substr(negative ? 1 : 0, end - (negative ? 1 : 0))) {
    if (c != '.') digits.push_back(c);
  }
  const std::size_t last = digits.find_last_not_of('0');
  if (last == std::string::npos) {
    out.push_back('0');
    return;
  }
  std::int64_t exponent = 0;
  if (end < number.size()) {
    std::string_view power = number.substr(end + 1);
    if (power.front() == '+') power.remove_prefix(1);
    const auto [rest, error] = std::from_chars(power.data(), power.data() + power.size(), exponent);
    constexpr std::int64_t kLargest = 1'000'000'000'000;  // so that the sums below hold
    if (error != std::errc() || exponent < -kLargest || exponent > kLargest) {
      out.append(number);
      return;
    }
  }
  if (const std::size_t point = number.find('.'); point < end) {
    exponent -= static_cast<std::int64_t>(end - point - 1);
  }
  exponent += static_cast<std::int64_t>(digits.size() - last - 1);
  const std::size_t first = digits.find_first_not_of('0');
  if (negative) out.push_back('-');
  out.append(digits, first, last - first + 1).append("e").append(std::to_string(exponent));
}

bool IsSameNumber(std::string_view a, std::string_view b) {
  std::string first;
  std::string second;
  AppendCanonicalNumber(a, first);
  AppendCanonicalNumber(b, second);
  return first == second;
}

}  // namespace fencepost::consumer
