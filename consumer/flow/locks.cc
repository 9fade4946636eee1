// The way of a record through the lock: asked for, leased, heard to be DONE, lost, given back. It
// goes on in flow.cc (Do).
#include <utility>

#include <fmt/format.h>

#include "consumer/flow/flow.h"
#include "consumer/record/position_id.h"
#include "locking/base/check.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {

using locking::LockEvent;

namespace {

// Its row was read, and is of other content.
bool IsConflict(const InFlight& in) {
  return in.letter != nullptr && in.letter->reason == DeadLetterReason::kIdConflict;
}

}  // namespace

// Back to granted. If the lease has expired by our own clock, kLost follows, and queues this record
// and those behind it again.
void Flow::LeavePrefix(InFlight& in) {
  MarkOutOfPrefix(in, true);
  in.BecomeGranted();
}

// It is not valid any more. Of a lease the core tells too (kLost); without one it is asked for
// again at once.
void Flow::LeaveInvalid(InFlight& in, Now now) {
  LeavePrefix(in);
  if (!Has(in, Lease::kUnlocked)) return;
  units_.Close(*in.unit);
  GiveBackFrom(in, now);
  work_.Push(&in);
}

// By its id, or by the block of offsets in which its id lies: mostly that of the record before it.
LockUnit& Flow::JoinUnit(InFlight& in) {
  Assignment::Block& last = in.assignment->block;
  const Offset within = in.record.offset - last.first;
  const bool same = last.unit != nullptr && in.identity.in_place && within >= 0 &&
                    within < options_.block && last.unit->open(last.life);
  if (same) {
    units_.Join(in, *last.unit, static_cast<std::uint32_t>(within));
    return *last.unit;
  }
  auto position = options_.block > 1 ? ParsePositionId(in.identity.id) : std::nullopt;
  if (!position) {
    return units_.Join(in, LockName(options_.pipeline, in.identity.id), Sharing::kExclusive);
  }
  const auto place = static_cast<std::uint32_t>(position->offset % options_.block);
  if (Planted("record_outside_its_block") && place == 0 && position->offset > 0) --position->offset;
  LockUnit& unit =
      units_.Join(in, LockName(options_.pipeline, BlockName(*position, options_.block)),
                  Sharing::kShared, place);
  if (in.identity.in_place) last = {in.record.offset - place, &unit, unit.life()};
  return unit;
}

// Asks for its lock. False: it waits for another record here with the same id.
bool Flow::Lock(InFlight& in, Now now) {
  LockUnit& unit = JoinUnit(in);
  if (!unit.MayProceed(in)) {
    in.BecomeWaitingForSameId();
    return false;
  }
  in.BecomeLocking();
  GoOn(in, now);
  return true;
}

// Its unit has what it needs, or will tell. Of an id that the ledger has with other content there
// is nothing to exclude others from: its dead letter waits for nobody's lease, least of all for the
// one that was left behind with that row.
void Flow::GoOn(InFlight& in, Now now) {
  LockUnit& unit = *in.unit;
  if (unit.lease() == Lease::kNone) {
    const bool decided = HasLedger() && IsConflict(in) && !Planted("conflict_waits_for_its_lock");
    if (!decided) return Acquire(unit, now);
    unit.BecomeDone(locks_->IssueToken(unit.name(), now), in.identity.crc);
  }
  if (unit.lease() == Lease::kUnlocked) observer_->OnUnlocked();
  work_.Push(&in);
}

void Flow::Acquire(LockUnit& unit, Now now) {
  if (Unlocked(unit)) return ProceedUnlocked(unit, now);
  unit.BecomeAcquiring(locks_->Acquire({.name = unit.name(),
                                        .cookie = unit.cookie(),
                                        .wait = options_.lock_wait,
                                        .counts_contention = HasLedger() && !unit.shared()},
                                       now));
}

// Asks again after a failure: nothing behind it may be locked meanwhile.
void Flow::LockAlone(InFlight& in, Now now) {
  if (Next(in, PlaceOf(in), traits_) != Move::kLock || !Lock(in, now)) return;
  if (in.unit->lease() == Lease::kAcquiring) in.unit->FailRound();
}

