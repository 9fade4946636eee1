// fencepost lock exec --redis A,B,C NAME -- COMMAND ARG...: runs a command while the lock is held.
//
// The command is stopped before the lease can be another's: when the lease was not extended and
// only --kill-after is left of it, SIGTERM; when it ends, by our own clock, SIGKILL. No node gives
// the name to another before that, unless this process stands still meanwhile (SIGSTOP, a suspended
// machine) or the command cannot be killed (uninterruptible sleep): there the token helps.
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "consumer/cli/command.h"
#include "consumer/cli/lock_exec_child.h"
#include "consumer/cli/lock_exec_signals.h"
#include "consumer/cli/shared/durations.h"
#include "consumer/cli/shared/lock_nodes.h"
#include "locking/quorum_lock.h"

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

// Wakes a poll() from another thread.
class Bell {
 public:
  Bell() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~Bell() { close(descriptor_); }
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;
  void Ring() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(descriptor_, &one, sizeof one);
  }
  void Quiet() const {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = read(descriptor_, &count, sizeof count);
  }
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

void Poll(const Signals& signals, const Bell& bell, Millis limit) {
  std::array<pollfd, 2> waiting{
      {{signals.descriptor(), POLLIN, 0}, {bell.descriptor(), POLLIN, 0}}};
  poll(waiting.data(), waiting.size(), static_cast<int>(limit.count()));
}

// --- getting the lock
// ------------------------------------------------------------------------------

int ExitFor(const Error& error) {
  if (error.code == "contended") return kContended;
  if (error.code == "bad_options") return kUsage;
  const bool by_clock = error.what.find("clock") != std::string::npos;
  return error.code == "refused" && !by_clock ? kUsage : kNoQuorum;
}

struct Failed {
  int code = 0;
  std::string line;
};

struct Attempt {
  QuorumLock::Result got;
  int stopped_by = 0;  // this signal
};

