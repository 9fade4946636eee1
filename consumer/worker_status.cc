// How a worker stands: ready, live, and in numbers.
#include <fmt/format.h>

#include "consumer/worker_impl.h"
#include "locking/redis/address.h"

namespace fencepost::consumer {
namespace {

constexpr Millis kLiveLimit{10'000};

// "topic/partition/offset" of an oldest unfinished record; empty when there is none.
std::string Oldest(const WorkerStatus& status) {
  for (const PartitionStatus& row : status.partitions) {
    if (row.oldest_offset) return SourceText({row.topic, row.partition}, *row.oldest_offset);
  }
  return "";
}

}  // namespace

void Worker::Impl::SetPart(Part& part, bool up, std::string reason) {
  {
    const std::lock_guard lock(mutex);
    part.up = up;
    part.reason = std::move(reason);
  }
  Post([this] { UpdateReady(); });
}

// The nodes refuse every lease that is longer than the store allows.
std::string Worker::Impl::TtlReason() const {
  const Millis ttl = options.lock.lock.ttl;
  const Millis longest = core.store().max_ttl();
  if (ttl <= longest) return "";
  return fmt::format(
      "lock.ttl of {} ms is above the lock store's max_ttl of {} ms: lower lock.ttl, or stop all "
      "workers and make the store anew with `fencepost locks init --force --max-ttl`",
      ttl.count(), longest.count());
}

std::string Worker::Impl::LockReason(locking::Now now) {
  if (core.Available()) return TtlReason();
  if (core.store().Available()) return "clock";
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
      return "no quorum of lock nodes";
  }
}

void Worker::Impl::UpdateReady() {
  const locking::Now now = ReadClocks();
  std::string reason = LockReason(now);
  const bool locks_out = !reason.empty();
  WorkerStatus fresh;
  flow.FillStatus(fresh, now);
  FillNodes(fresh, now);
  bool ready = false;
  {
    const std::lock_guard lock(mutex);
    if (!reason.empty()) reason = "lock: " + reason;
    if (!dead_letter_state.up) reason = "dead letters: " + dead_letter_state.reason;
    if (!output_state.up) reason = "output: " + output_state.reason;
    if (!kafka_state.up) reason = "kafka: " + kafka_state.reason;
    if (failure)
      reason = "stopping: " + failure->Line();
    else if (stop_requests.load() > 0)
      reason = "draining";
    ready = reason.empty();
    fresh.ready = ready;
    fresh.reason = reason;
    // A stall that an outage explains is told by readiness; a restart would not mend it.
    const bool outage = !kafka_state.up || !output_state.up || !dead_letter_state.up || locks_out;
    stalled = outage ? "" : flow.Stalled();
    if (stop_requests.load() > 0 && !fresh.partitions.empty()) drained_last = Oldest(fresh);
    latest = std::move(fresh);
  }
  if (ready == was_ready && reason == was_reason) return;
  was_ready = ready;
  was_ready_ever = was_ready_ever || ready;
  was_reason = reason;
  observer->OnReady(ready, reason);
  if (ready) {
    observer->OnNote(Severity::kInfo, "ready", "the worker is ready");
  } else if (stop_requests.load() == 0) {
    // To join at the start is no trouble.
    const bool starting = !was_ready_ever && reason == "kafka: joining the group";
    observer->OnNote(starting ? Severity::kInfo : Severity::kWarn, "not_ready",
                     "the worker is not ready: " + reason);
  }
}

void Worker::Impl::FillNodes(WorkerStatus& fresh, locking::Now now) {
  for (std::size_t i = 0; i < options.lock.redis.nodes.size(); ++i) {
    const auto node = core.store().Status(static_cast<int>(i), now);
    LockNodeStatus& row = fresh.nodes.emplace_back();
    row.letter = static_cast<char>('a' + i);
    row.address = locking::ShownNode(options.lock.redis.nodes[i]);
    row.up = node.connected;
    row.open = node.open;
    row.quarantined = node.quarantined;
    row.quarantine_left = node.quarantine_left;
    row.clock_offset = node.clock_offset;
    row.problem = node.connected ? node.problem : engine.Away(static_cast<int>(i));
    if (!node.connected && row.problem.empty()) row.problem = "connecting";
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
  if (BootClock::now() - tick >= kLiveLimit) return {false, "the engine does not tick"};
  const std::lock_guard lock(impl_->mutex);
  if (!impl_->stalled.empty()) return {false, "stalled: " + impl_->stalled};
  return {true, ""};
}

std::string Worker::Ending() const {
  const std::lock_guard lock(impl_->mutex);
  const std::string part = impl_->ending.load();
  if (part.empty() || impl_->drained_last.empty()) return part;
  return part + " (the oldest record was " + impl_->drained_last + ")";
}

std::pair<bool, std::string> Worker::Ready() const {
  const std::lock_guard lock(impl_->mutex);
  return {impl_->latest.ready, impl_->latest.reason};
}

}  // namespace fencepost::consumer
