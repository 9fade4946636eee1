// The way of a record: delivered, identified, queued in its order chain, and at the end finished.
// Between those: flow_locks.cc (locking), flow_handling.cc (the handler), flow_writing.cc.
#include "consumer/flow/flow.h"

#include <utility>

#include "locking/base/check.h"

namespace fencepost::consumer {

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
  in.BecomeQueued();
  partition.Deliver(in, now.boot);
  ++in_flight_;
  Count(in);
  if (!partition.crowded && partition.finished_behind() >= options_.max_finished_behind) {
    partition.crowded = true;
    ++crowded_;
  }
  JoinChain(in);
  const auto identified = identifier_->Identify(in.record, *in.where, in.identity);
  work_.Push(&in);
  if (!identified) {
    in.nameless = true;
    in.identity.id.clear();
    Refuse(in,
           {.error_class = "bad_record",
            .text = identified.error(),
            .shown = identified.error(),
            .cause = LetterCause::kIdentity},
           now);
  }
  Advance(now);
}

void Flow::JoinChain(InFlight& in) {
  if (options_.order == Order::kNone) return;
  OrderChain* chain = &in.assignment->chain;
  if (options_.order == Order::kKey) {
    const auto& key = in.record.key;
    scratch_.assign(reinterpret_cast<const char*>(&in.record.partition),
                    sizeof in.record.partition);
    scratch_.push_back(key ? '\1' : '\0');  // the null key is a chain of its own
    if (key) scratch_.append(*key);
    const auto place = chains_.try_emplace(scratch_).first;
    chain = &place->second;
    chain->key = place->first;
  }
  if (chain->id == 0) chain->id = next_chain_++;
  chain->Join(in);
}

// --- on its way --------------------------------------------------------------------------------

// Asks each record for which something has changed what it does next, and does it, until nothing
// changes any more. Phases only do; what becomes possible by that they push on the work list.
void Flow::Advance(Now now) {
  while (InFlight* in = work_.Pop()) {
    if (in->stage() == Stage::kUnused) continue;  // finished meanwhile
    ++advanced_;
    Do(*in, Next(*in, PlaceOf(*in), way_), now);
  }
}

Place Flow::PlaceOf(const InFlight& in) const {
  const InFlight* const gap = WaitsForPrefix(in.stage()) ? NotLeasedBefore(in) : nullptr;
  return {.before = gap == nullptr             ? Before::kInPrefix
                    : LeaseMayArriveSoon(*gap) ? Before::kMaySoon
                                               : Before::kNotSoon,
          .before_handled = in.chain_before == nullptr || Handled(*in.chain_before),
          .may_lock = taking_ && !in.assignment->revoking};
}

void Flow::Do(InFlight& in, Move move, Now now) {
  switch (move) {
    case Move::kStay:
      break;
    case Move::kLock:
      if (Lock(in, now)) work_.Push(in.chain_after);
      break;
    case Move::kAwaitPrefix:
      in.BecomeGranted();
      if (in.nameless) work_.Push(in.chain_after);
      break;
    case Move::kGiveBack:
      BackToQueue(in, now);
      break;
    case Move::kTakeTurn:
      waiting_.push_back(EntryOf(in, now.boot));
      break;
    case Move::kJoinWrites:
      in.BecomeReady();
      ready_.push_back(EntryOf(in, now.boot));
      work_.Push(in.chain_after);
      break;
    default:
      EnterLeasedPrefix(in, move, now);
      break;
  }
}

// A lease counts only as part of the leased prefix of its chain. Those behind it may be locked, or
// enter it too.
void Flow::EnterLeasedPrefix(InFlight& in, Move move, Now now) {
  MarkOutOfPrefix(in, false);
  work_.Push(in.chain_after);
  switch (move) {
    case Move::kAwaitFormerCall:  // OnHandled puts it on the work list again
      in.BecomeWaiting();
      break;
    case Move::kCompleteFromMark:
      CompleteHinted(in, now);
      break;
    case Move::kStartDeadLetter:
      StartDeadLetter(in, now);
      break;
    case Move::kLookUp:
      AskLedger(in);
      break;
    case Move::kAwaitTurn:
      WaitForTurn(in);
      break;
    default:
      in.BecomeHandled();
      work_.Push(&in);
      break;
  }
}

// --- finished ----------------------------------------------------------------------------------

// Behind an unfinished record it leaves its offset, and nothing that takes room.
void Flow::Finish(InFlight& in, Now now) {
  Assignment& partition = *in.assignment;
  in.BecomeFinished();
  LeaveUnit(in, now);
  LeaveChain(in);
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

void Flow::LeaveChain(InFlight& in) {
  OrderChain* const chain = in.chain;
  if (chain == nullptr) return;
  work_.Push(chain->Leave(in));
  if (chain->tail != nullptr || options_.order != Order::kKey) return;
  scratch_.assign(chain->key);
  chains_.erase(scratch_);
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
  MarkOutOfPrefix(in, true);
  in.BecomeBlocked();
  GiveBackBehind(in, now);
  observer_->OnProcessed(ProcessedResult::kFailed, 1);
  error.where = SourceText(*in.where, in.record.offset);
  Assignment& partition = *in.assignment;
  partition.blocked.emplace(in.record.offset, std::move(error));
  LeaveUnit(in, now);  // those with the same id must not wait for it
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
  FENCEPOST_CHECK(!in.to_advance, "a place is used again while it stands in the work list");
  return &in;
}

InFlight* Flow::FindReference(std::uint64_t reference) {
  const auto index = static_cast<std::uint32_t>(reference);
  if (index >= pool_.size() || pool_[index].Reference() != reference) return nullptr;
  return &pool_[index];
}

void Flow::Recycle(InFlight& in) {
  --in_flight_;
  in_flight_bytes_ -= in.bytes;
  in.assignment->bytes -= in.bytes;
  in.BecomeUnused();
  unused_.push_back(in.index);
}

}  // namespace fencepost::consumer
