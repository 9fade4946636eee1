// The life of one worker process, and its machine's clocks: it runs, is stalled, dies, is started
// again. What is to happen inside it is put off while it is stalled, and never happens once it
// died.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <utility>

#include "tests/model/simulator/sim_node.h"
#include "tests/model/simulator/timeline.h"

namespace fencepost::simulator {

class Process {
 public:
  // What comes by one channel keeps its order; between channels there is none after a pause.
  enum Channel : std::uint8_t {
    kTimer,
    kKafka,
    kOutput,
    kHandler,
    kLetters,
    kLink  // and the next ones: one a node
  };

  Process(Timeline& time, Random& random, int number)
      : index(number), time_(time), random_(random) {}

  const int index;
  int ppm = 0;
  Nanos boot_base{0};
  Nanos wall_offset{0};
  Nanos cut_off_until{0};    // from the output
  Nanos kafka_cut_until{0};  // from Kafka, too
  bool other_rule = false;   // id_content of its next life

  [[nodiscard]] bool alive() const { return alive_; }
  [[nodiscard]] bool CutOff() const { return time_.now() < cut_off_until; }
  [[nodiscard]] bool paused() const { return paused_; }
  [[nodiscard]] int incarnation() const { return incarnation_; }
  // Counts starts, pauses and deaths: whether it is still the same stop.
  [[nodiscard]] int changes() const { return changes_; }

  [[nodiscard]] locking::Now now() const {
    const Nanos now = time_.now();
    return {locking::Instant(boot_base + now + Slew(now, ppm)),
            kStart + std::chrono::floor<Millis>(now + Slew(now, ppm) + wall_offset)};
  }
  // When its BOOTTIME shows this; never before.
  [[nodiscard]] Nanos TrueTime(locking::Instant boot) const {
    if (boot <= now().boot) return time_.now();
    const Nanos shown = boot.time_since_epoch() - boot_base;
    const Nanos about = shown - Slew(shown, ppm);
    Nanos at = std::max(time_.now(), shown - Slew(about, ppm));
    while (at + Slew(at, ppm) < shown) at += microseconds(1);
    return at;
  }

  template <typename Run>
  void Later(Channel channel, Nanos delay, Run run) {
    time_.In(delay, [this, channel, life = incarnation_, run = std::move(run)]() mutable {
      if (life != incarnation_) return;
      if (!paused_) return static_cast<void>(run());
      held_.emplace_back(channel, std::move(run));
    });
  }

  void Start() {
    alive_ = true;
    ++changes_;
  }
  void Pause() {
    paused_ = true;
    ++changes_;
  }
  void Wake() {
    if (!std::exchange(paused_, false)) return;
    ++changes_;
    auto held = std::exchange(held_, {});
    while (!held.empty()) {
      const auto channel =
          held[static_cast<std::size_t>(random_.Below(static_cast<int>(held.size())))].first;
      const auto next = std::ranges::find(held, channel, &Held::first);
      Later(channel, Nanos(0), std::move(next->second));
      held.erase(next);
    }
  }
  void Die() {
    alive_ = paused_ = false;
    ++incarnation_;
    ++changes_;
    held_.clear();
  }

 private:
  using Held = std::pair<Channel, std::function<void()>>;

  Timeline& time_;
  Random& random_;
  bool alive_ = false;
  bool paused_ = false;
  int incarnation_ = 0;
  int changes_ = 0;
  std::deque<Held> held_;  // as it came
};

}  // namespace fencepost::simulator
