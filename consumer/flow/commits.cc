// How far each partition is finished, told to Kafka; and how far it is filled.
#include <algorithm>

#include "consumer/flow/flow.h"

namespace fencepost::consumer {

void Flow::OnPartitionEnd(const std::vector<PartitionEnd>& ends, Now now) {
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
    actions_.commit.push_back({index, partition->epoch, partition->watermark});
  }
}

void Flow::OnCommitted(const std::vector<PartitionOffset>& offsets, bool ok) {
  for (const PartitionOffset& offset : offsets) {
    if (Assignment* partition = Find(offset.partition, offset.epoch)) {
      partition->OnCommitted(offset.next, ok);
    }
  }
}

}  // namespace fencepost::consumer