// With a fresh token, as one that was found DONE: whether its effect is written, the ledger says.
// For so long as no row that another worker writes meanwhile can be pruned (half of ledger.keep): a
// worker that was frozen for longer asks again.
void Flow::ProceedUnlocked(LockUnit& unit, Now now) {
  if (unit.lease() == Lease::kAcquiring) locks_->Cancel(unit.lock(), now);
  const auto& limit = options_.rows_stay;
  unit.BecomeUnlocked(locks_->IssueToken(unit.name(), now),
                      limit ? now.boot + *limit : Instant::max());
  for (InFlight* in = unit.first(); in != nullptr; in = in->unit_after) {
    if (unit.MayProceed(*in)) GoOn(*in, now);
    if (!unit.shared()) break;
  }
}

void Flow::SetUnlocked(int group, bool unlocked, Now now) {
  FENCEPOST_CHECK(!unlocked || HasLedger(), "only a ledger decides without a lock");
  const std::uint32_t bit = 1U << group;
  if (((unlocked_ & bit) != 0) == unlocked) return;
  unlocked_ ^= bit;
  for (InFlight& in : pool_) {  // those that come are locked again
    const bool ends = !unlocked && Has(in, Lease::kUnlocked) && !Unlocked(*in.unit);
    if (ends) units_.Close(*in.unit);
  }
  if (!unlocked) return;
  for (InFlight& in : pool_) {
    const bool waits = in.unit != nullptr && in.unit->first() == &in &&
                       in.unit->lease() == Lease::kAcquiring && Unlocked(*in.unit);
    if (waits) ProceedUnlocked(*in.unit, now);
  }
  Step(now);
}

void Flow::OnLockEvents(Now now) {
  std::vector<LockEvent> events;
  while (locks_->TakeEvents(events)) {
    for (const LockEvent& event : events) {
      LockUnit* const unit = units_.Find(event.cookie, event.lock);
      if (unit == nullptr) continue;
      OnLockEvent(*unit, event, now);
      Advance(now);
    }
  }
  Step(now);
}

// First the state of the unit changes, then each of its records that may proceed continues.
void Flow::OnLockEvent(LockUnit& unit, const LockEvent& event, Now now) {
  if (!UpdateUnit(unit, event, now)) return;
  if (event.broken) NoteViolation(*unit.first(), event);
  affected_.clear();
  for (InFlight* in = unit.first(); in != nullptr; in = in->unit_after) {
    if (unit.MayProceed(*in)) affected_.push_back(in);
    if (!unit.shared()) break;  // any number may wait
  }
  for (InFlight* in : affected_) {  // one may take others along that are behind it in its chain
    if (in->unit == &unit) ContinueAfter(event, *in, now);
  }
  if (event.kind != LockEvent::Kind::kGaveUp) return;
  for (InFlight* in : affected_) LockAlone(*in, now);
}

// False: nothing has changed for its records.
bool Flow::UpdateUnit(LockUnit& unit, const LockEvent& event, Now now) {
  switch (event.kind) {
    case LockEvent::Kind::kLeased:
      unit.BecomeLeased(event.token, event.takeover);
      return true;
    case LockEvent::Kind::kDone:
      unit.BecomeDone(
          HasLedger() || unit.shared() ? locks_->IssueToken(unit.name(), now) : event.token,
          event.crc);
      return true;
    case LockEvent::Kind::kRoundFailed: {
      if (event.contended > Nanos(0) && !Planted("contended_duplicate_waits")) {
        OnContended(*unit.first(), event.contended);
        return false;
      }
      if (event.contended > Nanos(0)) {
        observer_->OnRound(locking::RoundResult::kContended, event.contended);
      }
      observer_->OnRetry(RetryStage::kLock);
      const bool first = !unit.round_failed();
      unit.FailRound();
      return first;
    }
    case LockEvent::Kind::kLost:
      unit.BecomeLost(event.ended);
      units_.Close(unit);
      return true;
    case LockEvent::Kind::kGaveUp:  // the look before it has not finished it
      // Its lock is over, whoever stays in it.
      if (!Planted("given_up_block_stays_open")) units_.Close(unit);
      if (event.contended > Nanos(0)) {
        observer_->OnRound(locking::RoundResult::kContended, event.contended);
      }
      return true;
    default:
      return false;
  }
}

