// The lock store (of each group) as a command sees it: one client, for a while, on the calling
// thread. Asks single questions (what state has this name? forget it), takes no locks. Nodes are
// counted through all groups.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <asio/io_context.hpp>

#include "consumer/cli/shared/lock_nodes.h"
#include "locking/base/error.h"
#include "locking/core/groups/lock_groups.h"
#include "locking/redis/address.h"
#include "locking/redis/engine/engine.h"

namespace fencepost::cli {

// In a word: ok, quarantined, down, refused, restarted (a member, but no client has put it in
// quarantine yet since its start), or no lock store.
const char* StateOf(const locking::NodeStatus& status);
// Why it gave no answer, as far as its status says.
std::string WhyNoAnswer(const locking::NodeStatus& status);

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
  // Until each of these nodes has answered once, or the limit.
  bool Connect(int first, int count, locking::Millis limit);
  // One answer a name (whole keys, fencepost:{PIPELINE}:ID) and node of its group, the first node's
  // first; kConnection where a node cannot be asked.
  std::vector<locking::NodeReplies> Ask(locking::OpKind kind, const std::vector<std::string>& names,
                                        locking::Millis limit);

  [[nodiscard]] int groups() const { return locks_.size(); }
  [[nodiscard]] const locking::Store& store(int group) const { return locks_.core(group).store(); }
  // Whether it holds of the store of every group.
  template <typename Test>
  [[nodiscard]] bool AllStores(Test test) const {
    for (int group = 0; group < groups(); ++group) {
      if (!test(store(group))) return false;
    }
    return true;
  }
  [[nodiscard]] bool Available() const {
    return AllStores([](const locking::Store& store) { return store.Available(); });
  }
  // The first that keeps a store from use, and which group's; a list of other groups before all.
  [[nodiscard]] std::optional<Error> Problem() const;
  [[nodiscard]] locking::NodeStatus Status(int node) const {
    const int group = nodes_.GroupOfNode(node);
    return store(group).Status(node - nodes_.SpotOf(group).first_node, locking::ReadClocks());
  }
  [[nodiscard]] int size() const { return nodes_.size(); }
  [[nodiscard]] const LockNodes& nodes() const { return nodes_; }
  [[nodiscard]] std::string Address(int node) const {
    return locking::RedactedAddress(nodes_.Address(node));
  }

 private:
  void Take();

  const LockNodes nodes_;
  asio::io_context io_{1};
  locking::LockGroups locks_;
  std::vector<std::unique_ptr<locking::RedisEngine>> engines_;
  std::vector<locking::NodeReplies> answers_;
  std::size_t answered_ = 0;
};

}  // namespace fencepost::cli
