#include "consumer/worker/worker_core.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "locking/base/planted.h"

namespace fencepost::consumer {

WorkerCoreOptions WorkerCoreOptionsOf(const PipelineOptions& options) {
  return {.flow = FlowOptionsOf(options),
          .nodes = static_cast<int>(options.lock.redis.nodes.size()),
          .lock = options.lock.lock,
          .on_unavailable = options.lock.on_unavailable,
          .revoke_drain = options.processing.revoke_drain,
          .shutdown_timeout = options.shutdown_timeout};
}

WorkerCore::WorkerCore(WorkerCoreOptions options, locking::LockCore::Random random,
                       locking::LockObserver* lock_observer, ConsumerObserver* observer)
    : revoke_drain_(options.revoke_drain),
      shutdown_timeout_(options.shutdown_timeout),
      lock_ttl_(options.lock.ttl),
      on_unavailable_(options.on_unavailable),
      observer_(observer),
      locks_(options.nodes, options.lock, options.creation, random, lock_observer),
      flow_(std::move(options.flow), &locks_, random, observer),
      refused_(static_cast<std::size_t>(options.nodes)),
      refuse_calls_(static_cast<std::size_t>(options.nodes)) {}

void WorkerCore::OnAssigned(const std::vector<AssignedPartition>& partitions, std::size_t late,
                            DeliveryCredit::Load load, Now now) {
  for (const AssignedPartition& p : partitions) epoch_ = p.epoch;
  flow_.OnAssigned(partitions, now, late);
  credit_.Offer(flow_.backpressure().Room(), flow_.backpressure().RoomBytes());
  credit_.Arrived(load);
}

void WorkerCore::OnRevoked(const std::vector<PartitionIndex>& partitions, bool lost, Now now) {
  flow_.OnRevoked(partitions, lost, now.boot + DrainLimit(), now);
}

void WorkerCore::OnDrainAwaited(bool lost, Now now) {
  flow_.HurryDrain(now.boot + (lost ? Nanos(0) : revoke_drain_), now);
}

Nanos WorkerCore::DrainLimit() const {
  const bool at_once = output_failed_ || (stops_ > 1 && !Planted("second_stop_waits"));
  if (at_once) return Nanos(0);
  return stops_ > 0 ? shutdown_timeout_ : revoke_drain_;
}

void WorkerCore::OnRecords(std::vector<Record> records, DeliveryCredit::Load load, Now now) {
  flow_.OnRecords(std::move(records), now);
  credit_.Offer(flow_.backpressure().Room(), flow_.backpressure().RoomBytes());
  credit_.Arrived(load);
}

void WorkerCore::OnOutputFailed(Error error, Now now) {
  output_failed_ = !Planted("output_failure_forgotten");
  Fail(std::move(error));
  flow_.HurryDrain(now.boot, now);
}

void WorkerCore::OnDeadLettered(const std::vector<std::uint64_t>& published,
                                const std::vector<std::uint64_t>& refused, Now now) {
  flow_.OnDeadLettersRefused(refused, now);
  flow_.OnDeadLettered(published, now);
}

void WorkerCore::SetPaused(bool paused, Now now) {
  if (paused == flow_.paused()) return;
  flow_.SetPaused(paused, now);
  if (paused) {
    observer_->OnNote(locking::Severity::kWarn, "paused", "paused: nothing new is taken");
  } else {
    observer_->OnNote(locking::Severity::kInfo, "resumed", "resumed");
  }
  UpdateReadiness(now);
}

void WorkerCore::RequestStop(Now now) {
  ++stops_;
  if (stops_ == 1) {
    given_back_before_ = flow_.given_back();
    observer_->OnNote(
        locking::Severity::kInfo, "stopping",
        fmt::format("stopping: {} in flight, at most {} s; a second signal stops at once",
                    flow_.in_flight(),
                    std::chrono::duration_cast<std::chrono::seconds>(shutdown_timeout_).count()));
  }
  stops_ == 1 ? flow_.StopTaking() : flow_.HurryDrain(now.boot, now);
  UpdateReadiness(now);
}

void WorkerCore::OnStopped() {
  const std::size_t left = flow_.given_back() - given_back_before_;
  observer_->OnNote(locking::Severity::kInfo, "stopped",
                    left == 0 ? "stopped: everything in flight was finished"
                              : fmt::format("stopped: {} in flight were given back", left));
}

void WorkerCore::OnTime(Now now) {
  flow_.OnTime(now);
  UpdateReadiness(now);
}

void WorkerCore::Fail(Error error) {
  if (failure_) return;
  observer_->OnNote(locking::Severity::kError, error.code, error.Line());
  failure_ = std::move(error);
  flow_.StopTaking();
}

WorkerActions WorkerCore::TakeActions() {
  WorkerActions actions{std::exchange(flow_.actions(), FlowActions()), std::nullopt, epoch_, false};
  if (actions.stop) Fail(*std::exchange(actions.stop, std::nullopt));
  if (failure_ && !std::exchange(failure_told_, true)) actions.failure = failure_;
  credit_.Offer(flow_.backpressure().Room(), flow_.backpressure().RoomBytes());
  actions.room = credit_.TakeAwaited();
  return actions;
}

// --- readiness -----------------------------------------------------------------------------------

void WorkerCore::OnKafkaState(PartState state, Now now) {
  kafka_ = std::move(state);
  UpdateReadiness(now);
}

void WorkerCore::OnOutputState(PartState state, Now now) {
  output_ = std::move(state);
  UpdateReadiness(now);
}

void WorkerCore::OnDeadLetterState(PartState state, Now now) {
  dead_letters_ = std::move(state);
  flow_.OnDeadLetterState(dead_letters_.up(), now);
  UpdateReadiness(now);
}

std::optional<Reason> WorkerCore::LockReason(Now now) const {
  const locking::Store& store = locks_.store();
  if (locks_.Available()) {  // the nodes refuse every lease that is longer than the store allows
    if (lock_ttl_ <= store.max_ttl()) return std::nullopt;
    return Reason{.code = ReasonCode::kLockTtl, .span = lock_ttl_, .limit = store.max_ttl()};
  }
  if (store.Available()) return Reason{.code = ReasonCode::kLockClock};
  if (const auto problem = store.Problem()) {
    return Reason{.code = ReasonCode::kLockStore, .detail = problem->Line()};
  }
  Reason quarantine{.code = ReasonCode::kLockQuarantine, .detail = NodesAway(now)};
  for (int node = 0; node < store.size(); ++node) {
    const locking::NodeStatus seen = store.Status(node, now);
    if (!seen.quarantined || quarantine.nodes++ > 0) continue;
    const Millis left = std::chrono::floor<std::chrono::seconds>(seen.quarantine_left);
    quarantine.span = std::max(left, Millis(1));
  }
  if (quarantine.nodes > 0) return quarantine;
  switch (store.WhyUnavailable()) {
    case locking::QuorumFailure::kQuarantined:
      return Reason{.code = ReasonCode::kLockQuarantine};
    case locking::QuorumFailure::kPolicy:
      return Reason{.code = ReasonCode::kLockNodes};
    case locking::QuorumFailure::kClock:
      return Reason{.code = ReasonCode::kLockClock};
    default:
      if (LockConnecting(now)) return Reason{.code = ReasonCode::kLockConnecting};
      return Reason{.code = ReasonCode::kNoQuorum, .detail = std::move(quarantine.detail)};
  }
}

// "1 of 3 nodes is away (127.0.0.1:7001: Connection refused)"; empty where none is.
std::string WorkerCore::NodesAway(Now now) const {
  const int nodes = locks_.store().size();
  std::string which;
  int away = 0;
  for (int node = 0; node < nodes; ++node) {
    const auto& why = refused_[static_cast<std::size_t>(node)];
    if (!why || locks_.store().Status(node, now).connected) continue;
    ++away;
    which += (which.empty() ? "" : "; ") + *why;
  }
  if (away == 0) return "";
  return fmt::format("{} of {} nodes {} away ({})", away, nodes, away == 1 ? "is" : "are", which);
}

// Nodes that are up and refuse the calls are no quorum.
std::optional<Reason> WorkerCore::CallsRefused() const {
  std::string which;
  for (const std::string& why : refuse_calls_) {
    if (!why.empty()) which += (which.empty() ? "" : "; ") + why;
  }
  const auto nodes = static_cast<int>(refuse_calls_.size());
  const auto refuse = nodes - std::ranges::count(refuse_calls_, std::string());
  if (nodes - refuse >= locking::Quorum(nodes)) return std::nullopt;
  return Reason{.code = ReasonCode::kNoQuorum,
                .detail = fmt::format("{} of {} nodes refuse ({})", refuse, nodes, which)};
}

// At the start: a quorum of nodes is connected or was not refused so far.
bool WorkerCore::LockConnecting(Now now) const {
  const int nodes = locks_.store().size();
  int hoped_for = 0;
  for (int node = 0; node < nodes; ++node) {
    const auto& refused = refused_[static_cast<std::size_t>(node)];
    if (!refused || locks_.store().Status(node, now).connected) ++hoped_for;
  }
  return !was_ready_ && hoped_for >= locking::Quorum(nodes);
}

void WorkerCore::UpdateReadiness(Now now) {
  std::optional<Reason> lock = LockReason(now);
  if (on_unavailable_ == OnUnavailable::kProceed) UpdateUnlocked(lock, now);
  if (!lock) lock = CallsRefused();
  if (Planted("rebalance_hides_a_lost_quorum") && !kafka_.up()) lock.reset();
  std::vector<Reason> before =
      std::exchange(reasons_, ReasonsOf({.failure = failure_ ? failure_->Line() : "",
                                         .draining = stops_ > 0,
                                         .paused = flow_.paused(),
                                         .lock = std::move(lock),
                                         .output = output_,
                                         .handler = flow_.HandlerUnavailable(),
                                         .failing = flow_.Failing(),
                                         .written_again = flow_.WrittenAgain(),
                                         .dead_letters = dead_letters_,
                                         .kafka = kafka_,
                                         .refused = flow_.Refused(),
                                         .stalled = flow_.Stalled()}));
  std::erase_if(before, IsRemark);
  TellReadiness(before);
}

// While nodes are unavailable that a quorum would need. Not where waiting is for what is to be set
// right (the store's max_ttl), for a clock that tokens could not be taken from either, or for
// connections that have not been tried yet.
void WorkerCore::UpdateUnlocked(std::optional<Reason>& lock, Now now) {
  const bool unavailable = lock && lock->code != ReasonCode::kLockTtl &&
                           lock->code != ReasonCode::kLockClock &&
                           lock->code != ReasonCode::kLockConnecting;
  if (unlocked_ != unavailable) {
    unlocked_ = unavailable;
    if (unavailable) {
      observer_->OnNote(locking::Severity::kWarn, "unlocked",
                        "no lease can be acquired: records are processed without a lock, by the "
                        "ledger alone (lock.on_unavailable: proceed): " +
                            Sentence(*lock));
    } else {
      observer_->OnNote(locking::Severity::kInfo, "locked_again",
                        "records are processed under a lock again");
    }
    flow_.SetUnlocked(unavailable, now);
  }
  if (unavailable) lock = Reason{.code = ReasonCode::kUnlocked, .detail = Sentence(*lock)};
}

// Only a change of the reasons why it is not ready is told.
void WorkerCore::TellReadiness(const std::vector<Reason>& before) {
  const auto end = std::ranges::find_if(reasons_, IsRemark);
  // A quarantine that gets shorter is no change. Each node that goes has an event of its own.
  const auto same = [](const Reason& a, const Reason& b) {
    return a.code == b.code && (a.detail == b.detail || a.code == ReasonCode::kNoQuorum ||
                                a.code == ReasonCode::kLockQuarantine);
  };
  if (std::ranges::equal(before, std::ranges::subrange(reasons_.begin(), end), same)) return;
  const std::string why = WhyNotReady(reasons_);
  const bool starting = !was_ready_ && std::all_of(reasons_.begin(), end, IsBeginning);
  observer_->OnReady(ready());
  if (ready()) {
    was_ready_ = true;
    observer_->OnNote(locking::Severity::kInfo, "ready", "the worker is ready");
  } else if (stops_ == 0 && !(starting && told_starting_)) {
    observer_->OnNote(starting ? locking::Severity::kInfo : locking::Severity::kWarn, "not_ready",
                      "the worker is not ready: " + why);
  }
  told_starting_ = told_starting_ || starting;
}

}  // namespace fencepost::consumer
