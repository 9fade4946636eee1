// LockCore: aborts and releases of a name at the nodes, also of those that cannot be told now.
#include "locking/core/lock/lock_core.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace fencepost::locking {
namespace {

constexpr std::size_t kMaxPendingAborts = 65'536;  // a node; the oldest is left to its ttl

}  // namespace

// Frees our HELD wherever it stands or may stand. Where an acquire or a fill of ours is still on
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
      DeferAbort(slot, node, now);
    }
  }
}

// An attempt's connection broke, or a node was away when it was to be freed: the next connection
// tells it, unless the ttl is over by then.
void LockCore::DeferAbort(Slot& slot, NodeIndex node, Now now) {
  if ((slot.may_hold & Bit(node)) == 0) return;
  slot.may_hold = Without(slot.may_hold, Bit(node));
  const Instant until = std::min(slot.abort_until, now.boot + slot.ttl);
  KeepPendingAbort(node, {slot.name, slot.token, slot.nonce, slot.ttl, until}, now);
}

void LockCore::KeepPendingAbort(NodeIndex node, PendingAbort abort, Now now) {
  auto& pending = pending_aborts_[static_cast<std::size_t>(node)];
  if (pending.size() >= kMaxPendingAborts) {
    if (pending.front().until > now.boot) NoteDroppedAborts(node);
    pending.pop_front();
  }
  pending.push_back(std::move(abort));
}

// Once, until the pending aborts could be sent.
void LockCore::NoteDroppedAborts(NodeIndex node) {
  if ((noted_dropped_ & Bit(node)) != 0) return;
  noted_dropped_ |= Bit(node);
  if (observer_ == nullptr) return;
  observer_->OnNote(
      Severity::kWarn, "redis_frees_dropped",
      fmt::format("lock node {} is owed more than {} frees: those beyond are not kept, and their "
                  "names stay held on that node until their ttl is over; bring the node back",
                  static_cast<char>('a' + node), kMaxPendingAborts));
}

void LockCore::FlushPendingAborts(NodeIndex node, Now now) {
  auto& pending = pending_aborts_[static_cast<std::size_t>(node)];
  for (; !pending.empty(); pending.pop_front()) {
    const PendingAbort& abort = pending.front();
    if (abort.until <= now.boot) continue;
    const std::uint32_t index = NewSlot();
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
  noted_dropped_ = Without(noted_dropped_, Bit(node));
}

}  // namespace fencepost::locking
