// What a client does about empty nodes that it never saw in the store: the members are raised to an
// even epoch, then the empty nodes are admitted with the odd one above (store.h, generations). A
// pure function; any thread.
#pragma once

#include <cstdint>

namespace fencepost::locking {

// Of the members' highest epoch.
enum class RaiseSeen : std::uint8_t {
  kNone,          // it is odd
  kOurs,          // begun by this client
  kOfOurList,     // begun by another client that lists the same nodes
  kOfAnotherList  // … or other nodes
};
enum class RaiseMove : std::uint8_t {
  kWait,
  kBegin,     // raises the members to a new even epoch
  kFinish,    // raises the rest of them
  kTakeOver,  // the same, in place of the client that began it; they come back in quarantine
  kAdmit      // the empty nodes
};

struct RaiseFacts {
  RaiseSeen seen = RaiseSeen::kNone;
  bool level = false;   // all members have one epoch
  bool idle = false;    // no member has changed for so long that nobody continues a raise
  bool waited = false;  // clients that saw the empty nodes in the store had time to take them back
};

constexpr RaiseMove MoveFor(const RaiseFacts& facts) {
  switch (facts.seen) {
    case RaiseSeen::kNone:
      return facts.level && facts.waited ? RaiseMove::kBegin : RaiseMove::kWait;
    case RaiseSeen::kOurs:
      return facts.level ? RaiseMove::kAdmit : RaiseMove::kFinish;
    case RaiseSeen::kOfOurList:
      if (facts.level) return RaiseMove::kAdmit;
      return facts.idle ? RaiseMove::kTakeOver : RaiseMove::kWait;
    case RaiseSeen::kOfAnotherList:
      return facts.idle ? RaiseMove::kBegin : RaiseMove::kWait;
  }
  return RaiseMove::kWait;
}

}  // namespace fencepost::locking
