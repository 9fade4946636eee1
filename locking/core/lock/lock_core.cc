// LockCore: acquires and replies in, events out, and time. What follows has files of its own.
#include "locking/core/lock/lock_core.h"

#include <algorithm>
#include <utility>

#include "locking/base/check.h"

namespace fencepost::locking {

LockCore::LockCore(int nodes, const LockOptions& options, StoreCreation creation, Random random,
                   LockObserver* observer)
    : nodes_(nodes),
      options_(options),
      observer_(observer),
      random_(std::move(random)),
      store_(nodes, options, creation, DrawNonce(), observer),
      clock_(random_()) {
  FENCEPOST_CHECK(nodes >= 1 && nodes <= kMaxNodes, std::to_string(nodes));
}

LockCore::~LockCore() = default;

Nonce LockCore::DrawNonce() { return Nonce{{random_(), random_()}}; }

// --- users -------------------------------------------------------------------------------------

LockId LockCore::Acquire(const AcquireSpec& spec, Now now) {
  const std::uint32_t index = NewSlot();
  Slot& slot = slots_[index];
  auto& attempt = std::get<LockAttempt>(slot.stage);
  slot.name.assign(spec.name);
  slot.cookie = spec.cookie;
  slot.ttl = spec.ttl.count() > 0 ? spec.ttl : options_.ttl;
  slot.watchdog = spec.watchdog;
  attempt.first_try = now.boot;
  attempt.tries = spec.tries;
  attempt.delay = spec.delay;
  attempt.delay.first = std::min(spec.delay.first, kLongestDelay);
  attempt.delay.most = std::min(spec.delay.most, kLongestDelay);
  attempt.min_validity = spec.min_validity < Millis(0) ? options_.min_validity : spec.min_validity;
  const bool only_tries_count = spec.tries > 0 && spec.wait == Millis(0);
  const bool no_end = only_tries_count || spec.wait == Millis::max();
  attempt.give_up_at = no_end ? Instant::max() : now.boot + spec.wait;
  attempt.waits_for_quorum = !only_tries_count;
  const LockId lock = IdOf(slot, index);
  TryRound(index, now);
  Settle(now);
  return lock;
}

void LockCore::SetPhase(LockId lock, Phase phase) {
  if (Slot* slot = Find(lock)) slot->phase = phase;
}

Token LockCore::IssueToken(Now now) {
  if (observer_ != nullptr) observer_->OnTokenIssued();
  return clock_.Next(now.wall, options_.max_skew);
}

bool LockCore::Valid(LockId lock, Now now) const { return now.boot < ValidUntil(lock); }

Instant LockCore::ValidUntil(LockId lock) const {
  const Slot* slot = const_cast<LockCore*>(this)->Find(lock);
  return slot != nullptr && slot->state == State::kHeld ? slot->valid_until : Instant::min();
}

NodeSet LockCore::OpenNodes() const {
  NodeSet open = 0;
  for (NodeIndex node = 0; node < nodes_; ++node) {
    if (store_.Open(node)) open |= Bit(node);
  }
  return open;
}

bool LockCore::Available() const { return store_.Available() && !clock_refused_; }

// --- nodes and time ----------------------------------------------------------------------------

void LockCore::HandleReply(NodeIndex node, const Reply& reply, Now now) {
  const std::uint32_t index = reply.lock.slot;
  FENCEPOST_CHECK(index < slots_.size() && slots_[index].generation == reply.lock.generation &&
                      slots_[index].outstanding > 0,
                  "a reply without its operation");
  Slot& slot = slots_[index];
  --slot.outstanding;
  if (Creates(reply.kind)) slot.creating = Without(slot.creating, Bit(node));
  switch (reply.kind) {
    case OpKind::kAcquire:
      OnAcquireReply(index, node, reply, now);
      break;
    case OpKind::kFill:
      OnFillReply(index, node, reply, now);
      break;
    case OpKind::kExtend:
      OnExtendReply(index, node, reply, now);
      break;
    case OpKind::kRelease:
      OnFreedReply(index, node, reply, now);
      break;
    case OpKind::kDone:
      OnMarkedReply(index, node, reply);
      break;
    case OpKind::kForget:
    case OpKind::kInspect:
      OnAnswer(index, node, reply);
      break;
    case OpKind::kAbort:
      break;
  }
  FreeIfQuiet(index);
}

void LockCore::OnReplies(NodeIndex node, const std::vector<Reply>& replies, Now now) {
  last_now_ = now;
  for (const Reply& reply : replies) {
    const bool frees = reply.kind == OpKind::kAbort || reply.kind == OpKind::kRelease;
    const std::uint32_t index = reply.lock.slot;
    const bool unheard = reply.code == ReplyCode::kTimeout || reply.code == ReplyCode::kConnection;
    if (frees && unheard && reply.round == slots_.at(index).round) DeferAbort(index, node, now);
    HandleReply(node, reply, now);
  }
  Settle(now);
}

void LockCore::OnStalled(NodeIndex node, bool stalled, Now now) {
  NodeQueue& queue = queues_[static_cast<std::size_t>(node)];
  if (stalled) {
    FailAll(node, queue.Stall(), ReplyCode::kTimeout, now);
  } else {
    queue.Resume();
  }
  Settle(now);
}

void LockCore::OnDisconnected(NodeIndex node, Now now) {
  NodeQueue& queue = queues_[static_cast<std::size_t>(node)];
  queue.Resume();
  store_.OnDisconnected(node, now);
  FailAll(node, queue.Clear(), ReplyCode::kConnection, now);
  Settle(now);
}

void LockCore::CheckClock(Now now) {
  if (!clock_refused_ || now.boot < clock_check_at_) return;
  int good = 0;
  for (NodeIndex node = 0; node < nodes_; ++node) {
    const std::optional<Nanos> offset = store_.Status(node, now).clock_offset;
    if (offset && std::chrono::abs(*offset) <= Nanos(options_.max_skew)) ++good;
  }
  clock_refused_ = good < Quorum(nodes_);
  clock_check_at_ = clock_refused_ ? now.boot + kClockCheckInterval : Instant::max();
  if (!clock_refused_ && observer_ != nullptr) {
    observer_->OnNote(Severity::kInfo, "clock_accepted", "the clocks agree again; locking goes on");
  }
}

void LockCore::OnTime(Now now) {
  if (store_.NextTime() <= now.boot) store_.OnTime(now);
  CheckClock(now);
  while (!timers_.empty() && timers_.top().at <= now.boot) {
    const std::uint32_t index = timers_.top().slot;
    const Instant at = timers_.top().at;
    timers_.pop();
    Slot& slot = slots_[index];
    if (slot.scheduled != at) continue;  // an earlier entry took its place
    slot.scheduled = Instant::max();
    if (slot.due > now.boot) {
      Schedule(index, slot.due);
      continue;
    }
    slot.due = Instant::max();
    if (slot.state == State::kWaiting) {
      TryRound(index, now);
    } else if (slot.state == State::kAsking && std::get<LockAttempt>(slot.stage).asking_again) {
      AskAgain(index, now);
    } else if (slot.state == State::kHeld && now.boot >= slot.valid_until) {
      LoseAtEnd(index, now);
    } else if (slot.state == State::kHeld) {
      BeginExtension(index, now);
    }
  }
  Settle(now);
}

Instant LockCore::NextTime() const {
  Instant next = std::min(store_.NextTime(), clock_check_at_);
  if (!timers_.empty()) next = std::min(next, timers_.top().at);
  return next;
}

LockEvent& LockCore::Emit(std::uint32_t index, LockEvent::Kind kind) {
  const Slot& slot = slots_[index];
  LockEvent& event = events_.emplace_back();
  event.kind = kind;
  event.lock = IdOf(slot, index);
  event.cookie = slot.cookie;
  event.token = slot.token;
  return event;
}

}  // namespace fencepost::locking
