#include "consumer/worker/worker_core.h"

#include <utility>

#include "locking/base/planted.h"

namespace fencepost::consumer {

WorkerCoreOptions WorkerCoreOptionsOf(const PipelineOptions& options) {
  return {.flow = FlowOptionsOf(options),
          .nodes = static_cast<int>(options.lock.redis.nodes.size()),
          .lock = options.lock.lock,
          .revoke_drain = options.processing.revoke_drain,
          .shutdown_timeout = options.shutdown_timeout};
}

WorkerCore::WorkerCore(WorkerCoreOptions options, locking::LockCore::Random random,
                       locking::LockObserver* lock_observer, ConsumerObserver* observer)
    : revoke_drain_(options.revoke_drain),
      shutdown_timeout_(options.shutdown_timeout),
      observer_(observer),
      locks_(options.nodes, options.lock, options.creation, random, lock_observer),
      flow_(std::move(options.flow), &locks_, random, observer) {}

void WorkerCore::OnAssigned(const std::vector<AssignedPartition>& partitions, std::size_t late,
                            DeliveryCredit::Load load, Now now) {
  flow_.OnAssigned(partitions, now, late);
  credit_.Offer(flow_.Room(), flow_.RoomBytes());
  credit_.Arrived(load);
}

void WorkerCore::OnRevoked(const std::vector<PartitionIndex>& partitions, bool lost, Now now) {
  flow_.OnRevoked(partitions, lost, now.boot + DrainLimit(), now);
}

Nanos WorkerCore::DrainLimit() const {
  const bool at_once = output_failed_ || (stops_ > 1 && !Planted("second_stop_waits"));
  if (at_once) return Nanos(0);
  return stops_ > 0 ? shutdown_timeout_ : revoke_drain_;
}

void WorkerCore::OnRecords(std::vector<Record> records, DeliveryCredit::Load load, Now now) {
  flow_.OnRecords(std::move(records), now);
  credit_.Offer(flow_.Room(), flow_.RoomBytes());
  credit_.Arrived(load);
}

void WorkerCore::OnOutputFailed(Error error, Now now) {
  output_failed_ = !Planted("output_failure_forgotten");
  Fail(std::move(error));
  flow_.HurryDrain(now);
}

void WorkerCore::OnDeadLettered(const std::vector<std::uint64_t>& published,
                                const std::vector<std::uint64_t>& refused, Now now) {
  flow_.OnDeadLettersRefused(refused, now);
  flow_.OnDeadLettered(published, now);
}

void WorkerCore::RequestStop(Now now) {
  ++stops_;
  stops_ == 1 ? flow_.StopTaking() : flow_.HurryDrain(now);
}

void WorkerCore::Fail(Error error) {
  if (std::exchange(failed_, true)) return;
  observer_->OnNote(locking::Severity::kError, error.code, error.Line());
  failure_ = std::move(error);
  flow_.StopTaking();
}

WorkerActions WorkerCore::TakeActions() {
  WorkerActions actions{std::exchange(flow_.actions(), FlowActions()), std::nullopt};
  if (actions.stop) Fail(*std::exchange(actions.stop, std::nullopt));
  actions.failure = std::exchange(failure_, std::nullopt);
  credit_.Offer(flow_.Room(), flow_.RoomBytes());
  return actions;
}

}  // namespace fencepost::consumer
