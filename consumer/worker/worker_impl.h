// The inside of Worker: its threads' shared state and what they do. Included by worker*.cc only.
#pragma once

#include <atomic>
#include <condition_variable>
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

#include "consumer/flow/flow.h"
#include "consumer/handlers/runner.h"
#include "consumer/kafka/source/source.h"
#include "consumer/outputs/writer.h"
#include "consumer/worker/make_handler.h"
#include "consumer/worker/worker.h"
#include "consumer/worker/worker_parts.h"
#include "locking/base/random.h"
#include "locking/redis/engine/engine.h"

namespace fencepost::consumer {

using locking::BootClock;
using locking::ReadClocks;
using locking::Severity;

inline constexpr Millis kWorkerTick{1000};
// How long the last DONE and release calls may take at the end.
inline constexpr Millis kLastMarksLimit{1000};
inline constexpr Millis kLastMarksHurried{200};

struct Worker::Impl : SourceSink {
  Impl(PipelineOptions opts, std::string worker_name, locking::LockObserver* lock_obs,
       ConsumerObserver* obs)
      : options(std::move(opts)),
        name(std::move(worker_name)),
        lock_observer(lock_obs),
        observer(obs),
        timer(io),
        core(static_cast<int>(options.lock.redis.nodes.size()), options.lock.lock,
             locking::StoreCreation::kQuarantined, locking::RandomBits, lock_observer),
        engine(io, core, options.lock.redis, options.lock.lock, lock_observer, [this] { Step(); }),
        flow(FlowOptionsOf(options), &core, locking::RandomBits, observer),
        source(options.kafka, "fencepost-" + name, this, observer, SourceExtrasOf(options, name)),
        handler(MakeHandlerRunner(options.handler, options.name, options.processing.concurrency,
                                  observer,
                                  [this](HandlerAnswer answer) { OnHandled(std::move(answer)); })),
        dead_letters(MakeDeadLetters(
            options, observer,
            [this](DeadLetters::Ids published, DeadLetters::Ids refused) {
              OnDeadLettered(std::move(published), std::move(refused));
            },
            [this](bool up, std::string reason) { OnDeadLetterState(up, std::move(reason)); })),
        writer(
            MakeOutput(options, name,
                       [this](AssignmentEpoch epoch) { return source.MetadataOf(epoch); }),
            PruneScopeOf(options), observer,
            {.written = [this](auto batch,
                               auto outcomes) { OnWritten(std::move(batch), std::move(outcomes)); },
             .looked_up = [this](
                              auto batch,
                              auto entries) { OnLookedUp(std::move(batch), std::move(entries)); },
             .state = [this](bool up,
                             std::string reason) { SetPart(output_state, up, std::move(reason)); },
             .fatal = [this](Error error) { OnOutputFatal(std::move(error)); }},
            options.max_consecutive()) {
    latest.reason = "starting";
    latest.reasons = {latest.reason};
  }

  // --- engine thread -------------------------------------------------------------------------

  // After every input: the lock's events into the flow, the flow's actions out.
  void Step() {
    flow.OnLockEvents(ReadClocks());
    Act();
  }

  void Act() {
    FlowActions actions = std::exchange(flow.actions(), FlowActions());
    if (!actions.pause.empty()) source.Pause(std::move(actions.pause));
    if (!actions.resume.empty()) source.Resume(std::move(actions.resume));
    if (!actions.commit.empty()) source.Commit(std::move(actions.commit));
    for (auto& lookup : actions.lookups) writer.LookUp(std::move(lookup));
    for (auto& call : actions.calls) handler->Call(std::move(call));
    for (const std::uint64_t call : actions.cancels) handler->Cancel(call);
    for (auto& batch : actions.writes) writer.Write(std::move(batch));
    if (!actions.dead_letters.empty()) dead_letters->Publish(std::move(actions.dead_letters));
    if (!actions.dropped_letters.empty()) dead_letters->Drop(std::move(actions.dropped_letters));
    if (actions.prunable) writer.SetPrunable(std::move(*actions.prunable));
    if (actions.drained && drained) {
      std::exchange(drained, nullptr)->set_value(std::move(*actions.drained));
    }
    if (actions.stop) Fail(std::move(*actions.stop));
    TellRoom();
    engine.Kick();
    Arm();
  }

  void TellRoom() {
    room.store(static_cast<std::int64_t>(flow.Room()), std::memory_order_relaxed);
    room_bytes.store(static_cast<std::int64_t>(flow.RoomBytes()), std::memory_order_relaxed);
  }

  void Arm() {
    const auto now = BootClock::now();
    const auto next = std::clamp<locking::Instant>(flow.NextTime(), now, now + kWorkerTick);
    if (armed_for <= next && armed_for > now) return;
    armed_for = next;
    timer.expires_after(next - now);
    timer.async_wait([this](asio::error_code error) {
      if (error) return;
      armed_for = locking::Instant::min();
      last_tick.store(BootClock::now().time_since_epoch().count(), std::memory_order_relaxed);
      flow.OnTime(ReadClocks());
      UpdateReady();
      Act();
    });
  }

