// Three real nodes with a lock store that counts, and QuorumLocks on it.
#pragma once

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "locking/quorum_lock.h"
#include "tests/support/servers.h"

namespace fencepost::locking {

using namespace std::chrono_literals;
using fencepost::testing::RedisServers;
using fencepost::testing::WaitUntil;

// "" for a value, the stable code for an error.
template <typename T>
std::string Code(const tl::expected<T, Error>& result) {
  return result ? "" : result.error().code;
}

// Which nodes take part. More than a quorum is needed where a test looks at every node.
class NodesUp : public LockObserver {
 public:
  std::atomic<unsigned> up{0};
  void OnNode(NodeIndex node, bool is_up, bool /*quarantined*/) override {
    is_up ? up |= 1U << node : up &= ~(1U << node);
  }
};

class LockFixture : public ::testing::Test {
 protected:
  LockFixture() {
    auto options = Options();
    options.creation = StoreCreation::kBlessed;
    const auto creator = Connect(options);
    testing::RequireWithin(
        20s,
        [this] {
          for (std::size_t node = 0; node < nodes_.size(); ++node) {
            if (!nodes_[node].Command({"GET", "fencepost::sentinel"}).starts_with("C"))
              return false;
          }
          return true;
        },
        "the lock store");
  }

  QuorumLock::Options Options() {
    QuorumLock::Options options;
    options.redis.nodes = nodes_.addresses();
    options.lock.node_timeout = 1s;
    options.lock.min_validity = 100ms;
    options.name_space = "test";
    options.creation = StoreCreation::kNever;
    return options;
  }
  // Throws when it is refused, or does not see all nodes in time.
  static std::unique_ptr<QuorumLock> Connect(QuorumLock::Options options, NodesUp& observer) {
    options.observer = &observer;
    auto lock = QuorumLock::Connect(options);
    if (!lock) throw std::runtime_error(lock.error().Line());
    const auto ready = (*lock)->WaitReady(20s);
    if (!ready) throw std::runtime_error(ready.error().Line());
    testing::RequireWithin(
        20s, [&] { return observer.up == 0b111; }, "all nodes");
    return std::move(*lock);
  }
  std::unique_ptr<QuorumLock> Connect(const QuorumLock::Options& options) {
    observers_.push_back(std::make_unique<NodesUp>());
    return Connect(options, *observers_.back());
  }
  std::unique_ptr<QuorumLock> Connect() { return Connect(Options()); }

  void PauseAll() {
    for (std::size_t node = 0; node < nodes_.size(); ++node) nodes_[node].Pause();
  }
  void ResumeAll() {
    for (std::size_t node = 0; node < nodes_.size(); ++node) nodes_[node].Resume();
  }
  // What a node keeps of a name: H held, F free, D done; "(" for nothing.
  char StateAt(std::size_t node, std::string_view name) {
    return nodes_[node].Command({"GET", "fencepost:{test}:" + std::string(name)}).at(0);
  }
  bool AllNodesSay(char state, std::string_view name) {
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (StateAt(node, name) != state) return false;
    }
    return true;
  }

  RedisServers nodes_{3};
  std::vector<std::unique_ptr<NodesUp>> observers_;
};

}  // namespace fencepost::locking
