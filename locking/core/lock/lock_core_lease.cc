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

// The user is done with the lease, or it is lost: it ends here, once.
void LockCore::LeaveHeld(std::uint32_t index, Now now) {
  Slot& slot = slots_[index];
  --held_;
  slot.due = Instant::max();
  slot.extending = false;
  if (observer_ == nullptr) return;
  observer_->OnHeld(static_cast<std::int64_t>(held_));
  observer_->OnLeaseEnded(now.boot - slot.leased_at, slot.valid_until - now.boot);
  if (now.boot >= slot.valid_until) {
    observer_->OnExpired(slot.phase);
    const auto reason = slot.wiped_seen ? LossReason::kNodeWiped : LossReason::kExpired;
    observer_->OnLoss(ReasonWith(store_, reason));
  }
}

void LockCore::BeginExtension(std::uint32_t index, Now now) {
  Slot& slot = slots_[index];
  slot.extending = true;
  slot.extension_sent = now.boot;
  ++slot.round;
  slot.ballot = Ballot(nodes_);
  slot.stolen = slot.gone = slot.extended = 0;
  slot.rivals = {};
  for (NodeIndex node = 0; node < nodes_; ++node) {
    const NodeSet bit = Bit(node);
    if (!store_.Open(node)) {
      slot.ballot.No(node);
    } else if ((slot.holds & bit) != 0) {
      Send(index, node, OpKind::kExtend);
    } else {
      slot.ballot.No(node);
      if ((slot.creating & bit) == 0) Send(index, node, OpKind::kFill);
    }
  }
  Schedule(index, slot.valid_until);
  if (slot.ballot.pending() == 0) EndExtension(index, now);
}

void LockCore::OnExtendReply(std::uint32_t index, NodeIndex node, const Reply& reply, Now now) {
  Slot& slot = slots_[index];
  if (slot.state != State::kHeld || reply.round != slot.round) return;
  const NodeSet bit = Bit(node);
  if (reply.code == ReplyCode::kDone && slot.phase < Phase::kWriting) {
    DropForDone(index, reply, now);
    return;
  }
  if (reply.code == ReplyCode::kStolen || reply.code == ReplyCode::kDone) {
    slot.stolen |= bit;
    slot.holds = Without(slot.holds, bit);
    const bool holds = reply.code == ReplyCode::kStolen && !reply.quarantined;
    if (holds) slot.rivals[static_cast<std::size_t>(node)] = reply.token;
  } else if (reply.code == ReplyCode::kExpired || reply.code == ReplyCode::kNoSentinel) {
    slot.wiped_seen = true;
    slot.holds = Without(slot.holds, bit);
    if (reply.code == ReplyCode::kExpired && !reply.quarantined) slot.forgot |= bit;
  }
  if (!slot.extending) return;  // the majority had answered before
  const bool counts = reply.code == ReplyCode::kExtended && !reply.quarantined;
  counts ? slot.ballot.Yes(node) : slot.ballot.No(node);
  if (counts) slot.extended |= bit;
  if (ExtensionWon(slot) || slot.ballot.pending() == 0) EndExtension(index, now);
}

void LockCore::EndExtension(std::uint32_t index, Now now) {
  Slot& slot = slots_[index];
  slot.extending = false;
  if (now.boot >= slot.valid_until) {
    // The answers came after the lease's own end: they change nothing.
    Lose(index, slot.wiped_seen ? LossReason::kNodeWiped : LossReason::kExpired, now);
    return;
  }
  if (ExtensionWon(slot)) {
    const Instant from = Planted("extension_from_the_answer") ? now.boot : slot.extension_sent;
    slot.valid_until = from + slot.ttl - options_.Drift(slot.ttl);
    slot.wiped_seen = false;
    slot.forgot = slot.filled = 0;
    if (observer_ != nullptr) observer_->OnExtension(ExtensionResult::kExtended);
    ScheduleHeld(index, slot.extension_sent);
    return;
  }
  const bool others_have_it = Count(slot.stolen) > nodes_ - Quorum(nodes_);
  const bool lost = others_have_it || QuorumForgot(slot);
  if (observer_ != nullptr) {
    observer_->OnExtension(lost ? ExtensionResult::kLost : ExtensionResult::kError);
  }
  if (others_have_it) {
    Lose(index, LossReason::kStolen, now, MajorityToken(slot.rivals, nodes_));
    return;
  }
  if (lost) {
    Lose(index, LossReason::kNodeWiped, now);
    return;
  }
  const Nanos again = std::max<Nanos>(slot.ttl / 20, round_trip_);
  Schedule(index, slot.watchdog ? std::min(now.boot + again, slot.valid_until) : slot.valid_until);
}

