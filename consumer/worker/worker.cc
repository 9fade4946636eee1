// The life of a worker, its end and its status. How long a drain may take: WorkerCore::DrainLimit;
// signals, and what hangs: cli/run.cc.
#include "consumer/worker/worker.h"

#include <algorithm>

#include "consumer/worker/worker_impl.h"
#include "locking/redis/address.h"

namespace fencepost::consumer {
namespace {

constexpr Millis kGroupLagInterval{10'000};
// How long the last DONE and release calls may take.
constexpr Millis kLastMarksLimit{1000};
constexpr Millis kLastMarksHurried{200};
constexpr Millis kLiveLimit{10'000};

// "topic/partition/offset" of an oldest unfinished record; empty when there is none.
std::string Oldest(const WorkerStatus& status) {
  for (const PartitionStatus& row : status.partitions) {
    if (row.oldest_offset) return SourceText({row.topic, row.partition}, *row.oldest_offset);
  }
  return "";
}

}  // namespace

Worker::Worker(PipelineOptions options, std::string name, locking::LockObserver* lock_observer,
               ConsumerObserver* observer)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(name), lock_observer, observer)) {}

tl::expected<void, Error> Worker::Start() {
  Impl& impl = *impl_;
  impl.last_tick.store(BootClock::now().time_since_epoch().count());
  if (const auto filter = CheckFilters(impl.options); !filter) {
    return tl::unexpected(filter.error());
  }
  if (impl.handler != nullptr) {
    if (auto started = impl.handler->Start(); !started) return started;
  }
  if (impl.dead_letters != nullptr) {
    if (auto started = impl.dead_letters->Start(); !started) return started;
  }
  if (auto started = impl.source.Start(); !started) return started;
  impl.group_lag.emplace(impl.options.kafka, kGroupLagInterval,
                         [&impl](std::int64_t records) { impl.observer->OnGroupLag(records); });
  impl.engine_thread = std::thread([&impl] {
    impl.engine ? impl.engine->Start() : impl.memory_engine->Start();
    impl.Arm();
    impl.io.run();
  });
  impl.writer.Start();
  return {};
}

void Worker::Tune(Tuning tuning) {
  if (impl_->handler != nullptr) {
    impl_->handler->Tune(tuning.concurrency, tuning.calls_per_second);
  }
  impl_->Tell(&WorkerCore::Tune, std::move(tuning));
}

void Worker::SetPaused(bool paused) {
  impl_->Tell([impl = impl_.get(), paused](locking::Now now) {
    impl->core.SetPaused(paused, now);
    impl->UpdateStatus();
  });
}

void Worker::OnFailure(std::function<void()> callback) { impl_->on_failure = std::move(callback); }

// --- the end: parts end in the order of Shutdown -------------------------------------------------

Worker::~Worker() {
  if (impl_->engine_thread.joinable()) {
    RequestStop();
    RequestStop();
    Join();
  }
}

void Worker::RequestStop() {
  Impl& impl = *impl_;
  const int before = impl.stop_requests.fetch_add(1);
  if (before == 0) {
    impl.shutdown_thread = std::thread([&impl] { impl.Shutdown(); });
    return;
  }
  impl.Tell(&WorkerCore::RequestStop);
  impl.writer.Interrupt();
}

std::optional<Error> Worker::Join() {
  Impl& impl = *impl_;
  if (impl.engine_thread.joinable()) impl.engine_thread.join();
  if (impl.shutdown_thread.joinable()) impl.shutdown_thread.join();
  const std::lock_guard lock(impl.mutex);
  return impl.failure;
}

// The last revoke drains and commits; then the output, the dead letters, the lock nodes and the
// handler end, each once nothing can come to it any more.
void Worker::Impl::Shutdown() {
  Tell([this](locking::Now now) {
    core.RequestStop(now);
    UpdateStatus();
  });
  ending = "its last records and their commit";
  source.Stop();
  source.Join();
  ending = "its output";
  writer.Stop();
  ending = "its dead letters";
  if (dead_letters != nullptr) dead_letters->Stop();
  ending = "its lock nodes";
  AwaitLastMarks();
  ending = "its handler";
  if (handler != nullptr) handler->Stop();
  ending = "its question for the group's lag";
  group_lag.reset();
  ending = "";
  work.reset();
  io.stop();
}

void Worker::Impl::AwaitLastMarks() {
  Tell(&WorkerCore::OnOutputEnded);
  Tell(&WorkerCore::OnStopped);
  const auto since = BootClock::now();
  const auto limit = [this] {
    return stop_requests.load() < 2 ? kLastMarksLimit : kLastMarksHurried;
  };
  while (!QuietNow() && BootClock::now() - since < limit()) {
    std::this_thread::sleep_for(Millis(10));
  }
}

bool Worker::Impl::QuietNow() {
  std::promise<bool> quiet;
  auto answer = quiet.get_future();
  Post([this, &quiet] { quiet.set_value(engine ? engine->Quiet() : memory_engine->Quiet()); });
  return answer.get();
}

std::string Worker::Ending() const {
  const std::lock_guard lock(impl_->mutex);
  const std::string part = impl_->ending.load();
  if (part.empty() || impl_->drained_last.empty()) return part;
  return part + " (the oldest record was " + impl_->drained_last + ")";
}

// --- status: in numbers, and health --------------------------------------------------------------

void Worker::Impl::SetPart(void (WorkerCore::*input)(PartState, locking::Now), PartState state) {
  Tell([this, input, state = std::move(state)](locking::Now now) mutable {
    TellNodesAway();
    (core.*input)(std::move(state), now);
    UpdateStatus();
  });
}

void Worker::Impl::TellNodesAway() {
  for (int node = 0; node < core.locks().store().size(); ++node) {
    const std::string address =
        locking::RedactedAddress(options.lock.redis.nodes[static_cast<std::size_t>(node)]);
    const std::string refusal = Refuses(node);
    core.OnNodeRefuses(node, refusal.empty() ? "" : address + ": " + refusal);
    const locking::NodeUnavailable& away = Away(node);
    if (away.code == locking::UnavailableReason::kNotYet) continue;
    core.OnNodeAway(node, address + ": " + away.detail);
  }
}

void Worker::Impl::UpdateStatus() {
  const locking::Now now = ReadClocks();
  WorkerStatus fresh;
  core.flow().FillStatus(fresh, now);
  FillNodes(fresh, now);
  fresh.reasons = core.reasons();
  fresh.ready = core.ready();
  fresh.reason = WhyNotReady(fresh.reasons);
  const std::lock_guard lock(mutex);
  if (stop_requests.load() > 0 && !fresh.partitions.empty()) drained_last = Oldest(fresh);
  latest = std::move(fresh);
}

const locking::NodeUnavailable& Worker::Impl::Away(int node) const {
  static const locking::NodeUnavailable kNotYet;
  return engine ? engine->Away(node) : kNotYet;
}

void Worker::Impl::FillNodes(WorkerStatus& fresh, locking::Now now) {
  const locking::Store& store = core.locks().store();
  for (int i = 0; i < store.size(); ++i) {
    const auto node = store.Status(i, now);
    LockNodeStatus& row = fresh.nodes.emplace_back();
    row.letter = locking::NodeLetter(i);
    row.address = locking::RedactedAddress(options.lock.redis.nodes[static_cast<std::size_t>(i)]);
    row.up = node.connected;
    row.open = node.open;
    row.quarantined = node.quarantined;
    row.quarantine_left = node.quarantine_left;
    row.clock_offset = node.clock_offset;
    row.problem = node.problem;
    if (row.problem.empty()) row.problem = Refuses(i);
    if (node.connected) continue;
    const locking::NodeUnavailable& away = Away(i);
    row.away = away.code;
    row.problem = away.code == locking::UnavailableReason::kNotYet ? "connecting" : away.detail;
  }
}

WorkerStatus Worker::Status() const {
  const std::lock_guard lock(impl_->mutex);
  WorkerStatus status = impl_->latest;
  status.pipeline = impl_->options.name;
  status.worker = impl_->name;
  status.uptime = std::chrono::duration_cast<Millis>(BootClock::now() - impl_->started_at);
  return status;
}

std::pair<bool, std::string> Worker::Live() const {
  const locking::Instant tick{locking::Nanos(impl_->last_tick.load(std::memory_order_relaxed))};
  if (BootClock::now() - tick < kLiveLimit) return {true, ""};
  return {false, "the engine thread has not run for 10 s"};
}

std::pair<bool, std::vector<Reason>> Worker::Ready() const {
  const std::lock_guard lock(impl_->mutex);
  return {impl_->latest.ready, impl_->latest.reasons};
}

}  // namespace fencepost::consumer
