// LockCore: leases: extension, loss, and how they end: done or released.
#include "locking/core/lock/lock_core.h"

#include <algorithm>
#include <utility>

#include "locking/base/check.h"
#include "locking/base/planted.h"

namespace fencepost::locking {
namespace {

// A node whose clock stepped has ended the lease early, just as one that was wiped.
LossReason ReasonWith(const Store& store, LossReason reason) {
  const bool clock = store.WhyUnavailable() == QuorumFailure::kClock;
  return reason == LossReason::kNodeWiped && clock ? LossReason::kClock : reason;
}

}  // namespace

// --- leases ------------------------------------------------------------------------------------

// Why a lease is over whose time ran out.
LossReason LockCore::ReasonAtEnd(const Slot& slot) const {
  const bool wiped = std::get<ExtendRound>(slot.asked).SeenWiped();
  return ReasonWith(store_, wiped ? LossReason::kNodeWiped : LossReason::kExpired);
}

// The user is done with the lease, or it is lost: it ends here, once.
void LockCore::LeaveHeld(std::uint32_t index, Now now) {
  Slot& slot = slots_[index];
  --held_;
  slot.due = Instant::max();
  if (observer_ == nullptr) return;
  observer_->OnHeld(static_cast<std::int64_t>(held_));
  observer_->OnLeaseEnded(now.boot - slot.leased_at, slot.valid_until - now.boot);
  if (now.boot >= slot.valid_until) {
    observer_->OnExpired(slot.phase);
    observer_->OnLoss(ReasonAtEnd(slot));
  }
}

void LockCore::BeginExtension(std::uint32_t index, Now now) {
  Slot& slot = slots_[index];
  auto& round = std::get<ExtendRound>(slot.asked);
  slot.extension_sent = now.boot;
  ++slot.round;
  const NodeSet open = OpenNodes();
  const NodeSet extended = round.Begin(open);
  for (NodeIndex node = 0; node < nodes_; ++node) {
    if ((extended & Bit(node)) != 0) {
      Send(index, node, OpKind::kExtend);
    } else if ((open & Bit(node)) != 0 && (slot.creating & Bit(node)) == 0) {
      Send(index, node, OpKind::kFill);
    }
  }
  Schedule(index, slot.valid_until);
  if (extended == 0) EndExtension(index, Tally::kLost, now);
}

void LockCore::OnExtendReply(std::uint32_t index, NodeIndex node, const Reply& reply, Now now) {
  Slot& slot = slots_[index];
  if (slot.state != State::kHeld || reply.round != slot.round) return;
  if (reply.code == ReplyCode::kDone && slot.phase < Phase::kWriting) {
    DropForDone(index, reply, now);
    return;
  }
  const Tally tally = std::get<ExtendRound>(slot.asked).OnReply(node, reply);
  if (tally != Tally::kPending) EndExtension(index, tally, now);
}

void LockCore::EndExtension(std::uint32_t index, Tally tally, Now now) {
  Slot& slot = slots_[index];
  auto& round = std::get<ExtendRound>(slot.asked);
  if (now.boot >= slot.valid_until) {
    // The answers came after the lease's own end: they change nothing.
    LoseAtEnd(index, now);
    return;
  }
  if (tally == Tally::kWon) {
    const Instant from = Planted("extension_from_the_answer") ? now.boot : slot.extension_sent;
    slot.valid_until = from + slot.ttl - options_.Drift(slot.ttl);
    round.Accept();
    if (observer_ != nullptr) observer_->OnExtension(ExtensionResult::kExtended);
    ScheduleHeld(index, slot.extension_sent);
    return;
  }
  const std::optional<LossReason> loss = round.Loss();
  if (observer_ != nullptr) {
    observer_->OnExtension(loss ? ExtensionResult::kLost : ExtensionResult::kError);
  }
  if (loss) {
    Lose(index, *loss, now, *loss == LossReason::kStolen ? round.MajorityRival() : Token());
    return;
  }
  const Nanos again = std::max<Nanos>(slot.ttl / 20, round_trip_);
  Schedule(index, slot.watchdog ? std::min(now.boot + again, slot.valid_until) : slot.valid_until);
}

void LockCore::OnFillReply(std::uint32_t index, NodeIndex node, const Reply& reply, Now now) {
  Slot& slot = slots_[index];
  const NodeSet bit = Bit(node);
  if (reply.code == ReplyCode::kFilled) {
    if (slot.state == State::kHeld) std::get<ExtendRound>(slot.asked).OnFilled(node);
  } else if (NodeAnswered(reply.code)) {
    slot.may_hold = Without(slot.may_hold, bit);
  }
  OnLateAcquireReply(index, node, reply, now);
}

// Its time ran out.
void LockCore::LoseAtEnd(std::uint32_t index, Now now) {
  Lose(index, ReasonAtEnd(slots_[index]), now);
}

// `rival` has a quorum, if it is given: before this lease's own end, that breaks invariant 1.
void LockCore::Lose(std::uint32_t index, LossReason reason, Now now, Token rival) {
  Slot& slot = slots_[index];
  LeaveHeld(index, now);
  const bool in_time = now.boot < slot.valid_until;
  reason = ReasonWith(store_, reason);
  if (observer_ != nullptr && in_time) observer_->OnLoss(reason);
  LockEvent& event = Emit(index, LockEvent::Kind::kLost);
  event.loss = reason;
  event.ended = std::min(now.boot, slot.valid_until);
  if (rival && in_time) {
    event.broken = Invariant::kDoubleGrant;
    event.rival = rival;
    if (observer_ != nullptr) observer_->OnInvariant(Invariant::kDoubleGrant);
  }
  // The work may still be running: nothing is freed, so that the nodes keep others out for as long
  // as they promised. Only what is still on the way is, since it would outlive the lease.
  slot.free_after |= slot.creating;
  End(index);
}

// DONE was heard while the lease is held: somebody completed the work. Before the effect, the lease
// is given up for it; from the write on, the write itself finds out (PROTOCOL.md, invariant 11).
void LockCore::DropForDone(std::uint32_t index, const Reply& reply, Now now) {
  Slot& slot = slots_[index];
  if (slot.phase >= Phase::kWriting) return;
  LeaveHeld(index, now);
  LockEvent& event = Emit(index, LockEvent::Kind::kDone);
  event.token = reply.token;
  event.crc = reply.crc;
  event.rest = reply.rest;
  FreeNodes(index, OpKind::kAbort, now);
  End(index);
}

// --- done and release --------------------------------------------------------------------------

void LockCore::BeginMarking(std::uint32_t index) {
  Slot& slot = slots_[index];
  slot.state = State::kMarking;
  ++slot.round;
  const NodeSet open = OpenNodes();
  slot.asked = MarkRound(nodes_, open);
  for (NodeIndex node = 0; node < nodes_; ++node) {
    if ((open & Bit(node)) != 0) Send(index, node, OpKind::kDone);
  }
  if (open != 0) return;
  Emit(index, LockEvent::Kind::kCompleted).majority = false;
  End(index);
}

void LockCore::OnMarkedReply(std::uint32_t index, NodeIndex node, const Reply& reply) {
  Slot& slot = slots_[index];
  if (slot.state != State::kMarking || reply.round != slot.round) return;
  auto& round = std::get<MarkRound>(slot.asked);
  const Tally tally = round.OnReply(node, reply);
  if (tally != Tally::kPending) {
    Emit(index, LockEvent::Kind::kCompleted).majority = tally == Tally::kWon;
  }
  if (!round.Complete()) return;
  const bool was_leased = slot.leased_at != Instant();
  if (observer_ != nullptr && was_leased && round.Late()) {
    observer_->OnCompletedAfterExpiry();
  }
  End(index);
}

void LockCore::OnFreedReply(std::uint32_t index, NodeIndex node, const Reply& reply, Now now) {
  Slot& slot = slots_[index];
  if (slot.state != State::kFreeing) return;
  std::get<ReleaseRound>(slot.asked).OnReply(node, reply);
  TellFreed(index, now);
}

// Tells how the release went, once that is known; what is still on the way frees its node all the
// same.
void LockCore::TellFreed(std::uint32_t index, Now now) {
  const Slot& slot = slots_[index];
  const auto& round = std::get<ReleaseRound>(slot.asked);
  if (round.Result() == Tally::kPending) return;
  const ReleaseOutcome outcome = round.Outcome(now.boot >= slot.valid_until);
  if (observer_ != nullptr) observer_->OnReleased(outcome);
  Emit(index, LockEvent::Kind::kReleased).outcome = outcome;
  End(index);
}

}  // namespace fencepost::locking
