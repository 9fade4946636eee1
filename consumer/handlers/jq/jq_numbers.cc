#include "consumer/handlers/jq/jq_numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include <fmt/format.h>

#include "consumer/json/json_digest.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

// A double holds every number of so many digits.
constexpr std::size_t kSafeDigits = 15;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNumberPart(char c) {
  return IsDigit(c) || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E';
}

// As jq reads it: what is too large is the largest.
double ReadNumber(std::string_view number) {
  constexpr double kMost = std::numeric_limits<double>::max();
  return std::clamp(std::strtod(std::string(number).c_str(), nullptr), -kMost, kMost);
}

bool SurvivesADouble(std::string_view number) {
  if (number.size() <= kSafeDigits && number.find_first_of("eE") == std::string_view::npos) {
    return true;
  }
  double value = 0;
  const auto read = std::from_chars(number.data(), number.data() + number.size(), value);
  return read.ec == std::errc() && IsSameNumber(number, fmt::format("{}", value));
}

}  // namespace

std::vector<std::string_view> FindInexactNumbers(std::string_view json) {
  std::vector<std::string_view> numbers;
  for (std::size_t at = 0; at < json.size();) {
    if (json[at] == '"') {
      for (++at; at < json.size() && json[at] != '"'; ++at) {
        if (json[at] == '\\') ++at;
      }
      ++at;
    } else if (IsDigit(json[at]) || json[at] == '-') {
      const auto* const end = std::find_if_not(json.begin() + static_cast<std::ptrdiff_t>(at),
                                               json.end(), IsNumberPart);
      const std::string_view number(json.data() + at, end);
      if (!SurvivesADouble(number) && !Planted("jq_may_change_numbers")) numbers.push_back(number);
      at += number.size();
    } else {
      ++at;
    }
  }
  return numbers;
}

std::string Nudged(std::string_view json, const std::vector<std::string_view>& numbers,
                   Nudge nudge) {
  constexpr double kMost = std::numeric_limits<double>::max();
  const double to = nudge == Nudge::kDown ? -kMost : kMost;
  std::string nudged;
  const char* from = json.data();
  for (const std::string_view number : numbers) {
    nudged.append(from, number.data());
    nudged += fmt::format("{}", std::nextafter(ReadNumber(number), to));
    from = number.data() + number.size();
  }
  return nudged.append(from, json.data() + json.size());
}

}  // namespace fencepost::consumer
