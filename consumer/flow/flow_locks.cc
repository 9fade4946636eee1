// The way of a record through the lock: asked for, leased, heard to be DONE, lost; and one worker
// per id among the records here. It goes on in flow.cc (Do).
#include <utility>

#include <fmt/format.h>

#include "consumer/flow/flow.h"
#include "locking/base/check.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {

using locking::AcquireSpec;
using locking::LockEvent;

// It has to enter the prefix anew, from its lease on. Where its own clock ended that lease, kLost
// is on its way, and queues it again with those behind it.
void Flow::LeavePrefix(InFlight& in) {
  MarkOutOfPrefix(in, true);
  in.stage = Stage::kGranted;
}

// Asks for its lock. False: it waits for another record here with the same id.
bool Flow::Lock(InFlight& in, Now now) {
  const auto owner = owners_.find(in.identity.id);
  if (owner != owners_.end()) {
    WaitForSameId(*owner->second, in);
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

// … if everything before it in its chain is leased or about to be.
bool Flow::TryLock(InFlight& in, Now now) {
  return Next(in, PlaceOf(in), way_) == Move::kLock && Lock(in, now);
}

// Asks again after a failure: nothing behind it may be locked meanwhile.
void Flow::LockAlone(InFlight& in, Now now) {
  if (TryLock(in, now)) in.round_failed = true;
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
      OnLockEvent(in, event, now);
      Advance(now);
    }
  }
  Step(now);
}

void Flow::OnLockEvent(InFlight& in, const LockEvent& event, Now now) {
  if (event.broken) {
    in.token = event.token;
    TellBroken(in, event);
  }
  switch (event.kind) {
    case LockEvent::Kind::kLeased:
      in.leased = true;
      in.token = event.token;
      work_.Push(&in);
      break;
    case LockEvent::Kind::kDone:
      OnHinted(in, event, now);
      break;
    case LockEvent::Kind::kRoundFailed:
      OnRoundFailed(in, now);
      break;
    case LockEvent::Kind::kGaveUp:
      OnGaveUp(in, now);
      break;
    case LockEvent::Kind::kLost:
      in.lost_at = event.ended;
      OnLost(in, now);
      break;
    case LockEvent::Kind::kCompleted:
      if (in.stage == Stage::kMarking) OnMarked(in, event.majority, now);
      break;
    case LockEvent::Kind::kReleased:
    case LockEvent::Kind::kAnswered:
      break;
  }
}

// The name is DONE. With a ledger that is only a hint: the record goes on without a lease, under a
// fresh token, and the ledger decides whether it had been. Without one it is the truth.
void Flow::OnHinted(InFlight& in, const LockEvent& event, Now now) {
  const bool ledger = options_.finality == Finality::kLedger;
  CancelCall(in);
  in.leased = false;
  in.hinted = true;
  in.lock = {};
  in.token = ledger ? locks_->IssueToken(now) : event.token;
  in.done_crc = event.crc;
  in.done_rest = event.rest;
  if (Pinned(in.stage)) return;
  if (ledger && (in.stage == Stage::kReady || in.stage == Stage::kLookup)) return;
  if (InLeasedPrefix(in.stage)) {
    ++in.ticket;
    LeavePrefix(in);
  }
  work_.Push(&in);
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
  LockAlone(in, now);
}

void Flow::OnLost(InFlight& in, Now now) {
  in.leased = false;
  in.lock = {};
  if (Pinned(in.stage)) {
    in.lease_lost = true;  // the ledger, or the marks, decide
    return;
  }
  BackToQueue(in, now);
  GiveBackBehind(in, now);
  work_.Push(&in);
}

// Not leased, not asking, not the owner of its id; its handler call, if one is out, is cancelled.
void Flow::BackToQueue(InFlight& in, Now now) {
  CancelCall(in);
  if (in.leased) {
    locks_->Release(in.lock, now);
  } else if (in.stage == Stage::kLocking) {
    locks_->Cancel(in.lock, now);
  }
  in.lock = {};
  in.leased = in.hinted = in.round_failed = in.lease_lost = false;
  ++in.ticket;
  if (InLeasedPrefix(in.stage)) MarkOutOfPrefix(in, true);
  in.stage = Stage::kQueued;
  LeaveOwnership(in, now);
}

// Everything behind `in` that holds or asks for a lease gives it back (invariant: prefix). What is
// in others' hands ends without waiting for any lock.
void Flow::GiveBackBehind(InFlight& in, Now now) {
  for (InFlight* next = in.chain_after; next != nullptr; next = next->chain_after) {
    if (Pinned(next->stage)) continue;
    if (next->stage < Stage::kLocking || next->stage > Stage::kReady) return;
    if (!Planted("leases_behind_a_parked_record")) BackToQueue(*next, now);
  }
}

// The core has counted it; only here it is known which record it was.
void Flow::TellBroken(const InFlight& in, const LockEvent& event) {
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
  if (in.lease_lost) return in.lost_at <= began;
  if (!in.leased) return false;
  const Instant end = locks_->ValidUntil(in.lock);
  return end != Instant::min() && end <= began;  // min: lost meanwhile, and when is not heard yet
}

bool Flow::LeaseStands(const InFlight& in, Now now) const {
  return in.hinted || in.nameless || (in.leased && locks_->Valid(in.lock, now));
}

// --- one worker per id ------------------------------------------------------------------------

void Flow::TakeOwnership(InFlight& in) {
  in.owner = true;
  owners_.emplace(in.identity.id, &in);
}

void Flow::WaitForSameId(InFlight& owner, InFlight& waiting) {
  InFlight& last = owner.same_id_last == nullptr ? owner : *owner.same_id_last;
  last.same_id_after = &waiting;
  waiting.same_id_before = &last;
  owner.same_id_last = &waiting;
  waiting.stage = Stage::kWaitingForSameId;
}

void Flow::LeaveSameId(InFlight& waiting) {
  InFlight* const before = std::exchange(waiting.same_id_before, nullptr);
  InFlight* const after = std::exchange(waiting.same_id_after, nullptr);
  if (before == nullptr) return;
  before->same_id_after = after;
  if (after != nullptr) {
    after->same_id_before = before;
    return;
  }
  const auto owner = owners_.find(waiting.identity.id);
  if (owner != owners_.end()) owner->second->same_id_last = before->owner ? nullptr : before;
}

// The next record here with the same id takes its turn.
void Flow::LeaveOwnership(InFlight& in, Now now) {
  if (!in.owner) return;
  in.owner = false;
  owners_.erase(in.identity.id);
  InFlight* const last = std::exchange(in.same_id_last, nullptr);
  InFlight* waiting = std::exchange(in.same_id_after, nullptr);
  while (waiting != nullptr) {
    InFlight* others = std::exchange(waiting->same_id_after, nullptr);
    waiting->same_id_before = nullptr;
    waiting->stage = Stage::kQueued;
    if (!TryLock(*waiting, now)) {  // it may not be locked now: the others must not wait for it
      waiting = others;
      continue;
    }
    if (waiting->owner && others != nullptr) {
      waiting->same_id_after = others;
      others->same_id_before = waiting;
      waiting->same_id_last = last;
    }
    work_.Push(waiting->chain_after);
    return;
  }
}

}  // namespace fencepost::consumer
