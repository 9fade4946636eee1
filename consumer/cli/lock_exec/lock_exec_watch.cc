#include "consumer/cli/lock_exec/lock_exec_watch.h"

#include <algorithm>
#include <csignal>
#include <stop_token>

#include <fmt/format.h>

#include "consumer/cli/shared/command.h"

namespace fencepost::cli {

using locking::BootClock;
using locking::Instant;
using locking::Millis;

constexpr Millis kAfterSigkill{200};  // what cannot be killed is asked again; its end wakes us

void Watch::UntilItEnds() {
  const std::stop_callback on_loss(of_.lease.stop_token(), [this] { of_.wake_up.Wake(); });
  for (;;) {
    switch (of_.child.Look()) {
      case ExecChild::Change::kEnded:
        lost_ = lost_ || !of_.lease.valid();
        // What is left of its group, after SIGKILL, is what could not be killed.
        refused_ = refused_ || (stopped() && !of_.child.Signal(0));
        return;
      case ExecChild::Change::kStopped:
        if (asked_to_stop_ || of_.child.has_terminal()) {
          StandStill();
          of_.child.GoOn();
        }
        continue;
      case ExecChild::Change::kWantsTerminal:
        WantsTerminal();
        continue;
      case ExecChild::Change::kNothing:
        break;
    }
    WarnIfUnsignalable();
    Enforce();
    Poll(of_.signals, of_.wake_up, NextLook());
    of_.wake_up.Taken();
    Forward();
  }
}

void Watch::Forward() {
  for (int signal = of_.signals.Take(); signal != 0; signal = of_.signals.Take()) {
    asked_to_stop_ = asked_to_stop_ || signal == SIGTSTP;
    if (signal != SIGCHLD) of_.child.Signal(signal);
    if (Ends(signal)) of_.child.Signal(SIGCONT);  // one that is stopped receives it, too
  }
}

bool Watch::StandStill() {
  asked_to_stop_ = false;
  const bool stopped = of_.child.StopWithIt();
  if (of_.lease.valid()) return stopped;
  lost_ = true;
  kill_at_ = Instant::min();
  of_.child.EndWithItsGroup();
  Kill();
  return stopped;
}

// It is stopped, since it asked for the terminal from the background.
void Watch::WantsTerminal() {
  // Where we are in the background, too, we stop as any program does there, until `fg`.
  if (of_.child.GiveTerminal() || StandStill()) return of_.child.GoOn();
  if (said_waits_) return;
  said_waits_ = true;
  PrintError(fmt::format(
      "{}: the command is stopped: it needs the terminal, which cannot be given to it; it "
      "keeps the lock until it gets SIGTERM; redirect its input: < FILE",
      of_.name));
}

void Watch::WarnIfUnsignalable() {
  if (warned_unsignalable_ || of_.child.Signal(0)) return;
  warned_unsignalable_ = true;
  PrintError(
      fmt::format("{}: the command runs as another user and cannot be signalled, so it will not be "
                  "stopped when the lock is lost; run `sudo fencepost lock exec ...` instead",
                  of_.name));
}

void Watch::Enforce() {
  const Instant now = BootClock::now();
  const Instant until = of_.lease.valid_until();
  if (until != Instant::min()) last_until_ = until;
  if (kill_at_ == Instant::max() && (until == Instant::min() || now >= until - of_.kill_after)) {
    lost_ = true;
    // Lost at once: no longer than it would have lasted.
    kill_at_ = std::min(last_until_, now + of_.kill_after);
    of_.child.EndWithItsGroup();
    refused_ = !of_.child.Signal(SIGTERM);
    of_.child.Signal(SIGCONT);
  }
  if (now >= kill_at_) Kill();
}

void Watch::Kill() {
  refused_ = !of_.child.Signal(SIGKILL);
  if (!refused_ || said_runs_on_) return;
  said_runs_on_ = true;
  PrintError(
      fmt::format("{}: the lock was lost, and the command runs on without it: it runs as another "
                  "user and cannot be killed from here",
                  of_.name));
}

Millis Watch::NextLook() const {
  const Instant now = BootClock::now();
  if (now >= kill_at_) return kAfterSigkill;
  const Instant next = kill_at_ != Instant::max() ? kill_at_ : last_until_ - of_.kill_after;
  return std::clamp(std::chrono::ceil<Millis>(next - now), Millis(1), Millis(60'000));
}

}  // namespace fencepost::cli
