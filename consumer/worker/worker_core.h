// One pipeline at work, sans-IO: its locks, the life of its records, the room for more of them, its
// end. A host (worker_impl.h, `fencepost test`, the simulator) hands in what happened, one input
// after the other on one thread, takes the actions after each and carries them out. It also drives
// locks(): operations to the lock nodes and their replies back
// (locking/core/lock/lock_core.h), then OnLockEvents.
//
// Readiness: what the parts say of themselves comes in as it changes (On…State, OnNodeAway), the
// rest the core knows; it is reckoned again at each of these, at RequestStop and at OnTime, which a
// host that shows it calls at least once a second. What has changed is told to the observer
// (OnReady, the notes `ready` and `not_ready`).
//
// How it ends: RequestStop, or a failure (told once, in WorkerActions::failure), and from then on
// nothing new is locked. The host makes the source leave its group, so that OnRevoked comes; after
// its answer (`drained`) the output is stopped, then OnOutputEnded is called, and the last marks
// and releases are sent.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "consumer/flow/flow.h"
#include "consumer/pipeline/observer.h"
#include "consumer/pipeline/options.h"
#include "consumer/pipeline/readiness.h"
#include "consumer/worker/delivery_credit.h"
#include "locking/base/error.h"
#include "locking/core/lock/lock_core.h"

