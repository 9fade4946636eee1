// LockCore: extensions of leases, and filling nodes that lack them.
#include "locking/core/lock/lock_core.h"

#include <algorithm>
#include <optional>

#include "locking/base/planted.h"

namespace fencepost::locking {

// A lease that was granted or extended at `from` is extended a third of its time later (the
// watchdog); without the watchdog it is only looked at when it ends.
void LockCore::ScheduleExtension(std::uint32_t index, Instant from) {
  const Slot& slot = slots_[index];
  const Instant extend_at = from + slot.ttl / 3;
  Schedule(index, slot.watchdog ? std::min(extend_at, slot.valid_until) : slot.valid_until);
}

void LockCore::ExtendNow(LockId lock, Now now) {
  last_now_ = now;
  Slot* slot = Find(lock);
  if (slot == nullptr || slot->state != State::kHeld) return;
  if (now.boot >= slot->valid_until) {
    // Nobody had told the core yet that time had passed. Nothing may be extended any more.
    LoseAtEnd(lock.slot, now);
  } else if (!std::get<HeldLease>(slot->stage).round.open()) {
    BeginExtension(lock.slot, now);
  }
  Settle(now);
}

void LockCore::BeginExtension(std::uint32_t index, Now now) {
  Slot& slot = slots_[index];
  auto& lease = std::get<HeldLease>(slot.stage);
  lease.extension_sent = now.boot;
  ++slot.round;
  const NodeSet open = OpenNodes();
  const NodeSet extended = lease.round.Begin(open);
  SendToAll(index, extended, OpKind::kExtend);
  SendToAll(index, Without(open, extended | slot.creating), OpKind::kFill);
  Schedule(index, slot.valid_until);
  if (extended == 0) EndExtension(index, Tally::kLost, now);
}

void LockCore::OnExtendReply(std::uint32_t index, NodeIndex node, const Reply& reply, Now now) {
  Slot& slot = slots_[index];
  const bool current = reply.round == slot.round || Planted("late_extension_counts");
  if (slot.state != State::kHeld || !current) return;
  if (reply.code == ReplyCode::kDone && slot.phase < Phase::kWriting)
    return DropForDone(index, reply, now);
  const Tally tally = std::get<HeldLease>(slot.stage).round.OnReply(node, reply);
  if (tally != Tally::kPending) EndExtension(index, tally, now);
}

void LockCore::EndExtension(std::uint32_t index, Tally tally, Now now) {
  Slot& slot = slots_[index];
  auto& lease = std::get<HeldLease>(slot.stage);
  // The answers came after the lease's own end: they change nothing.
  if (now.boot >= slot.valid_until) return LoseAtEnd(index, now);
  if (tally == Tally::kWon) {
    const Instant from = Planted("extension_from_the_answer") ? now.boot : lease.extension_sent;
    slot.valid_until = EndOfValidity(slot, from);
    lease.round.Accept();
    observer_->OnExtension(ExtensionResult::kExtended);
    ScheduleExtension(index, lease.extension_sent);
    return;
  }
  const std::optional<LossReason> loss = lease.round.Loss();
  observer_->OnExtension(loss ? ExtensionResult::kLost : ExtensionResult::kError);
  if (loss)
    return Lose(index, *loss, now,
                *loss == LossReason::kStolen ? lease.round.MajorityRival() : Token());
  const Nanos again = std::max<Nanos>(slot.ttl / 20, round_trip_);
  Schedule(index, slot.watchdog ? std::min(now.boot + again, slot.valid_until) : slot.valid_until);
}

void LockCore::OnFillReply(std::uint32_t index, NodeIndex node, const Reply& reply, Now now) {
  Slot& slot = slots_[index];
  const NodeSet bit = Bit(node);
  if (reply.code == ReplyCode::kFilled) {
    if (slot.state == State::kHeld) std::get<HeldLease>(slot.stage).round.OnFilled(node);
  } else if (NodeAnswered(reply.code)) {
    slot.may_hold = Without(slot.may_hold, bit);
  }
  if (reply.code == ReplyCode::kContended && slot.state == State::kHeld &&
      reply.round == slot.round) {
    OnFillContended(index, node, reply, now);
    if (slot.state != State::kHeld) return;
  }
  OnLateAcquireReply(index, node, reply, now);
}

// A lease that was granted by a bare quorum meets a rival there first: the rival's nodes are not
// among those that are extended.
void LockCore::OnFillContended(std::uint32_t index, NodeIndex node, const Reply& reply, Now now) {
  ExtendRound& round = std::get<HeldLease>(slots_[index].stage).round;
  round.OnContended(node, reply);
  const bool lost = !round.open() && round.Loss() == LossReason::kStolen;
  if (lost) Lose(index, LossReason::kStolen, now, round.MajorityRival());
}

}  // namespace fencepost::locking
