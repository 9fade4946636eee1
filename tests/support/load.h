// Work that goes on coming while a test changes something.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "tests/support/pipeline_servers.h"

namespace fencepost::testing {

// On a thread of its own: the next step when the one before has taken effect.
class Load {
 public:
  Load(std::function<void()> step, std::function<bool()> took_effect)
      : step_(std::move(step)), took_effect_(std::move(took_effect)), thread_([this] { Run(); }) {}
  // Orders, a few at a time.
  Load(Orders& orders, const EffectsTable& table)
      : Load([&orders] { orders.Produce(20); },
             [&orders, &table] { return table.Count() == orders.unique(); }) {}
  ~Load() { Stop(); }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;
  void Stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }

 private:
  void Run() {
    while (!stop_) {
      step_();
      (void)WaitUntil(std::chrono::minutes(2), [&] { return stop_ || took_effect_(); });
    }
  }

  const std::function<void()> step_;
  const std::function<bool()> took_effect_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace fencepost::testing
