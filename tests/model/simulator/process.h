// The life of one worker process, and its machine's clocks: it runs, is stalled, dies, is started
// again. What is to happen inside it is put off while it is stalled, and never happens once it
// died.
#pragma once

#include <array>
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
    kLink,
    kChannels = kLink + locking::kMaxNodes
  };

  Process(Timeline& time, Random& random, int number)
      : index(number), time_(time), random_(random) {}

  const int index;
  int ppm = 0;
  Nanos boot_base{0};
  Nanos wall_offset{0};

  [[nodiscard]] bool alive() const { return alive_; }
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
    Nanos at = std::max(time_.now(), shown - Slew(shown, ppm) - microseconds(50));
    while (at + Slew(at, ppm) < shown) at += microseconds(1);
    return at;
  }

  void Later(Channel channel, Nanos delay, std::function<void()> run) {
    time_.In(delay, [this, channel, life = incarnation_, run = std::move(run)]() mutable {
      Happen(channel, life, std::move(run));
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
    std::array<std::deque<std::function<void()>>, kChannels> held;
    held.swap(held_);
    for (std::size_t left = held_count_; left > 0; --left) {
      auto channel = static_cast<std::size_t>(random_.Below(kChannels));
      while (held[channel].empty()) channel = (channel + 1) % kChannels;
      time_.In(Nanos(0), [this, channel, life = incarnation_,
                          run = std::move(held[channel].front())]() mutable {
        Happen(static_cast<Channel>(channel), life, std::move(run));
      });
      held[channel].pop_front();
    }
    held_count_ = 0;
  }
  void Die() {
    alive_ = paused_ = false;
    ++incarnation_;
    ++changes_;
    for (auto& channel : held_) channel.clear();
    held_count_ = 0;
  }

 private:
  void Happen(Channel channel, int life, std::function<void()> run) {
    if (life != incarnation_) return;
    if (!paused_) {
      run();
      return;
    }
    held_[channel].push_back(std::move(run));
    ++held_count_;
  }

  Timeline& time_;
  Random& random_;
  bool alive_ = false;
  bool paused_ = false;
  int incarnation_ = 0;
  int changes_ = 0;
  std::array<std::deque<std::function<void()>>, kChannels> held_;
  std::size_t held_count_ = 0;
};

}  // namespace fencepost::simulator
