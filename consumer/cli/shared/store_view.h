// The lock store as a command sees it: one client, for a while, on the calling thread. Asks single
// questions (what state has this name? forget it), takes no locks.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <asio/io_context.hpp>

#include "consumer/cli/shared/lock_nodes.h"
#include "locking/core/lock/lock_core.h"
#include "locking/redis/address.h"
#include "locking/redis/engine/engine.h"

namespace fencepost::cli {

// In a word: ok, quarantined, down, refused, restarted (a member, but no client has put it in
// quarantine yet since its start), or no lock store.
const char* StateOf(const locking::NodeStatus& status);

// What a node knows of one lock.
enum class NodeState : std::uint8_t { kUnreachable, kHeld, kDone, kFree, kNothing };
struct NodeFacts {
  char letter = 'a';
  std::string address;
  NodeState state = NodeState::kUnreachable;
  locking::Token token;         // held, done, free (its floor)
  locking::ContentCrc crc = 0;  // done
  locking::Millis rest{0};      // held (0: past its deadline), done
  bool quarantined = false;
  std::string problem;  // unreachable: why
};
// "held under token 7 (drawn …), for another 2 s", then `note`.
std::string NodeText(const NodeFacts& node, std::string_view note = "");

class StoreView {
 public:
  StoreView(const LockNodes& nodes, locking::StoreCreation creation);
  StoreView(const StoreView&) = delete;
  StoreView& operator=(const StoreView&) = delete;

  // Until `enough`, or the limit; true if enough.
  bool WatchUntil(const std::function<bool()>& enough, locking::Millis limit);
  // Whether it holds of every node's status.
  template <typename Test>
  [[nodiscard]] bool All(Test test) const {
    for (int node = 0; node < size(); ++node) {
      if (!test(Status(node))) return false;
    }
    return true;
  }
  [[nodiscard]] bool AllConnected() const {
    return All([](const locking::NodeStatus& node) { return node.connected; });
  }
  // Until each node has answered once and may be asked, or the limit.
  bool Connect(locking::Millis limit) {
    return WatchUntil(
        [this] {
          return All([](const locking::NodeStatus& node) { return node.connected && node.open; });
        },
        limit);
  }
  // One answer a name (whole keys, fencepost:{PIPELINE}:ID) and node, the first node's first;
  // kConnection where a node cannot be asked.
  std::vector<locking::NodeReplies> Ask(locking::OpKind kind, const std::vector<std::string>& names,
                                        locking::Millis limit);
  // What the nodes know of each name, in the order of the nodes.
  std::vector<std::vector<NodeFacts>> Look(const std::vector<std::string>& names,
                                           locking::Millis limit);

  [[nodiscard]] const locking::Store& store() const { return locks_.store(); }
  [[nodiscard]] locking::NodeStatus Status(int node) const {
    return store().Status(node, locking::ReadClocks());
  }
  // Why the node gives no answer: what it said of itself, or how the last attempt to reach it or to
  // log in failed.
  [[nodiscard]] std::string WhyNoAnswer(int node) const;
  [[nodiscard]] int size() const { return store().size(); }
  [[nodiscard]] std::string Address(int node) const {
    return locking::RedactedAddress(redis_.nodes[static_cast<std::size_t>(node)]);
  }

 private:
  void Take();

  const locking::RedisOptions redis_;
  asio::io_context io_{1};
  locking::LockCore locks_;
  locking::RedisEngine engine_;
  std::vector<locking::NodeReplies> answers_;
  std::size_t answered_ = 0;
};

}  // namespace fencepost::cli
