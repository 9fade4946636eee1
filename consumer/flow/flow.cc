// The way of a record: delivered, identified, queued in its order chain, and at the end finished.
// Between those: flow_locks.cc (locking), flow_handling.cc (the handler), flow_writing.cc.
#include "consumer/flow/flow.h"

#include <utility>

#include "locking/base/check.h"

namespace fencepost::consumer {

std::string_view StageName(Stage stage) {
  switch (stage) {
    case Stage::kUnused:
      return "unused";
    case Stage::kQueued:
      return "queued";
    case Stage::kWithheld:
      return "bad, waiting for any record to take effect";
    case Stage::kTwin:
      return "waiting for a record with the same id";
    case Stage::kLocking:
      return "locking";
    case Stage::kGranted:
      return "leased, waiting for its order";
    case Stage::kLookup:
      return "looked up in the ledger";
    case Stage::kWaiting:
      return "waiting for the handler";
    case Stage::kHandling:
      return "handling";
    case Stage::kRetrying:
      return "waiting for the next attempt";
    case Stage::kHandled:
      return "handled, waiting for its order";
    case Stage::kReady:
      return "ready to be written";
    case Stage::kWriting:
      return "writing";
    case Stage::kMarking:
      return "marking as done";
    case Stage::kDying:
      return "publishing as a dead letter";
    case Stage::kBlocked:
      return "blocked";
    case Stage::kFinished:
      return "finished";
  }
  return "unknown";
}

namespace {

// Bytes that the values hold, with what their places cost.
std::uint64_t SizeOf(const HandlerValues& values) {
  std::uint64_t bytes = values.capacity() * sizeof(HandlerValues::value_type);
  for (const auto& value : values) bytes += value ? value->size() : 0;
  return bytes;
}

}  // namespace

// --- delivered ---------------------------------------------------------------------------------

void Flow::OnRecords(std::vector<Record> records, Now now) {
  std::size_t admitted = 0;
  for (Record& record : records) {
    Assignment* partition = Find(record.partition, record.epoch);
    if (partition == nullptr || partition->revoking) continue;  // of an assignment that is over
    if (record.offset < partition->position) continue;          // delivered before
    Admit(*partition, std::move(record), now);
    ++admitted;
  }
  observer_->OnConsumed(admitted);
  Step(now);
}

void Flow::Admit(Assignment& partition, Record record, Now now) {
  FENCEPOST_CHECK(identifier_ != nullptr, "records before the cluster id");
  InFlight& in = *NewInFlight();
  in.assignment = &partition;
  in.where = &partition.where;
  in.record = std::move(record);
  in.stage = Stage::kQueued;
  partition.Deliver(in, now.boot);
  ++in_flight_;
  Count(in);
  if (!partition.crowded && partition.finished_behind() >= options_.max_finished_behind) {
    partition.crowded = true;
    ++crowded_;
  }
  JoinChain(in);
  const auto identified = identifier_->Identify(in.record, *in.where, in.identity);
  if (identified) {
    TryLock(in, now);
  } else {
    in.nameless = true;
    in.identity.id.clear();
    Refuse(in,
           {.error_class = "bad_record",
            .text = identified.error(),
            .shown = identified.error(),
            .cause = LetterCause::kIdentity},
           now);
  }
}

void Flow::JoinChain(InFlight& in) {
  if (options_.order == Order::kNone) return;
  Chain* chain = &in.assignment->chain;
  if (options_.order == Order::kKey) {
    const auto& key = in.record.key;
    in.chain_key.assign(reinterpret_cast<const char*>(&in.record.partition),
                        sizeof in.record.partition);
    in.chain_key.push_back(key ? '\1' : '\0');  // the null key is a chain of its own
    if (key) in.chain_key.append(*key);
    chain = &chains_[in.chain_key];
  }
  if (chain->id == 0) chain->id = next_chain_++;
  in.chain = chain->id;
  in.chain_before = chain->tail;
  if (chain->tail != nullptr) chain->tail->chain_after = &in;
  chain->tail = &in;
}

// --- secured -----------------------------------------------------------------------------------

// A lease counts only as part of the leased prefix of its chain. Behind a record whose first round
// is still out it waits for that round to end; behind any other it is given back at once.
void Flow::Secure(InFlight& in, Now now) {
  if (const InFlight* gap = Gap(in)) {
    if (Promising(*gap)) {
      in.stage = Stage::kGranted;
    } else {
      BackToQueue(in, now);
    }
    return;
  }
  InFlight* last = &in;
  Proceed(in, now);
  while (last->chain_after != nullptr && last->chain_after->stage == Stage::kGranted) {
    last = last->chain_after;
    Proceed(*last, now);
  }
  LockAhead(*last, now);
}

// What comes next for a record that is secured.
void Flow::Proceed(InFlight& in, Now now) {
  SetFallen(in, false);
  const bool ledger = options_.finality == Finality::kLedger;
  if (in.call != 0) {  // a call that was called off is still out: OnHandled comes back here
    in.stage = Stage::kWaiting;
    return;
  }
  if (in.hinted && !ledger) return CompleteHinted(in, now);
  if (in.letter != nullptr) return Bury(in, now);
  if (ledger && options_.handler.outside()) return AskLedger(in);
  if (options_.handler.any() && !in.handled) return WaitForTurn(in);
  in.stage = Stage::kHandled;
  PassOn(in, now);
}

// Handled: it may be written as soon as everything before it in its chain is handled, and so may
// those behind it that waited for just that.
void Flow::PassOn(InFlight& in, Now now) {
  if (in.chain_before != nullptr && !Handled(*in.chain_before)) return;
  InFlight* next = &in;
  for (; next != nullptr && next->stage == Stage::kHandled; next = next->chain_after) {
    next->stage = Stage::kReady;
    ready_.push_back(EntryOf(*next, now.boot));
  }
  if (next != nullptr && next->stage == Stage::kWaiting) {
    waiting_.push_back(EntryOf(*next, now.boot));
  }
}

// --- finished ----------------------------------------------------------------------------------

// Behind an unfinished record it leaves its offset, and nothing that takes room.
void Flow::Finish(InFlight& in, Now now) {
  Assignment& partition = *in.assignment;
  in.stage = Stage::kFinished;
  ++in.ticket;
  LeaveOwnership(in, now);
  LeaveChain(in, now);
  if (!partition.gone) partition.Finish(in);
  Recycle(in);
  AdvanceWatermark(partition, now);
}

// What it holds counts against max_in_flight_bytes: the record, what a handler made of it, and its
// dead letter.
void Flow::Count(InFlight& in) {
  std::uint64_t bytes = in.record.Bytes() + SizeOf(in.values);
  if (in.letter != nullptr) bytes += in.letter->error.size() + sizeof(DeadLetter);
  Assignment& partition = *in.assignment;
  partition.bytes += bytes - in.bytes;
  in_flight_bytes_ += bytes - in.bytes;
  in.bytes = bytes;
}

void Flow::LeaveChain(InFlight& in, Now now) {
  SetFallen(in, false);
  InFlight* const after = std::exchange(in.chain_after, nullptr);
  InFlight* const before = std::exchange(in.chain_before, nullptr);
  if (before != nullptr) before->chain_after = after;
  if (after != nullptr) {
    after->chain_before = before;
    if (after->stage == Stage::kGranted) {
      if (Gap(*after) == nullptr) Secure(*after, now);
    } else if (after->stage == Stage::kHandled) {
      PassOn(*after, now);
    } else if (after->stage == Stage::kWaiting) {
      waiting_.push_back(EntryOf(*after, now.boot));
    } else if (TryLock(*after, now)) {
      LockAhead(*after, now);
    }
    return;
  }
  if (options_.order == Order::kPartition) {
    InFlight*& tail = in.assignment->chain.tail;
    if (tail == &in) tail = before;
  } else if (options_.order == Order::kKey) {
    const auto chain = chains_.find(in.chain_key);
    if (chain == chains_.end() || chain->second.tail != &in) return;
    if (before == nullptr) {
      chains_.erase(chain);
    } else {
      chain->second.tail = before;
    }
  }
}

void Flow::AdvanceWatermark(Assignment& partition, Now now) {
  if (partition.gone) return;
  partition.AdvanceWatermark(now.boot);
  if (partition.crowded && partition.finished_behind() <= options_.max_finished_behind / 2) {
    partition.crowded = false;
    --crowded_;
  }
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
  ++in.ticket;
  SetFallen(in, true);
  in.stage = Stage::kBlocked;
  GiveBackBehind(in, now);
  observer_->OnProcessed(ProcessedResult::kFailed, 1);
  error.where = SourceText(*in.where, in.record.offset);
  Assignment& partition = *in.assignment;
  partition.blocked.emplace(in.record.offset, std::move(error));
  LeaveOwnership(in, now);  // those with the same id must not wait for it
  AdvanceWatermark(partition, now);
}

// --- the pool ----------------------------------------------------------------------------------

InFlight* Flow::NewInFlight() {
  if (unused_.empty()) {
    InFlight& in = pool_.emplace_back();
    in.index = static_cast<std::uint32_t>(pool_.size() - 1);
    return &in;
  }
  InFlight& in = pool_[unused_.back()];
  unused_.pop_back();
  return &in;
}

InFlight* Flow::FindReference(std::uint64_t reference) {
  const auto index = static_cast<std::uint32_t>(reference);
  if (index >= pool_.size() || pool_[index].Reference() != reference) return nullptr;
  return &pool_[index];
}

void Flow::Recycle(InFlight& in) {
  FENCEPOST_CHECK(!in.owner && in.twin_after == nullptr && in.chain_after == nullptr,
                  "a record is recycled while others hang on it");
  --in_flight_;
  in_flight_bytes_ -= in.bytes;
  in.assignment->bytes -= in.bytes;
  in.bytes = 0;
  in.record = Record();
  in.stage = Stage::kUnused;
  in.hinted = in.leased = in.lease_lost = in.round_failed = false;
  in.nameless = in.handled = in.effect_done = in.let_out = false;
  in.attempts = in.failures = in.marks = 0;
  in.call = 0;
  in.values = HandlerValues();
  in.letter.reset();
  in.cause.reset();
  ++in.ticket;
  in.lock = {};
  in.token = {};
  in.chain_before = nullptr;
  in.chain = 0;
  in.assignment = nullptr;
  unused_.push_back(in.index);
}

}  // namespace fencepost::consumer
