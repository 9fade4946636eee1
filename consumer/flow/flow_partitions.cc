// The flow's partitions: assigned, revoked, committed; and time.
#include <algorithm>
#include <utility>

#include "consumer/flow/flow.h"
#include "locking/base/check.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {
FlowOptions FlowOptionsOf(const PipelineOptions& options) {
  FlowOptions flow;
  flow.pipeline = options.name;
  flow.record_id = options.record_id;
  flow.accept_replay_ids = options.kafka.accept_replay_ids;
  flow.order = options.processing.order;
  flow.on_id_conflict = options.on_id_conflict;
  flow.on_bad_record = options.on_bad_record;
  flow.finality = FinalityOf(options.output);
  flow.handler = options.handler;
  flow.retry = options.retry;
  flow.concurrency = static_cast<std::size_t>(options.processing.concurrency);
  flow.handler_timeout = options.processing.timeout;
  flow.dead_letters = options.dead_letter.has_value();
  flow.max_consecutive = options.max_consecutive();
  flow.stall_after = options.processing.stall_after;
  flow.max_in_flight = static_cast<std::size_t>(options.processing.max_in_flight);
  flow.max_in_flight_bytes = options.processing.max_in_flight_bytes;
  flow.lock_wait = options.lock.wait;
  flow.remember_done = options.lock.lock.remember_done;
  flow.commit_interval = options.kafka.commit_interval;
  if (const auto* kafka = std::get_if<KafkaOutputOptions>(&options.output)) {
    flow.order = Order::kPartition;  // a transaction holds a prefix of each partition
    flow.write_batch = static_cast<std::size_t>(kafka->max_records);
    flow.writes_out = 1;
    flow.linger = kafka->linger;
  } else if (const auto* postgres = std::get_if<PostgresOptions>(&options.output)) {
    flow.write_batch = static_cast<std::size_t>(postgres->max_records);
  } else if (const auto* sqlite = std::get_if<SqliteOptions>(&options.output)) {
    flow.write_batch = static_cast<std::size_t>(sqlite->max_records);
  }
  return flow;
}

Flow::Flow(FlowOptions options, locking::LockCore* locks, locking::LockCore::Random random,
           ConsumerObserver* observer)
    : options_(std::move(options)),
      way_{options_.finality, options_.handler.any(), options_.handler.outside()},
      locks_(locks),
      random_(std::move(random)),
      observer_(observer),
      gate_(options_.max_consecutive) {}

Flow::~Flow() = default;

void Flow::OnClusterId(std::string cluster_id) {
  identifier_ = std::make_unique<Identifier>(options_.record_id, std::move(cluster_id),
                                             options_.accept_replay_ids);
}

// --- assigned and revoked ----------------------------------------------------------------------

void Flow::OnAssigned(const std::vector<AssignedPartition>& partitions, Now now, std::size_t late) {
  late_ = late;
  for (const AssignedPartition& assigned : partitions) {
    std::unique_ptr<Assignment>& place = partitions_[assigned.partition];
    FENCEPOST_CHECK(place == nullptr, "a partition was assigned twice without a revoke");
    place = std::make_unique<Assignment>(assigned);
  }
  if (commit_at_ == Instant::max()) commit_at_ = now.boot + options_.commit_interval;
  uneven_ = true;
  UpdateBackpressure(now);
}

void Flow::OnRevoked(const std::vector<PartitionIndex>& partitions, bool lost, Instant deadline,
                     Now now) {
  draining_ = true;
  drain_lost_ = lost;
  drain_deadline_ = lost ? now.boot : deadline;
  drain_partitions_ = partitions;
  for (const PartitionIndex index : partitions) {
    const auto found = partitions_.find(index);
    if (found == partitions_.end()) continue;
    Assignment& partition = *found->second;
    partition.revoking = true;
    // Only the leased prefix of each chain is finished, as far as it was begun; the rest leaves no
    // trace for the next owner.
    for (std::size_t at = 0; at < partition.slots.size(); ++at) {
      InFlight* in = partition.slots[at].record;
      if (in == nullptr) continue;
      if (in->stage() == Stage::kPublishingDeadLetter && in->letter_refused)
        GiveBackBehind(*in, now);
      const bool begun =
          Begun(in->stage()) || in->letter != nullptr || in->handled || !options_.handler.outside();
      const bool give_back = in->stage() == Stage::kLocking || in->stage() == Stage::kGranted ||
                             in->stage() == Stage::kRetrying ||
                             (!begun && InLeasedPrefix(in->stage()));
      if (!give_back) continue;
      BackToQueue(*in, now);
      GiveBackBehind(*in, now);
    }
  }
  Step(now);
}

// After every input: what has become possible is asked for; nothing of a partition whose time is
// over.
void Flow::Step(Now now) {
  Advance(now);
  LetOut(now);
  CheckDrained(now);
  SendLookups();
  StartCalls(now);
  SendWrites(now);
  UpdateBackpressure(now);
}

