// Moments and spans as text, written and read. Pure functions; any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fencepost {

// RFC 3339 in UTC, with milliseconds: "2026-11-03T10:00:00.000Z". Times before 1970 are negative.
std::string Rfc3339(std::chrono::milliseconds unix_time);

// The two largest units: "2 h 5 min", "3 d 4 h", "12 s"; below a second "350 ms".
std::string SpanText(std::chrono::milliseconds span);

// A point in time of the years 1 to 9999, UTC.
struct PointInTime {
  std::int64_t seconds = 0;  // since the Unix epoch, rounded down
  std::uint32_t nanos = 0;
};
constexpr std::int64_t kYear1 = -62'135'596'800;  // its first second; of 9999 the last
constexpr std::int64_t kYear9999 = 253'402'300'799;

void AppendDate(const PointInTime& point, std::string& out);  // 2026-11-23
// 2026-11-23T14:00:00.123456 with `digits` (0 to 9) behind the point; the rest is cut off.
void AppendDateTime(const PointInTime& point, char between, int digits, std::string& out);

struct DateTime {
  PointInTime point;  // without an offset: as if it were UTC; a time of day: of 1970-01-01
  bool has_date = false;
  bool has_time = false;
  bool has_offset = false;  // Z, or +hh:mm
  int digits = 0;           // behind the second's point
};
// ISO 8601: a date (2026-11-23, also with Z), a time of day (14:00, 14:00:00.25), or both, with an
// offset (Z, +09, +0900, +09:00) or without one. At most nine digits behind the point; no leap
// second.
std::optional<DateTime> ParseIso(std::string_view text);
// The same, where it has both.
std::optional<DateTime> ParseDateTime(std::string_view text);

}  // namespace fencepost
