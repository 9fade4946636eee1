#include "consumer/cli/shared/moments.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "config/text/scalar.h"
#include "locking/base/time_text.h"

namespace fencepost::cli {
namespace {

constexpr Millis kLongest{999'999'999'999};

}  // namespace

std::optional<WallTime> ParseRfc3339(std::string_view text) {
  constexpr std::size_t kDate = 10;
  const auto time =
      ParseDateTime(text.size() == kDate ? fmt::format("{}T00:00:00Z", text) : std::string(text));
  if (!time || !time->has_offset) return std::nullopt;
  const std::chrono::nanoseconds fraction(time->point.nanos);
  return WallTime(std::chrono::seconds(time->point.seconds) + std::chrono::floor<Millis>(fraction));
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

void AddMoment(CLI::App& command, const std::string& name, std::optional<WallTime>& value,
               const std::string& help) {
  const auto read = [&value, name](const std::string& text) {
    const auto parsed = ParseMoment(text, locking::ReadClocks().wall);
    if (!parsed) throw CLI::ValidationError(name, parsed.error());
    value = *parsed;
  };
  command.add_option_function<std::string>(name, read, help);
}

std::string MomentText(WallTime moment) { return Rfc3339(moment.time_since_epoch()); }

std::string AgeText(WallTime moment, WallTime now) {
  return now >= moment ? SpanText(now - moment) + " ago" : "in " + SpanText(moment - now);
}

}  // namespace fencepost::cli
