// A runner whose one thread polls many calls at a time (http, exec). Other threads only enqueue;
// what they ask reaches the thread in the order in which they asked, so a cancel that was meant for
// one call never meets a later one of the same id. A call of a batch that is out is cancelled when
// the batch ends, or at once where nobody waits for the others any more: until then the receiver
// may be at work on it.
#pragma once

#include <cstdint>
#include <mutex>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "consumer/handlers/batch_queue.h"
#include "consumer/handlers/runner.h"

namespace fencepost::consumer {

class PollingRunner : public HandlerRunner {
 public:
  PollingRunner(BatchQueue waiting, int concurrency, ConsumerObserver* observer, Answered answered);
  PollingRunner(const PollingRunner&) = delete;
  PollingRunner& operator=(const PollingRunner&) = delete;

  void Call(HandlerCall call) override { Put(std::move(call)); }
  void Cancel(std::uint64_t id) override { Put(CancelCall{id}); }
  void Withdraw(std::uint64_t id) override { Put(CancelCall{.id = id, .only_unsent = true}); }
  void Tune(int concurrency, double requests_a_second) override {
    Put(Tuned{concurrency, requests_a_second});
  }
  void Stop() override;  // called by the destructors of those that derive from it

 protected:
  using Clock = std::chrono::steady_clock;
  // Calls that went out together.
  struct Out {
    CallBatch calls;
    Clock::time_point since;
    std::vector<std::uint64_t> cancelled{};  // of the calls

    [[nodiscard]] bool Has(std::uint64_t id) const;
    [[nodiscard]] bool Cancelled(std::uint64_t id) const;
    [[nodiscard]] bool Abandoned() const { return cancelled.size() == calls.size(); }
  };
  static Instant Now() { return locking::ReadClocks().boot; }  // waiting_'s

  // Any thread: the poll of the runner's thread returns.
  virtual void Wake() = 0;
  // The thread's own: the call is one of a batch that is out, and has been noted as cancelled.
  // false: it is none.
  virtual bool CancelRunning(std::uint64_t id) = 0;
  // The thread's own: what was asked for since the last time goes into waiting_, or is cancelled.
  void TakeCommands();
  // The thread's own: a batch that may go out, if one is due; calls that are late are answered.
  CallBatch TakeDue();
  // The thread's own: answers the calls of a batch that has ended, each with its result; all with
  // the same failure, which is shared where they are several; those that were cancelled.
  void AnswerEach(Out out, std::vector<HandlerResult> results);
  void FailAll(Out out, HandlerFailure failure);
  // … and those that still count wait again.
  CallBatch TakeBack(Out out);
  [[nodiscard]] bool stopping() const;

  ConsumerObserver* const observer_;
  const Answered answered_;
  // The thread's own:
  BatchQueue waiting_;
  std::size_t concurrency_;
  std::thread thread_;

 private:
  struct CancelCall {
    std::uint64_t id = 0;
    bool only_unsent = false;
  };
  struct Tuned {
    int concurrency = 1;
    double requests_a_second = 0;
  };
  using Command = std::variant<HandlerCall, CancelCall, Tuned>;
  void Put(Command command);

  mutable std::mutex mutex_;
  bool stopping_ = false;          // guarded by mutex_: nothing is taken any more
  std::vector<Command> commands_;  // guarded by mutex_
};

}  // namespace fencepost::consumer
