// Ends for good what other threads do or wait for in poll(2). Any thread. Linux.
#pragma once

#include <atomic>

#include "locking/base/wake_up.h"

namespace fencepost {

class StopSwitch {
 public:
  void Stop() {
    stopped_ = true;
    wake_up_.Wake();
  }
  [[nodiscard]] bool stopped() const { return stopped_; }
  [[nodiscard]] int fd() const { return wake_up_.fd(); }  // readable once stopped

 private:
  std::atomic<bool> stopped_{false};
  WakeUp wake_up_;  // never taken
};

}  // namespace fencepost
