// What a look at the workers said, for all who ask: one look a second at most, however many they
// are. Thread-safe: who asks while one is under way waits for it.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "consumer/fleet/fleet.h"

namespace fencepost::consumer {

class FleetWatch {
 public:
  using Clock = std::chrono::steady_clock;
  using Look = std::function<std::vector<Fleet>()>;
  explicit FleetWatch(Look look, std::function<Clock::time_point()> now = Clock::now)
      : look_(std::move(look)), now_(std::move(now)) {}

  std::vector<Fleet> Latest() {
    const std::lock_guard lock(mutex_);
    if (!ended_ || now_() - *ended_ >= std::chrono::seconds(1)) {
      latest_ = look_();
      ended_ = now_();
    }
    return latest_;
  }

 private:
  const Look look_;
  const std::function<Clock::time_point()> now_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<Fleet> latest_;
  std::optional<Clock::time_point> ended_;  // the last look
};

}  // namespace fencepost::consumer
