// Real nodes with a lock store that counts, and QuorumLocks on it. Tests of one number of nodes
// share the servers, one after the other.
#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "locking/quorum_lock/quorum_lock.h"
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
  explicit LockFixture(int nodes = 3, Millis max_ttl = LockOptions().max_ttl)
      : servers_({nodes, max_ttl}), nodes_(Servers(servers_)) {
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      nodes_[node].Command({"EVAL",
                            "for _, key in ipairs(redis.call('KEYS', 'fencepost:{*')) do "
                            "redis.call('DEL', key) end",
                            "0"});
    }
    if (StoreStands()) return;
    auto options = Options();
    options.lock.ttl = std::min(options.lock.ttl, max_ttl);
    options.lock.max_ttl = max_ttl;
    options.creation = StoreCreation::kImmediate;
    const auto creator = Connect(options);
    testing::RequireWithin(20s, "the lock store", [this] { return StoreStands(); });
  }
  ~LockFixture() override {
    if (spoiled_ || HasFailure()) Shared().erase(servers_);
  }
  // What the test did to the servers must not reach the next one.
  void Spoil() { spoiled_ = true; }

  [[nodiscard]] int node_count() const { return static_cast<int>(nodes_.size()); }
  [[nodiscard]] std::size_t quorum() const {
    return static_cast<std::size_t>(Quorum(node_count()));
  }

  // Many tests look for a lease on all nodes.
  Contact contact_ = Contact::kAll;

  QuorumLock::Options Options() {
    QuorumLock::Options options;
    options.redis.nodes = nodes_.addresses();
    options.lock.node_timeout = 1s;
    options.lock.min_validity = 100ms;
    options.lock.contact = contact_;
    options.lock.few_locks = 0;
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
    testing::RequireWithin(20s, "all nodes",
                           [&] { return observer.up == (1U << options.redis.nodes.size()) - 1; });
    return std::move(*lock);
  }
  std::unique_ptr<QuorumLock> Connect(const QuorumLock::Options& options) {
    observers_.push_back(std::make_unique<NodesUp>());
    return Connect(options, *observers_.back());
  }
  std::unique_ptr<QuorumLock> Connect() { return Connect(Options()); }

  // Throws where it does not come.
  static Lease Take(QuorumLock& lock, const std::string& name, AcquireOptions options = {}) {
    options.wait = 20s;
    auto lease = lock.Acquire(name, options);
    if (!lease) throw std::runtime_error(lease.error().Line());
    return std::move(*lease);
  }
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

  // Whether any node keeps any lock of this namespace as held.
  bool AnythingHeld() {
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      const auto held = nodes_[node].Command(
          {"EVAL",
           "local held = 0; for _, key in ipairs(redis.call('KEYS', 'fencepost:{test}:*')) do "
           "if string.sub(redis.call('GET', key), 1, 1) == 'H' then held = held + 1 end end "
           "return held",
           "0"});
      if (held != "0") return true;
    }
    return false;
  }

  const std::pair<int, Millis> servers_;
  RedisServers& nodes_;
  std::vector<std::unique_ptr<NodesUp>> observers_;

 private:
  using Which = std::pair<int, Millis>;  // nodes, and the store's max_ttl
  static std::map<Which, std::unique_ptr<RedisServers>>& Shared() {
    static std::map<Which, std::unique_ptr<RedisServers>> servers;
    return servers;
  }
  static RedisServers& Servers(const Which& which) {
    auto& servers = Shared()[which];
    if (!servers) servers = std::make_unique<RedisServers>(which.first);
    return *servers;
  }
  bool StoreStands() {
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (!nodes_[node].Command({"GET", "fencepost::sentinel"}).starts_with("C")) return false;
    }
    return true;
  }

  bool spoiled_ = false;
};

// A suite that runs over 1, 3, 5 and 7 nodes: INSTANTIATE_TEST_SUITE_P(Over, SUITE, kNodeCounts,
// NodesName).
class EveryCount : public LockFixture, public ::testing::WithParamInterface<int> {
 protected:
  EveryCount() : LockFixture(GetParam()) {}
};
inline const auto kNodeCounts = ::testing::Values(1, 3, 5, 7);
inline std::string NodesName(const ::testing::TestParamInfo<int>& info) {
  return std::to_string(info.param) + "Nodes";
}

}  // namespace fencepost::locking
