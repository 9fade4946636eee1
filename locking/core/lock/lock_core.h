// The client's half of fenced Redlock for any number of locks at once, sans-IO: values in,
// operations and events out, clocks passed in. The same code runs in the service, the library and
// the simulator.
//
// A host (locking/redis/engine/engine.h, tests/model/simulator) does this, on one thread:
// clang-format off
//   1. hand in what happened: Acquire, Done, Release, … from users; OnReplies and the On… of
//      store() from nodes; OnTime when NextTime() is reached;
//   2. for each node that is open and has no call out: TakeBatch, send it, and later hand back
//      one Reply for every Op of it, whatever happened;
//   3. drain events() and act on them; go to 1.
// clang-format on
//
// Life of a lock: Acquire → rounds, with jittered waits between them → Leased → (extended at a
// third of its ttl) → Done, Release or Leave → ended. It may be Lost in between, once, and never
// comes back. After the event that ends it (kDone, kGaveUp, kLost, kReleased, kCompleted), or after
// Leave, its LockId means nothing any more; calls with it are ignored.
//
// Speed: no allocation a lock in the steady state (slots are reused, names keep their capacity).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "locking/core/contact/fast_nodes.h"
#include "locking/core/lock/node_queue.h"
#include "locking/core/lock/slot_pool.h"
#include "locking/core/lock/token_clock.h"
#include "locking/core/observer.h"
#include "locking/core/ops.h"
#include "locking/core/options.h"
#include "locking/core/store/store.h"
#include "locking/core/timers.h"

namespace fencepost::locking {

struct LockEvent {
  enum class Kind : std::uint8_t {
    kLeased,       // granted by a quorum; token
    kDone,         // ended: the name is DONE; token and crc say by whom and of what
    kRoundFailed,  // still trying; the wait before the next round began; reason. No lease is held
    kGaveUp,       // ended: wait or tries ran out; reason. Its aborts are on their way
    kLost,         // ended: the lease is gone; loss says why
    kReleased,     // ended: release is settled; outcome
    kCompleted,    // ended: done is settled; majority tells whether a quorum has the mark
    kAnswered,     // ended: a question is answered; answers, one a node
  };
  Kind kind;
  LockId lock;
  std::uint64_t cookie = 0;  // as given to Acquire
  Token token;
  ContentCrc crc = 0;
  WaitReason reason = WaitReason::kContended;
  LossReason loss = LossReason::kExpired;
  ReleaseOutcome outcome = ReleaseOutcome::kUnknown;
  bool majority = false;
  // AcquireSpec::counts_contention, and not told to the observer:
  bool takeover = false;  // kLeased: an acquire found that another's deadline had passed
  Nanos contended{0};     // kRoundFailed, kGaveUp: how long a round took that ended contended
  // kLeased, kLost: this told that a promise was broken (the observer has counted it), and by which
  // other's token.
  std::optional<Invariant> broken;
  Token rival;
  Instant ended;  // kLost: when the lease ended, which may be before anybody looked
  std::shared_ptr<const NodeReplies> answers;
};

struct AcquireSpec {
  std::string_view name;     // the whole key; copied
  std::uint64_t cookie = 0;  // comes back in events
  Millis wait{0};            // how long to try: 0 is one round; Millis::max() is for ever
  Millis ttl{0};             // 0: options.ttl
  bool watchdog = true;      // extend at a third of the ttl until done or released
  // Leases of this name may have been left behind (Leave): the caller counts contended rounds and
  // takeovers, when it knows whether this was one of those. The observer is not told of them.
  bool counts_contention = false;
  // How many rounds at most; 0: no limit of its own. With a wait of 0 it alone counts, and a time
  // without a quorum to ask is a round that failed; otherwise that time is waited out.
  int tries = 0;
  DelayPolicy delay{};      // between rounds
  Millis min_validity{-1};  // < 0: options.min_validity
};

// A name that somebody waits for (LockOptions::wake_up): the host subscribes to its channel (the
// key itself) at every node, or gives that up.
struct WatchChange {
  std::string name;
  bool on;
};

struct MarkSpec {
  std::string_view name;  // the whole key; copied
  Token token;
  ContentCrc crc = 0;
  Millis remember{0};
};

class LockCore {
 public:
  // `random` returns 64 uniformly random bits a call (a CSPRNG in the driver, seeded in tests).
  using Random = std::function<std::uint64_t()>;

  LockCore(int nodes, const LockOptions& options, StoreCreation creation, Random random,
           LockObserver* observer);
  ~LockCore();
  LockCore(const LockCore&) = delete;
  LockCore& operator=(const LockCore&) = delete;

