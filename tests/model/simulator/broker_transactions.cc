// Transactions that carry offsets of a consumer group.
#include <utility>

#include "consumer/kafka/log_identity/log_sample.h"
#include "tests/model/simulator/broker.h"
#include "tests/model/simulator/world.h"

namespace fencepost::simulator {

using consumer::PartitionOffset;

void Broker::StartProducer(int worker, int life) {
  producers_[worker] = life;
  Close(worker);
}

// An open one is aborted.
void Broker::Close(int worker) {
  const auto open = open_.find(worker);
  if (open == open_.end()) return;
  world_.Note("w{} transaction {} is aborted by the broker", worker, open->second.name.number);
  ended_[open->second.name] = TransactionState::kFenced;
  open_.erase(open);
  TryComplete();
}

TransactionState Broker::AddOffsets(const TransactionName& name, int generation,
                                    const std::vector<PartitionOffset>& offsets) {
  if (producers_[name.worker] != name.life) return TransactionState::kFenced;
  if (!Current(name.worker, name.life, generation)) return TransactionState::kRefused;
  open_[name.worker] = {name, generation, offsets};
  world_.time.In(world_.plan.transaction_timeout, [this, name] {
    const auto open = open_.find(name.worker);
    if (open == open_.end() || open->second.name != name) return;
    world_.Count("transactions timed out");
    producers_[name.worker] = -1;
    Close(name.worker);
  });
  return TransactionState::kOpen;
}

TransactionState Broker::EndTransaction(const TransactionName& name,
                                        const std::vector<Produced>& items) {
  const auto ended = ended_.find(name);
  if (ended != ended_.end()) return ended->second;
  const auto found = open_.find(name.worker);
  if (found == open_.end() || found->second.name != name) return TransactionState::kFenced;
  const Open open = std::move(found->second);
  open_.erase(found);
  const bool abort = world_.Strikes(Fault::kAborts, world_.plan.aborts);
  const auto state = abort ? TransactionState::kAborted : TransactionState::kCommitted;
  ended_[name] = state;
  if (!abort) {
    world_.Note("w{} transaction {} of {} records is committed", name.worker, name.number,
                items.size());
    world_.checks.OnTransaction(
        {name.worker, name.life, static_cast<consumer::AssignmentEpoch>(open.generation),
         world_.time.now()},
        items, open.offsets);
    for (const PartitionOffset& offset : open.offsets) {
      Log& log = logs[offset.partition];
      world_.Note("w{} moves partition {} to {}", name.worker, offset.partition, offset.next);
      world_.checks.OnCommit(static_cast<int>(offset.partition), offset.next);
      log.committed = offset.next;
      log.any_committed = true;
      log.metadata = consumer::MetadataText({{}, offset.failed}, offset.next);
    }
  }
  TryComplete();
  return state;
}

}  // namespace fencepost::simulator