Attempt TryLock(QuorumLock& lock, const ExecArguments& arguments, Instant until,
                const Signals& signals) {
  const auto bell = std::make_shared<Bell>();
  const auto result = std::make_shared<std::optional<QuorumLock::Result>>();
  std::stop_source cancel;
  locking::AcquireOptions options;
  const auto left = std::chrono::duration_cast<Millis>(until - BootClock::now());
  options.wait = std::max(left, Millis(0));
  options.ttl = arguments.ttl;
  options.cancel = cancel.get_token();
  lock.AcquireAsync(arguments.name, options, [bell, result](QuorumLock::Result got) {
    result->emplace(std::move(got));
    bell->Ring();  // what was written before is seen by who hears it
  });
  int stopped_by = 0;
  for (std::uint64_t rung = 0;;) {
    Poll(signals, *bell, Millis(60'000));
    if (const int end = signals.HearWhileWaiting().end; end != 0) {
      stopped_by = end;
      cancel.request_stop();
    }
    if (read(bell->descriptor(), &rung, sizeof rung) == sizeof rung) break;
  }
  return {std::move(**result), stopped_by};
}

Failed WhyNot(const Error& error, const ExecArguments& arguments) {
  if (error.code == "done") {
    return {kOk, fmt::format("{} is done already ({}); the command was not run", arguments.name,
                             error.what)};
  }
  const std::string waited =
      error.code == "contended" ? fmt::format(" for {} ms", arguments.wait.count()) : "";
  return {ExitFor(error), fmt::format("{}{}", error.Line(), waited)};
}

// The lease, or how to end without one.
tl::expected<Lease, Failed> TakeLock(QuorumLock& lock, const ExecArguments& arguments,
                                     const Signals& signals) {
  const auto fail = [&](int code, std::string line) {
    return tl::unexpected(Failed{code, std::move(line)});
  };
  const auto stopped = [&](int signal) {
    return fail(128 + signal, "stopped before it had the lock");
  };
  const Instant begun = BootClock::now();
  Instant connected_by = begun + std::max(arguments.wait, kLeastConnect);
  for (;;) {
    const Instant asked = BootClock::now();
    const auto ready = lock.WaitReady(kSlice);
    if (ready) break;
    // SIGSTOP and a suspended machine tell us nothing.
    const bool stood_still = BootClock::now() - asked > kSlice + kStoodStill;
    const Signals::Heard heard = signals.HearWhileWaiting();
    if (heard.end != 0) return stopped(heard.end);
    // Nodes that were not there yet when we stood still get their time anew.
    if (heard.stopped || stood_still) {
      connected_by = std::max(connected_by, BootClock::now() + kLeastConnect);
    }
    if (BootClock::now() >= connected_by) return fail(kNoQuorum, ready.error().Line());
  }
  for (;;) {
    auto attempt = TryLock(lock, arguments, begun + arguments.wait, signals);
    if (attempt.stopped_by != 0) return stopped(attempt.stopped_by);
    if (!attempt.got) return tl::unexpected(WhyNot(attempt.got.error(), arguments));
    // Else it ran out while we stood still: asked for again, in what is left of the wait.
    if (attempt.got->valid()) return std::move(*attempt.got);
  }
}

// --- while it runs
// ---------------------------------------------------------------------------------

// Watches over the command until it has ended.
class Watch {
 public:
  Watch(ExecChild& child, const Lease& lease, const Signals& signals, Millis kill_after)
      : child_(child), lease_(lease), signals_(signals), kill_after_(kill_after) {}

  void UntilItEnds() {
    const std::stop_callback on_loss(lease_.stop_token(), [this] { bell_.Ring(); });
    for (;;) {
      switch (child_.Look()) {
        case ExecChild::Change::kEnded:
          lost_ = lost_ || !lease_.valid();
          return;
        case ExecChild::Change::kStopped:
          if (asked_to_stop_ || child_.has_terminal()) StandStill();
          continue;
        case ExecChild::Change::kNothing:
          break;
      }
      Enforce();
      Poll(signals_, bell_, NextLook());
      bell_.Quiet();
      for (int signal = signals_.Take(); signal != 0; signal = signals_.Take()) {
        asked_to_stop_ = asked_to_stop_ || signal == SIGTSTP;
        if (signal != SIGCHLD) child_.Signal(signal);
        if (Ends(signal)) child_.Signal(SIGCONT);  // one that stands still hears it, too
      }
    }
  }
  // The lease ended before the command did, or would have.
  [[nodiscard]] bool lost() const { return lost_; }
  [[nodiscard]] bool stopped() const { return kill_at_ != Instant::max(); }

 private:
  // Nothing is extended while we stand still. The command does, too.
  void StandStill() {
    asked_to_stop_ = false;
    child_.StopWithIt();
    if (lease_.valid()) return child_.GoOn();
    lost_ = true;
    kill_at_ = Instant::min();
    child_.EndWithItsGroup();
    child_.Signal(SIGKILL);
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
      child_.Signal(SIGTERM);
      child_.Signal(SIGCONT);
    }
    if (now >= kill_at_) child_.Signal(SIGKILL);
  }
  [[nodiscard]] Millis NextLook() const {
    const Instant next = kill_at_ != Instant::max() ? kill_at_ : last_until_ - kill_after_;
    const auto left = std::chrono::ceil<Millis>(next - BootClock::now());
    return std::clamp(left, Millis(1), Millis(60'000));
  }

  ExecChild& child_;
  const Lease& lease_;
  const Signals& signals_;
  const Millis kill_after_;
  Bell bell_;
  bool lost_ = false;
  bool asked_to_stop_ = false;
  Instant last_until_ = Instant::min();
  Instant kill_at_ = Instant::max();
};

int NotRun(const std::string& command, int why) {
  const bool missing = why == ENOENT;
  PrintError(fmt::format("{}: {}", command, missing ? "command not found" : std::strerror(why)));
  return missing ? kCommandNotFound : kNotExecutable;
}

int End(Lease& lease, const ExecArguments& arguments, const Watch& watch, int code) {
  if (watch.lost()) {
    PrintError(fmt::format("{}: the lock was lost{}", arguments.name,
                           watch.stopped()
                               ? "; the command was stopped"
                               : fmt::format(" while the command ran; it ended with {}", code)));
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
    PrintError(
        "lock exec: no command; write it behind --, as in `fencepost lock exec --redis A,B,C "
        "NAME -- COMMAND`");
    return kUsage;
  }
  auto nodes = ResolveLockNodes(arguments.nodes);
  if (!nodes) return kUsage;
  const Millis kill_after =
      arguments.kill_after >= Millis(0) ? arguments.kill_after : arguments.ttl / 5;
  if (kill_after > arguments.ttl / 2) {
    PrintError("lock exec: --kill-after is at most half of --ttl");
    return kUsage;
  }
  nodes->lock.ttl = arguments.ttl;
  // A lease must be worth more than the time that the command gets to end.
  nodes->lock.min_validity = std::max(std::min(nodes->lock.min_validity, arguments.ttl / 5),
                                      kill_after + arguments.ttl / 10);
  const Signals signals;
  auto lock = QuorumLock::Connect(
      {.redis = nodes->redis, .lock = nodes->lock, .name_space = arguments.name_space});
  if (!lock) {
    PrintError(lock.error().Line());
    return kUsage;
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
  Watch watch(*child, *lease, signals, kill_after);
  watch.UntilItEnds();
  return End(*lease, arguments, watch, child->code());
}

}  // namespace

void AddLock(CLI::App& app, Run& run, const std::vector<std::string>& command_words) {
  CLI::App* lock = app.add_subcommand("lock", "a lock for other programs: exec");
  lock->require_subcommand(1);
  const auto arguments = std::make_shared<ExecArguments>();
  CLI::App* exec = lock->add_subcommand("exec", "run a command while a lock is held");
  exec->footer(
      "COMMAND stands behind --. It gets FENCEPOST_TOKEN and FENCEPOST_LOCK in its environment, "
      "and\n"
      "the signals that this program gets. Exit code: the command's own (128+n for a signal, 127\n"
      "not found, 126 not executable); 75 another held the name until --wait ran out; 69 no "
      "quorum\n"
      "of lock nodes; 76 the lock was lost, and the command was stopped; 2 a wrong command line.");
  AddLockServerOptions(*exec, arguments->nodes);
  exec->add_option("NAME", arguments->name, "the lock's name")->required();
  exec->add_option("--namespace", arguments->name_space, "where the name stands; default");
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
