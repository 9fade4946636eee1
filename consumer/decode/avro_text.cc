#include "consumer/decode/avro_text.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <vector>

#include <fmt/format.h>

namespace fencepost::consumer::avro {
namespace {

constexpr std::int64_t kSecondsOfDay = 86'400;

std::int64_t UnitsOfSecond(int digits) {
  std::int64_t units = 1;
  for (int i = 0; i < digits; ++i) units *= 10;
  return units;
}

std::int64_t FloorDiv(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// The absolute value, in groups of nine digits, the lowest first.
std::vector<std::uint32_t> Magnitude(std::string_view bytes, bool negative) {
  std::string plain(bytes);
  if (negative) {
    unsigned carry = 1;
    for (auto byte = plain.rbegin(); byte != plain.rend(); ++byte) {
      const unsigned sum = (~static_cast<unsigned>(*byte) & 0xffU) + carry;
      *byte = static_cast<char>(sum & 0xff);
      carry = sum >> 8;
    }
    if (carry != 0) plain.insert(plain.begin(), '\1');  // -2^n, whose absolute value has a bit more
  }
  constexpr std::uint64_t kGroup = 1'000'000'000;
  std::vector<std::uint32_t> groups;
  for (const char c : plain) {
    std::uint64_t carry = static_cast<unsigned char>(c);
    for (std::uint32_t& group : groups) {
      carry += std::uint64_t{group} << 8;
      group = static_cast<std::uint32_t>(carry % kGroup);
      carry /= kGroup;
    }
    if (carry != 0) groups.push_back(static_cast<std::uint32_t>(carry));
  }
  return groups;
}

}  // namespace

bool AppendDecimal(std::string_view bytes, std::size_t scale, std::string& out) {
  if (bytes.size() > kMaxDecimalBytes || scale > kMaxScale) return false;
  const bool negative = !bytes.empty() && (static_cast<unsigned char>(bytes[0]) & 0x80) != 0;
  const std::vector<std::uint32_t> groups = Magnitude(bytes, negative);
  std::string digits;
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    const int width = group == groups.rbegin() ? 1 : 9;
    fmt::format_to(std::back_inserter(digits), "{:0{}}", *group, width);
  }
  if (digits.size() <= scale) digits.insert(0, scale + 1 - digits.size(), '0');
  if (negative) out.push_back('-');
  out.append(digits, 0, digits.size() - scale);
  if (scale > 0) out.append(1, '.').append(digits, digits.size() - scale);
  return true;
}

bool AppendDate(std::int64_t days, std::string& out) {
  using std::chrono::sys_days;
  using std::chrono::year;
  constexpr sys_days kFirst = year(1) / 1 / 1;
  constexpr sys_days kLast = year(9999) / 12 / 31;
  if (days < kFirst.time_since_epoch().count() || days > kLast.time_since_epoch().count()) {
    return false;
  }
  const std::chrono::year_month_day date(sys_days(std::chrono::days(static_cast<int>(days))));
  fmt::format_to(std::back_inserter(out), "{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                 static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
  return true;
}

bool AppendTime(std::int64_t units, int digits, std::string& out) {
  const std::int64_t second = UnitsOfSecond(digits);
  if (units < 0 || units >= kSecondsOfDay * second) return false;
  const std::int64_t seconds = units / second;
  fmt::format_to(std::back_inserter(out), "{:02}:{:02}:{:02}.{:0{}}", seconds / 3600,
                 seconds / 60 % 60, seconds % 60, units % second, digits);
  return true;
}

bool AppendTimestamp(std::int64_t units, int digits, std::string& out) {
  const std::int64_t day = kSecondsOfDay * UnitsOfSecond(digits);
  const std::int64_t days = FloorDiv(units, day);
  if (!AppendDate(days, out)) return false;
  out.push_back('T');
  const std::int64_t rest = units % day;
  return AppendTime(rest < 0 ? rest + day : rest, digits, out);
}

void AppendUuid(std::string_view bytes, std::string& out) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out.push_back('-');
    fmt::format_to(std::back_inserter(out), "{:02x}", static_cast<unsigned char>(bytes[i]));
  }
}

}  // namespace fencepost::consumer::avro
