#include "consumer/cli/bench_locks.h"

#include <algorithm>
#include <asio/io_context.hpp>
#include <cmath>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "locking/base/random.h"
#include "locking/core/groups/lock_groups.h"
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
      : nodes_(nodes),
        done_(done),
        locks_(locking::SizesOf(nodes.groups), nodes.lock, locking::StoreCreation::kNever,
               locking::RandomBits, nullptr),
        begun_(static_cast<std::size_t>(in_flight)) {
    for (int group = 0; group < locks_.size(); ++group) {
      engines_.push_back(std::make_unique<locking::RedisEngine>(
          io_, locks_.core(group), nodes_.groups[static_cast<std::size_t>(group)], nodes_.lock,
          nullptr, [this] { OnStep(); }));
      engines_.back()->Start();
    }
  }

  bool WaitForQuorum(Millis limit) {
    const Instant end = BootClock::now() + limit;
    while (!Available() && BootClock::now() < end) RunFor(Millis(10));
    return Available();
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
  [[nodiscard]] bool Available() const {
    for (int group = 0; group < locks_.size(); ++group) {
      if (!locks_.core(group).Available()) return false;
    }
    return true;
  }

  void RunFor(Millis limit) {
    io_.run_for(limit);
    io_.restart();
  }

  void Begin(std::size_t slot) {
    const locking::Now now = locking::ReadClocks();
    begun_[slot] = now.boot;
    name_.clear();
    fmt::format_to(std::back_inserter(name_), "fencepost:{{bench}}:{:016x}-{}", run_, next_++);
    const locking::LockId lock = locks_.Acquire(
        {.name = {name_.data(), name_.size()}, .cookie = slot, .wait = Millis(5000)}, now);
    engines_[lock.group]->Kick();
  }

  void OnStep() {
    while (locks_.TakeEvents(events_)) {
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

  const LockNodes nodes_;
  const bool done_;
  asio::io_context io_{1};
  locking::LockGroups locks_;
  std::vector<std::unique_ptr<locking::RedisEngine>> engines_;
  std::vector<Instant> begun_;
  std::vector<LockEvent> events_;
  std::vector<float> took_ms_;
  fmt::memory_buffer name_;
  const std::uint64_t run_ = locking::RandomBits();
  std::uint64_t next_ = 0;
  std::uint64_t errors_ = 0;
  Instant end_;
};

}  // namespace

LockBenchResult BenchLocks(const LockNodes& nodes, int in_flight, double seconds, bool done) {
  LockBench bench(nodes, in_flight, done);
  if (!bench.WaitForQuorum(Millis(5000))) return {.errors = 1};
  return bench.Run(seconds);
}

}  // namespace fencepost::cli
