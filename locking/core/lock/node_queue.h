// What is to be sent to one node, and what it could not be sent. Values of LockCore, on its thread.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "locking/core/ops.h"

namespace fencepost::locking {

// What is to be sent, until it goes out or fails: it knows neither locks nor time.
//
// Invariant: every operation that Push takes leaves once, by Take, Stall or Clear. A batch has
// extensions first, then what frees or completes a name, then what takes one, then questions; of
// one kind, the order of Push. While the node is stalled, nothing waits here that must not come
// late, and Push takes nothing once kMostWhileStalled wait.
class NodeQueue {
 public:
  static constexpr std::size_t kMostWhileStalled = 65'536;

  // False: not taken; the operation fails.
  [[nodiscard]] bool Push(const Op& op);
  // Moves at most kMaxBatch operations to the end of `out`, none while stalled. Returns how many.
  std::size_t Take(std::vector<Op>& out);
  // The node stopped answering. Returns what fails by it: that which must not come late.
  [[nodiscard]] std::vector<Op> Stall();
  void Resume() { stalled_ = false; }
  // Empties the queue, and returns what was in it.
  [[nodiscard]] std::vector<Op> Clear();

  [[nodiscard]] bool Empty() const { return extensions_.empty() && head_ == others_.size(); }
  [[nodiscard]] bool stalled() const { return stalled_; }

 private:
  std::vector<Op> extensions_;
  std::vector<Op> others_;
  std::size_t head_ = 0;  // of others_: those before it were taken
  bool stalled_ = false;
};

struct PendingAbort {
  std::string name;  // the whole key
  Token token;
  Nonce nonce;
  Millis ttl{0};
  Instant until;  // by then the ttl has ended what it would free
};

// Aborts that one node could not be sent, until it can be reached again: without them the names
// would stay held there until their ttl is over.
//
// Invariant: oldest first, at most kMost; beyond, the oldest is left to its ttl.
class PendingAborts {
 public:
  static constexpr std::size_t kMost = 65'536;

  // True: one that was still needed had to be dropped, for the first time since Take.
  [[nodiscard]] bool Keep(PendingAbort abort, Instant now) {
    bool dropped_first = false;
    if (aborts_.size() >= kMost) {
      if (aborts_.front().until > now) dropped_first = !std::exchange(dropped_, true);
      aborts_.pop_front();
    }
    aborts_.push_back(std::move(abort));
    return dropped_first;
  }
  // Those that are still needed; none are left here.
  [[nodiscard]] std::deque<PendingAbort> Take(Instant now) {
    dropped_ = false;
    std::erase_if(aborts_, [now](const PendingAbort& abort) { return abort.until <= now; });
    return std::exchange(aborts_, {});
  }
  [[nodiscard]] bool Empty() const { return aborts_.empty(); }

 private:
  std::deque<PendingAbort> aborts_;
  bool dropped_ = false;
};

}  // namespace fencepost::locking