  // --- users ---------------------------------------------------------------------------------
  LockId Acquire(const AcquireSpec& spec, Now now);
  // Stops trying; aborts go to all nodes that were asked; no event follows. A lease that is held is
  // released.
  void Cancel(LockId lock, Now now);
  // Forgets a lease: it is extended no more and nothing is sent, so the nodes keep others out until
  // its deadline. For work whose effect stands, where whoever finds the name held can see that. No
  // event follows.
  void Leave(LockId lock, Now now);
  // Gives a lease back. kReleased follows.
  void Release(LockId lock, Now now);
  // A late mark replaces a later holder's HELD: one of less could end a lease and be forgotten
  // itself before its holder hears of it.
  [[nodiscard]] Millis ShortestMark() const { return store_.max_ttl() + 2 * options_.max_skew; }
  // The work is complete: marks the name DONE on all nodes, for `remember`, at least ShortestMark.
  // kCompleted follows.
  void Done(LockId lock, ContentCrc crc, Millis remember, Now now);
  // As Done, after an effect that was written although its lease was lost meanwhile (counted).
  void MarkDone(const MarkSpec& spec, Now now);
  // Asks every node the same of one name, outside any lock's life: kInspect (what state has it?) or
  // kForget (takes a DONE mark back). kAnswered follows, with `cookie`; a node that cannot be asked
  // answers kConnection.
  LockId Ask(OpKind kind, std::string_view name, std::uint64_t cookie, Now now);
  void ExtendNow(LockId lock, Now now);  // by hand; the outcome is seen in ValidUntil or kLost
  void SetPhase(LockId lock, Phase phase);
  // A fresh token without a lease, for a write that the ledger alone decides.
  Token IssueToken(Now now);
  // The lease is held and its own clock has not run out.
  [[nodiscard]] bool Valid(LockId lock, Now now) const;
  [[nodiscard]] Instant ValidUntil(LockId lock) const;  // Instant::min() when not held

  // --- nodes ---------------------------------------------------------------------------------
  [[nodiscard]] Store& store() { return store_; }
  [[nodiscard]] const Store& store() const { return store_; }
  // Moves at most kMaxBatch operations for this node into `out`, in the order in which they must
  // reach it, extensions first. Send them in this order, one script call for each run of one kind.
  std::size_t TakeBatch(NodeIndex node, std::vector<Op>& out);
  [[nodiscard]] bool HasOps(NodeIndex node) const;
  void OnReplies(NodeIndex node, const std::vector<Reply>& replies, Now now);
  // The node was asked who it is, on connecting or by a probe (also tells store()).
  void OnConnected(NodeIndex node, const NodeInfo& info, Now now);
  // The node stopped answering (or answers again): while it is stalled, operations that must not
  // come late (acquire, extend, fill) fail at once, the others wait in order, up to a limit.
  void OnStalled(NodeIndex node, bool stalled, Now now);
  // The node told by pub/sub that `name` was freed there. Late, repeated and unfounded news does no
  // harm: it begins a round early, at most one a quorum of such nodes.
  void OnFreed(NodeIndex node, std::string_view name, Now now);
  void OnDisconnected(NodeIndex node,
                      Now now);  // everything queued for it fails (also tells store())

  // --- time and events -----------------------------------------------------------------------
  void OnTime(Now now);
  [[nodiscard]] Instant NextTime() const;
  // Events since the last drain, oldest first. The caller empties it.
  std::vector<LockEvent>& events() { return events_; }
  // What is to be subscribed to, in order, since the last drain. The caller empties it. Always
  // empty without LockOptions::wake_up.
  std::vector<WatchChange>& watch_changes() { return watch_changes_; }

  // A quorum can be asked, and the clock is not refused. While false, acquires wait.
  [[nodiscard]] bool Available() const;
  [[nodiscard]] std::size_t held() const { return held_; }

 private:
  static constexpr Millis kClockCheckInterval{1000};
  static constexpr Millis kLongestDelay = std::chrono::hours(24);

  using Slot = LockSlot;
  using State = LockState;

  struct Failed {  // an operation that the core answers itself
    NodeIndex node;
    Reply reply;
  };

  Slot* Find(LockId lock) { return slots_.Live(lock) ? &slots_[lock.slot] : nullptr; }
  void Schedule(std::uint32_t index, Instant at);
  [[nodiscard]] Op OpOf(std::uint32_t index, OpKind kind) const;
  void Send(std::uint32_t index, NodeIndex node, OpKind kind);
  void SendToAll(std::uint32_t index, NodeSet nodes, OpKind kind);
  void Fail(NodeIndex node, std::span<const Op> ops, ReplyCode code, Now now);
  void Settle(Now now);

