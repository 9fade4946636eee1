// fencepost lock exec --redis A,B,C NAME -- COMMAND ARG...: runs a command while the lock is held.
//
// The command is stopped before the lease can be another's: when the lease was not extended and
// only --kill-after is left of it, SIGTERM; when it ends, by our own clock, SIGKILL. No node gives
// the name to another before that, unless this process is stalled meanwhile (SIGSTOP, a suspended
// machine) or the command cannot be killed (uninterruptible sleep, another user's): there the token
// helps.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "consumer/cli/lock_exec/lock_exec_child.h"
#include "consumer/cli/lock_exec/lock_exec_signals.h"
#include "consumer/cli/shared/command.h"
#include "consumer/cli/shared/lock_nodes.h"
#include "consumer/cli/shared/moments.h"
#include "locking/quorum_lock/quorum_lock.h"

namespace fencepost::cli {
namespace {

using locking::BootClock;
using locking::Instant;
using locking::Lease;
using locking::Millis;
using locking::QuorumLock;

constexpr Millis kLeastConnect{2'000};  // nodes are given that long, whatever --wait says
constexpr Millis kSlice{20};
constexpr Millis kStoodStill{1'000};  // more than a busy machine is late by
constexpr Millis kAfterSigkill{200};  // what cannot be killed is asked again; its end wakes us

struct ExecArguments {
  LockNodeArguments nodes;
  std::string name;
  std::string name_space = "default";
  Millis ttl{10'000};
  Millis wait{0};
  Millis kill_after{-1};  // a fifth of the ttl
  bool done = false;
  Millis remember{std::chrono::hours(24)};
  std::vector<std::string> command;
};

// --- getting the lock

struct Failed {
  int code = 0;
  std::string line;
};

Failed Stopped(int signal) { return {128 + signal, "stopped before it had the lock"}; }

Failed WhyNot(const Error& error, const ExecArguments& arguments) {
  if (error.code == "done") {
    return {kOk, fmt::format("{} is done already ({}); the command was not run", arguments.name,
                             error.what)};
  }
  const std::string waited =
      error.code == "contended" ? fmt::format("; waited {} ms", arguments.wait.count()) : "";
  return {ExitFor(error), fmt::format("{}{}", error.Line(), waited)};
}

tl::expected<Lease, Failed> TryLock(QuorumLock& lock, const ExecArguments& arguments, Instant until,
                                    const Signals& signals) {
  const auto result = std::make_shared<std::optional<QuorumLock::Result>>();
  std::stop_source cancel;
  locking::AcquireOptions options;
  const auto left = std::chrono::duration_cast<Millis>(until - BootClock::now());
  options.wait = std::max(left, Millis(0));
  options.ttl = arguments.ttl;
  options.cancel = cancel.get_token();
  lock.AcquireAsync(arguments.name, options,
                    [wake_up = signals.wake_up(), result](QuorumLock::Result got) {
                      result->emplace(std::move(got));
                      wake_up->Wake();  // what was written before is seen by who takes it
                    });
  int stopped_by = 0;
  do {
    signals.Poll(Millis(60'000));
    if (const int end = signals.DrainSignals().end; end != 0) {
      stopped_by = end;
      cancel.request_stop();
    }
  } while (!signals.wake_up()->Taken());
  if (stopped_by != 0) return tl::unexpected(Stopped(stopped_by));
  return std::move(**result).map_error(
      [&](const Error& error) { return WhyNot(error, arguments); });
}

// The lease, or how to end without one.
tl::expected<Lease, Failed> TakeLock(QuorumLock& lock, const ExecArguments& arguments,
                                     const Signals& signals) {
  const Instant begun = BootClock::now();
  Instant connected_by = begun + std::max(arguments.wait, kLeastConnect);
  for (;;) {
    const Instant asked = BootClock::now();
    const auto ready = lock.WaitReady(kSlice);
    if (ready) break;
    // SIGSTOP and a suspended machine tell us nothing.
    const bool stood_still = BootClock::now() - asked > kSlice + kStoodStill;
    const Signals::Received received = signals.DrainSignals();
    if (received.end != 0) return tl::unexpected(Stopped(received.end));
    // Nodes that were not there yet while we were stopped get their time again.
    if (received.stopped || stood_still) {
      connected_by = std::max(connected_by, BootClock::now() + kLeastConnect);
    }
    if (BootClock::now() >= connected_by) {
      return tl::unexpected(Failed{kNoQuorum, ready.error().Line()});
    }
  }
  for (;;) {
    auto lease = TryLock(lock, arguments, begun + arguments.wait, signals);
    // Else it ran out while we were stalled: asked for again, in what is left of the wait.
    if (!lease || lease->valid()) return lease;
  }
}

// --- the command

// Watches over the command until it has ended: it gets the signals that we get, stops and goes on
// with us, and ends before the lease can be another's.
class Watch {
 public:
  Watch(ExecChild& child, const Lease& lease, const Signals& signals, std::string name,
        Millis kill_after)
      : child_(child),
        lease_(lease),
        signals_(signals),
        name_(std::move(name)),
        kill_after_(kill_after) {}

  void UntilItEnds() {
    const std::stop_callback on_loss(lease_.stop_token(), [this] { signals_.wake_up()->Wake(); });
    for (;;) {
      switch (child_.Look()) {
        case ExecChild::Change::kEnded:
          lost_ = lost_ || !lease_.valid();
          // What is left of its group, after SIGKILL, is what could not be killed.
          refused_ = refused_ || (stopped() && !child_.Signal(0));
          return;
        case ExecChild::Change::kStopped:
          if (asked_to_stop_ || child_.has_terminal()) {
            StandStill();
            child_.GoOn();
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
      signals_.Poll(NextLook());
      signals_.wake_up()->Taken();
      Forward();
    }
  }

  // Afterwards.
  // The lease ended before the command did, or would have.
  [[nodiscard]] bool lost() const { return lost_; }
  // It got SIGTERM for that, or SIGKILL.
  [[nodiscard]] bool stopped() const { return kill_at_ != Instant::max(); }
  // And the kernel would not have it: it, or a part of it, is another user's.
  [[nodiscard]] bool refused() const { return refused_; }

 private:
  // Nothing is extended while this process is suspended. So is the command. Whether it was.
  bool StandStill() {
    asked_to_stop_ = false;
    const bool stopped = child_.StopWithIt();
    if (lease_.valid()) return stopped;
    lost_ = true;
    kill_at_ = Instant::min();
    child_.EndWithItsGroup();
    Kill();
    return stopped;
  }

  // It is stopped, since it asked for the terminal from the background.
  void WantsTerminal() {
    // Where we are in the background, too, we stop as any program does there, until `fg`.
    if (child_.GiveTerminal() || StandStill()) return child_.GoOn();
    if (said_waits_) return;
    said_waits_ = true;
    PrintError(fmt::format(
        "{}: the command is stopped: it needs the terminal, which cannot be given to it; it "
        "keeps the lock until it gets SIGTERM; redirect its input: < FILE",
        name_));
  }

  void Forward() {
    for (int signal = signals_.Take(); signal != 0; signal = signals_.Take()) {
      asked_to_stop_ = asked_to_stop_ || signal == SIGTSTP;
      if (signal != SIGCHLD) child_.Signal(signal);
      if (Ends(signal)) child_.Signal(SIGCONT);  // one that is stopped receives it, too
    }
  }

  void Enforce() {
    const Instant now = BootClock::now();
    const Instant until = lease_.valid_until();
    if (until != Instant::min()) last_until_ = until;
    if (kill_at_ == Instant::max() && (until == Instant::min() || now >= until - kill_after_)) {
      lost_ = true;
      // Lost at once: no longer than it would have lasted.
      kill_at_ = std::min(last_until_, now + kill_after_);
      child_.EndWithItsGroup();
      refused_ = !child_.Signal(SIGTERM);
      child_.Signal(SIGCONT);
    }
    if (now >= kill_at_) Kill();
  }

  void Kill() {
    refused_ = !child_.Signal(SIGKILL);
    if (!refused_ || said_runs_on_) return;
    said_runs_on_ = true;
    PrintError(
        fmt::format("{}: the lock was lost, and the command runs on without it: it runs as another "
                    "user and cannot be killed from here",
                    name_));
  }

  void WarnIfUnsignalable() {
    if (warned_unsignalable_ || child_.Signal(0)) return;
    warned_unsignalable_ = true;
    PrintError(fmt::format(
        "{}: the command runs as another user and cannot be signalled, so it will not be "
        "stopped when the lock is lost; run `sudo fencepost lock exec ...` instead",
        name_));
  }

  [[nodiscard]] Millis NextLook() const {
    const Instant now = BootClock::now();
    if (now >= kill_at_) return kAfterSigkill;
    const Instant next = kill_at_ != Instant::max() ? kill_at_ : last_until_ - kill_after_;
    return std::clamp(std::chrono::ceil<Millis>(next - now), Millis(1), Millis(60'000));
  }

  ExecChild& child_;
  const Lease& lease_;
  const Signals& signals_;
  const std::string name_;  // the lock's, for what is said
  const Millis kill_after_;
  bool lost_ = false;
  bool refused_ = false;
  bool warned_unsignalable_ = false;
  bool said_waits_ = false;
  bool said_runs_on_ = false;
  bool asked_to_stop_ = false;
  Instant last_until_ = Instant::min();
  Instant kill_at_ = Instant::max();
};

int NotRun(const std::string& command, const ExecChild::NotStarted& why) {
  if (!why.by_exec) {
    return ExitFailed(fmt::format("{}: not run: {}; raise the limits on processes and open files",
                                  command, std::strerror(why.error)));
  }
  const bool missing = why.error == ENOENT;
  PrintError(
      fmt::format("{}: {}", command, missing ? "command not found" : std::strerror(why.error)));
  return missing ? kCommandNotFound : kNotExecutable;
}

std::string HowItEnded(const Watch& watch, int code) {
  if (watch.refused()) {
    return fmt::format(
        "; not all of the command could be stopped, as it runs as another user; it ended with {}",
        code);
  }
  return watch.stopped() ? "; the command was stopped"
                         : fmt::format(" while the command ran; it ended with {}", code);
}

int End(Lease& lease, const ExecArguments& arguments, const Watch& watch, int code) {
  if (watch.lost()) {
    PrintError(fmt::format("{}: the lock was lost{}", arguments.name, HowItEnded(watch, code)));
    return kLockLost;
  }
  if (arguments.done && code == 0) {
    const auto marked = lease.Done(0, arguments.remember);
    if (marked) return code;
    PrintError(
        fmt::format("{}; the command ended with 0, but may be run again", marked.error().Line()));
    return kNoQuorum;
  }
  if (lease.Release() == locking::ReleaseOutcome::kUnknown) {
    PrintError(
        fmt::format("{}: too few lock nodes answered to give the lock back; it ends by "
                    "itself within {} ms",
                    arguments.name, arguments.ttl.count()));
  }
  return code;
}

int LockExec(const ExecArguments& arguments) {
  const std::vector<int> inherited = OpenDescriptors();
  if (arguments.command.empty()) {
    return ExitUsage(
        "lock exec: no command; write it behind --, as in `fencepost lock exec --redis A,B,C "
        "NAME -- COMMAND`");
  }
  auto nodes = ResolveLockNodes(arguments.nodes);
  if (!nodes) return kUsage;
  const Millis kill_after =
      arguments.kill_after >= Millis(0) ? arguments.kill_after : arguments.ttl / 5;
  if (kill_after > arguments.ttl / 2) {
    return ExitUsage("lock exec: --kill-after is at most half of --ttl");
  }
  nodes->lock.ttl = arguments.ttl;
  // A lease must be worth more than the time that the command gets to end.
  nodes->lock.min_validity = std::max(std::min(nodes->lock.min_validity, arguments.ttl / 5),
                                      kill_after + arguments.ttl / 10);
  const Signals signals;
  if (signals.error() != 0) {
    return ExitFailed(fmt::format("lock exec: {}; raise the limit on open files",
                                  std::strerror(signals.error())));
  }
  auto lock = QuorumLock::Connect(
      {.redis = nodes->redis, .lock = nodes->lock, .name_space = arguments.name_space});
  if (!lock) {
    PrintError(lock.error().Line());
    return ExitFor(lock.error());
  }
  auto lease = TakeLock(**lock, arguments, signals);
  if (!lease) {
    PrintError(lease.error().line);
    return lease.error().code;
  }
  auto child =
      ExecChild::Start({.command = arguments.command,
                        .environment = {fmt::format("FENCEPOST_TOKEN={}", lease->token().value()),
                                        "FENCEPOST_LOCK=" + arguments.name},
                        .descriptors = inherited,
                        .signal_mask = signals.before()});
  if (!child) {
    lease->Release();
    return NotRun(arguments.command.front(), child.error());
  }
  Watch watch(**child, *lease, signals, arguments.name, kill_after);
  watch.UntilItEnds();
  return End(*lease, arguments, watch, (*child)->code());
}

}  // namespace

void AddLock(CLI::App& app, Run& run, const std::vector<std::string>& command_words) {
  CLI::App* lock = app.add_subcommand("lock", "a lock for other programs: exec");
  lock->require_subcommand(1);
  const auto arguments = std::make_shared<ExecArguments>();
  CLI::App* exec = lock->add_subcommand("exec", "run a command while a lock is held");
  exec->footer(
      "COMMAND follows --. It gets FENCEPOST_TOKEN and FENCEPOST_LOCK in its environment, "
      "and\n"
      "the signals that this program gets. Exit code: the command's own (128+n for a signal, 127\n"
      "not found, 126 not executable); 75 another held the name until --wait ran out; 69 no "
      "quorum\n"
      "of lock nodes; 76 the lock was lost, and the command was stopped; 2 a wrong command line;\n"
      "1 too few processes or open files are allowed.");
  AddLockServerOptions(*exec, arguments->nodes);
  exec->add_option("NAME", arguments->name, "the lock's name")->required();
  exec->add_option("--namespace", arguments->name_space, "where the name is stored; default");
  AddDuration(*exec, "--ttl", arguments->ttl, "how long it lasts unless extended; 10s");
  AddDuration(*exec, "--wait", arguments->wait, "how long to wait for the lock; 0s");
  AddDuration(
      *exec, "--kill-after", arguments->kill_after,
      "SIGTERM comes that long before the lease ends, SIGKILL when it ends; a fifth of ttl");
  exec->add_flag("--done", arguments->done,
                 "mark the name done when the command exits 0; later it is not run, with exit 0");
  AddDuration(*exec, "--remember", arguments->remember, "how long --done is remembered; 24h");
  exec->callback([&run, arguments, &command_words] {
    arguments->command = command_words;
    run = [arguments] { return LockExec(*arguments); };
  });
}

}  // namespace fencepost::cli
