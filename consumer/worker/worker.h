// One pipeline at work: its threads and how they are tied together.
//
//   Kafka thread (KafkaSource) → engine thread (Flow, locks, their nodes on one io_context)
//                              → handler threads (HandlerRunner) → engine thread
//                              → output thread (Writer) → engine thread → Kafka thread
//                              → dead letters' thread (DeadLetterPublisher) → engine thread
//
// They hand over values; no lock is shared but the queues' own. Start, RequestStop and the Status
// calls may come from any thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/pipeline/observer.h"
#include "consumer/pipeline/options.h"
#include "consumer/pipeline/status.h"
#include "locking/base/error.h"
#include "locking/core/observer.h"

namespace fencepost::consumer {

class Worker {
 public:
  Worker(PipelineOptions options, std::string name, locking::LockObserver* lock_observer,
         ConsumerObserver* observer);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Starts the threads. Error: a setting that librdkafka refuses, a file that cannot be read.
  tl::expected<void, Error> Start();
  // Drain, commit, release, leave the group; within shutdown_timeout. Again: at once.
  void RequestStop();
  // Called once, on a thread of the worker's, when the worker has come to its end by itself (a bad
  // record, a fatal Kafka error) and RequestStop should be called. Set before Start.
  void OnFailure(std::function<void()> callback);
  // From now on; calls that are out end as they began.
  void Tune(Tuning tuning);
  // Takes nothing new, until it is taken back; finishes what it has begun.
  void SetPaused(bool paused);
  // Blocks until everything has ended after RequestStop. The error that ended it, if one did.
  std::optional<Error> Join();

  // After RequestStop: the part whose end is waited for, with the oldest record that was in flight;
  // empty when all have ended.
  [[nodiscard]] std::string Ending() const;

  [[nodiscard]] WorkerStatus Status() const;
  // The engine has ticked within the last ten seconds, else why not. Nothing else: what a restart
  // does not fix (a service that is away, a record that waits) leaves a worker live.
  [[nodiscard]] std::pair<bool, std::string> Live() const;
  // Joined the group, a quorum of lock nodes, the output and the dead-letter topic take writes, not
  // draining; and all reasons (WorkerStatus::reasons), of which a ready worker may have remarks.
  [[nodiscard]] std::pair<bool, std::vector<Reason>> Ready() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fencepost::consumer
