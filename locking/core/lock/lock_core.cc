// LockCore: what users, nodes and time bring in, and what goes out to them. What follows from it
// has files of its own.
#include "locking/core/lock/lock_core.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "locking/base/check.h"
#include "locking/base/planted.h"

namespace fencepost::locking {
namespace {

constexpr Millis kTellSlowAfter{10'000};  // a busy moment of a node is nobody's business

}  // namespace

LockCore::LockCore(int nodes, const LockOptions& options, StoreCreation creation, Random random,
                   LockObserver* observer)
    : nodes_(nodes),
      options_(options),
      observer_(ObserverOrNone(observer)),
      random_(std::move(random)),
      store_(nodes, options, creation, DrawNonce(), observer),
      clock_(random_()),
      fast_(nodes, options.node_timeout) {
  FENCEPOST_CHECK(nodes >= 1 && nodes <= kMaxNodes, std::to_string(nodes));
}

LockCore::~LockCore() = default;

Nonce LockCore::DrawNonce() { return Nonce{{random_(), random_()}}; }

// --- users -------------------------------------------------------------------------------------

LockId LockCore::Acquire(const AcquireSpec& spec, Now now) {
  last_now_ = now;
  const std::uint32_t index = slots_.New();
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
  attempt.min_validity = options_.MinValidity(spec.min_validity);
  attempt.counts_contention = spec.counts_contention;
  const bool only_tries_count = spec.tries > 0 && spec.wait == Millis(0);
  const bool no_end = only_tries_count || spec.wait == Millis::max();
  attempt.give_up_at = no_end ? Instant::max() : now.boot + spec.wait;
  attempt.waits_for_quorum = !only_tries_count;
  const LockId lock = slots_.IdOf(index);
  TryRound(index, now);
  Settle(now);
  return lock;
}

void LockCore::SetPhase(LockId lock, Phase phase) {
  if (Slot* slot = Find(lock)) slot->phase = phase;
}

Token LockCore::IssueToken(Now now) {
  observer_->OnTokenIssued();
  return clock_.Next(now.wall, options_.max_skew);
}

bool LockCore::Valid(LockId lock, Now now) const { return now.boot < ValidUntil(lock); }

Instant LockCore::ValidUntil(LockId lock) const {
  const bool held = slots_.Has(lock) && slots_[lock.slot].state == State::kHeld;
  return held ? slots_[lock.slot].valid_until : Instant::min();
}

NodeSet LockCore::OpenNodes() const {
  NodeSet open = 0;
  for (NodeIndex node = 0; node < nodes_; ++node) {
    if (store_.Open(node)) open |= Bit(node);
  }
  return open;
}

bool LockCore::Available() const { return store_.Available() && !clock_refused_; }

// --- nodes ------------------------------------------------------------------------------------

bool LockCore::HasOps(NodeIndex node) const {
  return !queues_[static_cast<std::size_t>(node)].Empty() && store_.Open(node);
}

std::size_t LockCore::TakeBatch(NodeIndex node, std::vector<Op>& out) {
  if (!store_.Open(node)) return 0;
  NodeQueue& queue = queues_[static_cast<std::size_t>(node)];
  const std::size_t taken = queue.Take(out);
  if (taken > 0) fast_.OnTaken(node, queue.Empty(), last_now_);
  return taken;
}

void LockCore::HandleReply(NodeIndex node, Reply reply, Now now) {
  if (!options_.quarantine || Planted("quarantine_is_never_heeded")) reply.quarantined = false;
  const std::uint32_t index = reply.lock.slot;
  FENCEPOST_CHECK(slots_.Has(reply.lock) && slots_[index].outstanding > 0,
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
  slots_.Reclaim(index);
}

void LockCore::OnReplies(NodeIndex node, const std::vector<Reply>& replies, Now now) {
  last_now_ = now;
  fast_.OnAnswered(node, now);
  for (const Reply& reply : replies) {
    const bool frees = reply.kind == OpKind::kAbort || reply.kind == OpKind::kRelease;
    const std::uint32_t index = reply.lock.slot;
    const bool unheard = reply.code == ReplyCode::kTimeout || reply.code == ReplyCode::kConnection;
    const bool current = slots_.Has(reply.lock) && reply.round == slots_[index].round;
    if (frees && unheard && current) DeferAbort(index, node, now);
    HandleReply(node, reply, now);
  }
  Settle(now);
}

void LockCore::OnConnected(NodeIndex node, const NodeInfo& info, Now now) {
  last_now_ = now;
  fast_.OnProbed(node, info.call.received_at - info.call.sent_at, now);
  store_.OnConnected(node, info, now);
  Settle(now);
}

void LockCore::OnStalled(NodeIndex node, bool stalled, Now now) {
  last_now_ = now;
  NodeQueue& queue = queues_[static_cast<std::size_t>(node)];
  if (stalled) {
    fast_.OnAway(node, now);
    Fail(node, queue.Stall(), ReplyCode::kTimeout, now);
  } else {
    queue.Resume();
  }
  Settle(now);
}

void LockCore::OnDisconnected(NodeIndex node, Now now) {
  last_now_ = now;
  NodeQueue& queue = queues_[static_cast<std::size_t>(node)];
  queue.Resume();
  fast_.OnAway(node, now);
  store_.OnDisconnected(node, now);
  Fail(node, queue.Clear(), ReplyCode::kConnection, now);
  Settle(now);
}

// A node that is there, and slow for a while: what is away is told by its connection.
void LockCore::TellFast(Now now) {
  const NodeSet slow = Without(AllNodes(nodes_), fast_.fast());
  if ((slow | slow_ | told_slow_) == 0 || options_.contact == Contact::kAll) return;
  for (NodeIndex node = 0; node < nodes_; ++node) {
    const NodeSet bit = Bit(node);
    Instant& since = slow_since_[static_cast<std::size_t>(node)];
    const bool told = (told_slow_ & bit) != 0;
    if ((slow & bit) == 0) {
      slow_ = Without(slow_, bit);
      if (!told) continue;
      told_slow_ = Without(told_slow_, bit);
      observer_->OnNote(Severity::kInfo, "redis_node_fast",
                        fmt::format("lock node {} answers as fast as others again: acquires ask it "
                                    "first again",
                                    NodeLetter(node)));
      continue;
    }
    const bool there = store_.Open(node) && !queues_[static_cast<std::size_t>(node)].stalled();
    if (there && (slow_ & bit) == 0) since = now.boot;
    slow_ = there ? slow_ | bit : Without(slow_, bit);
    if (told || !there || now.boot - since < kTellSlowAfter) continue;
    told_slow_ |= bit;
    observer_->OnNote(
        Severity::kWarn, "redis_node_slow",
        fmt::format("lock node {} answers later than a quorum of others: acquires ask "
                    "others first until it is as fast; look at its host, its disk and "
                    "the way to it",
                    NodeLetter(node)));
  }
}

Op LockCore::OpOf(std::uint32_t index, OpKind kind) const {
  const Slot& slot = slots_[index];
  return {kind,       slots_.IdOf(index), slot.round, slot.name,
          slot.token, slot.nonce,         slot.ttl,   slot.crc};
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
    Fail(node, {&op, 1}, ReplyCode::kTimeout, last_now_);
    return;
  }
  fast_.OnQueued(node, last_now_);
}

void LockCore::SendToAll(std::uint32_t index, NodeSet nodes, OpKind kind) {
  for (NodeIndex node = 0; node < nodes_; ++node) {
    if ((nodes & Bit(node)) != 0) Send(index, node, kind);
  }
}

// The node is not asked: the core answers itself, at the next Settle.
void LockCore::Fail(NodeIndex node, std::span<const Op> ops, ReplyCode code, Now now) {
  for (const Op& op : ops) {
    if (op.kind == OpKind::kAbort || op.kind == OpKind::kRelease) KeepAbort(node, op, now);
    failed_.push_back({node, ReplyTo(op, code)});
  }
}

// Ends every public step: answers what the core answers itself, and wakes those who waited for a
// quorum. Work done here may fail more operations; it ends because those wait for time.
void LockCore::Settle(Now now) {
  last_now_ = now;
  TellFast(now);
  for (NodeIndex node = 0; node < nodes_; ++node) {
    NodeQueue& queue = queues_[static_cast<std::size_t>(node)];
    if (!store_.Open(node)) {
      Fail(node, queue.Clear(), ReplyCode::kConnection, now);
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

// --- time -------------------------------------------------------------------------------------

void LockCore::CheckClock(Now now) {
  if (!clock_refused_ || now.boot < clock_check_at_) return;
  int good = 0;
  for (NodeIndex node = 0; node < nodes_; ++node) {
    const std::optional<Nanos> offset = store_.Status(node, now).clock_offset;
    if (offset && std::chrono::abs(*offset) <= Nanos(options_.max_skew)) ++good;
  }
  clock_refused_ = good < Quorum(nodes_);
  clock_check_at_ = clock_refused_ ? now.boot + kClockCheckInterval : Instant::max();
  if (clock_refused_) return;
  observer_->OnNote(Severity::kInfo, "clock_accepted", "the clocks agree again; locking goes on");
}

void LockCore::Schedule(std::uint32_t index, Instant at) {
  Slot& slot = slots_[index];
  slot.due = at;
  if (at >= slot.scheduled || at == Instant::max()) return;
  slot.scheduled = at;
  timers_.Push({at, index});
}

void LockCore::OnTime(Now now) {
  last_now_ = now;
  if (store_.NextTime() <= now.boot) store_.OnTime(now);
  CheckClock(now);
  while (!timers_.Empty() && timers_.First().at <= now.boot) {
    const auto [at, index] = timers_.First();
    timers_.Pop();
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
    } else if (slot.state == State::kAsking) {
      OnLate(index, now);
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
  if (!timers_.Empty()) next = std::min(next, timers_.First().at);
  return next;
}

// --- events -----------------------------------------------------------------------------------

void LockCore::End(std::uint32_t index) {
  Unwatch(index);
  slots_[index].state = State::kEnded;
  slots_[index].due = Instant::max();
  slots_.Reclaim(index);
}

LockEvent& LockCore::Emit(std::uint32_t index, LockEvent::Kind kind) {
  const Slot& slot = slots_[index];
  LockEvent& event = events_.emplace_back();
  event.kind = kind;
  event.lock = slots_.IdOf(index);
  event.cookie = slot.cookie;
  event.token = slot.token;
  return event;
}

}  // namespace fencepost::locking
