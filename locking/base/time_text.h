// Moments as text. Pure functions; any thread.
#pragma once

#include <chrono>
#include <string>

namespace fencepost {

// RFC 3339 in UTC, with milliseconds: "2026-11-03T10:00:00.000Z". Times before 1970 are negative.
std::string Rfc3339(std::chrono::milliseconds unix_time);

}  // namespace fencepost
