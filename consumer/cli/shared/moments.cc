#include "consumer/cli/shared/moments.h"

#include <array>
#include <charconv>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "config/text/scalar.h"
#include "locking/base/time_text.h"

namespace fencepost::cli {
namespace {

constexpr Millis kLongest{999'999'999'999};

// Takes exactly `digits` digits off the front.
std::optional<int> TakeNumber(std::string_view& text, std::size_t digits) {
  if (text.size() < digits) return std::nullopt;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + digits, value);
  if (error != std::errc() || end != text.data() + digits || text[0] == '-') return std::nullopt;
  text.remove_prefix(digits);
  return value;
}

bool TakeOne(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text[0]) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

// ".5" is 500; digits past the third are dropped.
std::optional<Millis> TakeFraction(std::string_view& text) {
  if (!TakeOne(text, ".")) return Millis(0);
  int millis = 0;
  int unit = 100;
  std::size_t digits = 0;
  for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
    millis += (text[digits] - '0') * unit;
    unit /= 10;
  }
  text.remove_prefix(digits);
  if (digits == 0) return std::nullopt;
  return Millis(millis);
}

// "Z", "+01:00": how far local time is ahead of UTC.
std::optional<std::chrono::minutes> TakeZone(std::string_view& text) {
  if (TakeOne(text, "Zz")) return std::chrono::minutes(0);
  const bool behind = text.starts_with('-');
  if (!TakeOne(text, "+-")) return std::nullopt;
  const auto hours = TakeNumber(text, 2);
  if (!hours || !TakeOne(text, ":")) return std::nullopt;
  const auto minutes = TakeNumber(text, 2);
  if (!minutes || *hours > 23 || *minutes > 59) return std::nullopt;
  const std::chrono::minutes ahead{*hours * 60 + *minutes};
  return behind ? -ahead : ahead;
}

}  // namespace

std::optional<WallTime> ParseRfc3339(std::string_view text) {
  const auto year = TakeNumber(text, 4);
  if (!year || !TakeOne(text, "-")) return std::nullopt;
  const auto month = TakeNumber(text, 2);
  if (!month || !TakeOne(text, "-")) return std::nullopt;
  const auto day = TakeNumber(text, 2);
  if (!day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  const WallTime midnight = std::chrono::sys_days(date);
  if (text.empty()) return midnight;
  if (!TakeOne(text, "Tt ")) return std::nullopt;
  const auto hour = TakeNumber(text, 2);
  if (!hour || !TakeOne(text, ":")) return std::nullopt;
  const auto minute = TakeNumber(text, 2);
  if (!minute || !TakeOne(text, ":")) return std::nullopt;
  const auto second = TakeNumber(text, 2);
  if (!second || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  const auto fraction = TakeFraction(text);
  if (!fraction) return std::nullopt;
  const auto zone = TakeZone(text);
  if (!zone || !text.empty()) return std::nullopt;
  return midnight + std::chrono::hours(*hour) + std::chrono::minutes(*minute) +
         std::chrono::seconds(*second) + *fraction - *zone;
}

tl::expected<WallTime, std::string> ParseMoment(std::string_view text, WallTime now) {
  if (const auto moment = ParseRfc3339(text)) return *moment;
  const auto age = config::ParseDuration(text);
  if (age) return now - *age;
  return tl::unexpected(fmt::format(
      "\"{}\" is neither a time (2026-11-03T10:00:00Z) nor an age (90s, 2h, 7d)", text));
}

CLI::Option* AddDuration(CLI::App& command, const std::string& name, Millis& value,
                         const std::string& help) {
  const auto read = [&value, name](const std::string& text) {
    const auto parsed = config::ParseDuration(text);
    if (!parsed) throw CLI::ValidationError(name, text + " " + parsed.error());
    if (*parsed > kLongest) throw CLI::ValidationError(name, text + " is too long");
    value = *parsed;
  };
  return command.add_option_function<std::string>(name, read, help)->type_name("DURATION");
}

std::string MomentText(WallTime moment) { return Rfc3339(moment.time_since_epoch()); }

std::string SpanText(Millis span) {
  if (span < Millis(0)) return "-" + SpanText(-span);
  if (span < Millis(1000)) return fmt::format("{} ms", span.count());
  struct Unit {
    std::int64_t seconds;
    std::string_view name;
  };
  constexpr std::array<Unit, 4> kUnits{{{86'400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}}};
  std::int64_t left = span.count() / 1000;
  for (std::size_t i = 0; i < kUnits.size(); ++i) {
    if (left < kUnits[i].seconds) continue;
    std::string text = fmt::format("{} {}", left / kUnits[i].seconds, kUnits[i].name);
    left %= kUnits[i].seconds;
    if (i + 1 == kUnits.size()) return text;
    const std::int64_t next = left / kUnits[i + 1].seconds;
    if (next > 0) text += fmt::format(" {} {}", next, kUnits[i + 1].name);
    return text;
  }
  return "0 s";
}

std::string AgeText(WallTime moment, WallTime now) {
  return now >= moment ? SpanText(now - moment) + " ago" : "in " + SpanText(moment - now);
}

}  // namespace fencepost::cli
