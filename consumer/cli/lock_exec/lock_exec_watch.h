// Watches over the command of `lock exec` until it has ended: it gets the signals that we get,
// stops and goes on with us, and ends before the lease can be another's.
#pragma once

#include <string>

#include "consumer/cli/lock_exec/lock_exec_child.h"
#include "consumer/cli/lock_exec/lock_exec_signals.h"
#include "locking/quorum_lock/lease.h"

namespace fencepost::cli {

class Watch {
 public:
  struct Of {
    ExecChild& child;
    const locking::Lease& lease;
    const Signals& signals;
    const WakeUp& wake_up;
    std::string name;  // the lock's, for what is said
    locking::Millis kill_after;
  };
  explicit Watch(const Of& of) : of_(of) {}

  void UntilItEnds();

  // Afterwards.
  // The lease ended before the command did, or would have.
  [[nodiscard]] bool lost() const { return lost_; }
  // It got SIGTERM for that, or SIGKILL.
  [[nodiscard]] bool stopped() const { return kill_at_ != locking::Instant::max(); }
  // And the kernel would not have it: it, or a part of it, is another user's.
  [[nodiscard]] bool refused() const { return refused_; }

 private:
  // Nothing is extended while this process is suspended. So is the command. Whether it was.
  bool StandStill();
  void WantsTerminal();
  void Forward();
  void Enforce();
  void Kill();
  void WarnIfUnsignalable();
  [[nodiscard]] locking::Millis NextLook() const;

  const Of of_;
  bool lost_ = false;
  bool refused_ = false;
  bool warned_unsignalable_ = false;
  bool said_waits_ = false;
  bool said_runs_on_ = false;
  bool asked_to_stop_ = false;
  locking::Instant last_until_ = locking::Instant::min();
  locking::Instant kill_at_ = locking::Instant::max();
};

}  // namespace fencepost::cli
