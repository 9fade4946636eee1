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
#include "consumer/cli/lock_exec/lock_exec_exit.h"
#include "consumer/cli/lock_exec/lock_exec_launch.h"
#include "consumer/cli/lock_exec/lock_exec_signals.h"
#include "consumer/cli/lock_exec/lock_exec_watch.h"
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

// What tells us that something happened.
struct EventSources {
  Signals signals;
  std::shared_ptr<const WakeUp> wake_up = std::make_shared<const WakeUp>();

  [[nodiscard]] int error() const {
    return signals.error() != 0 ? signals.error() : wake_up->error();
  }
};

struct Attempt {
  QuorumLock::Result got;
  int stopped_by = 0;  // this signal
};

Attempt TryLock(QuorumLock& lock, const ExecArguments& arguments, Instant until,
                const EventSources& sources) {
  const auto result = std::make_shared<std::optional<QuorumLock::Result>>();
  std::stop_source cancel;
  locking::AcquireOptions options;
  const auto left = std::chrono::duration_cast<Millis>(until - BootClock::now());
  options.wait = std::max(left, Millis(0));
  options.ttl = arguments.ttl;
  options.cancel = cancel.get_token();
  lock.AcquireAsync(arguments.name, options,
                    [wake_up = sources.wake_up, result](QuorumLock::Result got) {
                      result->emplace(std::move(got));
                      wake_up->Wake();  // what was written before is seen by who takes it
                    });
  int stopped_by = 0;
  do {
    Poll(sources.signals, *sources.wake_up, Millis(60'000));
    if (const int end = sources.signals.DrainSignals().end; end != 0) {
      stopped_by = end;
      cancel.request_stop();
    }
  } while (!sources.wake_up->Taken());
  return {std::move(**result), stopped_by};
}

Failed WhyNot(const Error& error, const ExecArguments& arguments) {
  if (error.code == "done") {
    return {kOk, fmt::format("{} is done already ({}); the command was not run", arguments.name,
                             error.what)};
  }
  const std::string waited =
      error.code == "contended" ? fmt::format("; waited {} ms", arguments.wait.count()) : "";
  return {ExitFor(error), fmt::format("{}{}", error.Line(), waited)};
}

// The lease, or how to end without one.
tl::expected<Lease, Failed> TakeLock(QuorumLock& lock, const ExecArguments& arguments,
                                     const EventSources& sources) {
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
    const Signals::Received received = sources.signals.DrainSignals();
    if (received.end != 0) return stopped(received.end);
    // Nodes that were not there yet while we were stopped get their time again.
    if (received.stopped || stood_still) {
      connected_by = std::max(connected_by, BootClock::now() + kLeastConnect);
    }
    if (BootClock::now() >= connected_by) return fail(kNoQuorum, ready.error().Line());
  }
  for (;;) {
    auto attempt = TryLock(lock, arguments, begun + arguments.wait, sources);
    if (attempt.stopped_by != 0) return stopped(attempt.stopped_by);
    if (!attempt.got) return tl::unexpected(WhyNot(attempt.got.error(), arguments));
    // Else it ran out while we were stalled: asked for again, in what is left of the wait.
    if (attempt.got->valid()) return std::move(*attempt.got);
  }
}

// --- the command

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
  const EventSources sources;
  if (sources.error() != 0) {
    return ExitFailed(fmt::format("lock exec: {}; raise the limit on open files",
                                  std::strerror(sources.error())));
  }
  auto lock = QuorumLock::Connect(
      {.redis = nodes->redis, .lock = nodes->lock, .name_space = arguments.name_space});
  if (!lock) {
    PrintError(lock.error().Line());
    return ExitFor(lock.error());
  }
  auto lease = TakeLock(**lock, arguments, sources);
  if (!lease) {
    PrintError(lease.error().line);
    return lease.error().code;
  }
  auto child =
      ExecChild::Start({.command = arguments.command,
                        .environment = {fmt::format("FENCEPOST_TOKEN={}", lease->token().value()),
                                        "FENCEPOST_LOCK=" + arguments.name},
                        .descriptors = inherited,
                        .signal_mask = sources.signals.before()});
  if (!child) {
    lease->Release();
    return NotRun(arguments.command.front(), child.error());
  }
  Watch watch({.child = **child,
               .lease = *lease,
               .signals = sources.signals,
               .wake_up = *sources.wake_up,
               .name = arguments.name,
               .kill_after = kill_after});
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
