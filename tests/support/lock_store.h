// Real nodes with a lock store on them that counts, and QuorumLocks over it.
#pragma once

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "locking/quorum_lock/quorum_lock.h"
#include "tests/support/redis_server.h"

namespace fencepost::testing {

class LockStore {
 public:
  // Counts the nodes that take part, and keys by call.
  class Observer : public locking::LockObserver {
   public:
    std::atomic<unsigned> up{0};
    std::atomic<int> calls[locking::kOpKinds] = {};
    void OnNode(locking::NodeIndex node, bool is_up, bool /*quarantined*/) override {
      is_up ? up |= 1U << node : up &= ~(1U << node);
    }
    void OnCall(locking::NodeIndex, locking::OpKind kind, std::size_t, locking::Nanos) override {
      ++calls[static_cast<int>(kind)];
    }
  };

  explicit LockStore(int nodes) : nodes_(nodes) {
    auto options = Options();
    options.creation = locking::StoreCreation::kImmediate;
    const auto creator = Connect(options);
    RequireWithin(
        std::chrono::seconds(20), [this] { return Complete(); }, "the lock store");
  }

  [[nodiscard]] locking::QuorumLock::Options Options() const {
    locking::QuorumLock::Options options;
    options.redis.nodes = nodes_.addresses();
    options.lock.node_timeout = locking::Millis(1000);
    options.lock.min_validity = locking::Millis(100);
    options.name_space = "test";
    options.creation = locking::StoreCreation::kNever;
    return options;
  }
  // When all nodes take part; throws when that does not come.
  std::unique_ptr<locking::QuorumLock> Connect(locking::QuorumLock::Options options) {
    observers_.push_back(std::make_unique<Observer>());
    Observer& observer = *observers_.back();
    options.observer = &observer;
    auto lock = locking::QuorumLock::Connect(options);
    if (!lock) throw std::runtime_error(lock.error().Line());
    const unsigned all = (1U << nodes_.size()) - 1;
    RequireWithin(
        std::chrono::seconds(20), [&] { return observer.up == all; }, "all nodes");
    if (auto ready = (*lock)->WaitReady(locking::Millis(20'000)); !ready) {
      throw std::runtime_error(ready.error().Line());
    }
    return std::move(*lock);
  }
  std::unique_ptr<locking::QuorumLock> Connect() { return Connect(Options()); }

  RedisServers& nodes() { return nodes_; }
  [[nodiscard]] std::string list() const { return nodes_.list(); }
  [[nodiscard]] Observer& last_observer() { return *observers_.back(); }
  // Takes a name away from whoever holds it: its key is gone from all nodes.
  void Wrest(const std::string& name) {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      nodes_[i].Command({"DEL", "fencepost:{test}:" + name});
    }
  }

 private:
  bool Complete() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!nodes_[i].Command({"GET", "fencepost::sentinel"}).starts_with("C")) return false;
    }
    return true;
  }

  RedisServers nodes_;
  std::vector<std::unique_ptr<Observer>> observers_;
};

// "" for a value, the stable code for an error.
template <typename T>
std::string Code(const tl::expected<T, Error>& result) {
  return result ? "" : result.error().code;
}

}  // namespace fencepost::testing
