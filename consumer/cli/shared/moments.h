// Moments as people write and read them on the command line, and options that are durations.
// Values; any thread.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "locking/base/types.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace fencepost::cli {

using locking::Millis;
using locking::WallTime;

// RFC 3339 ("2026-11-03T10:00:00Z", "2026-11-03T10:00:00.5+01:00"; a date alone is its midnight,
// UTC), or an age, counted back from `now` ("90s", "2h", "7d"). Error: a predicate, one line.
tl::expected<WallTime, std::string> ParseMoment(std::string_view text, WallTime now);
// RFC 3339 alone, with at most nine digits behind the point and no leap second.
std::optional<WallTime> ParseRfc3339(std::string_view text);

// An option that is a duration as pipeline files have them: 250ms, 10s, 5m, 24h, 7d; at most what a
// lock node keeps a name for (31 years). `value` keeps what it has where the option is not given;
// it must outlive the parsing. A wrong one ends the parsing with a CLI::ValidationError.
CLI::Option* AddDuration(CLI::App& command, const std::string& name, Millis& value,
                         const std::string& help);

// An option that is a moment (ParseMoment), counted from now. The same rules.
void AddMoment(CLI::App& command, const std::string& name, std::optional<WallTime>& value,
               const std::string& help);

// "2026-11-03T10:00:00.000Z".
std::string MomentText(WallTime moment);
// "12 s ago", or "in 3 s" where the clocks disagree.
std::string AgeText(WallTime moment, WallTime now);

}  // namespace fencepost::cli
