// LockCore: how a lease ends: left behind, released, marked DONE, lost or cancelled; aborts and
// releases at the nodes, also at those that cannot be told now; and questions, which end with their
// answers.
#include "locking/core/lock/lock_core.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

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

// --- lost -------------------------------------------------------------------------------------

// Why a lease is over whose own end has come.
LossReason LockCore::ReasonAtEnd(const Slot& slot) const {
  const bool wiped = std::get<HeldLease>(slot.stage).round.SeenWiped();
  return ReasonWith(store_, wiped ? LossReason::kNodeWiped : LossReason::kExpired);
}

// The user is done with the lease, or it is lost: it ends here, once.
void LockCore::LeaveHeld(std::uint32_t index, Now now) {
  Slot& slot = slots_[index];
  --held_;
  slot.due = Instant::max();
  observer_->OnHeld(-1);
  observer_->OnLeaseEnded(now.boot - slot.leased_at, slot.valid_until - now.boot);
  if (now.boot >= slot.valid_until) {
    observer_->OnExpired(slot.phase);
    observer_->OnLoss(ReasonAtEnd(slot));
  }
}

// Its own end has come.
void LockCore::LoseAtEnd(std::uint32_t index, Now now) {
  Lose(index, ReasonAtEnd(slots_[index]), now);
}

