#include "locking/base/time_text.h"

#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace fencepost {

std::string Rfc3339(std::chrono::milliseconds unix_time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(unix_time);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(static_cast<std::time_t>(seconds.count())),
                     (unix_time - seconds).count());
}

}  // namespace fencepost