namespace fencepost::consumer {

struct WorkerCoreOptions {
  FlowOptions flow;
  int nodes = 3;  // of the lock
  locking::LockOptions lock;
  locking::StoreCreation creation = locking::StoreCreation::kQuarantined;
  OnUnavailable on_unavailable = OnUnavailable::kPause;  // kProceed: the output has a ledger
  Nanos revoke_drain = Millis(10'000);      // a drain for a rebalance takes at most so long
  Nanos shutdown_timeout = Millis(25'000);  // … for the end of the worker
};
WorkerCoreOptions WorkerCoreOptionsOf(const PipelineOptions& options);

struct WorkerActions : FlowActions {
  // The worker ends with this error: the first one only. `stop` is always empty.
  std::optional<Error> failure;
  AssignmentEpoch epoch = 0;  // the assignment of what is to be paused and resumed
  bool room = false;          // the source waited for room, and there is some
};

class WorkerCore {
 public:
  // The observers outlive it; `lock_observer` may be nullptr.
  WorkerCore(WorkerCoreOptions options, locking::LockCore::Random random,
             locking::LockObserver* lock_observer, ConsumerObserver* observer);

  // --- the source ------------------------------------------------------------------------------
  void OnClusterId(std::string cluster_id) { flow_.OnClusterId(std::move(cluster_id)); }
  // `load`: what credit().SendAssignment() gave. `late`: as Flow::OnAssigned.
  void OnAssigned(const std::vector<AssignedPartition>& partitions, std::size_t late,
                  DeliveryCredit::Load load, Now now);
  // `drained` follows, at the latest when the limit of a drain has passed: revoke_drain, while it
  // stops shutdown_timeout, at once after a second RequestStop or where nothing can be written.
  void OnRevoked(const std::vector<PartitionIndex>& partitions, bool lost, Now now);
  // The group waits for the drain of a worker that stops: it has no longer than for a rebalance. Or
  // the group has given the partitions away (`lost`): it ends at once.
  void OnDrainAwaited(bool lost, Now now);
  // `load`: what credit().Send gave.
  void OnRecords(std::vector<Record> records, DeliveryCredit::Load load, Now now);
  void OnPartitionEnd(const std::vector<PartitionEnd>& ends, Now now) {
    flow_.OnPartitionEnd(ends, now);
  }
  void OnHighWatermark(const std::vector<PartitionEnd>& ends) { flow_.OnHighWatermark(ends); }
  // `sent`: as Flow::OnCommitted.
  void OnCommitted(const std::vector<PartitionOffset>& offsets, std::optional<Instant> sent,
                   Now now) {
    flow_.OnCommitted(offsets, sent, now);
  }
  void OnSourceFailed(Error error) { Fail(std::move(error)); }
  void OnKafkaState(PartState state, Now now);

  // --- lock nodes, handler, output, dead letters -------------------------------------------------
  void OnLockEvents(Now now) { flow_.OnLockEvents(now); }
  // An attempt to reach it failed. `why`: its address and what was the matter.
  void OnNodeAway(int node, std::string why) {
    refused_[static_cast<std::size_t>(node)] = std::move(why);
  }
  // It is up, and refuses to acquire locks: as above, or empty where it does not (any more).
  void OnNodeRefuses(int node, std::string why) {
    refuse_calls_[static_cast<std::size_t>(node)] = std::move(why);
  }
  void OnLookedUp(const LookupBatch& batch, const std::vector<std::optional<LedgerEntry>>& entries,
                  Now now) {
    flow_.OnLookedUp(batch, entries, now);
  }
  void OnHandled(HandlerAnswer answer, Now now) { flow_.OnHandled(std::move(answer), now); }
  void OnWritten(std::unique_ptr<WriteBatch> batch, const std::vector<WriteOutcome>& outcomes,
                 Now now) {
    flow_.OnWritten(std::move(batch), outcomes, now);
  }
  void OnOutputState(PartState state, Now now);
  // It can never write again: no drain waits for what is in flight.
  void OnOutputFailed(Error error, Now now);
  void OnDeadLettered(const std::vector<std::uint64_t>& published,
                      const std::vector<std::uint64_t>& refused, Now now);
  void OnDeadLetterState(PartState state, Now now);

  void Tune(const Tuning& tuning, Now now) { flow_.Tune(tuning, now); }
  // Nothing new is taken, until it is taken back; what was begun is finished.
  void SetPaused(bool paused, Now now);

  // --- the end, time -----------------------------------------------------------------------------
  // The first one: nothing new is taken. The second one: what is being drained is abandoned; its
  // leases are released, its offsets do not move.
  void RequestStop(Now now);
  void OnStopped();  // the last assignment and the output have ended
  void OnOutputEnded(Now now) { flow_.OnOutputEnded(now); }
  void OnTime(Now now);
  // When OnTime is due; locks() has a time of its own.
  [[nodiscard]] Instant NextTime() const { return flow_.NextTime(); }

  // To be carried out in the order of the fields, after every input. Offers the room again.
  [[nodiscard]] WorkerActions TakeActions();

  locking::LockCore& locks() { return locks_; }
  [[nodiscard]] const locking::LockCore& locks() const { return locks_; }
  [[nodiscard]] const Flow& flow() const { return flow_; }
  DeliveryCredit& credit() { return credit_; }
  // All that is in the way now, and remarks, the gravest first; ready: nothing but remarks.
  [[nodiscard]] const std::vector<Reason>& reasons() const { return reasons_; }
  [[nodiscard]] bool ready() const { return std::ranges::all_of(reasons_, IsRemark); }

 private:
  void Fail(Error error);
  void UpdateReadiness(Now now);
  void TellReadiness(const std::vector<Reason>& before);
  void UpdateUnlocked(std::optional<Reason>& lock, Now now);
  [[nodiscard]] std::optional<Reason> LockReason(Now now) const;
  [[nodiscard]] bool LockConnecting(Now now) const;
  [[nodiscard]] std::string NodesAway(Now now) const;
  [[nodiscard]] std::optional<Reason> CallsRefused() const;
  [[nodiscard]] Nanos DrainLimit() const;

  const Nanos revoke_drain_;
  const Nanos shutdown_timeout_;
  const Millis lock_ttl_;
  const OnUnavailable on_unavailable_;
  ConsumerObserver* const observer_;
  locking::LockCore locks_;
  Flow flow_;
  DeliveryCredit credit_;
  AssignmentEpoch epoch_ = 0;          // the newest assignment that the flow has heard of
  bool output_failed_ = false;         // nothing can be written any more
  int stops_ = 0;                      // RequestStop so far
  std::size_t given_back_before_ = 0;  // the first
  std::optional<Error> failure_;
  bool failure_told_ = false;  // in WorkerActions

  PartState kafka_;
  PartState output_;
  PartState dead_letters_{PartPhase::kUp, ""};
  // By lock node: the last attempt that failed.
  std::vector<std::optional<std::string>> refused_;
  std::vector<std::string> refuse_calls_;  // by lock node; empty: it does not
  std::vector<Reason> reasons_{{.code = ReasonCode::kStarting}};
  bool unlocked_ = false;       // records proceed without a lease
  bool was_ready_ = false;      // at any time
  bool told_starting_ = false;  // that it is not ready yet
};

}  // namespace fencepost::consumer