  void TryRound(std::uint32_t index, Now now);
  void BeginRound(std::uint32_t index, Now now);
  void OnAcquireReply(std::uint32_t index, NodeIndex node, const Reply& reply, Now now);
  void OnLateAcquireReply(std::uint32_t index, NodeIndex node, const Reply& reply, Now now);
  void OnVerdict(std::uint32_t index, Verdict verdict, Now now);
  void OnWon(std::uint32_t index, Now now);
  void OnRoundLost(std::uint32_t index, RoundResult result, WaitReason reason, Now now);
  void LearnFromLostRound(const Slot& slot, Now now);
  void TellForeign(const std::string& name, Now now);
  void ScheduleExtension(std::uint32_t index, Instant from);
  void TellFreed(std::uint32_t index, Now now);
  void LearnRoundTrip(const Slot& slot, Now now);
  void AskAgain(std::uint32_t index, Now now);
  void AskTheRest(std::uint32_t index, Now now);
  void OnLate(std::uint32_t index, Now now);
  void AskMore(std::uint32_t index, NodeSet nodes, Now now);
  [[nodiscard]] NodeSet AskedFirst(const Slot& slot, NodeSet candidates) const;
  void TellFast(Now now);
  void WaitForRound(std::uint32_t index, WaitReason reason, Now now);
  void GiveUp(std::uint32_t index, WaitReason reason);
  [[nodiscard]] Nanos DrawDelay(LockAttempt& attempt);

  void Watch(std::uint32_t index);
  void Unwatch(std::uint32_t index);
  [[nodiscard]] bool FreedOnMajority(const Slot& slot) const;
  [[nodiscard]] Nanos DrawWakeDelay(const Slot& slot);
  void FreeNodes(std::uint32_t index, OpKind kind, Now now);
  void DeferAbort(std::uint32_t index, NodeIndex node, Now now);
  void KeepAbort(NodeIndex node, const Op& op, Now now);
  void SendPendingAborts(NodeIndex node, Now now);

  void BeginExtension(std::uint32_t index, Now now);
  void OnExtendReply(std::uint32_t index, NodeIndex node, const Reply& reply, Now now);
  void OnFillReply(std::uint32_t index, NodeIndex node, const Reply& reply, Now now);
  void OnFillContended(std::uint32_t index, NodeIndex node, const Reply& reply, Now now);
  void EndExtension(std::uint32_t index, Tally tally, Now now);
  [[nodiscard]] LossReason ReasonAtEnd(const Slot& slot) const;
  // End of the lease's validity: sent + ttl - clock drift (LockOptions::Validity).
  [[nodiscard]] Instant EndOfValidity(const Slot& slot, Instant sent) const {
    return sent + options_.Validity(slot.ttl);
  }
  void LoseAtEnd(std::uint32_t index, Now now);
  void Lose(std::uint32_t index, LossReason reason, Now now, Token rival = {});
  void DropForDone(std::uint32_t index, const Reply& reply, Now now);
  void EndAsDone(std::uint32_t index, const Reply& reply, Now now);

  void OnFreedReply(std::uint32_t index, NodeIndex node, const Reply& reply, Now now);
  void OnMarkedReply(std::uint32_t index, NodeIndex node, const Reply& reply);
  void BeginMarking(std::uint32_t index);
  void OnAnswer(std::uint32_t index, NodeIndex node, const Reply& reply);
  void TellAnswered(std::uint32_t index);
  void LeaveHeld(std::uint32_t index, Now now);
  void End(std::uint32_t index);
  LockEvent& Emit(std::uint32_t index, LockEvent::Kind kind);
  Nonce DrawNonce();
  void HandleReply(NodeIndex node, Reply reply, Now now);
  void CheckClock(Now now);
  [[nodiscard]] NodeSet OpenNodes() const;  // those that can be asked

  const int nodes_;
  const LockOptions options_;
  LockObserver* const observer_;
  Random random_;
  Store store_;
  TokenClock clock_;
  SlotPool slots_;
  std::array<NodeQueue, kMaxNodes> queues_;
  FastNodes fast_;
  NodeSet slow_ = 0;  // and there, as last looked at
  NodeSet told_slow_ = 0;
  std::array<Instant, kMaxNodes> slow_since_;  // of slow_
  std::array<PendingAborts, kMaxNodes> pending_aborts_;
  std::vector<Failed> failed_;
  std::vector<Failed> failing_;
  std::vector<std::uint32_t> quorum_waiters_;
  Timers timers_;
  std::vector<LockEvent> events_;
  std::unordered_map<std::string, std::vector<std::uint32_t>> watchers_;  // by name: waiting slots
  std::vector<WatchChange> watch_changes_;
  std::size_t held_ = 0;
  Nanos round_trip_{Millis(1)};
  bool clock_refused_ = false;
  NoteLimit<std::string> foreign_notes_;  // by key
  Instant clock_check_at_ = Instant::max();
  Now last_now_{};
};

}  // namespace fencepost::locking
