// How a worker stands: ready, live, and in numbers.
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

void Worker::Impl::SetPart(Part& part, bool up, std::string reason) {
  {
    const std::lock_guard lock(mutex);
    part.up = up;
    part.reason = std::move(reason);
  }
  Post([this] { UpdateReady(); });
}

// The nodes refuse every lease that is longer than the store allows.
std::optional<Reason> Worker::Impl::TtlReason() const {
  const Millis ttl = options.lock.lock.ttl;
  const Millis longest = core.locks().store().max_ttl();
  if (ttl <= longest) return std::nullopt;
  return Reason{.code = ReasonCode::kLockTtl, .span = ttl, .limit = longest};
}

std::optional<Reason> Worker::Impl::LockReason(locking::Now now) {
  if (core.locks().Available()) return TtlReason();
  if (core.locks().store().Available()) return Reason{.code = ReasonCode::kLockClock};
  if (const auto problem = core.locks().store().Problem()) {
    return Reason{.code = ReasonCode::kLockStore, .detail = problem->Line()};
  }
  for (int node = 0; node < static_cast<int>(options.lock.redis.nodes.size()); ++node) {
    const auto seen = core.locks().store().Status(node, now);
    if (seen.quarantined) {
      return Reason{.code = ReasonCode::kLockQuarantine,
                    .span = std::max(seen.quarantine_left, Millis(1))};
    }
  }
  switch (core.locks().store().WhyUnavailable()) {
    case locking::QuorumFailure::kQuarantined:
      return Reason{.code = ReasonCode::kLockQuarantine};
    case locking::QuorumFailure::kPolicy:
      return Reason{.code = ReasonCode::kLockNodes};
    case locking::QuorumFailure::kClock:
      return Reason{.code = ReasonCode::kLockClock};
    default:
      return Reason{.code = Connecting() ? ReasonCode::kLockConnecting : ReasonCode::kNoQuorum};
  }
}

// At the start: neither connected nor refused so far, so that a quorum may still be there.
bool Worker::Impl::Connecting() {
  const auto nodes = static_cast<int>(options.lock.redis.nodes.size());
  int hoped_for = 0;
  for (int node = 0; node < nodes; ++node) {
    if (core.locks().store().Status(node, ReadClocks()).connected || engine.Away(node).empty())
      ++hoped_for;
  }
  return !was_ready_ever && hoped_for >= locking::Quorum(nodes);
}

// With the mutex held.
std::vector<Reason> Worker::Impl::Reasons(std::optional<Reason> lock_reason) const {
  return ReasonsOf({.failure = failure ? failure->Line() : "",
                    .draining = stop_requests.load() > 0,
                    .lock = std::move(lock_reason),
                    .output = output_state,
                    .dead_letters = dead_letter_state,
                    .kafka = kafka_state,
                    .refused = core.flow().Refused(),
                    .stalled = core.flow().Stalled()});
}

void Worker::Impl::UpdateReady() {
  const locking::Now now = ReadClocks();
  std::optional<Reason> lock_reason = LockReason(now);
  WorkerStatus fresh;
  core.flow().FillStatus(fresh, now);
  FillNodes(fresh, now);
  bool starting = false;
  {
    const std::lock_guard lock(mutex);
    fresh.reasons = Reasons(std::move(lock_reason));
    fresh.ready = std::ranges::all_of(fresh.reasons, IsRemark);
    fresh.reason = WhyNotReady(fresh.reasons);
    starting = !was_ready_ever && std::ranges::all_of(fresh.reasons, [](const Reason& reason) {
      return IsRemark(reason) || IsBeginning(reason);
    });
    if (stop_requests.load() > 0 && !fresh.partitions.empty()) drained_last = Oldest(fresh);
    latest = fresh;
  }
  TellReadiness(fresh.ready, fresh.reason, starting);
}

void Worker::Impl::TellReadiness(bool ready, const std::string& reason, bool starting) {
  if (ready == was_ready && reason == was_reason) return;
  was_ready = ready;
  was_ready_ever = was_ready_ever || ready;
  was_reason = reason;
  observer->OnReady(ready, reason);
  if (ready) {
    observer->OnNote(Severity::kInfo, "ready", "the worker is ready");
  } else if (stop_requests.load() == 0 && !(starting && told_starting)) {
    observer->OnNote(starting ? Severity::kInfo : Severity::kWarn, "not_ready",
                     "the worker is not ready: " + reason);
  }
  told_starting = told_starting || starting;
}

void Worker::Impl::FillNodes(WorkerStatus& fresh, locking::Now now) {
  for (std::size_t i = 0; i < options.lock.redis.nodes.size(); ++i) {
    const auto node = core.locks().store().Status(static_cast<int>(i), now);
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
  return {true, ""};
}

std::string Worker::Ending() const {
  const std::lock_guard lock(impl_->mutex);
  const std::string part = impl_->ending.load();
  if (part.empty() || impl_->drained_last.empty()) return part;
  return part + " (the oldest record was " + impl_->drained_last + ")";
}

std::pair<bool, std::vector<Reason>> Worker::Ready() const {
  const std::lock_guard lock(impl_->mutex);
  return {impl_->latest.ready, impl_->latest.reasons};
}

}  // namespace fencepost::consumer
