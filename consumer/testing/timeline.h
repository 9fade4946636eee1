// Virtual time: what is to happen, in order. Nothing waits; time jumps.
#pragma once

#include <functional>
#include <map>
#include <utility>

#include "locking/base/types.h"

namespace fencepost::consumer {

class Timeline {
 public:
  // 2027-01-15: after the epoch of tokens, and the same in every run.
  static constexpr std::chrono::milliseconds kStart{1'800'000'000'000};

  [[nodiscard]] locking::Now now() const { return now_; }
  void After(locking::Nanos wait, std::function<void()> what) {
    events_.emplace(now_.boot + wait, std::move(what));
  }
  // The next thing happens. False: there is none.
  bool Step() {
    if (events_.empty()) return false;
    auto next = events_.extract(events_.begin());
    if (next.key() > now_.boot) {
      now_.boot = next.key();
      now_.wall = locking::WallTime(
          kStart + std::chrono::duration_cast<locking::Millis>(now_.boot - locking::Instant()));
    }
    next.mapped()();
    return true;
  }

 private:
  locking::Now now_{locking::Instant(), locking::WallTime(kStart)};
  std::multimap<locking::Instant, std::function<void()>> events_;
};

}  // namespace fencepost::consumer
