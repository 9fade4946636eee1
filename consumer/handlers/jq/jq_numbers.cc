#include "consumer/handlers/jq/jq_numbers.h"

#include <algorithm>
#include <charconv>

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

bool SurvivesADouble(std::string_view number) {
  if (number.size() <= kSafeDigits && number.find_first_of("eE") == std::string_view::npos) {
    return true;
  }
  double value = 0;
  const auto read = std::from_chars(number.data(), number.data() + number.size(), value);
  return read.ec == std::errc() && IsSameNumber(number, fmt::format("{}", value));
}

}  // namespace

std::optional<std::string_view> FindInexactNumber(std::string_view json) {
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
      if (!SurvivesADouble(number) && !Planted("jq_may_change_numbers")) return number;
      at += number.size();
    } else {
      ++at;
    }
  }
  return std::nullopt;
}

}  // namespace fencepost::consumer
