// LockCore: slots, the timer heap, and the queue of each node.
#include "locking/core/lock/lock_core.h"

#include <algorithm>
#include <utility>

#include "locking/base/check.h"

namespace fencepost::locking {
// --- slots, timers, queues ---------------------------------------------------------------------

LockSlot* LockCore::Find(LockId lock) {
  if (lock.slot >= slots_.size()) return nullptr;
  Slot& slot = slots_[lock.slot];
  const bool live = slot.generation == lock.generation && slot.state != State::kEnded &&
                    slot.state != State::kUnused;
  return live ? &slot : nullptr;
}

std::uint32_t LockCore::NewSlot() {
  if (unused_.empty()) {
    slots_.emplace_back();
    unused_.push_back(static_cast<std::uint32_t>(slots_.size() - 1));
  }
  const std::uint32_t index = unused_.back();
  unused_.pop_back();
  Slot& old = slots_[index];
  std::string name = std::move(old.name);  // keeps its capacity
  const std::uint32_t generation = old.generation + 1;
  const Instant scheduled = old.scheduled;
  old = Slot();
  old.name = std::move(name);
  old.name.clear();
  old.generation = generation == 0 ? 1 : generation;
  old.scheduled = scheduled;
  return index;
}

void LockCore::End(std::uint32_t index) {
  Unwatch(index);
  slots_[index].state = State::kEnded;
  slots_[index].due = Instant::max();
  FreeIfQuiet(index);
}

void LockCore::FreeIfQuiet(std::uint32_t index) {
  Slot& slot = slots_[index];
  if (slot.state != State::kEnded || slot.outstanding != 0) return;
  slot.state = State::kUnused;
  unused_.push_back(index);
}

void LockCore::Schedule(std::uint32_t index, Instant at) {
  Slot& slot = slots_[index];
  slot.due = at;
  if (at >= slot.scheduled || at == Instant::max()) return;
  slot.scheduled = at;
  timers_.push({at, index});
}

Op LockCore::OpOf(std::uint32_t index, OpKind kind) const {
  const Slot& slot = slots_[index];
  return {kind,       IdOf(slot, index), slot.round, slot.name,
          slot.token, slot.nonce,        slot.ttl,   slot.crc};
}

void LockCore::Send(std::uint32_t index, NodeIndex node, OpKind kind) {
  Slot& slot = slots_[index];
  ++slot.outstanding;
  if (Creates(kind)) {
    slot.creating |= Bit(node);
    slot.may_hold |= Bit(node);
  }
  const Op op = OpOf(index, kind);
  if (!queues_[static_cast<std::size_t>(node)].Push(op)) {
    Fail(node, op, ReplyCode::kTimeout, last_now_);
  }
}

// The node is not asked: the core answers itself, at the next Settle.
void LockCore::Fail(NodeIndex node, const Op& op, ReplyCode code, Now now) {
  if (op.kind == OpKind::kAbort || op.kind == OpKind::kRelease) KeepAbort(node, op, now);
  failed_.push_back(
      {node, Reply{.lock = op.lock, .round = op.round, .kind = op.kind, .code = code}});
}

void LockCore::FailAll(NodeIndex node, const std::vector<Op>& ops, ReplyCode code, Now now) {
  for (const Op& op : ops) Fail(node, op, code, now);
}

bool LockCore::HasOps(NodeIndex node) const {
  return !queues_[static_cast<std::size_t>(node)].Empty() && store_.Open(node);
}

std::size_t LockCore::TakeBatch(NodeIndex node, std::vector<Op>& out) {
  return store_.Open(node) ? queues_[static_cast<std::size_t>(node)].Take(out) : 0;
}

// Ends every public step: answers what the core answers itself, and wakes those who waited for a
// quorum. Work done here may fail more operations; it ends because those wait for time.
void LockCore::Settle(Now now) {
  last_now_ = now;
  for (NodeIndex node = 0; node < nodes_; ++node) {
    NodeQueue& queue = queues_[static_cast<std::size_t>(node)];
    if (!store_.Open(node)) {
      FailAll(node, queue.Clear(), ReplyCode::kConnection, now);
    } else if (!queue.stalled()) {
      SendPendingAborts(node, now);
    }
  }
  while (!failed_.empty()) {
    failing_.swap(failed_);
    for (const Failed& f : failing_) HandleReply(f.node, f.reply, now);
    failing_.clear();
  }
  if (quorum_waiters_.empty() || !Available()) return;
  std::vector<std::uint32_t> waiters;
  waiters.swap(quorum_waiters_);
  for (const std::uint32_t index : waiters) {
    Slot& slot = slots_[index];
    if (slot.state != State::kWaiting) continue;
    const bool waits = std::exchange(std::get<LockAttempt>(slot.stage).awaiting_quorum, false);
    if (waits) BeginRound(index, now);
  }
}

}  // namespace fencepost::locking
