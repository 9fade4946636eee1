#include "locking/core/store/node_clock.h"

#include <algorithm>

#include "locking/base/planted.h"
#include "locking/core/options.h"

namespace fencepost::locking {

bool NodeClock::Observe(const CallInfo& call) {
  const Nanos read = call.node_time.time_since_epoch();
  // TIME is cut to the millisecond, so the node may have been up to one further.
  const Bounds seen{read - call.received_at.time_since_epoch(),
                    read + Millis(1) - call.sent_at.time_since_epoch()};
  if (!known_) {
    known_ = seen;
    based_at_ = call.received_at;
    return false;
  }
  const Nanos age = call.received_at - based_at_;
  const Millis span = std::max(rebase_, std::chrono::ceil<Millis>(age));
  const Nanos drift = LockOptions().Drift(span);
  const bool back = known_->low - seen.high > drift && !Planted("clock_may_step_back");
  if (seen.low - known_->high > drift || back) {
    known_ = seen;
    based_at_ = call.received_at;
    return true;
  }
  Bounds from = *known_;
  if (age >= rebase_) {
    from = {from.low - drift, from.high + drift};
    based_at_ = call.received_at;
  }
  const Bounds both{std::max(from.low, seen.low), std::min(from.high, seen.high)};
  if (both.low <= both.high) known_ = both;
  return false;
}

std::optional<Instant> NodeClock::SurelyAt(WallTime time) const {
  if (!known_) return std::nullopt;
  // Thirteen digits of milliseconds can say more than nanoseconds can hold.
  constexpr WallTime kLatest{Millis(7'000'000'000'000)};
  return Instant(Nanos(std::min(time, kLatest).time_since_epoch()) - known_->low);
}

std::optional<WallTime> NodeClock::Estimate(Instant at) const {
  if (!known_) return std::nullopt;
  const Nanos middle = known_->low + (known_->high - known_->low) / 2;
  return WallTime(std::chrono::floor<Millis>(at.time_since_epoch() + middle));
}

}  // namespace fencepost::locking
