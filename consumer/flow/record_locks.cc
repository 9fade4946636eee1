#include "consumer/flow/record_locks.h"

#include <utility>

#include <fmt/format.h>

#include "consumer/flow/state/assignment.h"
#include "consumer/flow/state/order_chain.h"
#include "consumer/record/position_id.h"
#include "locking/base/check.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {

using locking::LockEvent;

namespace {

// Its row was read, and is of other content; or it is a dead letter that is published.
bool IsDecided(const InFlight& in) {
  return in.write_decides || in.letter_out ||
         (in.letter != nullptr && in.letter->reason == DeadLetterReason::kIdConflict);
}

}  // namespace

void RecordLocks::LeavePrefix(InFlight& in) {
  MarkOutOfPrefix(in, true);
  in.BecomeGranted();
}

// Of a lease the core tells too (kLost); without one it is asked for again at once.
void RecordLocks::LeaveInvalid(InFlight& in, Now now) {
  LeavePrefix(in);
  if (!Has(in, Lease::kUnlocked)) return;
  units_.Close(*in.unit);
  GiveBackFrom(in, now);
  work_->Push(&in);
}

// By its id, or by the block of offsets in which its id lies: mostly that of the record before it.
LockUnit& RecordLocks::JoinUnit(InFlight& in) {
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
  const auto id_index = static_cast<std::uint32_t>(position->offset % options_.block);
  if (Planted("record_outside_its_block") && id_index == 0 && position->offset > 0)
    --position->offset;
  LockUnit& unit =
      units_.Join(in, LockName(options_.pipeline, BlockName(*position, options_.block)),
                  Sharing::kShared, id_index);
  if (in.identity.in_place) last = {in.record.offset - id_index, &unit, unit.life()};
  return unit;
}

bool RecordLocks::Lock(InFlight& in, Now now) {
  LockUnit& unit = JoinUnit(in);
  if (!unit.MayProceed(in)) {
    in.BecomeWaitingForSameId();
    return false;
  }
  in.BecomeLocking();
  ProceedPastLock(in, now);
  return true;
}

// Of an id that the ledger has with other content there is nothing to exclude others from: its dead
// letter, or its write, waits for nobody's lease, least of all for the one that was left behind
// with that row.
void RecordLocks::ProceedPastLock(InFlight& in, Now now) {
  LockUnit& unit = *in.unit;
  if (unit.lease() == Lease::kNone) {
    const bool decided = traits_.HasLedger() && IsDecided(in) && !unit.shared() &&
                         !Planted("conflict_waits_for_its_lock");
    if (!decided) return Acquire(unit, now);
    unit.BecomeDone(core_->IssueToken(now), in.identity.crc);
  }
  if (unit.lease() == Lease::kUnlocked) observer_->OnUnlocked();
  work_->Push(&in);
}

void RecordLocks::Acquire(LockUnit& unit, Now now) {
  if (unlocked_) return ProceedUnlocked(unit, now);
  unit.BecomeAcquiring(core_->Acquire({.name = unit.name(),
                                       .cookie = unit.cookie(),
                                       .wait = options_.lock_wait,
                                       .counts_contention = traits_.HasLedger() && !unit.shared()},
                                      now));
}

// Asks again after a failure: nothing behind it may be locked meanwhile.
void RecordLocks::LockAlone(InFlight& in, Now now) {
  if (!user_->MayLock(in) || !Lock(in, now)) return;
  if (in.unit->lease() == Lease::kAcquiring) in.unit->FailRound();
}

// With a fresh token, as one that was found DONE: whether its effect is written, the ledger says.
// For so long as no row that another worker writes meanwhile can be pruned (half of ledger.keep): a
// worker that was frozen for longer asks again.
void RecordLocks::ProceedUnlocked(LockUnit& unit, Now now) {
  if (unit.lease() == Lease::kAcquiring) core_->Cancel(unit.lock(), now);
  const auto& limit = options_.ledger_row_lifetime;
  unit.BecomeUnlocked(core_->IssueToken(now), limit ? now.boot + *limit : Instant::max());
  for (InFlight* in = unit.first(); in != nullptr; in = in->unit_after) {
    if (unit.MayProceed(*in)) ProceedPastLock(*in, now);
    if (!unit.shared()) break;
  }
}

bool RecordLocks::SetUnlocked(bool unlocked, Now now) {
  FENCEPOST_CHECK(!unlocked || traits_.HasLedger(), "only a ledger decides without a lock");
  if (std::exchange(unlocked_, unlocked) == unlocked) return false;
  units_.ForEach([&](LockUnit& unit) {
    // Those that come are locked again.
    if (!unlocked && unit.lease() == Lease::kUnlocked) units_.Close(unit);
    if (unlocked && unit.lease() == Lease::kAcquiring) ProceedUnlocked(unit, now);
  });
  return true;
}

