#include "consumer/worker.h"

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <atomic>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

#include "consumer/flow/flow.h"
#include "consumer/kafka/source.h"
#include "consumer/outputs/writer.h"
#include "locking/check.h"
#include "locking/random.h"
#include "locking/redis/engine.h"

namespace fencepost::consumer {
namespace {

using locking::BootClock;
using locking::ReadClocks;
using locking::Severity;

constexpr Millis kTick{1000};
constexpr Millis kLiveLimit{10'000};
constexpr Millis kMarksLimit{1000};  // how long the last DONE and release calls may take at the end

std::unique_ptr<Output> MakeOutput(const PipelineOptions& options, const std::string& worker) {
  if (const auto* postgres = std::get_if<PostgresOptions>(&options.output)) {
    return MakePostgresOutput(*postgres, options.name, worker);
  }
  const auto* sqlite = std::get_if<SqliteOptions>(&options.output);
  FENCEPOST_CHECK(sqlite != nullptr, "a pipeline without an output passed the loader");
  return MakeSqliteOutput(*sqlite, options.name, worker);
}

}  // namespace

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
        flow(FlowOptionsOf(options), &core, observer),
        writer(
            MakeOutput(options, name), options.ledger_keep, observer,
            [this](auto batch, auto outcomes) { OnWritten(std::move(batch), std::move(outcomes)); },
            [this](bool up, std::string reason) { SetPart(output_state, up, std::move(reason)); }),
        source(options.kafka, "fencepost-" + name, this, observer) {}

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
    for (auto& batch : actions.writes) writer.Write(std::move(batch));
    if (actions.drained && drained) {
      std::exchange(drained, nullptr)->set_value(std::move(*actions.drained));
    }
    if (actions.stop) Fail(std::move(*actions.stop));
    room.store(static_cast<std::int64_t>(flow.Room()), std::memory_order_relaxed);
    engine.Kick();
    Arm();
  }

  void Arm() {
    const auto now = BootClock::now();
    const auto next = std::clamp<locking::Instant>(flow.NextTime(), now, now + kTick);
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
  void OnAssigned(std::vector<AssignedPartition> partitions) override {
    Post([this, partitions = std::move(partitions)] {
      flow.OnAssigned(partitions, ReadClocks());
      Act();
    });
  }
  std::vector<PartitionOffset> OnRevoked(std::vector<PartitionIndex> partitions,
                                         bool lost) override {
    auto promise = std::make_shared<std::promise<std::vector<PartitionOffset>>>();
    auto answer = promise->get_future();
    Post([this, promise, partitions = std::move(partitions), lost] {
      const auto limit =
          stop_requests.load() > 0 ? options.shutdown_timeout : options.processing.revoke_drain;
      drained = promise;
      flow.OnRevoked(partitions, lost, BootClock::now() + limit, ReadClocks());
      Act();
    });
    return answer.get();
  }
  void OnRecords(std::vector<Record> records) override {
    const auto count = static_cast<std::int64_t>(records.size());
    in_transit.fetch_add(count, std::memory_order_relaxed);
    auto shared = std::make_shared<std::vector<Record>>(std::move(records));
    Post([this, shared, count] {
      flow.OnRecords(std::move(*shared), ReadClocks());
      Act();
      in_transit.fetch_sub(count, std::memory_order_relaxed);
    });
  }
  std::size_t Room() override {
    const std::int64_t left =
        room.load(std::memory_order_relaxed) - in_transit.load(std::memory_order_relaxed);
    return static_cast<std::size_t>(std::max<std::int64_t>(0, left));
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
      Act();
    });
    source.Stop();  // the last revoke drains and commits
    source.Join();
    const auto limit = BootClock::now() + kMarksLimit;
    while (stop_requests.load() < 2 && BootClock::now() < limit && !QuietNow()) {
      std::unique_lock lock(mutex);
      stop_changed.wait_for(lock, Millis(10));
    }
    writer.Stop();
    work.reset();
    io.stop();
  }

  bool QuietNow() {
    std::promise<bool> quiet;
    auto answer = quiet.get_future();
    Post([this, &quiet] { quiet.set_value(engine.Quiet()); });
    return answer.get();
  }

  // --- readiness -----------------------------------------------------------------------------

  struct Part {
    bool up = false;
    std::string reason;
  };

  void SetPart(Part& part, bool up, std::string reason) {
    {
      const std::lock_guard lock(mutex);
      part.up = up;
      part.reason = std::move(reason);
    }
    Post([this] { UpdateReady(); });
  }

  std::string LockReason(locking::Now now) {
    if (core.Available()) return "";
    if (const auto problem = core.store().Problem()) return problem->Line();
    for (int node = 0; node < static_cast<int>(options.lock.redis.nodes.size()); ++node) {
      const auto seen = core.store().Status(node, now);
      if (seen.quarantined) {
        return "lock nodes are in quarantine for another " +
               std::to_string(seen.quarantine_left.count() / 1000) + " s";
      }
    }
    switch (core.store().WhyUnavailable()) {
      case locking::QuorumFailure::kQuarantined:
        return "lock nodes are in quarantine";
      case locking::QuorumFailure::kPolicy:
        return "lock nodes have a problem";
      case locking::QuorumFailure::kClock:
        return "clock";
      default:
        return core.store().Available() ? "clock" : "no quorum of lock nodes";
    }
  }

  void UpdateReady() {
    const locking::Now now = ReadClocks();
    std::string reason = LockReason(now);
    WorkerStatus fresh;
    flow.FillStatus(fresh, now);
    FillNodes(fresh, now);
    bool ready = false;
    {
      const std::lock_guard lock(mutex);
      if (!reason.empty()) reason = "lock: " + reason;
      if (!output_state.up) reason = "output: " + output_state.reason;
      if (!kafka_state.up) reason = "kafka: " + kafka_state.reason;
      if (failure)
        reason = "stopping: " + failure->Line();
      else if (stop_requests.load() > 0)
        reason = "draining";
      ready = reason.empty();
      fresh.ready = ready;
      fresh.reason = reason;
      latest = std::move(fresh);
    }
    if (ready == was_ready && reason == was_reason) return;
    was_ready = ready;
    was_reason = reason;
    observer->OnReady(ready, reason);
    if (ready) {
      observer->OnNote(Severity::kInfo, "ready", "the worker is ready");
    } else if (stop_requests.load() == 0) {
      observer->OnNote(Severity::kWarn, "not_ready", "the worker is not ready: " + reason);
    }
  }

  void FillNodes(WorkerStatus& fresh, locking::Now now) {
    for (std::size_t i = 0; i < options.lock.redis.nodes.size(); ++i) {
      const auto node = core.store().Status(static_cast<int>(i), now);
      LockNodeStatus& row = fresh.nodes.emplace_back();
      row.letter = static_cast<char>('a' + i);
      row.address = options.lock.redis.nodes[i];
      row.up = node.connected;
      row.open = node.open;
      row.quarantined = node.quarantined;
      row.quarantine_left = node.quarantine_left;
      row.clock_offset = node.clock_offset;
      row.problem = node.problem;
    }
  }

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
  bool was_ready = false;
  std::string was_reason = "starting";

  std::atomic<std::int64_t> room{0};
  std::atomic<std::int64_t> in_transit{0};
  std::atomic<std::int64_t> last_tick{0};
  std::atomic<int> stop_requests{0};
  const locking::Instant started_at = BootClock::now();

  mutable std::mutex mutex;
  std::condition_variable stop_changed;
  Part kafka_state{false, "connecting"};   // guarded by mutex
  Part output_state{false, "connecting"};  // guarded by mutex
  std::optional<Error> failure;            // guarded by mutex
  WorkerStatus latest;                     // guarded by mutex
  std::function<void()> on_failure;

  Writer writer;
  KafkaSource source;
  std::thread engine_thread;
  std::thread shutdown_thread;
};

