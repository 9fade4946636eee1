// Wakes a poll(2) from another thread: a descriptor that is readable from Wake until Taken. Any
// thread, and signal handlers. Linux.
#pragma once

#include <sys/eventfd.h>

#include <atomic>
#include <cerrno>

#include "locking/base/fd.h"

namespace fencepost {

class WakeUp {
 public:
  [[nodiscard]] int error() const { return error_; }  // errno; not 0: it cannot wake anybody
  [[nodiscard]] int fd() const { return fd_.get(); }
  void Wake() const { (void)eventfd_write(fd_.get(), 1); }
  // Whether there was a Wake since this was asked last. Never blocks.
  bool Taken() const {
    eventfd_t count = 0;
    return eventfd_read(fd_.get(), &count) == 0;
  }

 private:
  Fd fd_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  int error_ = fd_.open() ? 0 : errno;
};

// Ends for good what other threads do or wait for in poll(2).
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
