// A runner whose one thread polls many calls at a time (http, exec). Other threads only enqueue;
// what they ask reaches the thread in the order in which they asked, so a cancel that was meant for
// one call never meets a later one of the same id.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "consumer/handlers/runner.h"

namespace fencepost::consumer {

class PollingRunner : public HandlerRunner {
 public:
  PollingRunner(ConsumerObserver* observer, Answered answered);
  PollingRunner(const PollingRunner&) = delete;
  PollingRunner& operator=(const PollingRunner&) = delete;

  void Call(HandlerCall call) override { Put(std::move(call)); }
  void Cancel(std::uint64_t id) override { Put(CancelCall{id}); }
  void Stop() override;  // called by the destructors of those that derive from it

 protected:
  // Any thread: the poll of the runner's thread returns.
  virtual void Wake() = 0;
  // The thread's own: ends the call that is running and answers it; false: it is not running.
  virtual bool CancelRunning(std::uint64_t id) = 0;
  // The thread's own: what was asked for since the last time goes into waiting_, or is cancelled.
  void TakeCommands();
  [[nodiscard]] bool stopping() const;

  ConsumerObserver* const observer_;
  const Answered answered_;
  std::deque<HandlerCall> waiting_;  // the thread's own
  std::thread thread_;

 private:
  struct CancelCall {
    std::uint64_t id = 0;
  };
  using Command = std::variant<HandlerCall, CancelCall>;
  void Put(Command command);

  mutable std::mutex mutex_;
  bool stopping_ = false;          // guarded by mutex_: nothing is taken any more
  std::vector<Command> commands_;  // guarded by mutex_
};

}  // namespace fencepost::consumer
