// Virtual time: what happens, in order of time, then of being scheduled. Nothing waits for real.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <queue>
#include <random>
#include <utility>
#include <vector>

#include "locking/base/types.h"

namespace fencepost::simulator {

using locking::Millis;
using locking::Nanos;
using std::chrono::microseconds;

// All chance of a run comes from here, so that a seed is the whole run.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t Bits() { return engine_(); }
  int Below(int limit) { return static_cast<int>(engine_() % static_cast<std::uint64_t>(limit)); }
  int Between(int low, int high) { return low + Below(high - low + 1); }
  bool Chance(int in_a_thousand) { return Below(1000) < in_a_thousand; }
  Nanos Time(Nanos low, Nanos high) {
    const auto span = static_cast<std::uint64_t>((high - low).count());
    return low + Nanos(static_cast<std::int64_t>(engine_() % (span + 1)));
  }

 private:
  std::mt19937_64 engine_;
};

class Timeline {
 public:
  [[nodiscard]] Nanos now() const { return now_; }

  template <typename Run>
  void At(Nanos when, Run run) {
    std::size_t place = runs_.size();
    if (free_.empty()) {
      runs_.emplace_back(std::move(run));
    } else {
      place = free_.back();
      free_.pop_back();
      runs_[place] = std::move(run);
    }
    events_.push({std::max(when, now_), next_++, place});
  }
  template <typename Run>
  void In(Nanos delay, Run run) {
    At(now_ + delay, std::move(run));
  }

  // False when nothing is left.
  bool Step() {
    if (events_.empty()) return false;
    const Event event = events_.top();
    events_.pop();
    now_ = event.when;
    const auto run = std::exchange(runs_[event.place], nullptr);
    free_.push_back(event.place);
    run();
    return true;
  }
  [[nodiscard]] std::uint64_t events() const { return next_; }

 private:
  struct Event {
    Nanos when;
    std::uint64_t order;
    std::size_t place;  // in runs_
    bool operator<(const Event& other) const {
      return when != other.when ? when > other.when : order > other.order;
    }
  };
  std::priority_queue<Event> events_;
  std::vector<std::function<void()>> runs_;
  std::vector<std::size_t> free_;
  Nanos now_{0};
  std::uint64_t next_ = 0;
};

}  // namespace fencepost::simulator