void Flow::ContinueAfter(const LockEvent& event, InFlight& in, Now now) {
  switch (event.kind) {
    case LockEvent::Kind::kLeased:
      return work_.Push(&in);
    case LockEvent::Kind::kDone:
      return OnFoundDone(in);
    case LockEvent::Kind::kRoundFailed:
      return GiveBackBehind(in, now);
    case LockEvent::Kind::kLost:
      if (Pinned(in.stage())) return;  // the write decides
      if (Planted("lost_lease_resets_attempts")) in.attempts = 0;
      work_.Push(&in);
      break;
    default:  // gave up: the wait ran out. It is tried again for as long as the partition is ours
      break;
  }
  GiveBackFrom(in, now);
}

// The name is marked DONE. With a ledger that is only a hint: the record goes on without a lease,
// under a fresh token, and the ledger decides. Without a ledger the mark decides.
void Flow::OnFoundDone(InFlight& in) {
  CancelCall(in);
  if (Pinned(in.stage())) return;
  const bool ledger = HasLedger() || in.unit->shared();
  if (ledger && (in.stage() == Stage::kReady || in.stage() == Stage::kLookup)) return;
  if (InLeasedPrefix(in.stage())) {
    ++in.ticket;
    LeavePrefix(in);
  }
  work_.Push(&in);
}

// There is no ledger to ask. A mark is written only after the effect is final (PROTOCOL.md, 10), so
// what it says is believed at once.
void Flow::SkipDone(InFlight& in, Now now) {
  if (locking::IsOtherContent(in.unit->done_crc(), in.identity.crc)) {
    const std::string what = "its DONE mark is of other content";
    return OnConflict(in, what, what, now);
  }
  OnSkipped(in, DedupeSource::kLock, now);
}

// Not leased, not asking, in no unit; its handler call, if one is out, is cancelled.
void Flow::BackToQueue(InFlight& in, Now now) {
  CancelCall(in);
  if (InLeasedPrefix(in.stage())) MarkOutOfPrefix(in, true);
  in.BecomeQueued();
  LeaveUnit(in, now);
}

// Everything behind `in` that holds or asks for a lease gives it back (invariant: prefix). What is
// pinned (stage.h) ends without waiting for any lock.
void Flow::GiveBackBehind(InFlight& in, Now now) {
  for (InFlight* next = in.chain_after; next != nullptr; next = next->chain_after) {
    if (Pinned(next->stage())) continue;
    if (!MayGiveBack(next->stage())) return;
    if (!Planted("leases_behind_a_parked_record")) BackToQueue(*next, now);
  }
}

// It and everything behind it.
void Flow::GiveBackFrom(InFlight& in, Now now) {
  BackToQueue(in, now);
  GiveBackBehind(in, now);
}

// The lock core has counted it; which record it was is known only here.
void Flow::NoteViolation(const InFlight& in, const LockEvent& event) {
  const bool regressed = *event.broken == locking::Invariant::kTokenRegressed;
  Note(
      locking::Severity::kError, "invariant_violated",
      fmt::format("{}: token {}, another's {}",
                  regressed ? "token_regressed: a lease was granted with a token that is not above "
                              "an earlier holder's"
                            : "double_grant: another holds a majority of the nodes while this "
                              "lease is valid",
                  event.token.value(), event.rival.value()),
      in);
}

// What was done under its lease began only after the lease had ended.
bool Flow::EndedBefore(const InFlight& in, Instant began) const {
  if (Has(in, Lease::kLost)) return in.unit->lost_at() <= began;
  if (!Leased(in)) return false;
  const Instant end = locks_->ValidUntil(in.unit->lock());
  return end != Instant::min() && end <= began;  // min: lost meanwhile, and when is not heard yet
}

bool Flow::LeaseIsValid(const InFlight& in, Now now) const {
  if (Leased(in)) return locks_->Valid(in.unit->lock(), now);
  if (Has(in, Lease::kUnlocked)) return now.boot < in.unit->unlocked_until();
  return PassedLock(in) || in.without_id;
}

void Flow::SetPhase(const InFlight& in, locking::Phase phase) {
  if (Leased(in)) locks_->SetPhase(in.unit->lock(), phase);
}

// --- the end of a lease ------------------------------------------------------------------------

