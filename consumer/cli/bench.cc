// fencepost bench locks: measured on the user's own servers.
#include "consumer/cli/bench.h"

#include <algorithm>
#include <asio/io_context.hpp>
#include <cstdio>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "consumer/cli/shared/command.h"
#include "locking/base/random.h"
#include "locking/core/lock/lock_core.h"
#include "locking/redis/engine/engine.h"

namespace fencepost::cli {
namespace {

using locking::BootClock;
using locking::Instant;
using locking::LockEvent;
using locking::Millis;

constexpr Millis kRemember{10'000};

class LockBench {
 public:
  LockBench(const LockNodes& nodes, int in_flight, bool done)
      : done_(done),
        locks_(static_cast<int>(nodes.redis.nodes.size()), nodes.lock,
               locking::StoreCreation::kNever, locking::RandomBits, nullptr),
        engine_(io_, locks_, nodes.redis, nodes.lock, nullptr, [this] { OnStep(); }),
        begun_(static_cast<std::size_t>(in_flight)) {
    engine_.Start();
  }

  bool WaitForQuorum(Millis limit) {
    const Instant end = BootClock::now() + limit;
    while (!locks_.Available() && BootClock::now() < end) RunFor(Millis(10));
    return locks_.Available();
  }

  LockBenchResult Run(double seconds) {
    const Instant start = BootClock::now();
    end_ = start + locking::Nanos(static_cast<std::int64_t>(seconds * 1e9));
    for (std::size_t slot = 0; slot < begun_.size(); ++slot) Begin(slot);
    while (BootClock::now() < end_) RunFor(Millis(20));
    const double took = std::chrono::duration<double>(BootClock::now() - start).count();
    std::sort(took_ms_.begin(), took_ms_.end());
    const auto at = [this](double q) {
      if (took_ms_.empty()) return 0.0;
      return static_cast<double>(
          took_ms_[static_cast<std::size_t>(q * static_cast<double>(took_ms_.size() - 1))]);
    };
    return {static_cast<double>(took_ms_.size()) / took, at(0.5), at(0.99), errors_};
  }

 private:
  void RunFor(Millis limit) {
    io_.run_for(limit);
    io_.restart();
  }

  void Begin(std::size_t slot) {
    const locking::Now now = locking::ReadClocks();
    begun_[slot] = now.boot;
    name_.clear();
    fmt::format_to(std::back_inserter(name_), "fencepost:{{bench}}:{:016x}-{}", run_, next_++);
    locks_.Acquire({.name = {name_.data(), name_.size()}, .cookie = slot, .wait = Millis(5000)},
                   now);
    engine_.Kick();
  }

  void OnStep() {
    while (!locks_.events().empty()) {
      events_.clear();
      events_.swap(locks_.events());
      const locking::Now now = locking::ReadClocks();
      for (const LockEvent& event : events_) OnEvent(event, now);
    }
  }

  void OnEvent(const LockEvent& event, locking::Now now) {
    switch (event.kind) {
      case LockEvent::Kind::kLeased:
        done_ ? locks_.Done(event.lock, 0, kRemember, now) : locks_.Release(event.lock, now);
        break;
      case LockEvent::Kind::kRoundFailed:
      case LockEvent::Kind::kAnswered:
        break;
      case LockEvent::Kind::kDone:
      case LockEvent::Kind::kGaveUp:
      case LockEvent::Kind::kLost:
        ++errors_;
        Begin(event.cookie);
        break;
      case LockEvent::Kind::kReleased:
      case LockEvent::Kind::kCompleted:
        took_ms_.push_back(
            std::chrono::duration<float, std::milli>(now.boot - begun_[event.cookie]).count());
        if (now.boot < end_) Begin(event.cookie);
        break;
    }
  }

  const bool done_;
  asio::io_context io_{1};
  locking::LockCore locks_;
  locking::RedisEngine engine_;
  std::vector<Instant> begun_;
  std::vector<LockEvent> events_;
  std::vector<float> took_ms_;
  fmt::memory_buffer name_;
  const std::uint64_t run_ = locking::RandomBits();
  std::uint64_t next_ = 0;
  std::uint64_t errors_ = 0;
  Instant end_;
};

struct BenchArguments {
  LockNodeArguments nodes;
  int in_flight = 256;
  double seconds = 5;
  bool done = false;
  bool json = false;
};

int Locks(const BenchArguments& arguments) {
  const auto nodes = ResolveLockNodes(arguments.nodes);
  if (!nodes) return kUsage;
  const LockBenchResult result =
      BenchLocks(*nodes, arguments.in_flight, arguments.seconds, arguments.done);
  if (result.cycles_per_s == 0) {
    return ExitFailed("no quorum of lock nodes with a lock store; see `fencepost locks status`");
  }
  const auto print = [&result](auto format) {
    fmt::print(fmt::runtime(format), result.cycles_per_s, result.p50_ms, result.p99_ms,
               result.errors);
  };
  print(arguments.json ? R"({{"cycles_per_s":{:.0f},"p50_ms":{:.3f},"p99_ms":{:.3f},"errors":{}}})"
                         "\n"
                       : "{:.0f} cycles/s, p50 {:.3f} ms, p99 {:.3f} ms, {} errors\n");
  return result.errors == 0 ? kOk : kFailed;
}

}  // namespace

LockBenchResult BenchLocks(const LockNodes& nodes, int in_flight, double seconds, bool done) {
  LockBench bench(nodes, in_flight, done);
  if (!bench.WaitForQuorum(Millis(5000))) return {.errors = 1};
  return bench.Run(seconds);
}

void AddBench(CLI::App& app, Run& run) {
  const auto arguments = std::make_shared<BenchArguments>();
  CLI::App* bench = app.add_subcommand("bench", "measure: locks");
  bench->require_subcommand(1);
  CLI::App* locks =
      bench->add_subcommand("locks", "acquire + release (or done) of a fresh name each");
  AddLockNodeOptions(*locks, arguments->nodes);
  locks->add_option("--in-flight", arguments->in_flight, "locks at a time")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  locks->add_option("--seconds", arguments->seconds, "how long")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  locks->add_flag("--done", arguments->done, "mark each name done instead of releasing it");
  locks->add_flag("--json", arguments->json, "one JSON object");
  locks->callback([&run, arguments] { run = [arguments] { return Locks(*arguments); }; });
}

}  // namespace fencepost::cli