  void Post(std::function<void()> step) { asio::post(io, std::move(step)); }

  // --- Kafka thread --------------------------------------------------------------------------

  void OnClusterId(std::string cluster_id) override {
    Post([this, cluster_id = std::move(cluster_id)] { flow.OnClusterId(cluster_id); });
  }
  // Until the flow knows of it there is no room: what is told was told to the partitions before.
  void OnAssigned(std::vector<AssignedPartition> partitions, std::size_t late) override {
    in_transit.fetch_add(kAllRoom, std::memory_order_relaxed);
    Post([this, partitions = std::move(partitions), late] {
      flow.OnAssigned(partitions, ReadClocks(), late);
      Act();
      in_transit.fetch_sub(kAllRoom, std::memory_order_release);
    });
  }
  std::vector<PartitionOffset> OnRevoked(std::vector<PartitionIndex> partitions,
                                         bool lost) override {
    auto promise = std::make_shared<std::promise<std::vector<PartitionOffset>>>();
    auto answer = promise->get_future();
    Post([this, promise, partitions = std::move(partitions), lost] {
      drained = promise;
      flow.OnRevoked(partitions, lost, BootClock::now() + DrainLimit(), ReadClocks());
      Act();
    });
    return answer.get();
  }
  Millis DrainLimit() const {
    const int stops = stop_requests.load();
    if (output_ended || stops > 1) return Millis(0);
    return stops > 0 ? options.shutdown_timeout : options.processing.revoke_drain;
  }
  void OnRecords(std::vector<Record> records) override {
    const auto count = static_cast<std::int64_t>(records.size());
    std::int64_t bytes = 0;
    for (const Record& record : records) bytes += static_cast<std::int64_t>(record.Bytes());
    in_transit.fetch_add(count, std::memory_order_relaxed);
    in_transit_bytes.fetch_add(bytes, std::memory_order_relaxed);
    auto shared = std::make_shared<std::vector<Record>>(std::move(records));
    Post([this, shared, count, bytes] {
      flow.OnRecords(std::move(*shared), ReadClocks());
      Act();
      in_transit.fetch_sub(count, std::memory_order_release);
      in_transit_bytes.fetch_sub(bytes, std::memory_order_release);
    });
  }
  std::size_t Room() override {
    if (RoomBytes() == 0) return 0;
    // First what is in transit: what has arrived since is taken off the room that is read then.
    const std::int64_t out = in_transit.load(std::memory_order_acquire);
    const std::int64_t left = room.load(std::memory_order_relaxed) - out;
    return static_cast<std::size_t>(std::max<std::int64_t>(0, left));
  }
  std::uint64_t RoomBytes() override {
    const std::int64_t out = in_transit_bytes.load(std::memory_order_acquire);
    const std::int64_t left = room_bytes.load(std::memory_order_relaxed) - out;
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, left));
  }
  void OnPartitionEnd(std::vector<PartitionEnd> ends) override {
    Post([this, ends = std::move(ends)] {
      flow.OnPartitionEnd(ends, ReadClocks());
      Act();
    });
  }
  void OnHighWatermark(std::vector<PartitionEnd> ends) override {
    Post([this, ends = std::move(ends)] { flow.OnHighWatermark(ends); });
  }
  void OnCommitted(std::vector<PartitionOffset> offsets, bool ok) override {
    Post([this, offsets = std::move(offsets), ok] { flow.OnCommitted(offsets, ok); });
  }
  void OnKafkaState(bool up, std::string reason) override {
    SetPart(kafka_state, up, std::move(reason));
  }
  void OnFatal(Error error) override {
    Post([this, error = std::move(error)]() mutable { Fail(std::move(error)); });
  }

  // --- output thread -------------------------------------------------------------------------

  void OnWritten(std::unique_ptr<WriteBatch> batch, std::vector<WriteOutcome> outcomes) {
    auto shared = std::make_shared<std::unique_ptr<WriteBatch>>(std::move(batch));
    Post([this, shared, outcomes = std::move(outcomes)] {
      flow.OnWritten(std::move(*shared), outcomes, ReadClocks());
      Act();
    });
  }

  void OnLookedUp(std::unique_ptr<LookupBatch> batch,
                  std::vector<std::optional<LedgerEntry>> entries) {
    Post([this, shared = std::shared_ptr<LookupBatch>(std::move(batch)),
          entries = std::move(entries)] {
      flow.OnLookedUp(*shared, entries, ReadClocks());
      Act();
    });
  }

  // Nothing that is in flight can be written any more: no drain waits for it.
  void OnOutputFatal(Error error) {
    Post([this, error = std::move(error)]() mutable {
      output_ended = true;
      Fail(std::move(error));
      flow.HurryDrain(ReadClocks());
      Act();
    });
  }

  // --- the handler's and the dead letters' threads ---------------------------------------------

  void OnHandled(HandlerAnswer answer) {
    Post([this, answer = std::move(answer)]() mutable {
      flow.OnHandled(std::move(answer), ReadClocks());
      Act();
    });
  }
  void OnDeadLettered(DeadLetters::Ids published, DeadLetters::Ids refused) {
    Post([this, published = std::move(published), refused = std::move(refused)] {
      flow.OnDeadLettersRefused(refused, ReadClocks());
      flow.OnDeadLettered(published, ReadClocks());
      Act();
    });
  }
  void OnDeadLetterState(bool up, std::string reason) {
    SetPart(dead_letter_state, up, std::move(reason));
    Post([this, up] {
      flow.OnDeadLetterState(up, ReadClocks());
      Act();
    });
  }

  // --- the end -------------------------------------------------------------------------------

  void Fail(Error error) {
    {
      const std::lock_guard lock(mutex);
      if (failure) return;
      failure = std::move(error);
      observer->OnNote(Severity::kError, failure->code, failure->Line());
    }
    flow.StopTaking();
    if (on_failure) on_failure();
  }

  // Runs on its own thread, since each step waits for the one before.
  void Shutdown() {
    Post([this] {
      flow.StopTaking();
      UpdateReady();
      Act();
    });
    ending = "its last records and their commit";
    source.Stop();  // the last revoke drains and commits
    source.Join();
    ending = "its output";
    writer.Stop();
    ending = "its dead letters";
    if (dead_letters != nullptr) dead_letters->Stop();
    ending = "its lock nodes";
    AwaitLastMarks();
    ending = "its handler";
    if (handler != nullptr) handler->Stop();
    ending = "";
    work.reset();
    io.stop();
  }

  void AwaitLastMarks() {
    Post([this] {
      flow.OnOutputEnded(ReadClocks());
      Act();
    });
    const auto since = BootClock::now();
    const auto limit = [this] {
      return stop_requests.load() < 2 ? kLastMarksLimit : kLastMarksHurried;
    };
    while (!QuietNow() && BootClock::now() - since < limit()) {
      std::unique_lock lock(mutex);
      stop_changed.wait_for(lock, Millis(10));
    }
  }

  bool QuietNow() {
    std::promise<bool> quiet;
    auto answer = quiet.get_future();
    Post([this, &quiet] { quiet.set_value(engine.Quiet()); });
    return answer.get();
  }

  // --- readiness and status: worker_status.cc --------------------------------------------------

  struct Part {
    bool up = false;
    std::string reason;
  };

  void SetPart(Part& part, bool up, std::string reason);
  [[nodiscard]] std::string TtlReason() const;
  std::string LockReason(locking::Now now);
  [[nodiscard]] bool Connecting();
  [[nodiscard]] std::vector<std::string> NotReadyReasons(const std::string& lock_reason) const;
  void AddRemarks(std::vector<std::string>& reasons) const;
  void TellReadiness(bool ready, const std::string& reason, bool starting);
  void UpdateReady();
  void FillNodes(WorkerStatus& fresh, locking::Now now);

  const PipelineOptions options;
  const std::string name;
  locking::LockObserver* const lock_observer;
  ConsumerObserver* const observer;

  asio::io_context io{1};
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work{
      asio::make_work_guard(io)};
  asio::steady_timer timer;
  locking::Instant armed_for = locking::Instant::min();
  locking::LockCore core;
  locking::RedisEngine engine;
  Flow flow;
  std::shared_ptr<std::promise<std::vector<PartitionOffset>>> drained;
  bool output_ended = false;
  bool was_ready = false;
  bool was_ready_ever = false;
  bool told_starting = false;
  std::string was_reason = "starting";

  std::atomic<std::int64_t> room{0};
  static constexpr std::int64_t kAllRoom = std::int64_t{1} << 40;
  std::atomic<std::int64_t> in_transit{0};
  std::atomic<std::int64_t> room_bytes{0};
  std::atomic<std::int64_t> in_transit_bytes{0};
  std::atomic<std::int64_t> last_tick{0};
  std::atomic<int> stop_requests{0};
  std::atomic<const char*> ending{""};  // what Shutdown waits for
  const locking::Instant started_at = BootClock::now();

  mutable std::mutex mutex;
  std::condition_variable stop_changed;
  Part kafka_state{false, "connecting"};   // guarded by mutex
  Part output_state{false, "connecting"};  // guarded by mutex
  Part dead_letter_state{true, ""};        // guarded by mutex
  std::optional<Error> failure;            // guarded by mutex
  WorkerStatus latest;                     // guarded by mutex
  std::string drained_last;                // guarded by mutex; oldest record seen in the drain
  std::function<void()> on_failure;

  KafkaSource source;
  const std::unique_ptr<HandlerRunner> handler;     // nullptr: none
  const std::unique_ptr<DeadLetters> dead_letters;  // nullptr: none, or in the transaction
  Writer writer;
  std::thread engine_thread;
  std::thread shutdown_thread;
};

}  // namespace fencepost::consumer
