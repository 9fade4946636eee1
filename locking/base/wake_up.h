// Wakes a poll(2) from another thread: a descriptor that is readable from Wake until Taken. Any
// thread, and signal handlers. Linux.
#pragma once

#include <sys/eventfd.h>

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

}  // namespace fencepost
