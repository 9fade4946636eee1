// The inside of Worker: its threads' shared state and what they do. Included by worker.cc only.
#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

#include "consumer/handlers/runner.h"
#include "consumer/kafka/client/group_lag.h"
#include "consumer/kafka/client/settings.h"
#include "consumer/kafka/source/source.h"
#include "consumer/outputs/writer.h"
#include "consumer/worker/memory_engine.h"
#include "consumer/worker/worker.h"
#include "consumer/worker/worker_core.h"
#include "consumer/worker/worker_parts.h"
#include "locking/base/random.h"
#include "locking/redis/engine/engine.h"

namespace fencepost::consumer {

using locking::BootClock;
using locking::ReadClocks;
using locking::Severity;

inline constexpr Millis kWorkerTick{1000};

struct Worker::Impl : SourceSink {
  Impl(PipelineOptions opts, std::string worker_name, locking::LockObserver* lock_obs,
       ConsumerObserver* obs)
      : options(std::move(opts)),
        name(std::move(worker_name)),
        lock_observer(lock_obs),
        observer(obs),
        timer(io),
        core(WorkerCoreOptionsOf(options), locking::RandomBits, lock_observer, observer),
        source(options.kafka, ClientIdOf({name, options.observe.advertise}), this, observer,
               SourceExtrasOf(options, name)),
        handler(MakeHandlerRunner(options.handler, options.name, options.processing.concurrency,
                                  observer,
                                  [this](HandlerAnswer answer) { TakeAnswer(std::move(answer)); })),
        dead_letters(MakeDeadLetterPublisher(
            options, observer,
            [this](DeadLetterPublisher::Ids published, DeadLetterPublisher::Ids refused) {
              Tell(&WorkerCore::OnDeadLettered, std::move(published), std::move(refused));
            },
            [this](bool up, std::string reason) {
              SetPart(&WorkerCore::OnDeadLetterState, StateOf(up, std::move(reason)));
            })),
        writer(
            MakeOutput(options, name,
                       [this](AssignmentEpoch epoch) { return source.MetadataOf(epoch); }),
            PruneScopeOf(options), observer,
            {.written =
                 [this](auto batch, auto outcomes) {
                   Tell(&WorkerCore::OnWritten, std::move(batch), std::move(outcomes));
                 },
             .looked_up =
                 [this](auto batch, auto entries) {
                   Tell(&WorkerCore::OnLookedUp, std::move(*batch), std::move(entries));
                 },
             .state =
                 [this](bool up, std::string reason) {
                   SetPart(&WorkerCore::OnOutputState, StateOf(up, std::move(reason)));
                 },
             .fatal = [this](Error error) { Tell(&WorkerCore::OnOutputFailed, std::move(error)); },
             .held =
                 [this](std::string reason) {
                   SetPart(&WorkerCore::OnDeadLetterState, StateOf(true, std::move(reason)));
                 }},
            options.max_consecutive()) {
    const auto step = [this] { Step(); };
    if (options.lock.redis.nodes.front() == kMemoryNode) {
      memory_engine.emplace(io, core.locks(), options.lock.lock, step);
    } else {
      engine.emplace(io, core.locks(), options.lock.redis, options.lock.lock, lock_observer, step);
    }
    latest.reason = "starting";
    latest.reasons = core.reasons();
  }

  // --- engine thread -------------------------------------------------------------------------

  // After every input: the lock's events into the core, the core's actions out.
  void Step() {
    core.OnLockEvents(ReadClocks());
    Act();
  }

  void Act() {
    WorkerActions actions = core.TakeActions();
    if (!actions.pause.empty()) source.Pause(std::move(actions.pause), actions.epoch);
    if (!actions.resume.empty()) source.Resume(std::move(actions.resume), actions.epoch);
    if (!actions.commit.empty()) source.Commit(std::move(actions.commit));
    if (actions.room) source.OnRoom();
    for (auto& lookup : actions.lookups) writer.LookUp(std::move(lookup));
    for (auto& call : actions.calls) handler->Call(std::move(call));
    for (const std::uint64_t call : actions.cancels) handler->Cancel(call);
    for (const std::uint64_t call : actions.withdraws) handler->Withdraw(call);
    for (auto& batch : actions.writes) writer.Write(std::move(batch));
    if (!actions.dead_letters.empty()) dead_letters->Publish(std::move(actions.dead_letters));
    if (!actions.dropped_letters.empty()) dead_letters->Drop(std::move(actions.dropped_letters));
    if (actions.prunable) writer.SetPrunable(std::move(*actions.prunable));
    if (actions.drained && drained) {
      drained->set_value(std::move(*actions.drained));
      drained.reset();
    }
    if (actions.failure) {
      {
        const std::lock_guard lock(mutex);
        failure = std::move(actions.failure);
      }
      if (on_failure) on_failure();
    }
    engine ? engine->Kick() : memory_engine->Kick();
    Arm();
  }

  void Arm() {
    const auto now = BootClock::now();
    const auto next = std::clamp<locking::Instant>(core.NextTime(), now, now + kWorkerTick);
    if (armed_for <= next && armed_for > now) return;
    armed_for = next;
    timer.expires_after(next - now);
    timer.async_wait([this](asio::error_code error) {
      if (error) return;
      armed_for = locking::Instant::min();
      last_tick.store(BootClock::now().time_since_epoch().count(), std::memory_order_relaxed);
      TellNodesAway();
      core.OnTime(ReadClocks());
      UpdateStatus();
      Act();
    });
  }

  // --- any thread ----------------------------------------------------------------------------

