// Signals of `lock exec` as values, and wake-ups by other threads. What was ignored when we were
// started (SIGHUP under nohup, SIGINT of a background job of sh) stays ignored, by the command,
// too.
#pragma once

#include <chrono>
#include <memory>

#include <signal.h>

#include "locking/base/fd.h"
#include "locking/base/wake_up.h"

namespace fencepost::cli {

// Those that end us.
bool Ends(int signal);

// Stops the whole process (and all others of its group) as this signal does by default: SIGTSTP,
// SIGTTIN, SIGTTOU. Returns when it goes on. Whether it stopped: where no shell could let us go on
// (an orphaned process group, as under `ssh -t`), the kernel does not stop us. Only with Signals in
// place.
bool StopAs(int signal, bool whole_group);

// From now to the end of the program; before any thread is started, so that none gets a signal.
class Signals {
 public:
  Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // errno; not 0: nothing is received.
  [[nodiscard]] int error() const { return error_ != 0 ? error_ : wake_up_->error(); }
  // For other threads, which may outlive this.
  [[nodiscard]] const std::shared_ptr<const WakeUp>& wake_up() const { return wake_up_; }
  // Until there is a signal, a wake-up, or the limit is over.
  void Poll(std::chrono::milliseconds limit) const;
  // The mask that we were started with.
  [[nodiscard]] const sigset_t& before() const { return before_; }
  // 0: none.
  [[nodiscard]] int Take() const;

  // What came while there is no command yet. Ctrl-Z stops us here, as it does any program.
  struct Received {
    int end = 0;  // the signal that ends us; 0: none
    bool stopped = false;
  };
  [[nodiscard]] Received DrainSignals() const;

 private:
  sigset_t before_{};
  Fd descriptor_;
  int error_ = 0;
  const std::shared_ptr<const WakeUp> wake_up_ = std::make_shared<const WakeUp>();
};

}  // namespace fencepost::cli
