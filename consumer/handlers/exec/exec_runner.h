// Runs records through N long-lived child processes, one record or batch at a time each, JSON lines
// both ways; README.md has the protocol. One thread of its own polls all pipes. A call's timeout
// counts from when a process has its record, or from its last heartbeat; the process that overruns
// it, or whose calls are cancelled, is killed with its group and started again. One that dies is
// started again after a wait of 100 ms, doubled up to 10 s until it has answered a record; if it
// never had one, the calls that wait are answered that nobody was reached. Stop closes the idle
// processes' stdin, gives them a second, and kills what is left.
#pragma once

#include <poll.h>

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "consumer/handlers/exec/exec_process.h"
#include "consumer/handlers/polling_runner.h"
#include "locking/base/wake_up.h"

namespace fencepost::consumer {

class ExecRunner final : public PollingRunner {
 public:
  // The longest wait before a process that has ended is started again.
  static constexpr Millis kMaxBackoff{10'000};
  ExecRunner(ExecHandlerOptions options, std::string pipeline, int concurrency,
             ConsumerObserver* observer, Answered answered);
  ~ExecRunner() override;

  // Waits until every process has been started once; an error ends them again.
  tl::expected<void, Error> Start() override;

 private:
  // A place for one process.
  struct Slot {
    std::unique_ptr<ExecProcess> process;  // nullptr: it waits for `start_at`
    std::optional<Out> work;
    Millis timeout{0};  // of `work`
    Clock::time_point deadline{};
    Millis backoff{0};
    Clock::time_point start_at{};
    bool answered = false;  // this process has answered a record
    std::string last_said;  // this process's last line on stderr
    // Its stdout is closed: it is about to end, or is taken for dead then.
    std::optional<Clock::time_point> gone_at;

    [[nodiscard]] bool free() const { return process && !work && !gone_at; }
  };

  void Wake() override;
  // The thread's own:
  bool CancelRunning(std::uint64_t id) override;
  void Run(std::promise<tl::expected<void, Error>> started);
  tl::expected<void, Error> StartAll();
  void StartDue(Clock::time_point now);
  void TellWaiting(const std::string& why);  // what is due now fails: no process could take it
  void HandOut();
  bool ReadyForRecord(Slot& slot);  // false: it has said something, and is no longer free
  void GiveTo(Slot& slot, CallBatch calls);
  void Poll();
  [[nodiscard]] int PollMillis(Clock::time_point now) const;
  void Serve(Slot& slot);
  std::string TakeStderr(ExecProcess& process);  // into the log; the last line
  bool TakeReplies(Slot& slot);                  // false: the process broke the protocol
  [[nodiscard]] tl::expected<std::vector<HandlerResult>, std::string> ResultsIn(
      const std::string& line, const CallBatch& calls) const;
  void EndOverdue(Clock::time_point now);
  static Out Ended(Slot& slot);  // its work, which it has no more
  void Died(Slot& slot, const std::string& how);
  void Broke(Slot& slot, const std::string& why);
  void BrokeUnasked(Slot& slot, std::size_t bytes);
  void Discard(Slot& slot);  // kills its process and makes room for the next at once
  void ScheduleRestart(Slot& slot, std::string_view what);
  void EndAll();
  [[nodiscard]] bool batches() const { return options_.batch.max_records > 1; }

  const ExecHandlerOptions options_;
  const std::string pipeline_;

  const WakeUp wake_up_;
  ExecProcess::Command command_;
  // The thread's own:
  std::vector<Slot> slots_;
  std::vector<std::unique_ptr<ExecProcess>> dying_;  // killed, not reaped yet
  std::vector<pollfd> polled_;
};

}  // namespace fencepost::consumer