  template <typename Step>
  void Post(Step step) {
    asio::post(io, std::move(step));
  }
  template <typename Input>
  void Tell(Input input) {
    Post([this, input = std::move(input)]() mutable {
      input(ReadClocks());
      Act();
    });
  }
  // An input of the core; one that takes the time gets it last.
  template <typename... Of, typename... Args>
  void Tell(void (WorkerCore::*input)(Of...), Args... args) {
    Tell([this, input, ... args = std::move(args)](locking::Now now) mutable {
      if constexpr (sizeof...(Of) > sizeof...(Args)) {
        (core.*input)(std::move(args)..., now);
      } else {
        (core.*input)(std::move(args)...);
      }
    });
  }

  // Those that come while one waits for the engine are one input with it.
  void TakeAnswer(HandlerAnswer answer) {
    {
      const std::lock_guard lock(answers_mutex);
      answers.push_back(std::move(answer));
      if (answers.size() > 1) return;
    }
    Tell([this](locking::Now now) {
      std::vector<HandlerAnswer> taken;
      {
        const std::lock_guard lock(answers_mutex);
        taken.swap(answers);
      }
      for (HandlerAnswer& each : taken) core.OnHandled(std::move(each), now);
    });
  }

  // --- Kafka thread --------------------------------------------------------------------------

  void OnClusterId(std::string cluster_id) override {
    Tell(&WorkerCore::OnClusterId, std::move(cluster_id));
  }
  void OnAssigned(std::vector<AssignedPartition> partitions, std::size_t late) override {
    Tell(&WorkerCore::OnAssigned, std::move(partitions), late, core.credit().SendAssignment());
  }
  std::vector<PartitionOffset> OnRevoked(std::vector<PartitionIndex> partitions, bool lost,
                                         const std::function<void()>& meanwhile) override {
    std::promise<std::vector<PartitionOffset>> promise;
    auto answer = promise.get_future();
    Tell([this, promise = std::move(promise), partitions = std::move(partitions),
          lost](locking::Now now) mutable {
      drained = std::move(promise);
      core.OnRevoked(partitions, lost, now);
    });
    while (meanwhile && answer.wait_for(Millis(10)) != std::future_status::ready) meanwhile();
    return answer.get();
  }
  void OnDrainAwaited(bool lost) override { Tell(&WorkerCore::OnDrainAwaited, lost); }
  void OnRecords(std::vector<Record> records) override {
    const DeliveryCredit::Load load = core.credit().Send(records);
    Tell(&WorkerCore::OnRecords, std::move(records), load);
  }
  std::size_t Room() override { return core.credit().RecordsOrAwait(); }
  std::uint64_t RoomBytes() override { return core.credit().Bytes(); }
  void OnPartitionEnd(std::vector<PartitionEnd> ends) override {
    Tell(&WorkerCore::OnPartitionEnd, std::move(ends));
  }
  void OnHighWatermark(std::vector<PartitionEnd> ends) override {
    Tell(&WorkerCore::OnHighWatermark, std::move(ends));
  }
  void OnCommitted(std::vector<PartitionOffset> offsets,
                   std::optional<locking::Instant> sent) override {
    Tell(&WorkerCore::OnCommitted, std::move(offsets), sent);
  }
  void OnKafkaState(PartState state) override {
    SetPart(&WorkerCore::OnKafkaState, std::move(state));
  }
  void OnFatal(Error error) override { Tell(&WorkerCore::OnSourceFailed, std::move(error)); }

  // --- the end -----------------------------------------------------------------------------------

  // On a thread of its own, since each step waits for the one before.
  void Shutdown();
  void AwaitLastMarks();
  bool QuietNow();

  // --- status ------------------------------------------------------------------------------------

  static PartState StateOf(bool up, std::string reason) {
    return {up ? PartPhase::kUp : PartPhase::kDown, std::move(reason)};
  }
  // `input`: of the core, what a part says of itself. Any thread.
  void SetPart(void (WorkerCore::*input)(PartState, locking::Now), PartState state);
  void TellNodesAway();
  void UpdateStatus();
  void FillNodes(WorkerStatus& fresh, locking::Now now);
  [[nodiscard]] const locking::NodeUnavailable& Away(int node) const;
  [[nodiscard]] std::string Refuses(int node) const { return engine ? engine->Refuses(node) : ""; }

  const PipelineOptions options;
  const std::string name;
  locking::LockObserver* const lock_observer;
  ConsumerObserver* const observer;

  asio::io_context io{1};
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work{
      asio::make_work_guard(io)};
  asio::steady_timer timer;
  locking::Instant armed_for = locking::Instant::min();
  WorkerCore core;
  std::optional<locking::RedisEngine> engine;
  std::optional<MemoryEngine> memory_engine;                          // or this one
  std::optional<std::promise<std::vector<PartitionOffset>>> drained;  // of OnRevoked

  std::atomic<std::int64_t> last_tick{0};
  std::atomic<int> stop_requests{0};
  std::atomic<const char*> ending{""};  // what Shutdown waits for
  const locking::Instant started_at = BootClock::now();

  std::mutex answers_mutex;
  std::vector<HandlerAnswer> answers;  // guarded by answers_mutex

  mutable std::mutex mutex;
  std::optional<Error> failure;  // guarded by mutex
  WorkerStatus latest;           // guarded by mutex
  std::string drained_last;      // guarded by mutex; oldest record seen in the drain
  std::function<void()> on_failure;

  KafkaSource source;
  const std::unique_ptr<HandlerRunner> handler;             // nullptr: none
  const std::unique_ptr<DeadLetterPublisher> dead_letters;  // nullptr: none, or in the transaction
  Writer writer;
  std::optional<GroupLag> group_lag;
  std::thread engine_thread;
  std::thread shutdown_thread;
};

}  // namespace fencepost::consumer
