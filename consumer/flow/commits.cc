// How far each partition is finished, told to Kafka; and how far it is filled.
#include <algorithm>
#include <utility>

#include "consumer/flow/flow.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

constexpr Millis kAskAgain{1000};

}  // namespace

void Flow::OnPartitionEnd(const std::vector<PartitionEnd>& ends, Now now) {
  tracer_.At(now);
  for (const PartitionEnd& end : ends) {
    Assignment* partition = Find(end.partition, end.epoch);
    if (partition == nullptr) continue;
    partition->PassHoles(end.end);
    partition->UpdateEnd(end.end);
    AdvanceWatermark(*partition, now);
  }
  observer_->OnProgress(now.wall.time_since_epoch());
}

void Flow::OnHighWatermark(const std::vector<PartitionEnd>& ends) {
  for (const PartitionEnd& end : ends) {
    if (Assignment* partition = Find(end.partition, end.epoch)) {
      partition->UpdateEnd(end.end);
    }
  }
}

void Flow::Commit(Now now) {
  commit_at_ = now.boot + options_.commit_interval;
  for (const auto& [index, partition] : partitions_) partition->UpdateFailedDue(now.boot);
  if (options_.finality == Finality::kTransaction) {
    // Offsets move in transactions only: of what was skipped, and of holes, in one of their own.
    offsets_due_ = std::ranges::any_of(partitions_,
                                       [](const auto& entry) { return entry.second->CommitDue(); });
    return;
  }
  for (const auto& [index, partition] : partitions_) {
    if (partition->revoking) continue;  // its last commit comes with `drained`
    if (!partition->CommitDue()) continue;
    if (partition->WatermarkPastHole()) {
      observer_->OnInvariant(locking::Invariant::kCommitPastHole);
      Note(locking::Severity::kError, "invariant_violated",
           "commit_past_hole: an offset beyond this unfinished record was to be committed; it is "
           "not",
           *partition->Oldest());
      continue;
    }
    partition->committing = partition->watermark;
    partition->confirming = std::exchange(partition->confirm, false) || partition->confirming;
    actions_.commit.push_back({index, partition->epoch, partition->watermark,
                               partition->TakeFailed(partition->watermark, now.boot)});
  }
}

void Flow::OnCommitted(const std::vector<PartitionOffset>& offsets, std::optional<Instant> sent,
                       Now now) {
  tracer_.At(now);
  for (const PartitionOffset& offset : offsets) {
    Assignment* const partition = Find(offset.partition, offset.epoch);
    if (partition == nullptr) continue;
    const bool waited_for = partition->confirming;
    partition->OnCommitted(offset.next, sent);
    if (sent) tracer_.OnCommitted(*partition, offset.next, *sent);
    if (!waited_for) continue;
    if (!sent) {
      partition->confirm = true;
      commit_at_ = std::min(commit_at_, now.boot + kAskAgain);
      continue;
    }
    for (const Assignment::Slot& slot : partition->slots) {
      if (slot.record != nullptr && slot.record->stage() == Stage::kHandled)
        work_.Push(slot.record);
    }
  }
  Step(now);
}

bool Flow::OwnershipIsFresh(const Assignment& partition, Now now) const {
  if (!RowsArePruned() || Planted("stale_assignment_is_written")) return true;
  return partition.confirmed && now.boot - *partition.confirmed < *options_.ledger_row_lifetime / 2;
}

void Flow::Confirm(Assignment& partition, Now now) {
  if (partition.confirming || partition.confirm) return;
  partition.confirm = true;
  commit_at_ = now.boot;
}

}  // namespace fencepost::consumer
