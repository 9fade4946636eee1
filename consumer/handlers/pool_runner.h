// Runs handlers that block (jq, and C++ handlers of programs that link the library) on a pool of
// threads, each with a Handler of its own. A call's timeout counts from when a thread has it; then,
// or when it is cancelled, its stop_token fires. The call is answered when its Handler has
// returned: a handler that heeds no stop holds its thread, and Stop waits for it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "consumer/handlers/handler.h"
#include "consumer/handlers/runner.h"

namespace fencepost::consumer {

class PoolRunner : public HandlerRunner {
 public:
  // Called once on each thread of the pool. Must not give nullptr.
  using Make = std::function<tl::expected<std::unique_ptr<Handler>, Error>()>;

  PoolRunner(Make make, int threads, ConsumerObserver* observer, Answered answered);
  ~PoolRunner() override;
  PoolRunner(const PoolRunner&) = delete;
  PoolRunner& operator=(const PoolRunner&) = delete;

  // Waits until each thread has its handler; the first error, if one has none.
  tl::expected<void, Error> Start() override;
  void Call(HandlerCall call) override;
  void Cancel(std::uint64_t id) override;
  void Withdraw(std::uint64_t id) override;
  void Stop() override;

 private:
  using Clock = std::chrono::steady_clock;
  enum class End : std::uint8_t { kByItself, kTimeout, kCancelled };
  struct Running {
    std::uint64_t id = 0;
    Clock::time_point deadline;
    std::stop_source stop;
    End end = End::kByItself;
  };

  void Work(std::optional<Running>& running);
  bool Forget(std::uint64_t id);  // a call that waits; under the lock
  void Answer(Handler& handler, const HandlerCall& call, std::optional<Running>& running);
  void WatchTimeouts();
  std::vector<std::stop_source> TakeOverdue(Clock::time_point now);  // holds mutex_

  const Make make_;
  const int count_;
  ConsumerObserver* const observer_;
  const Answered answered_;

  std::mutex mutex_;
  std::condition_variable work_;      // a call waits, or the end
  std::condition_variable timeouts_;  // a deadline is new, a thread is ready, or the end
  Clock::time_point watched_ = Clock::time_point::max();  // when the watch wakes by itself
  bool stopping_ = false;
  int ready_ = 0;
  std::optional<Error> error_;
  std::deque<HandlerCall> waiting_;
  std::vector<std::uint64_t> cancelled_;         // while they waited
  std::vector<std::optional<Running>> running_;  // one a thread

  std::vector<std::thread> threads_;
  std::thread watch_;
};

}  // namespace fencepost::consumer