// Only after the effect is final. Where there is a ledger it remembers that, and the lease is left
// behind; else a mark is sent, and not awaited.
void Flow::MarkDone(InFlight& in, Now now) {
  LockUnit& unit = *in.unit;
  if (unit.shared()) return;  // its lease is that of other records too: it is never DONE
  if (HasLedger()) return unit.NoteInLedger();
  // The lease may have ended although its kLost is still to be heard: then it cannot be marked.
  if (Leased(in) && locks_->ValidUntil(unit.lock()) == Instant::min()) {
    unit.BecomeLost(Instant::min());
  }
  if (Leased(in)) {
    locks_->Done(unit.lock(), in.identity.crc, options_.remember_done, now);
  } else if (unit.lease() == Lease::kLost) {
    locks_->MarkDone({.name = unit.name(),
                      .token = unit.token(),
                      .crc = in.identity.crc,
                      .remember = options_.remember_done},
                     now);
  }
  unit.BecomeNone();
}

// Nothing is held or asked for any more here. What the ledger has is left to end by itself at the
// nodes (PROTOCOL.md, Leases left behind); anything else is given back at once.
void Flow::EndLease(LockUnit& unit, Now now) {
  const bool leave = unit.in_ledger() || (HasLedger() && Planted("left_while_unknown"));
  if (unit.lease() == Lease::kLeased) {
    leave ? locks_->Leave(unit.lock(), now) : locks_->Release(unit.lock(), now);
  }
  if (unit.lease() == Lease::kAcquiring) locks_->Cancel(unit.lock(), now);
  unit.BecomeNone();
}

// A lease that would be left behind is good for the next record of the unit, while it is valid: the
// ledger says of that one that it is a duplicate.
bool Flow::HandsOn(const InFlight& in, Now now) {
  const LockUnit& unit = *in.unit;
  if (!unit.in_ledger() || unit.lease() != Lease::kLeased || in.unit_after == nullptr) return false;
  if (!locks_->Valid(unit.lock(), now) && !Planted("handed_on_after_its_end")) return false;
  locks_->SetPhase(unit.lock(), locking::Phase::kWaiting);
  return true;
}

// Where it was the one that went ahead, the next record with its id takes its turn. One that may
// not be locked now leaves too: the others must not wait for it.
void Flow::LeaveUnit(InFlight& in, Now now) {
  for (InFlight* at = &in; at != nullptr && at->unit != nullptr;) {
    LockUnit& unit = *at->unit;
    const bool ends =
        unit.LeaseEndsWith(*at) || (unit.shared() && Planted("unit_released_under_its_others"));
    if (ends && !HandsOn(*at, now)) EndLease(unit, now);
    at = units_.Leave(*at);
    if (at == nullptr) return;
    at->BecomeQueued();
    if (unit.closed()) {  // it joins the next unit of this name
      work_.Push(at);
      continue;
    }
    if (Next(*at, PlaceOf(*at), traits_) != Move::kLock) continue;
    at->BecomeLocking();
    GoOn(*at, now);
    return work_.Push(at->chain_after);
  }
}

// --- held by another ---------------------------------------------------------------------------

// Its name is held, perhaps by a lease that was left behind: the ledger is asked, once a round at
// most and once at a time, while the acquire goes on. Until the first answer its lease counts as
// one that may come soon, so that those behind it in its chain keep theirs: a look waits for no
// lease.
void Flow::OnContended(InFlight& in, Nanos took) {
  if (std::exchange(in.looking, true)) {
    ++in.unjudged;
    return;
  }
  lookups_.push_back({EntryOf(in, Instant()), took});
}

// With a row it is a duplicate, and the lock was no other's work. Without one, or as a conflict in
// doubt, it goes on waiting.
// `in`: null, or it has its lease by now: only counted.
void Flow::JudgeContention(InFlight* in, const std::optional<LedgerEntry>& entry, Nanos took,
                           Now now) {
  const auto result = entry ? locking::RoundResult::kDone : locking::RoundResult::kContended;
  observer_->OnRound(result, took);
  if (in == nullptr || !std::exchange(in->looking, false)) return;
  for (; in->unjudged > 0; --in->unjudged) observer_->OnRound(result, Nanos(0));
  if (in->stage() != Stage::kLocking || in->unit->lease() != Lease::kAcquiring) return;
  if (entry && in->call != 0) return;  // its order chain waits for the answer; it is asked again
  if (entry) return OnLookup(*in, entry, now);
  KeepAcquiring(*in, now);
}

// Its name is held: when a later round finds that, too, the ledger is asked again.
void Flow::KeepAcquiring(InFlight& in, Now now) {
  observer_->OnRetry(RetryStage::kLock);
  if (in.unit->round_failed()) return;
  in.unit->FailRound();
  GiveBackBehind(in, now);
}

}  // namespace fencepost::consumer
