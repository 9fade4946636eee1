// The fixture of the lock library's own tests, and what the pitfalls look at besides.
#pragma once

#include <atomic>
#include <string>

#include "tests/component/quorum_lock/lock_fixture.h"

namespace fencepost::locking {

// Counts the answered calls that carried an operation of that kind.
class ExtendCalls : public NodesUp {
 public:
  std::atomic<int> calls{0};
  void OnCall(NodeIndex, OpKind kind, std::size_t, Nanos) override {
    if (kind == OpKind::kExtend) ++calls;
  }
};

class PitfallTest : public LockFixture {
 protected:
  // Each of them does something to the servers.
  explicit PitfallTest(Millis max_ttl = LockOptions().max_ttl) : LockFixture(3, max_ttl) {
    Spoil();
  }
  static std::string KeyOf(const std::string& name) { return "fencepost:{test}:" + name; }
  void DeleteEverywhere(const std::string& name) {
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      nodes_[node].Command({"DEL", KeyOf(name)});
    }
  }
  // All nodes' values of a name, one after the other.
  std::string ValuesOf(const std::string& name) {
    std::string all;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      all += nodes_[node].Command({"GET", KeyOf(name)}) + "\n";
    }
    return all;
  }
  // All nodes have the same lease; an earlier holder's, that has ended, may be there for a moment.
  void AwaitOneHolder(const std::string& name) {
    testing::RequireWithin(20s, name + " to have one holder", [&] {
      const std::string first = nodes_[0].Command({"GET", KeyOf(name)});
      std::string same;
      for (std::size_t node = 0; node < nodes_.size(); ++node) same += first + "\n";
      return first.starts_with('H') && ValuesOf(name) == same;
    });
  }
  void AwaitEverywhere(char state, const std::string& name) {
    testing::RequireWithin(20s, name + " to be " + state, [&] { return AllNodesSay(state, name); });
  }
  // A lease on all nodes that ends by its clock alone.
  Lease TakeEverywhere(QuorumLock& lock, const std::string& name) {
    Lease lease = Take(lock, name, {.ttl = 20s, .watchdog = false});
    AwaitEverywhere('H', name);
    return lease;
  }
  // Another's, as it is where a clock has jumped or a memory was lost.
  Lease Wrest(QuorumLock& lock, const std::string& name) {
    DeleteEverywhere(name);
    return TakeEverywhere(lock, name);
  }
  // Until no node keeps the lease of that name by its own clock: by the holder's it ends earlier,
  // and a node that still has it refuses the next holder, who fills it much later.
  void AwaitExpiredEverywhere(const std::string& name) {
    constexpr const char* kExpired =
        "local value, now = redis.call('GET', KEYS[1]), redis.call('TIME') "
        "if not value or string.sub(value, 1, 1) ~= 'H' then return 1 end "
        "local deadline = tonumber(string.sub(value, 2, 12), 16) "
        "return deadline < now[1] * 1000 + math.floor(now[2] / 1000) and 1 or 0";
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      testing::RequireWithin(20s, name + " to expire", [&] {
        return nodes_[node].Command({"EVAL", kExpired, "1", KeyOf(name)}) == "1";
      });
    }
  }
  static void AwaitLoss(const Lease& lease) {
    testing::RequireWithin(20s, "the loss", [&] { return lease.stop_token().stop_requested(); });
  }
};

}  // namespace fencepost::locking
