// What the lock core keeps of one lock, and what of it belongs to which state. Plain values of
// LockCore, on its thread; the rounds in here are asked through it. The slots of all locks are
// reused: no allocation a lock in the steady state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "locking/core/lock/rounds.h"
#include "locking/core/observer.h"
#include "locking/core/ops.h"
#include "locking/core/options.h"

namespace fencepost::locking {

enum class WaitReason : std::uint8_t {
  kContended,
  kStale,
  kRefused,
  kUnavailable,
  kTimeout,
  kTooLate,  // a quorum granted it, but less than min_validity was left
  kForeign   // at a quorum the key holds something that is no lock
};

using NodeReplies = std::array<Reply, kMaxNodes>;

enum class LockState : std::uint8_t {
  kUnused,   // in the free list
  kWaiting,  // no round is out: in back-off, or for a quorum to be available
  kAsking,   // an acquire round is out
  kHeld,     // leased
  kMarking,  // done was sent
  kFreeing,  // release was sent
  kQuestion,
  kEnded,  // the user was told; unanswered operations keep the slot
};

struct NodeQuestion {
  std::shared_ptr<NodeReplies> answers;
  NodeSet awaited = 0;  // nodes that have not answered yet
};

// While kWaiting and kAsking.
struct LockAttempt {
  AcquireRound round;  // while kAsking the one that is out, while kWaiting the one before
  DelayPolicy delay;
  Millis min_validity{0};
  Instant first_try;
  Instant give_up_at;              // Instant::max(): `tries` alone counts, or it waits for ever
  bool waits_for_quorum = true;    // else a time without one is a failed round
  bool awaiting_quorum = false;    // Invariant: only while kWaiting, and among quorum_waiters_
  bool asking_again = false;       // Invariant: only while kAsking; an even split, asked at `due`
  bool watched = false;            // its name's channel is subscribed to for it; in watchers_
  bool last_round = false;         // the next round is the last that the wait has room for
  bool counts_contention = false;  // AcquireSpec
  bool takeover = false;           // an acquire of it found that another's deadline had passed
  std::uint16_t backoff = 0;       // k of the delay, first * multiplier^k
  int tries = 0;                   // of rounds at most; 0: no limit
  int rounds = 0;                  // begun. Invariant: rounds <= tries, where there is a limit
  int repeats = 0;                 // of an even split, within this round
  NodeSet left_out = 0;            // of the next round: nodes whose floor is not believable
  NodeSet freed_at = 0;            // nodes that told, since the round began, of a free
  WaitReason reason = WaitReason::kContended;  // of the round before
  Token rival_seen;  // the highest that held a majority in a round that we lost
};

// While kHeld.
struct HeldLease {
  ExtendRound round;
  Instant extension_sent;  // of the round that is out, or the last one
};

struct LockSlot {
  std::string name;
  std::uint64_t cookie = 0;
  std::uint32_t generation = 0;
  LockState state = LockState::kUnused;
  Phase phase = Phase::kWaiting;
  bool watchdog = true;           // extend at a third of the ttl
  std::uint16_t round = 0;        // every reply names its round; older ones change nothing
  std::uint16_t outstanding = 0;  // operations without a reply. Invariant: 0 while kUnused
  // Where this token's HELD is. Invariant: free_after ⊆ creating ⊆ may_hold.
  NodeSet granted = 0;     // nodes that granted it, in quarantine too
  NodeSet may_hold = 0;    // nodes where it may be: no answer, or none since, denies it
  NodeSet creating = 0;    // nodes with an acquire or fill of ours on the way
  NodeSet free_after = 0;  // nodes to be freed as soon as that one is answered
  Token token;
  Nonce nonce;
  ContentCrc crc = 0;
  Millis ttl{0};                         // once it is marked: how long the mark is remembered
  Instant started;                       // just before the token was drawn
  Instant leased_at;                     // Instant(): never
  Instant valid_until;                   // of the last lease, or of a win that came too late
  Instant abort_until = Instant::max();  // of a pending abort: no longer than this
  Instant due = Instant::max();          // the next thing that time does to this lock
  Instant scheduled = Instant::max();    // its entry in the timers
  // Invariant: an LockAttempt while kWaiting and kAsking, a HeldLease while kHeld, a ReleaseRound
  // while kFreeing, a MarkRound while kMarking, a NodeQuestion while kQuestion. Otherwise nobody
  // looks.
  std::variant<LockAttempt, HeldLease, ReleaseRound, MarkRound, NodeQuestion> stage;
};

// Invariants: a slot keeps its address, since operations view its name; it is reused under another
// generation, and only once it has ended and no operation of it is without a reply.
class SlotPool {
 public:
  // An empty slot, whose stage is a LockAttempt. The caller sets its state.
  std::uint32_t New() {
    if (unused_.empty()) {
      slots_.emplace_back();
      unused_.push_back(static_cast<std::uint32_t>(slots_.size() - 1));
    }
    const std::uint32_t index = unused_.back();
    unused_.pop_back();
    LockSlot& slot = slots_[index];
    std::string name = std::move(slot.name);  // keeps its capacity
    name.clear();
    const std::uint32_t generation =
        slot.generation == LockId::kLastGeneration ? 1 : slot.generation + 1;
    const Instant scheduled = slot.scheduled;
    std::destroy_at(&slot);  // in place: it is large
    std::construct_at(&slot);
    slot.name = std::move(name);
    slot.generation = generation;
    slot.scheduled = scheduled;
    return index;
  }
  // Takes the slot back if it has ended and nothing of it is out.
  void Reclaim(std::uint32_t index) {
    LockSlot& slot = slots_[index];
    if (slot.state != LockState::kEnded || slot.outstanding != 0) return;
    slot.state = LockState::kUnused;
    unused_.push_back(index);
  }

  LockSlot& operator[](std::uint32_t index) { return slots_[index]; }
  const LockSlot& operator[](std::uint32_t index) const { return slots_[index]; }
  [[nodiscard]] LockId IdOf(std::uint32_t index) const { return {index, slots_[index].generation}; }
  // The lock has this slot, be it ended already.
  [[nodiscard]] bool Has(LockId lock) const {
    return lock.slot < slots_.size() && slots_[lock.slot].generation == lock.generation;
  }
  // The lock has not ended.
  [[nodiscard]] bool Live(LockId lock) const {
    return Has(lock) && slots_[lock.slot].state != LockState::kEnded &&
           slots_[lock.slot].state != LockState::kUnused;
  }
  [[nodiscard]] std::size_t size() const { return slots_.size(); }
  [[nodiscard]] std::size_t used() const { return slots_.size() - unused_.size(); }

 private:
  std::deque<LockSlot> slots_;
  std::vector<std::uint32_t> unused_;
};

}  // namespace fencepost::locking
