#include "consumer/handlers/jq/jq_numbers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string>

#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

// A double holds every number of so many digits.
constexpr std::size_t kSafeDigits = 15;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNumberPart(char c) {
  return IsDigit(c) || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E';
}

// 0.DIGITS * 10^exponent, without zeros at either end of the digits. None: zero.
struct Decimal {
  std::string digits;
  std::int64_t exponent = 0;
  bool operator==(const Decimal&) const = default;
};

// Of a number as JSON or to_chars writes it; the sign is passed over.
Decimal ToDecimal(std::string_view text) {
  Decimal decimal;
  std::size_t at = text.starts_with('-') ? 1 : 0;
  bool fraction = false;
  for (; at < text.size() && (IsDigit(text[at]) || text[at] == '.'); ++at) {
    if (text[at] == '.') {
      fraction = true;
    } else if (text[at] == '0' && decimal.digits.empty()) {
      if (fraction) --decimal.exponent;
    } else {
      decimal.digits.push_back(text[at]);
      if (!fraction) ++decimal.exponent;
    }
  }
  while (decimal.digits.ends_with('0')) decimal.digits.pop_back();
  if (at < text.size()) {
    std::string_view power = text.substr(at + 1);  // behind the e
    if (power.starts_with('+')) power.remove_prefix(1);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(power.data(), power.data() + power.size(), value);
    // What does not even fit here is far beyond any double, either way.
    if (error != std::errc()) value = power.starts_with('-') ? INT64_MIN / 2 : INT64_MAX / 2;
    decimal.exponent += value;
  }
  if (decimal.digits.empty()) decimal.exponent = 0;
  return decimal;
}

bool SurvivesADouble(std::string_view number) {
  if (number.size() <= kSafeDigits && number.find_first_of("eE") == std::string_view::npos) {
    return true;
  }
  const Decimal decimal = ToDecimal(number);
  if (decimal.digits.empty()) return true;
  if (decimal.digits.size() <= kSafeDigits && std::abs(decimal.exponent) < 290) return true;
  double value = 0;
  if (std::from_chars(number.data(), number.data() + number.size(), value).ec != std::errc()) {
    return false;  // out of range
  }
  std::array<char, 64> printed{};
  const auto end = std::to_chars(printed.data(), printed.data() + printed.size(), value,
                                 std::chars_format::scientific)
                       .ptr;
  return ToDecimal({printed.data(), static_cast<std::size_t>(end - printed.data())}) == decimal;
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
