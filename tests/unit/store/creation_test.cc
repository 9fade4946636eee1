#include <gtest/gtest.h>

#include "tests/unit/store/world.h"

namespace fencepost::locking {
namespace {

const std::vector<int> kThree{0, 1, 2};
constexpr Millis kQuarantine{40'000};  // max_ttl + 2 * max_skew by default

TEST(StoreCreation, PutsANewStoreInQuarantineAndSaysSo) {
  World world(3);
  const int client = world.AddClient(kThree);
  world.Run(Millis(1'000));
  EXPECT_FALSE(world.store(client).Available());
  EXPECT_EQ(world.store(client).WhyUnavailable(), QuorumFailure::kQuarantined);
  EXPECT_FALSE(world.store(client).Problem());
  EXPECT_EQ(world.told(client).Notes("store_created"), 1);
  for (int place = 0; place < 3; ++place) {
    const NodeStatus status = world.store(client).Status(place, world.now());
    EXPECT_TRUE(status.open && status.quarantined);
    EXPECT_GT(status.quarantine_left, Millis(38'000));
    EXPECT_LE(status.quarantine_left, kQuarantine);
  }
  world.Run(Millis(38'000));
  EXPECT_FALSE(world.store(client).Available());
  world.Run(Millis(2'000));
  EXPECT_TRUE(world.store(client).Available());
  EXPECT_EQ(world.told(client).quorum, std::vector<bool>{true});
}

TEST(StoreCreation, NumbersTheNodesByTheRankOfTheirRunIds) {
  World world(5);
  world.AddClient({4, 1, 3, 0, 2});
  world.Run(Millis(1'000));
  // RunId: 1 < 2 < 3 < 4 < 0, the fourth ones count backwards.
  const int expected[] = {4, 0, 1, 2, 3};
  for (int node = 0; node < 5; ++node) {
    ASSERT_TRUE(world.SentinelOf(node));
    EXPECT_TRUE(world.SentinelOf(node)->complete);
    EXPECT_EQ(world.SentinelOf(node)->index, expected[node]) << node;
    EXPECT_EQ(world.SentinelOf(node)->nodes, 5);
    EXPECT_EQ(world.SentinelOf(node)->epoch, 1U);
    EXPECT_EQ(world.SentinelOf(node)->store_id, world.store(0).store_id());
  }
}

TEST(StoreCreation, NeedsAllNodesOnce) {
  World world(3);
  world.Down(2, true);
  const int client = world.AddClient(kThree);
  world.Run(Millis(60'000));
  EXPECT_FALSE(world.nodes[0].sentinel);
  ASSERT_TRUE(world.store(client).Problem());
  EXPECT_EQ(world.store(client).Problem()->code, "store_incomplete");
  EXPECT_EQ(world.store(client).WhyUnavailable(), QuorumFailure::kUnreachable);
  world.Down(2, false);
  EXPECT_TRUE(world.RunUntilAvailable(client));
  world.Down(1, true);  // afterwards a majority does
  world.Run(Millis(1'000));
  EXPECT_TRUE(world.store(client).Available());
  EXPECT_FALSE(world.store(client).Problem());
}

TEST(StoreCreation, KeepsTheCreatorsMaxTtl) {
  World world(3);
  world.options.max_ttl = Millis(60'000);
  world.AddClient(kThree);
  world.Run(Millis(500));
  world.options.max_ttl = Millis(5'000);
  const int later = world.AddClient(kThree);
  world.Run(Millis(500));
  EXPECT_EQ(world.store(later).max_ttl(), Millis(60'000));
}

// What a client leaves on the nodes that dies after so many writes. A whole creation takes nine:
// three nodes are begun, locked in and completed.
World LeftAfter(int writes) {
  World world(3);
  world.AddClient(kThree);
  for (int step = 0; step < 10'000 && world.writes() < writes; ++step) world.Step();
  EXPECT_EQ(world.writes(), writes);
  World next(3, 2);
  next.nodes = world.nodes;
  return next;
}

TEST(StoreCreation, IsFinishedByAnyClientWhenTheFirstOneDies) {
  for (int writes = 1; writes <= 9; ++writes) {
    World world = LeftAfter(writes);
    std::string begun;
    for (int node = 0; node < 3; ++node) {
      if (world.SentinelOf(node)) begun = world.SentinelOf(node)->store_id;
    }
    const int second = world.AddClient(kThree);
    EXPECT_TRUE(world.RunUntilAvailable(second)) << writes;
    EXPECT_EQ(world.store(second).store_id(), begun) << writes;
  }
}

TEST(StoreCreation, IsBegunAnewWhenARestartLeftTheBeginningsOfNobody) {
  for (int writes = 1; writes <= 6; ++writes) {
    World world = LeftAfter(writes);
    world.Restart(0, true);
    world.Restart(1, false);
    const int second = world.AddClient(kThree);
    EXPECT_TRUE(world.RunUntilAvailable(second)) << writes;
  }
}

TEST(ImmediateStore, CountsAtOnce) {
  World world(3);
  const int init = world.AddClient(kThree, StoreCreation::kImmediate);
  world.Run(Millis(100));
  EXPECT_TRUE(world.store(init).Created());
  EXPECT_TRUE(world.store(init).Available());
  const int client = world.AddClient(kThree);
  world.Run(Millis(100));
  EXPECT_TRUE(world.store(client).Available());
  EXPECT_EQ(world.store(client).store_id(), world.store(init).store_id());
}

TEST(ImmediateStore, IsRefusedWhereASentinelStands) {
  World world(3);
  world.AddClient(kThree);
  world.Run(Millis(1'000));
  const auto before = world.nodes[0].sentinel;
  world.Wipe(1);
  const int init = world.AddClient(kThree, StoreCreation::kImmediate);
  world.Run(Millis(10));
  ASSERT_TRUE(world.store(init).Problem());
  EXPECT_EQ(world.store(init).Problem()->code, "store_exists");
  EXPECT_NE(world.store(init).Problem()->Line().find("--force"), std::string::npos);
  EXPECT_NE(world.store(init).Problem()->Line().find(world.SentinelOf(0)->store_id),
            std::string::npos);
  EXPECT_FALSE(world.store(init).Created());
  EXPECT_EQ(world.nodes[0].sentinel, before);
}

TEST(ImmediateStore, NeverCountsANodeThatWasWipedMeanwhile) {
  for (std::uint64_t seed = 0; seed < 1'000; ++seed) {
    World world(3, seed);
    world.AddClient(kThree, StoreCreation::kImmediate);
    world.AddClient(kThree, StoreCreation::kImmediate);
    world.AddClient(kThree);
    const int faults = 1 + static_cast<int>(seed % 3);
    int done = 0;
    bool counted = false;  // somebody may have leases
    for (int step = 0; step < 200; ++step) {
      world.Step();
      for (int client = 0; client < 3; ++client) {
        counted = counted || world.Counting(client).size() >= 2;
        for (const int node : world.Counting(client)) {
          const auto forgot = world.nodes[static_cast<std::size_t>(node)].forgot_at;
          ASSERT_TRUE(!forgot || world.now().boot >= *forgot + kQuarantine) << "seed " << seed;
        }
      }
      if (counted && done < faults && world.random()() % 20 == 0) {
        world.Wipe(static_cast<int>(world.random()() % 3));
        ++done;
      }
    }
  }
}

TEST(StoreForce, WritesANewStoreOverWhateverStands) {
  World world(3);
  world.AddClient(kThree);
  world.Run(Millis(1'000));
  const std::string old = world.SentinelOf(0)->store_id;
  World next(3, 9);
  next.nodes = world.nodes;
  next.nodes[1].sentinel = "something else";
  next.nodes[2].sentinel.reset();
  const int force = next.AddClient(kThree, StoreCreation::kForced);
  next.Run(Millis(500));
  EXPECT_TRUE(next.store(force).Created());
  EXPECT_TRUE(next.store(force).Available());
  EXPECT_NE(next.store(force).store_id(), old);
}

TEST(StoreForce, WinsWhileClientsOfTheOldStoreAreConnected) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    World world(3, seed);
    const int client = world.AddClient(kThree, StoreCreation::kQuarantined);
    ASSERT_TRUE(world.RunUntilAvailable(client));
    const std::string old = world.store(client).store_id();
    const int force = world.AddClient(kThree, StoreCreation::kForced);
    for (int step = 0; step < 100; ++step) world.Step();
    world.Run(Millis(20'000));
    ASSERT_TRUE(world.store(force).Created()) << "seed " << seed;
    ASSERT_NE(world.store(force).store_id(), old);
    ASSERT_TRUE(world.RunUntilAvailable(client)) << "seed " << seed;
    ASSERT_EQ(world.store(client).store_id(), world.store(force).store_id());
  }
}

TEST(StoreLooking, ChangesNothing) {
  World world(3);
  const int look = world.AddClient(kThree, StoreCreation::kNever);
  world.Run(Millis(10'000));
  EXPECT_EQ(world.writes(), 0);
  EXPECT_EQ(world.store(look).Problem()->code, "no_store");
  const int client = world.AddClient(kThree);
  ASSERT_TRUE(world.RunUntilAvailable(client));
  world.Run(Millis(3'000));
  EXPECT_TRUE(world.store(look).Available());
}

// --- refusals -----------------------------------------------------------------------------------

TEST(StoreRefusal, OfAnEvictionPolicyEndsWhenItIsFixed) {
  World world(3);
  world.nodes[1].policy = "allkeys-lru";
  const int client = world.AddClient(kThree);
  world.Run(Millis(3'000));
  ASSERT_TRUE(world.store(client).Problem());
  EXPECT_EQ(world.store(client).Problem()->code, "eviction_policy");
  EXPECT_NE(world.store(client).Status(1, world.now()).problem.find("allkeys-lru"),
            std::string::npos);
  EXPECT_EQ(world.store(client).WhyUnavailable(), QuorumFailure::kPolicy);
  EXPECT_EQ(world.writes(), 0);
  world.nodes[1].policy = "noeviction";
  EXPECT_TRUE(world.RunUntilAvailable(client, Millis(45'000)));
}

TEST(StoreRefusal, LeavesANodeOutWhereAQuorumIsLeftAndTakesItBackInQuarantine) {  // 12
  for (const bool evicts : {true, false}) {
    World world(3);
    const int client = world.AddClient(kThree);
    ASSERT_TRUE(world.RunUntilAvailable(client, Millis(45'000)));
    (evicts ? world.nodes[2].policy : world.nodes[2].role) = evicts ? "volatile-ttl" : "slave";
    world.Run(Millis(3'000));
    EXPECT_FALSE(world.store(client).Open(2));
    EXPECT_NE(world.store(client).Status(2, world.now()).problem, "");
    EXPECT_TRUE(world.store(client).Available());
    world.nodes[2].policy = "noeviction";
    world.nodes[2].role = "master";
    world.Run(Millis(3'000));
    EXPECT_TRUE(world.store(client).Open(2));
    EXPECT_TRUE(world.store(client).Quarantined(2)) << "it may have forgotten live locks";
    EXPECT_TRUE(world.store(client).Available());
    world.Run(Millis(60'000));
    EXPECT_FALSE(world.store(client).Quarantined(2));
  }
}

TEST(StoreRefusal, OfMoreNodesThanAQuorumCanDoWithoutStopsTheStore) {
  World world(3);
  const int client = world.AddClient(kThree);
  ASSERT_TRUE(world.RunUntilAvailable(client, Millis(45'000)));
  world.nodes[1].policy = "allkeys-lru";
  world.nodes[2].role = "slave";
  world.Run(Millis(3'000));
  EXPECT_FALSE(world.store(client).Available());
  EXPECT_EQ(world.store(client).Problem()->code, "eviction_policy");
}

// Its copy of the other's sentinel is not its own.
TEST(StoreRefusal, OfAReplicaOfAnotherNodeLeavesThatOneAlone) {
  World world(3);
  const int client = world.AddClient(kThree);
  ASSERT_TRUE(world.RunUntilAvailable(client, Millis(45'000)));
  world.nodes[2].role = "slave";
  world.nodes[2].sentinel = world.nodes[1].sentinel;
  world.Run(Millis(3'000));
  EXPECT_TRUE(world.store(client).Available());
  EXPECT_EQ(world.Counting(client).size(), 2U);
}

TEST(StoreRefusal, SaysWhatIsWrongWithTheListOrANode) {
  const struct {
    std::vector<int> list;
    void (*change)(FakeNode& first);
    const char* code;
  } rows[] = {{{0, 1, 0}, [](FakeNode&) {}, "same_node_twice"},
              {{0, 1, 2, 3}, [](FakeNode&) {}, "bad_nodes"},
              {kThree, [](FakeNode& first) { first.role = "slave"; }, "not_a_primary"},
              {kThree, [](FakeNode& first) { first.mode = "cluster"; }, "cluster_node"},
              {kThree, [](FakeNode& first) { first.sentinel = "hello"; }, "bad_sentinel"}};
  for (const auto& row : rows) {
    World world(4);
    row.change(world.nodes[0]);
    const int client = world.AddClient(row.list);
    world.Run(Millis(3'000));
    ASSERT_TRUE(world.store(client).Problem()) << row.code;
    EXPECT_EQ(world.store(client).Problem()->code, row.code);
    EXPECT_EQ(world.writes(), 0) << row.code;
  }
}

TEST(StoreRefusal, IsLookedAtOnceASecondAndNotMore) {
  World world(3);
  world.nodes[1].policy = "allkeys-lru";
  world.AddClient(kThree);
  world.Run(Millis(60'000));
  EXPECT_GE(world.commands(), 3 * 58);
  EXPECT_LE(world.commands(), 3 * 61);
}

}  // namespace
}  // namespace fencepost::locking
