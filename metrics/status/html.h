// Text of the status page: values as people read them, made safe for HTML. Pure; any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "consumer/pipeline/status.h"

namespace fencepost::metrics {

// For text and attribute values; bytes that are not UTF-8 are replaced.
std::string EscapeHtml(std::string_view text);

// The same, with `words` between backticks as code.
std::string CodeInText(std::string_view text);

std::string ShowNumber(std::int64_t value);  // 1,234,567
std::string ShowNumber(std::uint64_t value);
std::string ShowRate(double value);                         // 0.4, 12.3, 1,234
std::string ShowBytes(std::size_t bytes);                   // 1.5 MiB
std::string ShowTime(std::chrono::milliseconds unix_time);  // 2026-11-22 00:04:12, UTC

// What the oldest record of a partition waits for, since when, and how many wait for it: "waiting
// for the next attempt, for 312 s; 4,012 finished records behind it".
std::string OldestText(const consumer::PartitionStatus& row);

// A word in a coloured pill; kind: good | note | warn | bad.
std::string Tag(std::string_view kind, std::string_view text);

}  // namespace fencepost::metrics
