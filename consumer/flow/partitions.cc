// The flow's partitions: assigned, revoked and drained.
#include <algorithm>
#include <utility>

#include "consumer/flow/flow.h"
#include "locking/base/check.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {

void Flow::OnAssigned(const std::vector<AssignedPartition>& partitions, Now now, std::size_t late) {
  tracer_.At(now);
  if (commit_at_ == Instant::max()) commit_at_ = now.boot + options_.commit_interval;
  for (const AssignedPartition& assigned : partitions) {
    std::unique_ptr<Assignment>& place = partitions_[assigned.partition];
    FENCEPOST_CHECK(place == nullptr, "a partition was assigned twice without a revoke");
    place = std::make_unique<Assignment>(assigned);
    place->chain.id = next_chain_++;
    if (!OwnershipIsFresh(*place, now)) Confirm(*place, now);
  }
  backpressure_.OnAssigned(late);
  UpdateBackpressure(now);
}

void Flow::OnRevoked(const std::vector<PartitionIndex>& partitions, bool lost, Instant deadline,
                     Now now) {
  tracer_.At(now);
  drain_ = Drain{.partitions = partitions, .lost = lost, .deadline = lost ? now.boot : deadline};
  for (const PartitionIndex index : partitions) {
    const auto found = partitions_.find(index);
    if (found == partitions_.end()) continue;
    Assignment& partition = *found->second;
    partition.revoking = true;
    // It may be another's by now, and nothing can be asked any more.
    if (!OwnershipIsFresh(partition, now)) {
      LeavePartition(std::move(found->second), now);
      partitions_.erase(found);
      continue;
    }
    // Only the leased prefix of each chain is finished, as far as it was begun; the rest leaves no
    // trace for the next owner.
    for (std::size_t at = 0; at < partition.slots.size(); ++at) {
      InFlight* in = partition.slots[at].record;
      if (in == nullptr) continue;
      if (in->stage() == Stage::kPublishingDeadLetter && in->letter_refused)
        locks_.GiveBackBehind(*in, now);
      const bool begun =
          Begun(in->stage()) || in->letter != nullptr || in->handled || !options_.handler.outside();
      const bool give_back = in->stage() == Stage::kLocking || in->stage() == Stage::kGranted ||
                             AwaitsTime(in->stage()) || (!begun && InLeasedPrefix(in->stage()));
      if (give_back) {
        locks_.GiveBackFrom(*in, now);
      } else {
        calls_.Withdraw(*in);
      }
    }
  }
  Sweep();
  Step(now);
}

void Flow::CheckDrained(Now now) {
  if (!drain_) return;
  const bool transaction = options_.finality == Finality::kTransaction;
  if (now.boot < drain_->deadline) {
    bool unsent = false;  // offsets that moved without a record to write
    for (const PartitionIndex index : drain_->partitions) {
      const auto found = partitions_.find(index);
      if (found == partitions_.end()) continue;
      // What is not surely ours any more is not written: nothing is asked while it is revoked.
      Assignment& partition = *found->second;
      if (partition.Busy() && (partition.writing > 0 || OwnershipIsFresh(partition, now))) return;
      partition.UpdateFailedDue(now.boot);
      unsent = unsent || partition.CommitDue();
    }
    if (transaction && writes_out_ > 0) return;
    if (transaction && unsent && !std::exchange(drain_->offsets_sent, true)) {
      offsets_due_ = true;
      SendWrites(now);
      return;
    }
  }
  const Drain drain = *std::exchange(drain_, std::nullopt);
  std::vector<PartitionOffset> offsets;
  for (const PartitionIndex index : drain.partitions) {
    const auto found = partitions_.find(index);
    if (found == partitions_.end()) continue;
    Assignment& partition = *found->second;
    if (!drain.lost) FinishPublished(partition, now);
    const bool moved = partition.watermark > partition.committed;
    const bool failed = partition.failed_changed || !partition.failed.empty();
    if (!drain.lost && !transaction && (moved || failed)) {
      offsets.push_back({partition.index, partition.epoch, partition.watermark,
                         partition.TakeFailed(partition.watermark, now.boot)});
    }
    LeavePartition(std::move(found->second), now);
    partitions_.erase(found);
  }
  Advance(now);
  Sweep();
  // A dead letter that nobody has taken yet is the next owner's.
  std::erase_if(actions_.dead_letters,
                [this](const DeadLetter& letter) { return FindReference(letter.id) == nullptr; });
  actions_.drained = std::move(offsets);
}

// A dead letter is out, and its offset is not done in the ledger: it lost its lease, or the time is
// over. The group's offset passes it all the same, or the next owner publishes it a second time;
// the hole in the ledger does no harm.
void Flow::FinishPublished(Assignment& partition, Now now) {
  std::vector<InFlight*> published;
  for (const Assignment::Slot& slot : partition.slots) {
    if (slot.record != nullptr && slot.record->letter_out) published.push_back(slot.record);
  }
  for (InFlight* in : published) {
    // Its place in the pool stays until the output has answered.
    in->stage() == Stage::kWriting ? partition.Finish(*in) : Finish(*in, now);
  }
  AdvanceWatermark(partition, now);
}

void Flow::LeavePartition(std::unique_ptr<Assignment> partition, Now now) {
  Abandon(*partition, now);
  observer_->OnPartitionGone(partition->where);
  leaving_.push_back(std::move(partition));
}

// The partition is no longer ours. Records that the output has in its hands stay until it answers.
void Flow::Abandon(Assignment& partition, Now now) {
  partition.gone = true;
  for (const Assignment::Slot& slot : std::exchange(partition.slots, {})) {
    InFlight* in = slot.record;
    if (in == nullptr) continue;
    ++given_back_;
    if (in->stage() != Stage::kWriting) Drop(*in, now);
  }
}

void Flow::Drop(InFlight& in, Now now) {
  tracer_.End(in, "given_back");
  if (in.stage() == Stage::kPublishingDeadLetter)
    actions_.dropped_letters.push_back(in.Reference());
  if (in.stage() == Stage::kWaitingForSameId) {
    locks_.Leave(in, now);
  } else if (in.stage() != Stage::kFinished && in.stage() != Stage::kBlocked) {
    locks_.BackToQueue(in, now);
  }
  in.BecomeFinished();
  LeaveChain(in);
  Recycle(in);
}

void Flow::Sweep() {
  std::erase_if(leaving_, [](const auto& partition) { return partition->writing == 0; });
  std::erase_if(withheld_, [](const QueueEntry& entry) { return entry.Stale(); });
}

void Flow::HurryDrain(Instant deadline, Now now) {
  if (!drain_) return;
  tracer_.At(now);
  drain_->deadline = std::min(drain_->deadline, deadline);
  CheckDrained(now);
}

Assignment* Flow::Find(PartitionIndex index, AssignmentEpoch epoch) {
  const auto found = partitions_.find(index);
  if (found == partitions_.end() || found->second->epoch != epoch) return nullptr;
  return found->second.get();
}

}  // namespace fencepost::consumer