// Nodes that count have dropped it, and no quorum has kept it all along: another may have had the
// name meanwhile, and filling the nodes must not bring the lease back. Where a node was wiped, its
// quarantine keeps others out, and the lease stands until its own end.
bool LockCore::QuorumForgot(const Slot& slot) const {
  return slot.forgot != 0 && !IsMajority(Without(slot.holds, slot.filled), nodes_);
}

// By a quorum of nodes; where one has dropped it, by one that has kept it all along.
bool LockCore::ExtensionWon(const Slot& slot) const {
  if (slot.ballot.Result() != Tally::kWon) return false;
  return slot.forgot == 0 || Planted("filled_lease_comes_back") ||
         IsMajority(Without(slot.extended, slot.filled), nodes_);
}

void LockCore::OnFillReply(std::uint32_t index, NodeIndex node, const Reply& reply, Now now) {
  Slot& slot = slots_[index];
  const NodeSet bit = Bit(node);
  if (reply.code == ReplyCode::kFilled) {
    slot.holds |= bit;
    slot.filled |= bit;
  } else if (NodeAnswered(reply.code)) {
    slot.may_hold = Without(slot.may_hold, bit);
  }
  OnLateAcquireReply(index, node, reply, now);
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
  slot.ballot = Ballot(nodes_);
  slot.late = 0;
  slot.told = false;
  ++slot.round;
  bool sent = false;
  for (NodeIndex node = 0; node < nodes_; ++node) {
    if (store_.Open(node)) {
      Send(index, node, OpKind::kDone);
      sent = true;
    } else {
      slot.ballot.No(node);
    }
  }
  if (sent) return;
  Emit(index, LockEvent::Kind::kCompleted).majority = false;
  End(index);
}

void LockCore::OnMarkedReply(std::uint32_t index, NodeIndex node, const Reply& reply) {
  Slot& slot = slots_[index];
  if (slot.state != State::kMarking || reply.round != slot.round) return;
  if (reply.code == ReplyCode::kMarkedLate) slot.late |= Bit(node);
  // A conflict is a mark too: the name is DONE there, by other content, and stays so.
  const bool marked = NodeAnswered(reply.code);
  marked ? slot.ballot.Yes(node) : slot.ballot.No(node);
  const Tally tally = slot.ballot.Result();
  if (!slot.told && tally != Tally::kPending) {
    slot.told = true;
    Emit(index, LockEvent::Kind::kCompleted).majority = tally == Tally::kWon;
  }
  if (slot.ballot.pending() != 0) return;
  const bool was_leased = slot.leased_at != Instant();
  if (observer_ != nullptr && was_leased && IsMajority(slot.late, nodes_)) {
    observer_->OnCompletedAfterExpiry();
  }
  End(index);
}

void LockCore::OnFreedReply(std::uint32_t index, NodeIndex node, const Reply& reply, Now now) {
  Slot& slot = slots_[index];
  if (slot.state != State::kFreeing) return;
  if (reply.code == ReplyCode::kStolen) slot.stolen |= Bit(node);
  if (reply.code == ReplyCode::kExpired) slot.gone |= Bit(node);
  reply.code == ReplyCode::kFreed ? slot.ballot.Yes(node) : slot.ballot.No(node);
  TellFreed(index, now);
}

// Once a quorum has freed it, or every node has answered or cannot: how the release went. A slow
// node does not delay the answer; what is still on the way frees its node all the same.
void LockCore::TellFreed(std::uint32_t index, Now now) {
  Slot& slot = slots_[index];
  if (slot.ballot.pending() != 0 && slot.ballot.Result() != Tally::kWon) return;
  ReleaseOutcome outcome = ReleaseOutcome::kUnknown;
  if (slot.ballot.Result() == Tally::kWon) {
    outcome = ReleaseOutcome::kReleased;
  } else if (slot.stolen != 0 && IsMajority(slot.stolen | slot.gone, nodes_)) {
    outcome = ReleaseOutcome::kStolen;
  } else if (IsMajority(slot.gone, nodes_) || now.boot >= slot.valid_until) {
    outcome = ReleaseOutcome::kExpired;
  }
  if (observer_ != nullptr) observer_->OnReleased(outcome);
  Emit(index, LockEvent::Kind::kReleased).outcome = outcome;
  End(index);
}

}  // namespace fencepost::locking