void RecordLocks::OnOutputEnded(Now now) {
  units_.ForEach([&](LockUnit& unit) {
    if (unit.lease() != Lease::kLeased) return;
    for (InFlight* in = unit.first(); in != nullptr; in = in->unit_after) {
      if (unit.MayProceed(*in) && in->stage() != Stage::kWriting) return;
    }
    if (Planted("unanswered_write_is_marked")) MarkDone(*unit.first(), now);
    EndLease(unit, now);
  });
}

// First the state of the unit changes, then each of its records that may proceed continues.
void RecordLocks::OnEvent(LockUnit& unit, const LockEvent& event, Now now) {
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
bool RecordLocks::UpdateUnit(LockUnit& unit, const LockEvent& event, Now now) {
  switch (event.kind) {
    case LockEvent::Kind::kLeased:
      unit.BecomeLeased(event.token, event.takeover);
      return true;
    case LockEvent::Kind::kDone:
      unit.BecomeDone(traits_.write_decides ? core_->IssueToken(now) : event.token, event.crc);
      if (!traits_.write_decides && IsOfAnotherCluster(event.crc, cluster_)) {
        NoteDoneElsewhere(*unit.first(), now);
      }
      return true;
    case LockEvent::Kind::kRoundFailed: {
      if (event.contended > Nanos(0) && !Planted("contended_duplicate_waits")) {
        user_->AskLedgerWhileHeld(*unit.first(), event.contended);
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

void RecordLocks::ContinueAfter(const LockEvent& event, InFlight& in, Now now) {
  switch (event.kind) {
    case LockEvent::Kind::kLeased:
      return work_->Push(&in);
    case LockEvent::Kind::kDone:
      return OnFoundDone(in);
    case LockEvent::Kind::kRoundFailed:
      TellContended(event, in);
      return GiveBackBehind(in, now);
    case LockEvent::Kind::kLost:
      in.Tell("lease_lost", "");
      if (Pinned(in.stage())) return;  // the write decides
      if (Planted("lost_lease_resets_attempts")) in.attempts = 0;
      work_->Push(&in);
      break;
    default:  // gave up: the wait ran out. It is tried again for as long as the partition is ours
      TellContended(event, in);
      break;
  }
  GiveBackFrom(in, now);
}

// Where leases are left behind, the ledger says whether it was contended.
void RecordLocks::TellContended(const LockEvent& event, const InFlight& in) const {
  const bool may_be_left = traits_.HasLedger() && !in.unit->shared();
  if (event.reason != locking::WaitReason::kContended || may_be_left) return;
  in.Tell("contended", "another holds its name");
}

// Where the write decides, a mark is only a hint: the record continues without a lease, under a
// fresh token. Elsewhere the mark decides.
void RecordLocks::OnFoundDone(InFlight& in) {
  user_->CancelCall(in);
  if (Pinned(in.stage())) return;
  if (traits_.write_decides && (in.stage() == Stage::kReady || in.stage() == Stage::kLookup))
    return;
  if (InLeasedPrefix(in.stage())) {
    ++in.ticket;
    LeavePrefix(in);
  }
  work_->Push(&in);
}

void RecordLocks::BackToQueue(InFlight& in, Now now) {
  user_->CancelCall(in);
  if (InLeasedPrefix(in.stage())) MarkOutOfPrefix(in, true);
  in.BecomeQueued();
  Leave(in, now);
}

void RecordLocks::GiveBackBehind(InFlight& in, Now now) {
  for (InFlight* next = in.chain_after; next != nullptr; next = next->chain_after) {
    if (Pinned(next->stage())) continue;
    if (!MayGiveBack(next->stage())) return;
    if (!Planted("leases_behind_a_parked_record")) BackToQueue(*next, now);
  }
}

void RecordLocks::GiveBackFrom(InFlight& in, Now now) {
  BackToQueue(in, now);
  GiveBackBehind(in, now);
}

void RecordLocks::NoteDoneElsewhere(const InFlight& in, Now now) {
  if (now.boot < next_elsewhere_note_) return;
  next_elsewhere_note_ = now.boot + std::chrono::minutes(1);
  user_->Note(
      locking::Severity::kWarn, "mark_of_another_cluster",
      "its id is marked DONE by a worker of another Kafka cluster with this pipeline's name "
      "and lock nodes, and so it is skipped; unless the records of both are the same, give each "
      "cluster's pipeline a name or lock nodes of its own",
      in);
}

// The lock core has counted it; which record it was is known only here.
void RecordLocks::NoteViolation(const InFlight& in, const LockEvent& event) {
  const bool regressed = *event.broken == locking::Invariant::kTokenRegressed;
  user_->Note(
      locking::Severity::kError, "invariant_violated",
      fmt::format("{}: token {}, another's {}",
                  regressed ? "token_regressed: a lease was granted with a token that is not above "
                              "an earlier holder's"
                            : "double_grant: another holds a majority of the nodes while this "
                              "lease is valid",
                  event.token.value(), event.rival.value()),
      in);
}

bool RecordLocks::EndedBefore(const InFlight& in, Instant began) const {
  if (Has(in, Lease::kLost)) return in.unit->lost_at() <= began;
  if (!Leased(in)) return false;
  const Instant end = core_->ValidUntil(in.unit->lock());
  return end != Instant::min() && end <= began;  // min: lost meanwhile, and when is not heard yet
}

Instant RecordLocks::ValidUntil(const InFlight& in) const {
  if (Leased(in)) return core_->ValidUntil(in.unit->lock());
  if (Has(in, Lease::kUnlocked)) return in.unit->unlocked_until();
  return PassedLock(in) || in.without_id ? Instant::max() : Instant::min();
}

void RecordLocks::SetPhase(const InFlight& in, locking::Phase phase) {
  if (Leased(in)) core_->SetPhase(in.unit->lock(), phase);
}

// --- the end of a lease ------------------------------------------------------------------------

void RecordLocks::MarkDone(InFlight& in, Now now) {
  LockUnit& unit = *in.unit;
  if (unit.shared()) return;  // its lease is that of other records too: it is never DONE
  if (traits_.HasLedger()) return unit.NoteInLedger();
  // The Kafka transaction holds the position: a mark would say nothing more.
  if (traits_.write_decides) return;
  // The lease may have ended although its kLost is still to be heard: then it cannot be marked.
  if (Leased(in) && core_->ValidUntil(unit.lock()) == Instant::min()) {
    unit.BecomeLost(Instant::min());
  }
  if (Leased(in)) {
    core_->Done(unit.lock(), MarkOf(in.identity.crc, cluster_), options_.remember_done, now);
  } else if (unit.lease() == Lease::kLost) {
    core_->MarkDone({.name = unit.name(),
                     .token = unit.token(),
                     .crc = MarkOf(in.identity.crc, cluster_),
                     .remember = options_.remember_done},
                    now);
  }
  unit.BecomeNone();
}

// Nothing is held or asked for any more here. What the ledger has is left to end by itself at the
// nodes (PROTOCOL.md, Leases left behind); anything else is given back at once.
void RecordLocks::EndLease(LockUnit& unit, Now now) {
  const bool leave = unit.in_ledger() || (traits_.HasLedger() && Planted("left_while_unknown"));
  if (unit.lease() == Lease::kLeased) {
    leave ? core_->Leave(unit.lock(), now) : core_->Release(unit.lock(), now);
  }
  if (unit.lease() == Lease::kAcquiring) core_->Cancel(unit.lock(), now);
  unit.BecomeNone();
}

// A lease that would be left behind is good for the next record of the unit, while it is valid: the
// ledger says of that one that it is a duplicate.
bool RecordLocks::HandsOn(const InFlight& in, Now now) {
  const LockUnit& unit = *in.unit;
  if (!unit.in_ledger() || unit.lease() != Lease::kLeased || in.unit_after == nullptr) return false;
  if (!core_->Valid(unit.lock(), now) && !Planted("handed_on_after_its_end")) return false;
  core_->SetPhase(unit.lock(), locking::Phase::kWaiting);
  return true;
}

// Where it was the one that went ahead, the next record with its id takes its turn. One that may
// not be locked now leaves too: the others must not wait for it.
void RecordLocks::Leave(InFlight& in, Now now) {
  for (InFlight* at = &in; at != nullptr && at->unit != nullptr;) {
    LockUnit& unit = *at->unit;
    const bool ends =
        unit.LeaseEndsWith(*at) || (unit.shared() && Planted("unit_released_under_its_others"));
    if (ends && !HandsOn(*at, now)) EndLease(unit, now);
    at = units_.Leave(*at);
    if (at == nullptr) return;
    at->BecomeQueued();
    if (unit.closed()) {  // it joins the next unit of this name
      work_->Push(at);
      continue;
    }
    if (!user_->MayLock(*at)) continue;
    at->BecomeLocking();
    ProceedPastLock(*at, now);
    return work_->Push(at->chain_after);
  }
}

void RecordLocks::KeepAcquiring(InFlight& in, Now now) {
  observer_->OnRetry(RetryStage::kLock);
  if (in.unit->round_failed()) return;
  in.unit->FailRound();
  GiveBackBehind(in, now);
}

}  // namespace fencepost::consumer