Worker::Worker(PipelineOptions options, std::string name, locking::LockObserver* lock_observer,
               ConsumerObserver* observer)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(name), lock_observer, observer)) {}

Worker::~Worker() {
  if (impl_->engine_thread.joinable()) {
    RequestStop();
    RequestStop();
    Join();
  }
}

tl::expected<void, Error> Worker::Start() {
  Impl& impl = *impl_;
  impl.room.store(static_cast<std::int64_t>(impl.flow.Room()));
  impl.last_tick.store(BootClock::now().time_since_epoch().count());
  impl.latest.reason = "starting";
  if (auto started = impl.source.Start(); !started) return started;
  impl.engine_thread = std::thread([&impl] {
    impl.engine.Start();
    impl.Arm();
    impl.io.run();
  });
  impl.writer.Start();
  return {};
}

void Worker::OnFailure(std::function<void()> callback) { impl_->on_failure = std::move(callback); }

void Worker::RequestStop() {
  Impl& impl = *impl_;
  const int before = impl.stop_requests.fetch_add(1);
  if (before == 0) {
    impl.shutdown_thread = std::thread([&impl] { impl.Shutdown(); });
    return;
  }
  // At once: what is being drained is abandoned; its leases are released, its offsets do not move.
  impl.Post([&impl] {
    impl.flow.HurryDrain(ReadClocks());
    impl.Act();
  });
  impl.writer.Interrupt();
}

std::optional<Error> Worker::Join() {
  Impl& impl = *impl_;
  if (impl.engine_thread.joinable()) impl.engine_thread.join();
  if (impl.shutdown_thread.joinable()) impl.shutdown_thread.join();
  const std::lock_guard lock(impl.mutex);
  return impl.failure;
}

WorkerStatus Worker::Status() const {
  const std::lock_guard lock(impl_->mutex);
  WorkerStatus status = impl_->latest;
  status.pipeline = impl_->options.name;
  status.worker = impl_->name;
  status.uptime = std::chrono::duration_cast<Millis>(BootClock::now() - impl_->started_at);
  return status;
}

bool Worker::Live() const {
  const locking::Instant tick{locking::Nanos(impl_->last_tick.load(std::memory_order_relaxed))};
  return BootClock::now() - tick < kLiveLimit;
}

std::pair<bool, std::string> Worker::Ready() const {
  const std::lock_guard lock(impl_->mutex);
  return {impl_->latest.ready, impl_->latest.reason};
}

}  // namespace fencepost::consumer
