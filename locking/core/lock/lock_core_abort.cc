// LockCore: aborts and releases of a name at the nodes, also of those that cannot be told now.
#include "locking/core/lock/lock_core.h"

#include <algorithm>

#include <fmt/format.h>

namespace fencepost::locking {
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

}  // namespace fencepost::locking
