// SIGTERM, SIGINT and SIGHUP as something to poll, and a way for other threads to wake the main
// thread.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "locking/base/fd.h"
#include "locking/base/wake_up.h"

namespace fencepost::cli {

class RunSignals {
 public:
  struct Options {
    // The ends of child processes count too.
    bool children = false;
    // What supervises this process; 0: nothing. Both may be sent one Ctrl-C, or one `kill` of the
    // whole group, and the supervisor hands its own on: so only a stop of the supervisor's is
    // counted twice, and a stop of anybody else's only as the first.
    pid_t supervisor = 0;
  };

  // Before any thread starts, so that every thread has them blocked.
  explicit RunSignals(Options options);
  RunSignals() : RunSignals(Options{}) {}

  void Wake() const { wake_up_.Wake(); }
  enum class Woken : std::uint8_t { kNot, kStop, kReload, kTerminalGone, kChild, kByWake };
  // Blocks until a signal or Wake, at most so long (-1: for ever). A signal counts before a Wake.
  // SIGHUP means a reload, unless the terminal that the process was started from has gone.
  [[nodiscard]] Woken Wait(int milliseconds) const;

 private:
  [[nodiscard]] bool Counts(pid_t sender) const;

  const Options options_;
  const bool had_terminal_;
  Fd signals_;
  const WakeUp wake_up_;
  mutable int stops_ = 0;  // of the supervisor's
  mutable bool stopped_ = false;
};

}  // namespace fencepost::cli
