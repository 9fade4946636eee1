// How long a call of several steps may still wait. Private to the recipes.
#pragma once

#include <algorithm>
#include <chrono>

#include "locking/quorum_lock/quorum_lock.h"

namespace fencepost::locking {

// Counts from its construction on. One thread.
class Budget {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::time_point kNever = Clock::time_point::max();

  explicit Budget(const AcquireOptions& options)
      : wait_(std::max(options.wait, Millis(0))),
        waits_(options.wait > Millis(0) || options.tries > 1),
        end_(wait_ > kLongestWait || (wait_ == Millis(0) && options.tries > 1)
                 ? kNever
                 : Clock::now() + wait_) {}

  [[nodiscard]] bool waits() const { return waits_; }  // more than one round of questions
  [[nodiscard]] Clock::time_point End() const { return end_; }
  // As AcquireOptions::wait says it: what is left, at least 1 ms (0 would mean that only `tries`
  // counts); 0 when only `tries` counts.
  [[nodiscard]] Millis Left() const {
    if (wait_ == Millis(0)) return wait_;
    if (end_ == kNever) return Millis::max();
    return std::max(std::chrono::ceil<Millis>(end_ - Clock::now()), Millis(1));
  }
  [[nodiscard]] bool Over() const { return end_ != kNever && Clock::now() >= end_; }

 private:
  Millis wait_;
  bool waits_;
  Clock::time_point end_;
};

}  // namespace fencepost::locking
