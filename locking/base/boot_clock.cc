#include <ctime>

#include "locking/base/types.h"

namespace fencepost::locking {
namespace {

Nanos Read(clockid_t clock) noexcept {
  timespec time{};
  clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + Nanos(time.tv_nsec);
}

}  // namespace

BootClock::time_point BootClock::now() noexcept { return time_point(Read(CLOCK_BOOTTIME)); }

Now ReadClocks() noexcept {
  return {BootClock::now(), WallTime(std::chrono::duration_cast<Millis>(Read(CLOCK_REALTIME)))};
}

}  // namespace fencepost::locking
