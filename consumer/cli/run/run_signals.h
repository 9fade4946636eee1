// SIGTERM, SIGINT and SIGHUP as something to poll, and a way for other threads to wake the main
// thread.
#pragma once

#include <cstdint>

#include "locking/base/fd.h"
#include "locking/base/wake_up.h"

namespace fencepost::cli {

class RunSignals {
 public:
  // Before any thread starts, so that every thread has them blocked.
  RunSignals();

  void Wake() const { wake_up_.Wake(); }
  enum class Woken : std::uint8_t { kNot, kStop, kReload, kTerminalGone, kByWake };
  // Blocks until a signal or Wake, at most so long (-1: for ever). A signal counts before a Wake.
  // SIGHUP means a reload, unless the terminal that the process was started from has gone.
  [[nodiscard]] Woken Wait(int milliseconds) const;

 private:
  const bool had_terminal_;
  Fd signals_;
  const WakeUp wake_up_;
};

}  // namespace fencepost::cli
