// LockCore over five real nodes: locks are taken, completed and given back, whatever becomes of a
// minority of the nodes.
#include "locking/redis/engine/engine.h"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <asio/io_context.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/component/redis/run_until.h"
#include "tests/support/servers.h"

namespace fencepost::locking {
namespace {

using namespace std::chrono_literals;
using fencepost::testing::RedisServer;
using fencepost::testing::RedisServers;

class Counts final : public LockObserver {
 public:
  std::map<std::pair<NodeIndex, CommandError>, int> errors;
  std::map<NodeIndex, int> reconnects;
  std::size_t keys = 0;
  std::vector<std::string> notes;

  void OnCall(NodeIndex, OpKind, std::size_t count, Nanos took) override {
    EXPECT_GT(took.count(), 0);
    keys += count;
  }
  void OnCommandError(NodeIndex node, CommandError error) override { ++errors[{node, error}]; }
  void OnReconnect(NodeIndex node) override { ++reconnects[node]; }
  void OnNote(Severity, std::string_view event, std::string_view text) override {
    notes.push_back(fmt::format("{}: {}", event, text));
  }
};

// A client of the store: takes names in turn, and ends each lease at once by Done or Release.
class Client {
 public:
  Client(const std::vector<std::string>& nodes, const LockOptions& options, StoreCreation creation)
      : core_(
            static_cast<int>(nodes.size()), options, creation,
            [random = std::mt19937_64(std::random_device()())]() mutable { return random(); },
            &counts),
        redis_{.nodes = nodes},
        engine_(io_, core_, redis_, options, &counts, [this] { Step(); }) {
    engine_.Start();
  }

  LockCore& core() { return core_; }
  RedisEngine& engine() { return engine_; }
  Counts counts;
  int leased = 0;
  int completed = 0;
  int released = 0;
  int lost = 0;
  int no_majority = 0;
  Nanos slowest{0};  // from Acquire to the lease

  LockId Take(Millis wait = 20s) {
    const Now now = ReadClocks();
    const std::uint64_t number = ++next_;
    const std::string name = fmt::format("fencepost:{{engine}}:{}", number);
    asked_[number] = now.boot;
    const LockId lock = core_.Acquire({.name = name, .cookie = number, .wait = wait}, now);
    engine_.Kick();
    return lock;
  }
  // `count` cycles, at most `in_flight` at a time.
  ::testing::AssertionResult Cycles(int count, int in_flight) {
    to_start_ = count;
    const int end = completed + released + count;
    while (to_start_ > 0 && in_flight-- > 0) StartNext();
    return RunUntil([&] { return completed + released >= end; }, fmt::format("{} cycles", count));
  }
  ::testing::AssertionResult RunUntil(const std::function<bool()>& condition, std::string_view what,
                                      Millis limit = 30s) {
    return locking::RunUntil(io_, counts.notes, what, condition, limit);
  }
  ::testing::AssertionResult RunUntilCreated() {
    return RunUntil([&] { return core_.store().Created() && core_.Available(); }, "the store");
  }

 private:
  void StartNext() {
    --to_start_;
    Take();
  }

  void Step() {
    std::vector<LockEvent> events;
    events.swap(core_.events());
    for (const LockEvent& event : events) OnEvent(event);
  }
  void OnEvent(const LockEvent& event) {
    const Now now = ReadClocks();
    switch (event.kind) {
      case LockEvent::Kind::kLeased:
        ++leased;
        slowest = std::max<Nanos>(slowest, now.boot - asked_.at(event.cookie));
        asked_.erase(event.cookie);
        if (leased % 2 == 0) {
          core_.Done(event.lock, 1, 60s, now);
        } else {
          core_.Release(event.lock, now);
        }
        engine_.Kick();
        return;
      case LockEvent::Kind::kCompleted:
        ++completed;
        no_majority += event.majority ? 0 : 1;
        break;
      case LockEvent::Kind::kReleased:
        ++released;
        no_majority += event.outcome == ReleaseOutcome::kReleased ? 0 : 1;
        break;
      case LockEvent::Kind::kLost:
        ++lost;
        return;
      default:
        return;
    }
    if (to_start_ > 0) StartNext();
  }

  asio::io_context io_;
  LockCore core_;
  RedisOptions redis_;
  RedisEngine engine_;
  std::uint64_t next_ = 0;
  int to_start_ = 0;
  std::map<std::uint64_t, Instant> asked_;
};

LockOptions Patient() {
  LockOptions options;
  options.node_timeout = 2000ms;  // a busy machine is not a stalled node
  return options;
}

TEST(Engine, TakesAndEndsManyLocksAtOnceAndIsThenQuiet) {
  RedisServers servers(5);
  Client client(servers.addresses(), Patient(), StoreCreation::kImmediate);
  ASSERT_TRUE(client.RunUntilCreated());
  ASSERT_TRUE(client.Cycles(2000, 256));
  EXPECT_EQ(client.leased, 2000);
  EXPECT_EQ(client.no_majority, 0);
  EXPECT_EQ(client.lost, 0);
  EXPECT_TRUE(client.counts.errors.empty());
  EXPECT_GE(client.counts.keys, 2000u * 2 * 3);
  ASSERT_TRUE(client.RunUntil([&] { return client.engine().Quiet(); }, "quiet"));
}

TEST(Engine, IsNotSlowedByADeadNodeAndAStoppedOne) {
  RedisServers servers(5);
  Client client(servers.addresses(), Patient(), StoreCreation::kImmediate);
  ASSERT_TRUE(client.RunUntilCreated());
  ASSERT_TRUE(client.Cycles(100, 8));
  servers[1].Kill();
  servers[3].Pause();
  client.slowest = Nanos(0);
  const auto began = std::chrono::steady_clock::now();
  ASSERT_TRUE(client.Cycles(300, 1));
  // Waiting for either of them even once would take node_timeout.
  EXPECT_LT(client.slowest, 1s);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
  ASSERT_TRUE(client.Cycles(1000, 64));
  EXPECT_LT(client.slowest, 1s);
  EXPECT_EQ(client.no_majority, 0);

  servers[1].Start();
  servers[3].Resume();
  const auto all_open = [&] {
    for (NodeIndex node = 0; node < 5; ++node) {
      if (!client.core().store().Open(node)) return false;
    }
    return true;
  };
  ASSERT_TRUE(client.RunUntil(all_open, "all five nodes"));
  EXPECT_TRUE(client.core().store().Quarantined(1)) << "it was restarted, and lost its memory";
  EXPECT_FALSE(client.core().store().Quarantined(3)) << "it only slept";
  EXPECT_EQ(client.counts.reconnects[1], 1);
  ASSERT_TRUE(client.Cycles(100, 8));
}

}  // namespace
}  // namespace fencepost::locking
