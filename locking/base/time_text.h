// Moments and spans as text. Pure functions; any thread.
#pragma once

#include <chrono>
#include <string>

namespace fencepost {

// RFC 3339 in UTC, with milliseconds: "2026-11-03T10:00:00.000Z". Times before 1970 are negative.
std::string Rfc3339(std::chrono::milliseconds unix_time);

// The two largest units: "2 h 5 min", "3 d 4 h", "12 s"; below a second "350 ms".
std::string SpanText(std::chrono::milliseconds span);

}  // namespace fencepost
