// A store that is used by clients whose ledger decides (LockOptions::quarantine), and by others.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/store/world.h"

namespace fencepost::locking {
namespace {

constexpr Millis kQuarantine{40'000};  // max_ttl + 2 * max_skew by default

// A client of a pipeline like that, on nodes that nobody has made a store of.
World WithALedger(int nodes, Millis ttl = LockOptions().ttl) {
  World world(nodes);
  world.options.quarantine = false;
  world.options.ttl = ttl;
  world.options.max_ttl = std::max(ttl, world.options.max_ttl);
  std::vector<int> list;
  for (int node = 0; node < nodes; ++node) list.push_back(node);
  world.AddClient(list);
  return world;
}

// … and one that needs the locks themselves.
int AddLockUser(World& world) {
  world.options.quarantine = true;
  return world.AddClient(world.list(0));
}

TEST(StoreWithALedger, IsMadeByItsFirstClientAndCountsAtOnceForThoseWithALedgerAlone) {
  for (const int nodes : {1, 3, 5}) {
    World world = WithALedger(nodes);
    const int user = AddLockUser(world);
    world.Run(Millis(1'000));
    EXPECT_TRUE(world.store(0).Available()) << nodes;
    EXPECT_FALSE(world.store(0).Quarantined(0)) << nodes;
    EXPECT_EQ(world.store(user).store_id(), world.store(0).store_id());
    EXPECT_EQ(world.store(user).WhyUnavailable(), QuorumFailure::kQuarantined) << nodes;
    world.Run(kQuarantine);
    EXPECT_TRUE(world.store(user).Available()) << nodes;
  }
}

TEST(StoreWithALedger, CountsANodeThatMayHaveForgottenAtOnceAndQuarantinesItForOthers) {
  const struct {
    const char* name;
    void (*forget)(World& world);
  } rows[] = {{"wiped", [](World& world) { world.Wipe(0); }},
              {"restarted", [](World& world) { world.Restart(0, true); }},
              {"restarted empty", [](World& world) { world.Restart(0, false); }},
              {"its clock stepped", [](World& world) { world.nodes[0].skew = Millis(3'000); }},
              {"may evict", [](World& world) { world.nodes[0].policy = "allkeys-lru"; }}};
  for (const int nodes : {1, 3}) {
    for (const auto& row : rows) {
      World world = WithALedger(nodes);
      world.Run(kQuarantine + Millis(2'000));
      row.forget(world);
      world.Run(Millis(3'000));
      EXPECT_TRUE(world.store(0).Available()) << row.name;
      EXPECT_TRUE(world.store(0).Open(0) && !world.store(0).Quarantined(0)) << row.name;
      const auto there = world.SentinelOf(0);
      ASSERT_TRUE(there) << row.name;
      EXPECT_GT(there->quarantine_until, world.NodeTime(0) + Millis(30'000)) << row.name;
    }
  }
}

TEST(StoreWithALedger, SaysOnceThatANodeMayEvictOrDoesNotSayWhetherItDoes) {
  for (const char* policy : {"volatile-lru", ""}) {
    World world = WithALedger(1);
    world.nodes[0].policy = policy;
    world.Run(Millis(10'000));
    EXPECT_TRUE(world.store(0).Available()) << policy;
    EXPECT_FALSE(world.store(0).Problem()) << policy;
    EXPECT_NE(world.store(0).Status(0, world.now()).problem.find("maxmemory-policy"),
              std::string::npos);
    EXPECT_EQ(world.told(0).Notes("node_problem"), 1) << policy;
    const int user = AddLockUser(world);
    world.Run(Millis(1'000));
    EXPECT_EQ(world.store(user).Problem()->code, "eviction_policy") << policy;
  }
}

// Pipelines with a lock.ttl of 10 s and of 60 s, in either order; then all nodes come back empty.
TEST(StoreWithALedger, AllowsTheLongestLeaseThatAnyOfItsClientsNeeds) {
  for (const int nodes : {1, 3}) {
    for (const Millis second : {Millis(60'000), Millis(10'000)}) {
      World world = WithALedger(nodes, Millis(70'000) - second);
      world.Run(Millis(1'000));
      world.options.ttl = second;
      world.options.max_ttl = std::max(second, Millis(30'000));
      world.AddClient(world.list(0));
      const int user = AddLockUser(world);
      for (const bool wiped : {false, true}) {
        for (int node = 0; wiped && node < nodes; ++node) world.Restart(node, false);
        world.Run(Millis(3'000));
        for (int node = 0; node < nodes; ++node) {
          const auto there = world.SentinelOf(node);
          ASSERT_TRUE(there);
          EXPECT_EQ(there->max_ttl, Millis(60'000)) << nodes << second.count() << wiped;
          EXPECT_GT(there->quarantine_until, world.NodeTime(node) + Millis(60'000)) << wiped;
        }
        EXPECT_TRUE(world.store(0).Available() && world.store(1).Available()) << wiped;
        const int writes = world.writes();
        world.Run(Millis(70'000));
        EXPECT_EQ(world.writes(), writes) << "they agree";
        EXPECT_TRUE(world.store(user).Available()) << nodes << wiped;
      }
    }
  }
}

// Leases of the former store may live, and its clients need as long ones again.
TEST(StoreWithALedger, IsMadeAnewWithTheMaxTtlThatTheFormerOneHad) {
  for (const int nodes : {1, 3}) {
    World former = WithALedger(nodes, Millis(60'000));
    former.Run(Millis(1'000));
    World world = WithALedger(nodes);
    world.nodes = former.nodes;
    world.Run(Millis(1'000));
    for (int node = 0; node < nodes; ++node) world.Restart(node, false);
    world.Run(Millis(1'000));
    EXPECT_EQ(world.SentinelOf(0)->max_ttl, Millis(60'000)) << nodes;
    EXPECT_GT(world.SentinelOf(0)->quarantine_until, world.NodeTime(0) + Millis(65'000)) << nodes;
  }
}

TEST(StoreWithALedger, ThatCountsForAllKeepsCountingWhenItsMaxTtlIsRaised) {
  World world = WithALedger(3);
  const int user = AddLockUser(world);
  world.Run(kQuarantine + Millis(2'000));
  ASSERT_TRUE(world.store(user).Available());
  world.options.quarantine = false;
  world.options.ttl = world.options.max_ttl = Millis(60'000);
  world.AddClient(world.list(0));
  world.Run(Millis(5'000));
  for (int node = 0; node < 3; ++node) {
    EXPECT_EQ(world.SentinelOf(node)->max_ttl, Millis(60'000));
  }
  EXPECT_EQ(world.told(user).quorum, std::vector<bool>{true});
  EXPECT_EQ(world.store(user).max_ttl(), Millis(60'000));
}

// Who needs the lock itself may be wrong about the store: it is not changed for its ttl.
TEST(StoreWithALedger, IsNotRaisedForAClientThatNeedsTheLock) {
  World world = WithALedger(1);
  world.Run(Millis(1'000));
  world.options.ttl = world.options.max_ttl = Millis(60'000);
  AddLockUser(world);
  world.Run(Millis(5'000));
  EXPECT_EQ(world.SentinelOf(0)->max_ttl, Millis(30'000));
}

// Its users differ: some may not call INFO, or see less of it.
TEST(StoreWithALedger, IsNotPutInQuarantineByAClientThatSeesLessOfInfo) {
  const struct {
    const char* name;
    void (*hide)(NodeInfo& info);
  } rows[] = {
      {"nothing", [](NodeInfo& info) { info.run_id = info.role = info.maxmemory_policy = ""; }},
      {"no run_id", [](NodeInfo& info) { info.run_id = "0"; }},
      {"no policy", [](NodeInfo& info) { info.maxmemory_policy = ""; }}};
  for (const auto& row : rows) {
    for (const bool restarted : {false, true}) {
      World world = WithALedger(1);
      world.Hide(0, row.hide);
      world.Run(Millis(1'000));
      world.AddClient(world.list(0));
      const int user = AddLockUser(world);
      world.Run(Millis(3'000));
      if (restarted) world.Restart(0, true);
      world.Run(Millis(3'000));
      EXPECT_TRUE(world.store(0).Available() && world.store(1).Available()) << row.name;
      EXPECT_EQ(world.SentinelOf(0)->run_id, world.nodes[0].run_id) << row.name;
      const int writes = world.writes();
      world.Run(kQuarantine);
      EXPECT_EQ(world.writes(), writes) << row.name;
      EXPECT_TRUE(world.store(user).Available()) << row.name;
      world.Run(kQuarantine);
      EXPECT_EQ(world.told(user).quorum, std::vector<bool>{true}) << row.name;
      EXPECT_EQ(world.told(0).Notes("node_clock_stepped"), 0) << row.name;
    }
  }
}

TEST(StoreWithALedger, OfOneNodeNeedsNoMoreOfInfoThanWhatIsThere) {
  for (const char* run_id : {"", "0"}) {
    World world = WithALedger(1);
    world.nodes[0].run_id = run_id;
    world.nodes[0].role = world.nodes[0].policy = world.nodes[0].mode = "";
    world.Run(Millis(1'000));
    EXPECT_TRUE(world.store(0).Available()) << run_id;
    const int user = AddLockUser(world);
    world.Run(Millis(1'000));
    EXPECT_EQ(world.store(user).Problem()->code, "bad_run_id") << run_id;
  }
}

TEST(StoreWithALedger, IsStillNotMadeOfWhatIsNoStore) {
  const struct {
    int nodes;
    void (*change)(FakeNode& first);
    const char* code;
  } rows[] = {{1, [](FakeNode& first) { first.role = "slave"; }, "not_a_primary"},
              {1, [](FakeNode& first) { first.mode = "cluster"; }, "cluster_node"},
              {1, [](FakeNode& first) { first.sentinel = first.policy = "hello"; }, "bad_sentinel"},
              {3, [](FakeNode& first) { first.run_id = ""; }, "bad_run_id"},
              {2, [](FakeNode&) {}, "bad_nodes"}};
  for (const auto& row : rows) {
    World world = WithALedger(row.nodes);
    row.change(world.nodes[0]);
    world.Run(Millis(3'000));
    ASSERT_TRUE(world.store(0).Problem()) << row.code;
    EXPECT_EQ(world.store(0).Problem()->code, row.code);
    EXPECT_EQ(world.writes(), 0) << row.code;
  }
}

}  // namespace
}  // namespace fencepost::locking
