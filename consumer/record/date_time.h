// RFC 3339 as it is written in records and on the command line. Values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fencepost::consumer {

// A point in time of the years 1 to 9999, UTC.
struct PointInTime {
  std::int64_t seconds = 0;  // since the Unix epoch, rounded down
  std::uint32_t nanos = 0;
};
constexpr std::int64_t kYear1 = -62'135'596'800;  // its first second; of 9999 the last
constexpr std::int64_t kYear9999 = 253'402'300'799;

struct DateTime {
  PointInTime point;        // without an offset: as if it were UTC
  bool has_offset = false;  // Z, or +hh:mm
  int digits = 0;           // behind the second's point
};
// RFC 3339, also without an offset, with at most nine digits behind the point and no leap second.
std::optional<DateTime> ParseDateTime(std::string_view text);

}  // namespace fencepost::consumer
