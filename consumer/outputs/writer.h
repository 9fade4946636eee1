// Runs an Output on a thread of its own: takes batches in order, writes each until its outcome is
// known, and hands them back; lookups in the ledger go before writes. A batch is never given up
// while the writer runs: a database that is away, full, or refuses is waited for, with back-off,
// and said once in a while in one line.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "consumer/flow/flow.h"
#include "consumer/observer.h"
#include "consumer/outputs/output.h"

namespace fencepost::consumer {

class Writer {
 public:
  // All are called on the writer's thread.
  using Written = std::function<void(std::unique_ptr<WriteBatch>, std::vector<WriteOutcome>)>;
  using LookedUp =
      std::function<void(std::unique_ptr<LookupBatch>, std::vector<std::optional<LedgerEntry>>)>;
  using State = std::function<void(bool up, std::string reason)>;
  using Fatal = std::function<void(Error error)>;  // it can never write again; nothing follows

  struct Callbacks {
    Written written;
    LookedUp looked_up;
    State state;
    Fatal fatal;
  };

  Writer(std::unique_ptr<Output> output, std::optional<std::chrono::seconds> keep,
         ConsumerObserver* observer, Callbacks callbacks);
  ~Writer();  // Stop and join
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void Start();
  void Write(std::unique_ptr<WriteBatch> batch);     // any thread
  void LookUp(std::unique_ptr<LookupBatch> lookup);  // any thread
  // Interrupts what blocks; batches without an outcome are dropped (their offsets did not move).
  void Stop();
  void Interrupt();  // as Stop, without waiting for the thread

 private:
  void Run();
  bool PrepareUntilUp();
  void WriteUntilKnown(std::unique_ptr<WriteBatch> batch);
  void LookUpUntilKnown(std::unique_ptr<LookupBatch> lookup);
  // Whether to try again, after a wait that grows.
  bool Again(const OutputError& error, std::chrono::milliseconds& wait);
  bool WaitUnlessStopped(std::chrono::milliseconds wait);
  void Tell(bool up, const std::string& reason);
  void PruneIfDue();

  std::unique_ptr<Output> output_;
  const std::optional<std::chrono::seconds> keep_;
  ConsumerObserver* const observer_;
  const Callbacks callbacks_;
  std::optional<bool> up_;
  std::chrono::steady_clock::time_point prune_at_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<WriteBatch>> batches_;   // guarded by mutex_
  std::deque<std::unique_ptr<LookupBatch>> lookups_;  // guarded by mutex_
  bool stopping_ = false;                             // guarded by mutex_
  std::thread thread_;
};

}  // namespace fencepost::consumer