// `rival` has a quorum, if it is given: before this lease's own end, that breaks invariant 1.
void LockCore::Lose(std::uint32_t index, LossReason reason, Now now, Token rival) {
  Slot& slot = slots_[index];
  LeaveHeld(index, now);
  const bool in_time = now.boot < slot.valid_until;
  reason = ReasonWith(store_, reason);
  if (in_time) observer_->OnLoss(reason);
  LockEvent& event = Emit(index, LockEvent::Kind::kLost);
  event.loss = reason;
  event.ended = std::min(now.boot, slot.valid_until);
  if (rival && in_time && options_.quarantine) {
    event.broken = Invariant::kDoubleGrant;
    event.rival = rival;
    observer_->OnInvariant(Invariant::kDoubleGrant);
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
  EndAsDone(index, reply, now);
}

void LockCore::EndAsDone(std::uint32_t index, const Reply& reply, Now now) {
  LockEvent& event = Emit(index, LockEvent::Kind::kDone);
  event.token = reply.token;
  event.crc = reply.crc;
  FreeNodes(index, OpKind::kAbort, now);
  End(index);
}

// --- left behind ------------------------------------------------------------------------------

// What is queued or on the way still goes: a fill or a late grant leaves one node held for a ttl
// more, and whoever meets it there finds out as at the others.
void LockCore::Leave(LockId lock, Now now) {
  last_now_ = now;
  Slot* slot = Find(lock);
  if (slot == nullptr || slot->state != State::kHeld) return;
  if (Planted("left_lease_is_released")) return Release(lock, now);
  if (Planted("left_lease_is_extended")) return;
  slot->phase = Phase::kReleasing;
  LeaveHeld(lock.slot, now);
  End(lock.slot);
}

// --- released ---------------------------------------------------------------------------------

void LockCore::Release(LockId lock, Now now) {
  last_now_ = now;
  Slot* slot = Find(lock);
  if (slot == nullptr || slot->state != State::kHeld) return;
  slot->phase = Phase::kReleasing;
  LeaveHeld(lock.slot, now);
  slot->state = State::kFreeing;
  slot->stage = ReleaseRound(nodes_, slot->may_hold & OpenNodes());
  ++slot->round;
  FreeNodes(lock.slot, OpKind::kRelease, now);
  TellFreed(lock.slot, now);
  Settle(now);
}

void LockCore::OnFreedReply(std::uint32_t index, NodeIndex node, const Reply& reply, Now now) {
  Slot& slot = slots_[index];
  if (slot.state != State::kFreeing) return;
  std::get<ReleaseRound>(slot.stage).OnReply(node, reply);
  TellFreed(index, now);
}

// Tells how the release went, once that is known; what is still on the way frees its node all the
// same.
void LockCore::TellFreed(std::uint32_t index, Now now) {
  const Slot& slot = slots_[index];
  const auto& round = std::get<ReleaseRound>(slot.stage);
  if (round.Result() == Tally::kPending) return;
  const ReleaseOutcome outcome = round.Outcome(now.boot >= slot.valid_until);
  observer_->OnReleased(outcome);
  Emit(index, LockEvent::Kind::kReleased).outcome = outcome;
  End(index);
}

void LockCore::Cancel(LockId lock, Now now) {
  last_now_ = now;
  Slot* slot = Find(lock);
  if (slot == nullptr) return;
  const bool held = slot->state == State::kHeld;
  if (held) LeaveHeld(lock.slot, now);
  // A release, unlike an abort, is told to those who wait.
  if (slot->state != State::kMarking) {
    FreeNodes(lock.slot, held ? OpKind::kRelease : OpKind::kAbort, now);
  }
  End(lock.slot);
  Settle(now);
}

// --- freed at the nodes -------------------------------------------------------------------------

// Frees our HELD wherever it is or may be. Where an acquire or a fill of ours is still on
// the way, the free follows its answer, so that it cannot be overtaken.
void LockCore::FreeNodes(std::uint32_t index, OpKind kind, Now now) {
  Slot& slot = slots_[index];
  for (NodeIndex node = 0; node < nodes_; ++node) {
    const NodeSet bit = Bit(node);
    if ((slot.creating & bit) != 0) {
      slot.free_after |= bit;
    } else if ((slot.may_hold & bit) == 0) {
      continue;
    } else if (store_.Open(node)) {
      Send(index, node, kind);
    } else {
      DeferAbort(index, node, now);
    }
  }
}

// An attempt's connection broke, or a node was away when it was to be freed: the next connection
// tells it, unless the ttl is over by then.
void LockCore::DeferAbort(std::uint32_t index, NodeIndex node, Now now) {
  Slot& slot = slots_[index];
  if ((slot.may_hold & Bit(node)) == 0) return;
  slot.may_hold = Without(slot.may_hold, Bit(node));
  KeepAbort(node, OpOf(index, OpKind::kAbort), now);
}

void LockCore::KeepAbort(NodeIndex node, const Op& op, Now now) {
  const Instant until = std::min(slots_[op.lock.slot].abort_until, now.boot + op.ttl);
  PendingAborts& pending = pending_aborts_[static_cast<std::size_t>(node)];
  const bool note =
      pending.Keep({std::string(op.name), op.token, op.nonce, op.ttl, until}, now.boot);
  if (!note) return;
  observer_->OnNote(
      Severity::kWarn, "redis_frees_dropped",
      fmt::format("lock node {} is owed more than {} frees: those beyond are not kept, and their "
                  "names stay held on that node until their ttl is over; bring the node back",
                  NodeLetter(node), PendingAborts::kMost));
}

void LockCore::SendPendingAborts(NodeIndex node, Now now) {
  PendingAborts& pending = pending_aborts_[static_cast<std::size_t>(node)];
  if (pending.Empty()) return;
  for (const PendingAbort& abort : pending.Take(now.boot)) {
    const std::uint32_t index = slots_.New();
    Slot& slot = slots_[index];
    slot.name = abort.name;
    slot.token = abort.token;
    slot.nonce = abort.nonce;
    slot.ttl = abort.ttl;
    slot.may_hold = Bit(node);
    slot.abort_until = abort.until;
    slot.state = State::kEnded;
    Send(index, node, OpKind::kAbort);
  }
}

// --- marked DONE ------------------------------------------------------------------------------

void LockCore::Done(LockId lock, ContentCrc crc, Millis remember, Now now) {
  last_now_ = now;
  Slot* slot = Find(lock);
  if (slot == nullptr || slot->state != State::kHeld) return;
  slot->phase = Phase::kReleasing;
  LeaveHeld(lock.slot, now);
  slot->crc = crc;
  slot->ttl = std::max(remember, ShortestMark());
  BeginMarking(lock.slot);
  Settle(now);
}

void LockCore::MarkDone(const MarkSpec& spec, Now now) {
  last_now_ = now;
  const std::uint32_t index = slots_.New();
  Slot& slot = slots_[index];
  slot.name.assign(spec.name);
  slot.token = spec.token;
  slot.crc = spec.crc;
  slot.ttl = std::max(spec.remember, ShortestMark());
  slot.leased_at = now.boot;
  BeginMarking(index);
  Settle(now);
}

// On all nodes, whichever the lease was asked of: a release may be forgotten with its node, a mark
// is what keeps the work from being done again once nodes of its quorum were wiped.
void LockCore::BeginMarking(std::uint32_t index) {
  Slot& slot = slots_[index];
  slot.state = State::kMarking;
  ++slot.round;
  const NodeSet open = OpenNodes();
  slot.stage = MarkRound(nodes_, open);
  SendToAll(index, open, OpKind::kDone);
  if (open != 0) return;
  Emit(index, LockEvent::Kind::kCompleted).majority = false;
  End(index);
}

void LockCore::OnMarkedReply(std::uint32_t index, NodeIndex node, const Reply& reply) {
  Slot& slot = slots_[index];
  if (slot.state != State::kMarking || reply.round != slot.round) return;
  auto& round = std::get<MarkRound>(slot.stage);
  const Tally tally = round.OnReply(node, reply);
  if (tally != Tally::kPending) {
    Emit(index, LockEvent::Kind::kCompleted).majority = tally == Tally::kWon;
  }
  if (!round.Complete()) return;
  const bool was_leased = slot.leased_at != Instant();
  if (was_leased && round.Late()) observer_->OnCompletedAfterExpiry();
  End(index);
}

// --- questions --------------------------------------------------------------------------------

LockId LockCore::Ask(OpKind kind, std::string_view name, std::uint64_t cookie, Now now) {
  last_now_ = now;
  FENCEPOST_CHECK(kind == OpKind::kForget || kind == OpKind::kInspect, "not a question");
  const std::uint32_t index = slots_.New();
  Slot& slot = slots_[index];
  slot.name.assign(name);
  slot.cookie = cookie;
  slot.state = State::kQuestion;
  slot.ttl = options_.ttl;
  const auto& question =
      slot.stage.emplace<NodeQuestion>(std::make_shared<NodeReplies>(), OpenNodes());
  const LockId lock = slots_.IdOf(index);
  for (NodeIndex node = 0; node < nodes_; ++node) {
    Reply& reply = (*question.answers)[static_cast<std::size_t>(node)];
    reply = {.lock = lock, .kind = kind, .code = ReplyCode::kConnection};
    if ((question.awaited & Bit(node)) != 0) Send(index, node, kind);
  }
  TellAnswered(index);
  Settle(now);
  return lock;
}

void LockCore::OnAnswer(std::uint32_t index, NodeIndex node, const Reply& reply) {
  auto& question = std::get<NodeQuestion>(slots_[index].stage);
  (*question.answers)[static_cast<std::size_t>(node)] = reply;
  question.awaited = Without(question.awaited, Bit(node));
  TellAnswered(index);
}

void LockCore::TellAnswered(std::uint32_t index) {
  auto& question = std::get<NodeQuestion>(slots_[index].stage);
  if (question.awaited != 0) return;
  Emit(index, LockEvent::Kind::kAnswered).answers = std::move(question.answers);
  End(index);
}

}  // namespace fencepost::locking
