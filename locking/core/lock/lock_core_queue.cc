// LockCore: slots, the timer heap, and the queue of each node.
#include "locking/core/lock/lock_core.h"

#include <algorithm>
#include <utility>

#include "locking/base/check.h"

namespace fencepost::locking {
namespace {

// Operations kept for a node that stopped answering (releases and marks). Later ones fail, and the
// aborts and releases among them are sent again later.
constexpr std::size_t kMaxQueuedAtStalled = 65536;

// The order of a batch: what frees or completes a name goes before what takes it.
constexpr int SendRank(OpKind kind) {
  switch (kind) {
    case OpKind::kExtend:
      return 0;
    case OpKind::kAbort:
      return 1;
    case OpKind::kRelease:
      return 2;
    case OpKind::kDone:
      return 3;
    case OpKind::kForget:
      return 4;
    case OpKind::kAcquire:
      return 5;
    case OpKind::kFill:
      return 6;
    case OpKind::kInspect:
      return 7;
  }
  return 8;
}

}  // namespace

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

void LockCore::Send(std::uint32_t index, NodeIndex node, OpKind kind) {
  Slot& slot = slots_[index];
  NodeQueue& queue = queues_[static_cast<std::size_t>(node)];
  Op op{kind, IdOf(slot, index), slot.round, slot.name, slot.token, slot.nonce, slot.ttl, slot.crc};
  ++slot.outstanding;
  if (Creates(kind)) {
    slot.creating |= Bit(node);
    slot.may_hold |= Bit(node);
  }
  const bool refused = queue.stalled && (MustNotComeLate(kind) ||
                                         queue.ops.size() - queue.head >= kMaxQueuedAtStalled);
  if (refused) {
    if (kind == OpKind::kAbort || kind == OpKind::kRelease) DeferQueuedAbort(node, op, last_now_);
    failed_.push_back(
        {node,
         Reply{.lock = op.lock, .round = op.round, .kind = kind, .code = ReplyCode::kTimeout}});
  } else {
    (kind == OpKind::kExtend ? queue.urgent : queue.ops).push_back(op);
  }
}

bool LockCore::HasOps(NodeIndex node) const {
  return !queues_[static_cast<std::size_t>(node)].Empty() && store_.Open(node);
}

std::size_t LockCore::TakeBatch(NodeIndex node, std::vector<Op>& out) {
  NodeQueue& queue = queues_[static_cast<std::size_t>(node)];
  if (!store_.Open(node) || queue.stalled) return 0;
  const std::size_t before = out.size();
  const std::size_t urgent = std::min(queue.urgent.size(), kMaxBatch);
  const auto urgent_end = queue.urgent.begin() + static_cast<std::ptrdiff_t>(urgent);
  out.insert(out.end(), queue.urgent.begin(), urgent_end);
  queue.urgent.erase(queue.urgent.begin(), urgent_end);
  const std::size_t rest = std::min(queue.ops.size() - queue.head, kMaxBatch - urgent);
  const auto first = queue.ops.begin() + static_cast<std::ptrdiff_t>(queue.head);
  // One pass a rank instead of a sort: batches mostly hold two or three kinds.
  for (int rank = 1; rank <= 7; ++rank) {
    for (std::size_t i = 0; i < rest; ++i) {
      const Op& op = *(first + static_cast<std::ptrdiff_t>(i));
      if (SendRank(op.kind) == rank) out.push_back(op);
    }
  }
  queue.head += rest;
  if (queue.head == queue.ops.size()) {
    queue.ops.clear();
    queue.head = 0;
  } else if (queue.head > 8 * kMaxBatch) {
    queue.ops.erase(queue.ops.begin(), queue.ops.begin() + static_cast<std::ptrdiff_t>(queue.head));
    queue.head = 0;
  }
  return out.size() - before;
}

void LockCore::DeferQueuedAbort(NodeIndex node, const Op& op, Now now) {
  const Instant until = std::min(slots_[op.lock.slot].abort_until, now.boot + op.ttl);
  KeepPendingAbort(node, {std::string(op.name), op.token, op.nonce, op.ttl, until}, now);
}

void LockCore::FailQueued(NodeIndex node, ReplyCode code, bool only_late_ones, Now now) {
  NodeQueue& queue = queues_[static_cast<std::size_t>(node)];
  const auto fail = [&](const Op& op) {
    if (op.kind == OpKind::kAbort || op.kind == OpKind::kRelease) DeferQueuedAbort(node, op, now);
    failed_.push_back(
        {node, Reply{.lock = op.lock, .round = op.round, .kind = op.kind, .code = code}});
  };
  for (const Op& op : queue.urgent) fail(op);
  queue.urgent.clear();
  std::size_t kept = 0;
  for (std::size_t i = queue.head; i < queue.ops.size(); ++i) {
    const Op op = queue.ops[i];
    if (only_late_ones && !MustNotComeLate(op.kind)) {
      queue.ops[kept++] = op;
    } else {
      fail(op);
    }
  }
  queue.ops.resize(kept);
  queue.head = 0;
}

// Ends every public step: answers what the core answers itself, and wakes those who waited for a
// quorum. Work done here may fail more operations; it ends because those wait for time.
void LockCore::Settle(Now now) {
  last_now_ = now;
  for (NodeIndex node = 0; node < nodes_; ++node) {
    if (!queues_[static_cast<std::size_t>(node)].Empty() && !store_.Open(node)) {
      FailQueued(node, ReplyCode::kConnection, false, now);
    }
    const bool pending = !pending_aborts_[static_cast<std::size_t>(node)].empty();
    if (pending && store_.Open(node) && !queues_[static_cast<std::size_t>(node)].stalled) {
      FlushPendingAborts(node, now);
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
