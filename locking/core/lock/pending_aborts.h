// Aborts that one node could not be sent, until it can be reached again: without them the names
// would stay held there until their ttl is over. A value of LockCore, on its thread.
//
// Invariant: oldest first, at most kMost; beyond, the oldest is left to its ttl.
#pragma once

#include <deque>
#include <string>
#include <utility>

#include "locking/core/ops.h"

namespace fencepost::locking {

struct PendingAbort {
  std::string name;  // the whole key
  Token token;
  Nonce nonce;
  Millis ttl{0};
  Instant until;  // by then the ttl has ended what it would free
};

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
