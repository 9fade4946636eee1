// The way of a record, top to bottom. What concerns whole partitions is in flow_partitions.cc.
#include "consumer/flow/flow.h"

#include <algorithm>
#include <utility>

#include "consumer/flow/partition.h"
#include "locking/check.h"

namespace fencepost::consumer {

using locking::AcquireSpec;
using locking::LockEvent;
using locking::Phase;

namespace {

bool Secured(const InFlight& record) {
  return record.stage == Stage::kReady || record.stage == Stage::kWriting ||
         record.stage == Stage::kFinished;
}

// Its lease may come within a round trip: those behind it may be locked along with it.
bool Promising(const InFlight& record) {
  return record.stage == Stage::kGranted ||
         (record.stage == Stage::kLocking && !record.round_failed);
}

}  // namespace

// --- delivered ---------------------------------------------------------------------------------

void Flow::OnRecords(std::vector<Record> records, Now now) {
  std::size_t admitted = 0;
  for (Record& record : records) {
    Partition* partition = Find(record.partition, record.epoch);
    if (partition == nullptr || partition->revoking) continue;  // of an assignment that is over
    if (record.offset < partition->position) continue;          // delivered before
    Admit(*partition, std::move(record), now);
    ++admitted;
  }
  observer_->OnConsumed(admitted);
  SendWrites(now);
  Regulate(now);
}

void Flow::Admit(Partition& partition, Record record, Now now) {
  InFlight& in = *NewInFlight();
  in.partition = &partition;
  in.where = &partition.where;
  in.record = std::move(record);
  in.stage = Stage::kQueued;
  partition.position = in.record.offset + 1;
  partition.records.push_back(&in);
  ++in_flight_;
  in_flight_bytes_ += in.record.Bytes();
  JoinChain(in);
  if (Identify(in, now)) TryLock(in, now);
}

bool Flow::Identify(InFlight& in, Now now) {
  FENCEPOST_CHECK(identifier_ != nullptr, "records before the cluster id");
  const auto identified = identifier_->Identify(in.record, *in.where, in.identity);
  if (identified) return true;
  Block(in,
        {"bad_record", identified.error(), "",
         "mend the producer or record_id, or move the group's offset past it"},
        now);
  return false;
}

void Flow::JoinChain(InFlight& in) {
  if (options_.order == Order::kNone) return;
  InFlight** tail = &static_cast<Partition*>(in.partition)->chain_tail;
  if (options_.order == Order::kKey) {
    const auto& key = in.record.key;
    in.chain_key.assign(reinterpret_cast<const char*>(&in.record.partition),
                        sizeof in.record.partition);
    in.chain_key.push_back(key ? '\1' : '\0');  // the null key is a chain of its own
    if (key) in.chain_key.append(*key);
    tail = &chain_tails_[in.chain_key];
  }
  in.chain_before = *tail;
  if (*tail != nullptr) (*tail)->chain_after = &in;
  *tail = &in;
}

// --- locking -----------------------------------------------------------------------------------

// Starts to lock a queued record, if everything before it in its chain is leased or about to be.
bool Flow::TryLock(InFlight& in, Now now) {
  if (in.stage != Stage::kQueued || !taking_) return false;
  if (static_cast<Partition*>(in.partition)->revoking) return false;
  const InFlight* before = in.chain_before;
  if (before != nullptr && !Secured(*before) && !Promising(*before)) return false;
  const auto owner = owners_.find(in.identity.id);
  if (owner != owners_.end()) {
    InFlight* last = owner->second;
    while (last->twin_after != nullptr) last = last->twin_after;
    last->twin_after = &in;
    in.stage = Stage::kTwin;
    return false;
  }
  TakeOwnership(in);
  in.stage = Stage::kLocking;
  in.round_failed = false;
  scratch_ = LockName(options_.pipeline, in.identity.id);
  in.lock = locks_->Acquire(
      AcquireSpec{.name = scratch_, .cookie = in.index + 1, .wait = options_.lock_wait}, now);
  return true;
}

// After `first` was locked or secured: those behind it, as far as they wait for just that.
void Flow::LockAhead(InFlight& first, Now now) {
  for (InFlight* next = first.chain_after; next != nullptr; next = next->chain_after) {
    if (!TryLock(*next, now)) return;
  }
}

void Flow::OnLockEvents(Now now) {
  std::vector<LockEvent> events;
  while (!locks_->events().empty()) {
    events.clear();
    events.swap(locks_->events());
    for (const LockEvent& event : events) {
      if (event.cookie == 0 || event.cookie > pool_.size()) continue;
      InFlight& in = pool_[event.cookie - 1];
      if (in.stage == Stage::kUnused || in.lock != event.lock) continue;
      switch (event.kind) {
        case LockEvent::Kind::kLeased:
          OnLeased(in, event, now);
          break;
        case LockEvent::Kind::kDone:
          OnHinted(in, now);
          break;
        case LockEvent::Kind::kRoundFailed:
          OnRoundFailed(in, now);
          break;
        case LockEvent::Kind::kGaveUp:
          OnGaveUp(in, now);
          break;
        case LockEvent::Kind::kLost:
          OnLost(in, now);
          break;
        case LockEvent::Kind::kReleased:
        case LockEvent::Kind::kCompleted:
          break;
      }
    }
  }
  SendWrites(now);
  CheckDrained(now);
  Regulate(now);
}

void Flow::OnLeased(InFlight& in, const LockEvent& event, Now now) {
  in.leased = true;
  in.token = event.token;
  Secure(in, now);
}

// The name is DONE. With a ledger that is only a hint: the record is written without a lease, under
// a fresh token, and the ledger decides whether it had been.
void Flow::OnHinted(InFlight& in, Now now) {
  in.leased = false;
  in.hinted = true;
  in.lock = {};
  in.token = locks_->IssueToken(now);
  // Granted too: its lease may have run out meanwhile (SendWrites), and nobody else would fetch it.
  if (in.stage == Stage::kLocking || in.stage == Stage::kGranted) Secure(in, now);
}

// A lease counts only as part of the leased prefix of its chain. Behind a record whose first round
// is still out it waits for that round to end; behind any other it is given back at once.
void Flow::Secure(InFlight& in, Now now) {
  const InFlight* before = in.chain_before;
  if (before != nullptr && !Secured(*before)) {
    if (Promising(*before)) {
      in.stage = Stage::kGranted;
    } else {
      BackToQueue(in, now);
    }
    return;
  }
  InFlight* next = &in;
  InFlight* last = &in;
  do {
    next->stage = Stage::kReady;
    next->ready_ticket++;
    ready_.push_back({next, next->ready_ticket});
    last = next;
    next = next->chain_after;
  } while (next != nullptr && next->stage == Stage::kGranted);
  LockAhead(*last, now);
}

void Flow::OnRoundFailed(InFlight& in, Now now) {
  observer_->OnRetry(RetryStage::kLock);
  if (in.round_failed) return;
  in.round_failed = true;
  GiveBackBehind(in, now);
}

// Parked: the wait ran out. It is tried again, and again, for as long as the partition is ours.
void Flow::OnGaveUp(InFlight& in, Now now) {
  BackToQueue(in, now);
  GiveBackBehind(in, now);
  if (TryLock(in, now)) in.round_failed = true;  // nothing behind it may be locked meanwhile
}

void Flow::OnLost(InFlight& in, Now now) {
  in.leased = false;
  in.lock = {};
  if (in.stage == Stage::kWriting) {
    in.lease_lost = true;  // the ledger decides
    return;
  }
  BackToQueue(in, now);
  GiveBackBehind(in, now);
  if (TryLock(in, now)) LockAhead(in, now);
}

// Not leased, not asking, not the owner of its id.
void Flow::BackToQueue(InFlight& in, Now now) {
  if (in.leased) {
    locks_->Release(in.lock, now);
  } else if (in.stage == Stage::kLocking) {
    locks_->Cancel(in.lock, now);
  }
  in.lock = {};
  in.leased = in.hinted = in.round_failed = false;
  ++in.ready_ticket;
  in.stage = Stage::kQueued;
  LeaveOwnership(in, now);
}

// Everything behind `in` that holds or asks for a lease gives it back (invariant: prefix).
void Flow::GiveBackBehind(InFlight& in, Now now) {
  for (InFlight* next = in.chain_after; next != nullptr; next = next->chain_after) {
    const bool held = next->stage == Stage::kGranted || next->stage == Stage::kReady ||
                      next->stage == Stage::kLocking;
    if (!held) return;
    BackToQueue(*next, now);
  }
}

// --- one worker per id ------------------------------------------------------------------------

void Flow::TakeOwnership(InFlight& in) {
  in.owner = true;
  owners_.emplace(in.identity.id, &in);
}

// The next record here with the same id takes its turn.
void Flow::LeaveOwnership(InFlight& in, Now now) {
  if (!in.owner) return;
  in.owner = false;
  owners_.erase(in.identity.id);
  InFlight* twin = std::exchange(in.twin_after, nullptr);
  if (twin == nullptr) return;
  InFlight* others = std::exchange(twin->twin_after, nullptr);
  twin->stage = Stage::kQueued;
  if (TryLock(*twin, now)) {
    twin->twin_after = others;
    LockAhead(*twin, now);
    return;
  }
  // It may not be locked now: the others must not wait for it.
  while (others != nullptr) {
    InFlight* next = std::exchange(others->twin_after, nullptr);
    others->stage = Stage::kQueued;
    if (TryLock(*others, now)) LockAhead(*others, now);
    others = next;
  }
}

// --- writing -----------------------------------------------------------------------------------

// Group commit: the first transaction takes what waits; a further one goes out only when it is
// full.
void Flow::SendWrites(Now now) {
  while (!ready_.empty() && writes_out_ < options_.writes_out) {
    if (writes_out_ > 0 && ready_.size() < options_.write_batch) return;
    auto batch = std::make_unique<WriteBatch>();
    while (!ready_.empty() && batch->records.size() < options_.write_batch) {
      const ReadyEntry entry = ready_.front();
      ready_.pop_front();
      InFlight& in = *entry.record;
      if (in.stage != Stage::kReady || in.ready_ticket != entry.ticket) continue;
      if (in.leased && !locks_->Valid(in.lock, now)) {
        // Its own clock ended it; kLost is on its way and will queue it again, with those behind
        // it.
        in.stage = Stage::kGranted;
        continue;
      }
      if (in.chain_before != nullptr && !Secured(*in.chain_before)) {
        in.stage = Stage::kGranted;
        continue;
      }
      in.stage = Stage::kWriting;
      ++static_cast<Partition*>(in.partition)->writing;
      if (in.leased) locks_->SetPhase(in.lock, Phase::kWriting);
      batch->records.push_back(&in);
      batch->request.items.push_back(
          WriteItem{&in.record, in.where, in.identity.id, in.token, in.identity.crc});
    }
    if (batch->records.empty()) continue;
    batch->id = next_write_++;
    ++writes_out_;
    actions_.writes.push_back(std::move(batch));
  }
}

void Flow::OnWritten(std::unique_ptr<WriteBatch> batch, const std::vector<WriteOutcome>& outcomes,
                     Now now) {
  FENCEPOST_CHECK(outcomes.size() == batch->records.size(), "one outcome a record");
  --writes_out_;
  for (std::size_t i = 0; i < outcomes.size(); ++i) OnOutcome(*batch->records[i], outcomes[i], now);
  observer_->OnProgress(now.wall.time_since_epoch());
  Sweep();
  SendWrites(now);
  CheckDrained(now);
  Regulate(now);
}

void Flow::OnOutcome(InFlight& in, const WriteOutcome& outcome, Now now) {
  FENCEPOST_CHECK(in.stage == Stage::kWriting, "an outcome of a record that is not being written");
  --static_cast<Partition*>(in.partition)->writing;
  const bool position = options_.record_id.kind == Selector::Kind::kPosition;
  if (outcome.result == WriteResult::kIdConflict) {
    observer_->OnIdConflict();
    if (options_.on_id_conflict != OnBad::kSkip || position) {
      Block(in,
            {"id_conflict", "the id was processed with other content: " + outcome.detail, "",
             position ? "was the topic recreated? then use another pipeline name"
                      : "mend the producer, or set on_id_conflict"},
            now);
      return;
    }
  }
  if (outcome.result == WriteResult::kBadRecord) {
    Block(in,
          {"bad_record", outcome.detail, "",
           "mend the producer, the columns or the table, or move the group's offset past it"},
          now);
    return;
  }
  if (outcome.result == WriteResult::kCommitted) {
    if (in.hinted) observer_->OnInvariant(locking::Invariant::kDoneWithoutLedger);
    if (in.record.timestamp)
      observer_->OnEndToEnd(now.wall.time_since_epoch() - *in.record.timestamp);
    observer_->OnProcessed(ProcessedResult::kDone, 1);
  } else {
    if (outcome.result == WriteResult::kFenced) observer_->OnOutputFencing();
    observer_->OnDedupeSkip(in.hinted ? DedupeSource::kLock : DedupeSource::kLedger);
    observer_->OnProcessed(ProcessedResult::kSkipped, 1);
  }
  MarkDone(in, now);
  Finish(in, now);
}

// --- finished ----------------------------------------------------------------------------------

// Only after the commit is known. Sent, not awaited: the ledger holds what counts.
void Flow::MarkDone(InFlight& in, Now now) {
  if (in.leased) {
    locks_->Done(in.lock, in.identity.crc, options_.remember_done, now);
  } else if (in.lease_lost) {
    scratch_ = LockName(options_.pipeline, in.identity.id);
    locks_->MarkDone({.name = scratch_,
                      .token = in.token,
                      .crc = in.identity.crc,
                      .remember = options_.remember_done,
                      .after_loss = true},
                     now);
  }
  in.leased = in.lease_lost = false;
  in.lock = {};
}

void Flow::Finish(InFlight& in, Now now) {
  in.stage = Stage::kFinished;
  LeaveChain(in, now);
  LeaveOwnership(in, now);
  in.record.owner.reset();
  AdvanceWatermark(*static_cast<Partition*>(in.partition));
}

void Flow::LeaveChain(InFlight& in, Now now) {
  InFlight* const after = std::exchange(in.chain_after, nullptr);
  InFlight* const before = std::exchange(in.chain_before, nullptr);
  if (before != nullptr) before->chain_after = after;
  if (after != nullptr) {
    after->chain_before = before;
    if (after->stage == Stage::kGranted && (before == nullptr || Secured(*before))) {
      Secure(*after, now);
    } else if (TryLock(*after, now)) {
      LockAhead(*after, now);
    }
    return;
  }
  if (options_.order == Order::kPartition) {
    InFlight*& tail = static_cast<Partition*>(in.partition)->chain_tail;
    if (tail == &in) tail = before;
  } else if (options_.order == Order::kKey) {
    const auto tail = chain_tails_.find(in.chain_key);
    if (tail == chain_tails_.end() || tail->second != &in) return;
    if (before == nullptr) {
      chain_tails_.erase(tail);
    } else {
      tail->second = before;
    }
  }
}

void Flow::AdvanceWatermark(Partition& partition) {
  while (!partition.records.empty() && partition.records.front()->stage == Stage::kFinished) {
    InFlight& in = *partition.records.front();
    partition.records.pop_front();
    --in_flight_;
    in_flight_bytes_ -= in.record.Bytes();
    Recycle(in);
  }
  partition.watermark =
      partition.records.empty() ? partition.position : partition.records.front()->record.offset;
  const auto blocked = partition.blocked.find(partition.watermark);
  if (blocked == partition.blocked.end() || !taking_) return;
  taking_ = false;
  actions_.stop = blocked->second;
}

// The pipeline cannot go past this record: it keeps the watermark. The worker drains and stops,
// once all that was delivered before it in its partition is finished.
void Flow::Block(InFlight& in, Error error, Now now) {
  if (in.leased) locks_->Release(in.lock, now);
  in.leased = in.lease_lost = false;
  in.lock = {};
  in.stage = Stage::kBlocked;
  observer_->OnProcessed(ProcessedResult::kFailed, 1);
  error.where = SourceText(*in.where, in.record.offset);
  Partition& partition = *static_cast<Partition*>(in.partition);
  partition.blocked.emplace(in.record.offset, std::move(error));
  LeaveOwnership(in, now);  // those with the same id must not wait for it
  AdvanceWatermark(partition);
}

}  // namespace fencepost::consumer
