#include "locking/base/time_text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <ctime>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace fencepost {

std::string Rfc3339(std::chrono::milliseconds unix_time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(unix_time);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(static_cast<std::time_t>(seconds.count())),
                     (unix_time - seconds).count());
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

}  // namespace fencepost
