// Two groups of real nodes behind one face: where their names are, a group that is away, and lists
// that name the groups otherwise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <asio/io_context.hpp>

#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "locking/core/groups/lock_groups.h"
#include "locking/redis/engine/engine.h"
#include "tests/support/servers.h"

namespace fencepost::locking {
namespace {

using namespace std::chrono_literals;
using fencepost::testing::RedisServers;
using ::testing::HasSubstr;

LockOptions Patient() {
  LockOptions options;
  options.node_timeout = 2000ms;  // a busy machine is not a stalled node
  return options;
}

// A client of these groups: takes names, and marks them done at once.
class Client : public LockObserver {
 public:
  Client(const std::vector<std::vector<std::string>>& groups, StoreCreation creation) {
    for (const auto& nodes : groups) redis_.push_back({.nodes = nodes});
    locks_ = std::make_unique<LockGroups>(
        SizesOf(redis_), Patient(), creation,
        [random = std::mt19937_64(std::random_device()())]() mutable { return random(); }, this);
    for (int group = 0; group < locks_->size(); ++group) {
      engines_.push_back(std::make_unique<RedisEngine>(io_, locks_->core(group),
                                                       redis_[static_cast<std::size_t>(group)],
                                                       Patient(), this, [this] { Step(); }));
      engines_.back()->Start();
    }
  }
  void OnNode(NodeIndex node, bool up, bool) override {
    up ? (void)up_nodes.insert(node) : (void)up_nodes.erase(node);
  }
  void OnQuorum(int group, bool available) override {
    available ? (void)quorums.insert(group) : (void)quorums.erase(group);
  }

  void Take(const std::string& name) {
    const LockId lock = locks_->Acquire({.name = name, .wait = 60s}, ReadClocks());
    engines_.at(lock.group)->Kick();
  }
  [[nodiscard]] ::testing::AssertionResult RunUntil(const std::function<bool()>& condition,
                                                    std::string_view what, Millis limit = 30s) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (!condition()) {
      if (std::chrono::steady_clock::now() >= deadline) {
        return ::testing::AssertionFailure() << "waited in vain for " << what;
      }
      io_.restart();
      io_.run_one_for(5ms);
    }
    return ::testing::AssertionSuccess();
  }
  [[nodiscard]] ::testing::AssertionResult RunUntilCreated() {
    return RunUntil(
        [&] {
          return locks_->core(0).store().Created() && locks_->core(1).store().Created() &&
                 quorums.size() == 2;
        },
        "the stores");
  }
  LockGroups& locks() { return *locks_; }

  int completed = 0;
  std::set<NodeIndex> up_nodes;
  std::set<int> quorums;

 private:
  void Step() {
    for (std::vector<LockEvent> events; locks_->TakeEvents(events);) {
      for (const LockEvent& event : events) {
        if (event.kind == LockEvent::Kind::kLeased) {
          locks_->Done(event.lock, 1, 60s, ReadClocks());
          engines_.at(event.lock.group)->Kick();
        }
        completed += event.kind == LockEvent::Kind::kCompleted && event.majority ? 1 : 0;
      }
    }
  }

  asio::io_context io_;
  std::vector<RedisOptions> redis_;
  std::unique_ptr<LockGroups> locks_;
  std::vector<std::unique_ptr<RedisEngine>> engines_;
};

class Groups : public ::testing::Test {
 protected:
  Groups() {
    for (std::size_t i = 0; i < 6; ++i) lists_[i / 3].push_back(servers_.addresses()[i]);
  }
  static std::string Name(int number) { return fmt::format("fencepost:{{groups}}:{}", number); }
  static int InFirst(int names) {
    int first = 0;
    for (int i = 0; i < names; ++i) first += GroupOf(Name(i), 2) == 0 ? 1 : 0;
    return first;
  }
  bool Has(std::size_t node, int number) {
    return servers_[node].Command({"EXISTS", Name(number)}) == "1";
  }

  RedisServers servers_{6};
  std::vector<std::vector<std::string>> lists_{2};
};

TEST_F(Groups, KeepEachNameOnTheNodesOfItsGroupAlone) {  // 24
  constexpr int kNames = 200;
  Client client(lists_, StoreCreation::kImmediate);
  ASSERT_TRUE(client.RunUntilCreated());
  EXPECT_EQ(client.up_nodes, (std::set<NodeIndex>{0, 1, 2, 3, 4, 5}));
  for (int i = 0; i < kNames; ++i) client.Take(Name(i));
  ASSERT_TRUE(client.RunUntil([&] { return client.completed == kNames; }, "the marks"));
  EXPECT_GT(InFirst(kNames), kNames / 3);
  for (int i = 0; i < kNames; ++i) {
    const bool first = GroupOf(Name(i), 2) == 0;
    int own = 0;
    for (std::size_t node = 0; node < 6; ++node) {
      const bool has = Has(node, i);
      own += has ? 1 : 0;
      EXPECT_FALSE(has && (node < 3) != first) << Name(i) << " at node " << node;
    }
    EXPECT_GE(own, 2) << Name(i);
  }
}

TEST_F(Groups, WaitEachForItsOwnQuorum) {
  constexpr int kNames = 60;
  Client client(lists_, StoreCreation::kImmediate);
  ASSERT_TRUE(client.RunUntilCreated());
  for (const std::size_t node : {3U, 4U}) servers_[node].Pause();
  for (int i = 0; i < kNames; ++i) client.Take(Name(i));
  ASSERT_TRUE(
      client.RunUntil([&] { return client.completed >= InFirst(kNames); }, "the first group"));
  EXPECT_EQ(client.completed, InFirst(kNames));
  for (const std::size_t node : {3U, 4U}) servers_[node].Resume();
  EXPECT_TRUE(client.RunUntil([&] { return client.completed == kNames; }, "all", 60s));
}

TEST_F(Groups, InAnotherOrderOrNumberAreRefusedAndTakeNoName) {  // 24
  {
    Client client(lists_, StoreCreation::kImmediate);
    ASSERT_TRUE(client.RunUntilCreated());
  }
  const auto refused = [](const std::vector<std::vector<std::string>>& lists,
                          const std::string& problem) {
    Client other(lists, StoreCreation::kQuarantined);
    for (int i = 0; i < 20; ++i) other.Take(Name(i));
    const auto told = [&] {
      const auto found = other.locks().core(0).store().Problem();
      return found && found->Line().find(problem) != std::string::npos;
    };
    EXPECT_TRUE(other.RunUntil(told, problem)) << problem;
    EXPECT_FALSE(other.locks().AnyAvailable());
    EXPECT_TRUE(other.quorums.empty());
    EXPECT_EQ(other.completed, 0);
  };
  refused({lists_[1], lists_[0]},
          "its lock store is group 2 of 2, but it is listed in group 1 of 2");
  refused({lists_[0]}, "its lock store is group 1 of 2, but it is listed in group 1 of 1");
  Client same(lists_, StoreCreation::kQuarantined);
  same.Take(Name(1));
  EXPECT_TRUE(same.RunUntil([&] { return same.completed == 1; }, "a lease"));
}

}  // namespace
}  // namespace fencepost::locking
