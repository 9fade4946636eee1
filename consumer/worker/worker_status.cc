// How a worker stands: ready, live, and in numbers.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

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

// To connect and to join at the start is no trouble.
bool IsBegin(const std::string& reason) {
  return reason.ends_with(": connecting") || reason == "kafka: joining the group";
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
  const Millis longest = core.locks().store().max_ttl();
  if (ttl <= longest) return "";
  return fmt::format(
      "lock.ttl of {} ms is above the lock store's max_ttl of {} ms: lower lock.ttl, or stop all "
      "workers and make the store anew with `fencepost locks init --force --max-ttl`",
      ttl.count(), longest.count());
}

std::string Worker::Impl::LockReason(locking::Now now) {
  if (core.locks().Available()) return TtlReason();
  if (core.locks().store().Available()) return "clock";
  if (const auto problem = core.locks().store().Problem()) return problem->Line();
  for (int node = 0; node < static_cast<int>(options.lock.redis.nodes.size()); ++node) {
    const auto seen = core.locks().store().Status(node, now);
    if (seen.quarantined) {
      return "lock nodes are in quarantine for another " +
             std::to_string(seen.quarantine_left.count() / 1000) + " s";
    }
  }
  switch (core.locks().store().WhyUnavailable()) {
    case locking::QuorumFailure::kQuarantined:
      return "lock nodes are in quarantine";
    case locking::QuorumFailure::kPolicy:
      return "lock nodes have a problem";
    case locking::QuorumFailure::kClock:
      return "clock";
    default:
      return Connecting() ? "connecting" : "no quorum of lock nodes";
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

// With the mutex held. What ends the worker comes first, then what no record can be finished
// without, then Kafka: a rebalance, which passes, must not hide a quorum that is lost. Who drains
// leaves the group, so nothing is said of that.
std::vector<std::string> Worker::Impl::NotReadyReasons(const std::string& lock_reason) const {
  std::vector<std::string> reasons;
  const bool stopping = failure || stop_requests.load() > 0;
  if (stopping) reasons.push_back(failure ? "stopping: " + failure->Line() : "draining");
  if (!lock_reason.empty()) reasons.push_back("lock: " + lock_reason);
  if (!output_state.up) reasons.push_back("output: " + output_state.reason);
  if (!dead_letter_state.up) reasons.push_back("dead letters: " + dead_letter_state.reason);
  // While nothing can be written, nothing shows whether all records are bad.
  const bool may_write = lock_reason.empty() && output_state.up && !stopping;
  if (may_write && !core.flow().Refused().empty()) reasons.push_back(core.flow().Refused());
  if (!kafka_state.up && !stopping) reasons.push_back("kafka: " + kafka_state.reason);
  return reasons;
}

// With the mutex held. What is to be known of a worker that is ready all the same.
void Worker::Impl::AddRemarks(std::vector<std::string>& reasons) const {
  if (const std::string& stall = core.flow().Stalled(); !stall.empty()) {
    reasons.push_back("stalled: " + stall);
  }
  const auto add = [&](std::string_view of, const Part& part) {
    if (part.up && !part.reason.empty()) reasons.push_back(fmt::format("{}: {}", of, part.reason));
  };
  add("dead letters", dead_letter_state);
  add("kafka", kafka_state);
}

void Worker::Impl::UpdateReady() {
  const locking::Now now = ReadClocks();
  const std::string lock_reason = LockReason(now);
  WorkerStatus fresh;
  core.flow().FillStatus(fresh, now);
  FillNodes(fresh, now);
  bool starting = false;
  {
    const std::lock_guard lock(mutex);
    fresh.reasons = NotReadyReasons(lock_reason);
    fresh.ready = fresh.reasons.empty();
    fresh.reason = fmt::format("{}", fmt::join(fresh.reasons, "; "));
    starting = !was_ready_ever && std::all_of(fresh.reasons.begin(), fresh.reasons.end(), IsBegin);
    AddRemarks(fresh.reasons);
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

std::pair<bool, std::vector<std::string>> Worker::Ready() const {
  const std::lock_guard lock(impl_->mutex);
  return {impl_->latest.ready, impl_->latest.reasons};
}

}  // namespace fencepost::consumer