void Flow::CheckDrained(Now now) {
  if (!draining_) return;
  const bool transaction = options_.finality == Finality::kTransaction;
  if (now.boot < drain_deadline_) {
    bool unsent = false;  // offsets that moved without a record to write
    for (const PartitionIndex index : drain_partitions_) {
      const auto found = partitions_.find(index);
      if (found == partitions_.end()) continue;
      if (found->second->Busy()) return;
      unsent = unsent || found->second->CommitDue();
    }
    if (transaction && writes_out_ > 0) return;
    if (transaction && unsent && !std::exchange(drain_offsets_sent_, true)) {
      offsets_due_ = true;
      SendWrites(now);
      return;
    }
  }
  draining_ = drain_offsets_sent_ = false;
  drain_deadline_ = Instant::max();
  std::vector<PartitionOffset> offsets;
  for (const PartitionIndex index : drain_partitions_) {
    const auto found = partitions_.find(index);
    if (found == partitions_.end()) continue;
    Assignment& partition = *found->second;
    if (!drain_lost_ && !transaction && partition.watermark > partition.committed) {
      offsets.push_back({partition.index, partition.epoch, partition.watermark});
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

void Flow::LeavePartition(std::unique_ptr<Assignment> partition, Now now) {
  Abandon(*partition, now);
  if (std::exchange(partition->crowded, false)) --crowded_;
  if (std::exchange(partition->greedy_since, std::nullopt)) --greedy_;
  observer_->OnPartitionGone(partition->where);
  leaving_.push_back(std::move(partition));
}

// The partition is no longer ours. Records that the output has in its hands stay until it answers.
void Flow::Abandon(Assignment& partition, Now now) {
  partition.gone = true;
  for (const Assignment::Slot& slot : std::exchange(partition.slots, {})) {
    InFlight* in = slot.record;
    if (in != nullptr && in->stage() != Stage::kWriting) Drop(*in, now);
  }
}

void Flow::Drop(InFlight& in, Now now) {
  if (in.stage() == Stage::kPublishingDeadLetter)
    actions_.dropped_letters.push_back(in.Reference());
  if (in.stage() == Stage::kWaitingForSameId) {
    LeaveUnit(in, now);
  } else if (in.stage() != Stage::kFinished && in.stage() != Stage::kBlocked) {
    BackToQueue(in, now);
  }
  in.BecomeFinished();
  LeaveChain(in);
  Recycle(in);
}

void Flow::Sweep() {
  std::erase_if(leaving_, [](const auto& partition) { return partition->writing == 0; });
  std::erase_if(withheld_, [](const Entry& entry) { return entry.record->ticket != entry.ticket; });
}

void Flow::StopTaking() { taking_ = false; }

void Flow::HurryDrain(Now now) {
  if (!draining_) return;
  drain_deadline_ = std::min(drain_deadline_, now.boot);
  CheckDrained(now);
}

void Flow::OnOutputEnded(Now now) {
  for (InFlight& in : pool_) {
    if (in.stage() == Stage::kWriting && Leased(in)) EndLease(*in.unit, now);
  }
}

Assignment* Flow::Find(PartitionIndex index, AssignmentEpoch epoch) {
  const auto found = partitions_.find(index);
  if (found == partitions_.end() || found->second->epoch != epoch) return nullptr;
  return found->second.get();
}

// --- offsets -----------------------------------------------------------------------------------

void Flow::OnPartitionEnd(const std::vector<PartitionEnd>& ends, Now now) {
  for (const PartitionEnd& end : ends) {
    Assignment* partition = Find(end.partition, end.epoch);
    if (partition == nullptr) continue;
    partition->PassHoles(end.end);
    partition->HearEnd(end.end);
    AdvanceWatermark(*partition, now);
  }
  observer_->OnProgress(now.wall.time_since_epoch());
}

void Flow::OnHighWatermark(const std::vector<PartitionEnd>& ends) {
  for (const PartitionEnd& end : ends) {
    if (Assignment* partition = Find(end.partition, end.epoch)) {
      partition->HearEnd(end.end);
    }
  }
}

void Flow::Commit(Now now, bool all) {
  commit_at_ = now.boot + options_.commit_interval;
  if (options_.finality == Finality::kTransaction) {
    // Offsets move in transactions only: of what was skipped, and of holes, in one of their own.
    offsets_due_ = std::ranges::any_of(partitions_,
                                       [](const auto& entry) { return entry.second->CommitDue(); });
    return;
  }
  for (const auto& [index, partition] : partitions_) {
    if (partition->revoking && !all) continue;  // its last commit comes with `drained`
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

// --- time --------------------------------------------------------------------------------------

void Flow::OnTime(Now now) {
  if (now.boot >= commit_at_) Commit(now, false);
  if (now.boot >= report_at_) Report(now);
  if (Planted("dead_letter_without_its_acknowledgement")) {
    for (InFlight& in : pool_) {
      if (in.stage() == Stage::kPublishingDeadLetter) OnDeadLetterPublished(in, now);
    }
  }
  while (!timers_.empty() && timers_.top().at <= now.boot) {
    const Entry entry = timers_.top();
    timers_.pop();
    InFlight& in = *entry.record;
    if (in.ticket != entry.ticket) continue;
    if (in.stage() == Stage::kRetrying) WaitForTurn(in);
    if (in.stage() == Stage::kMarking && !in.unit->lock()) MarkAgain(in, now);
  }
  Step(now);
}

Instant Flow::NextTime() const {
  Instant next = std::min({commit_at_, report_at_, drain_deadline_, hold_at_});
  if (!timers_.empty()) next = std::min(next, timers_.top().at);
  if (options_.finality == Finality::kTransaction && !ready_.empty() && writes_out_ == 0) {
    next = std::min(next, ready_.front().at + options_.linger);
  }
  return next;
}

}  // namespace fencepost::consumer
