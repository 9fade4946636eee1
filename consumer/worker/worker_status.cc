// The status of a worker in numbers: of its partitions, its lock nodes, and why it is not ready.
// Its health: /live (the engine thread runs) and /ready (consumer/pipeline/readiness.h).
#include <algorithm>

#include "consumer/worker/worker_impl.h"
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

void Worker::Impl::SetPart(void (WorkerCore::*input)(PartState, locking::Now), PartState state) {
  Tell([this, input, state = std::move(state)](locking::Now now) mutable {
    TellNodesAway();
    (core.*input)(std::move(state), now);
    UpdateStatus();
  });
}

void Worker::Impl::TellNodesAway() {
  for (int node = 0; node < core.locks().store().size(); ++node) {
    const locking::NodeUnavailable& away = engine.Away(node);
    if (away.code == locking::UnavailableReason::kNotYet) continue;
    const std::string& address = options.lock.redis.nodes[static_cast<std::size_t>(node)];
    core.OnNodeAway(node, locking::RedactedAddress(address) + ": " + away.detail);
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
    if (node.connected) continue;
    const locking::NodeUnavailable& away = engine.Away(i);
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
