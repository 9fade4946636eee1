#include "locking/base/time_text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace fencepost {
namespace {

// As many digits as there are; `at` is behind them.
std::optional<int> DigitsAt(std::string_view text, std::size_t& at, std::size_t count) {
  int number = 0;
  if (text.size() < at + count) return std::nullopt;
  for (const std::size_t end = at + count; at < end; ++at) {
    if (text[at] < '0' || text[at] > '9') return std::nullopt;
    number = number * 10 + (text[at] - '0');
  }
  return number;
}

bool TakeAny(std::string_view text, std::size_t& at, std::string_view of) {
  if (at >= text.size() || of.find(text[at]) == std::string_view::npos) return false;
  ++at;
  return true;
}

}  // namespace

std::string Rfc3339(std::chrono::milliseconds unix_time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(unix_time);
  const std::chrono::nanoseconds rest = unix_time - seconds;
  // Kafka takes any number of milliseconds; chrono's years have 16 bits.
  if (seconds.count() < kYear1 || seconds.count() > kYear9999) {
    return fmt::format("{} ms", unix_time.count());
  }
  std::string text;
  AppendDateTime({seconds.count(), static_cast<std::uint32_t>(rest.count())}, 'T', 3, text);
  return text + "Z";
}

std::string SpanText(std::chrono::milliseconds span) {
  if (span.count() < 0) return "-" + SpanText(-span);
  if (span.count() < 1000) return fmt::format("{} ms", span.count());
  using Unit = std::pair<std::int64_t, std::string_view>;  // so many seconds
  static constexpr std::array<Unit, 4> kUnits{{{86'400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}}};
  const std::int64_t seconds = span.count() / 1000;
  const auto unit = std::ranges::find_if(kUnits, [&](Unit one) { return one.first <= seconds; });
  std::string text = fmt::format("{} {}", seconds / unit->first, unit->second);
  const auto smaller = std::next(unit);
  const auto rest = smaller == kUnits.end() ? 0 : seconds % unit->first / smaller->first;
  if (rest > 0) text += fmt::format(" {} {}", rest, smaller->second);
  return text;
}

void AppendDate(const PointInTime& point, std::string& out) {
  const auto day = std::chrono::floor<std::chrono::days>(
      std::chrono::sys_seconds(std::chrono::seconds(point.seconds)));
  const std::chrono::year_month_day date(day);
  fmt::format_to(std::back_inserter(out), "{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                 static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

void AppendDateTime(const PointInTime& point, char between, int digits, std::string& out) {
  AppendDate(point, out);
  const std::chrono::sys_seconds at(std::chrono::seconds(point.seconds));
  const std::chrono::hh_mm_ss time(at - std::chrono::floor<std::chrono::days>(at));
  fmt::format_to(std::back_inserter(out), "{}{:02}:{:02}:{:02}", between, time.hours().count(),
                 time.minutes().count(), time.seconds().count());
  if (digits == 0) return;
  const std::string fraction = fmt::format("{:09}", point.nanos);
  out.append(".").append(fraction, 0, static_cast<std::size_t>(digits));
}

std::optional<DateTime> ParseDateTime(std::string_view text) {
  std::size_t at = 0;
  constexpr std::array<std::string_view, 6> kBefore{"", "-", "-", "Tt ", ":", ":"};
  std::array<int, 6> parts{};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0 && !TakeAny(text, at, kBefore.at(i))) return std::nullopt;
    const auto part = DigitsAt(text, at, i == 0 ? 4 : 2);
    if (!part) return std::nullopt;
    parts.at(i) = *part;
  }
  const auto [year, month, day, hour, minute, second] = parts;
  if (hour > 23 || minute > 59 || second > 59) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return std::nullopt;
  DateTime out;
  if (TakeAny(text, at, ".")) {
    std::uint32_t nanos = 0;
    for (std::size_t one = at; out.digits < 9; ++out.digits) {
      const auto digit = DigitsAt(text, one, 1);
      if (!digit) break;
      nanos = nanos * 10 + static_cast<std::uint32_t>(*digit);
      at = one;
    }
    if (out.digits == 0) return std::nullopt;
    for (int i = out.digits; i < 9; ++i) nanos *= 10;
    out.point.nanos = nanos;
  }
  int offset = 0;
  const bool plus = TakeAny(text, at, "+");
  if (plus || TakeAny(text, at, "-")) {
    const auto hours = DigitsAt(text, at, 2);
    const bool more = hours && TakeAny(text, at, ":");
    const auto minutes = more ? DigitsAt(text, at, 2) : std::nullopt;
    if (!minutes || *hours > 23 || *minutes > 59) return std::nullopt;
    offset = (plus ? 1 : -1) * (*hours * 60 + *minutes);
    out.has_offset = true;
  } else {
    out.has_offset = TakeAny(text, at, "Zz");
  }
  if (at != text.size()) return std::nullopt;
  const auto time = std::chrono::sys_days(date) + std::chrono::hours(hour) +
                    std::chrono::minutes(minute - offset) + std::chrono::seconds(second);
  out.point.seconds = time.time_since_epoch().count();
  if (out.point.seconds < kYear1 || out.point.seconds > kYear9999) return std::nullopt;
  return out;
}

}  // namespace fencepost
