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
  bool finish = true;  // end leases at once
  std::vector<LockId> held;
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
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (!condition()) {
      if (std::chrono::steady_clock::now() >= deadline) {
        auto failure = ::testing::AssertionFailure() << "waited in vain for " << what;
        for (const std::string& note : counts.notes) failure << "\n  " << note;
        return failure;
      }
      io_.restart();
      io_.run_one_for(5ms);
    }
    return ::testing::AssertionSuccess();
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
        if (!finish) {
          held.push_back(event.lock);
        } else if (leased % 2 == 0) {
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

TEST(Engine, LosesNoOperationWhenTheScriptsAreFlushedAllTheTime) {
  RedisServers servers(3);
  Client client(servers.addresses(), Patient(), StoreCreation::kImmediate);
  ASSERT_TRUE(client.RunUntilCreated());
  for (int round = 0; round < 20; ++round) {
    for (std::size_t node = 0; node < servers.size(); ++node) {
      ASSERT_EQ(servers[node].Command({"SCRIPT", "FLUSH"}), "OK");
    }
    ASSERT_TRUE(client.Cycles(50, 16));
  }
  EXPECT_EQ(client.leased, 1000);
  EXPECT_EQ(client.no_majority, 0);
  EXPECT_GE((client.counts.errors[{0, CommandError::kNoscript}]), 20);
}

LockOptions Short() {
  LockOptions options;
  options.ttl = options.max_ttl = 1500ms;
  options.min_validity = 300ms;
  options.max_skew = 300ms;
  return options;
}

TEST(Engine, KeepsALeaseByExtendingItAndLosesItByItsOwnClockWhenTheNodesAreGone) {
  RedisServers servers(3);
  Client client(servers.unix_addresses(), Short(), StoreCreation::kImmediate);
  ASSERT_TRUE(client.RunUntilCreated());
  client.finish = false;
  client.Take();
  ASSERT_TRUE(client.RunUntil([&] { return client.leased == 1; }, "the lease"));
  const Instant until = ReadClocks().boot + 3s;
  ASSERT_TRUE(client.RunUntil([&] { return ReadClocks().boot >= until; }, "two ttls"));
  ASSERT_TRUE(client.core().Valid(client.held.at(0), ReadClocks()));
  for (std::size_t node = 0; node < servers.size(); ++node) servers[node].Pause();
  ASSERT_TRUE(client.RunUntil([&] { return client.lost == 1; }, "the loss", 5s));
  EXPECT_FALSE(client.core().Valid(client.held.at(0), ReadClocks()));
}

TEST(Engine, GrantsAgainWhenAMajorityThatWasRestartedHasLeftItsQuarantine) {
  RedisServers servers(3);
  Client client(servers.addresses(), Short(), StoreCreation::kImmediate);
  ASSERT_TRUE(client.RunUntilCreated());
  ASSERT_TRUE(client.Cycles(10, 2));
  servers[0].Restart(RedisServer::Data::kKeep);
  servers[1].Restart(RedisServer::Data::kWipe);
  ASSERT_TRUE(client.RunUntil([&] { return !client.core().Available(); }, "the outage"));
  const Instant began = ReadClocks().boot;
  ASSERT_TRUE(client.Cycles(10, 2));
  EXPECT_GE(ReadClocks().boot - began, 1s) << "max_ttl + 2 max_skew, less the time to notice";
  EXPECT_EQ(client.counts.reconnects[0], 1);
  EXPECT_EQ(client.counts.reconnects[1], 1);
}

}  // namespace
}  // namespace fencepost::locking
