// Single values of a pipeline file: durations, sizes and numbers are parsed. Values in, values out;
// any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace fencepost::config {

// The errors of these are predicates: "is not a duration; …".
using Milliseconds = std::chrono::milliseconds;
tl::expected<Milliseconds, std::string> ParseDuration(
    std::string_view text);                                                 // 250ms 10s 5m 24h 7d
tl::expected<std::uint64_t, std::string> ParseSize(std::string_view text);  // 512B 64KiB 10MiB 1GiB
tl::expected<std::int64_t, std::string> ParseInteger(std::string_view text);  // no 010, no 1e3
// Digits with or without a point, in thousandths: 2, 1.5, 0.125.
tl::expected<std::int64_t, std::string> ParseThousandths(std::string_view text);
tl::expected<bool, std::string> ParseBoolean(std::string_view text);  // true false
bool IsDigit(char c);                                                 // 0 to 9

inline constexpr Milliseconds kForever = Milliseconds::max();
// In the largest unit that is exact.
std::string DurationText(Milliseconds duration);
std::string SizeText(std::uint64_t bytes);

// a:1, b:2 without the blanks around them. A comma within a user and password, which an @ ends
// (redis://u:a,b@host), is part of it.
std::vector<std::string_view> SplitAtCommas(std::string_view text);

}  // namespace fencepost::config
