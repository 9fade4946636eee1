// Several Stores race on the same nodes, in a random order of requests, executions and answers by
// seed.
#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "tests/unit/store/world.h"

namespace fencepost::locking {
namespace {

constexpr Millis kQuarantine{40'000};

std::vector<int> FirstNodes(int count) {
  std::vector<int> list(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) list[static_cast<std::size_t>(i)] = i;
  return list;
}

void ExpectOneStore(World& world, int nodes, std::uint64_t seed) {
  std::set<int> indexes;
  std::set<std::string> ids;
  for (int node = 0; node < nodes; ++node) {
    const auto sentinel = world.SentinelOf(node);
    ASSERT_TRUE(sentinel && sentinel->complete) << "seed " << seed << " node " << node;
    indexes.insert(sentinel->index);
    ids.insert(sentinel->store_id);
  }
  ASSERT_EQ(static_cast<int>(indexes.size()), nodes) << "seed " << seed;
  ASSERT_EQ(ids.size(), 1U) << "seed " << seed;
}

// No node counts, for any client, before all that it may have forgotten has ended.
void ExpectNoAmnesia(World& world, std::uint64_t seed) {
  for (int client = 0; client < static_cast<int>(world.clients()); ++client) {
    for (const int node : world.Counting(client)) {
      const auto forgot = world.nodes[static_cast<std::size_t>(node)].forgot_at;
      ASSERT_TRUE(!forgot || world.now().boot >= *forgot + kQuarantine)
          << "seed " << seed << " client " << client << " node " << node;
    }
  }
}

TEST(StoreRace, CreationEndsInOneStoreWithDistinctPlaces) {
  for (std::uint64_t seed = 0; seed < 3'000; ++seed) {
    World world(seed % 4 == 0 ? 5 : 3, seed);
    const int nodes = static_cast<int>(world.nodes.size());
    const int clients = 1 + static_cast<int>(seed % 3);
    for (int i = 0; i < clients; ++i) {
      std::vector<int> list = FirstNodes(nodes);
      std::shuffle(list.begin(), list.end(), world.random());
      world.AddClient(list);
    }
    for (int step = 0; step < 150; ++step) {
      world.Step();
      if (world.random()() % 64 == 0) {
        world.BreakLink(static_cast<int>(world.random()() % clients),
                        static_cast<int>(world.random()() % nodes));
      }
    }
    world.Run(Millis(6'000));
    ExpectOneStore(world, nodes, seed);
    ASSERT_FALSE(::testing::Test::HasFatalFailure());
    for (int i = 0; i < clients; ++i) ASSERT_FALSE(world.store(i).Available());  // quarantined
    world.Run(kQuarantine);
    for (int i = 0; i < clients; ++i) ASSERT_TRUE(world.store(i).Available()) << "seed " << seed;
  }
}

// The oracle knows only when each node last forgot something.
TEST(StoreRace, NoNodeCountsBeforeWhatItForgotHasEnded) {
  for (std::uint64_t seed = 0; seed < 1'500; ++seed) {
    World world(3, seed);
    for (FakeNode& node : world.nodes) node.forgot_at = world.now().boot;
    for (int i = 0; i < 2; ++i) world.AddClient(FirstNodes(3));
    for (int step = 0; step < 400; ++step) {
      world.Step();
      const int node = static_cast<int>(world.random()() % 3);
      switch (world.random()() % 96) {
        case 0:
          world.Wipe(node);
          break;
        case 1:
          world.Restart(node, true);
          break;
        case 2:
          world.Restart(node, false);
          break;
        case 3:
          world.BreakLink(static_cast<int>(world.random()() % world.clients()), node);
          break;
        case 4:
          world.store(0).OnNoSentinel(node, world.now());
          break;  // a late answer
        case 5:
          if (world.clients() < 4) world.AddClient(FirstNodes(3));
          break;
        case 6:
        case 7:
        case 8:
        case 9:
          world.Pass(Millis(static_cast<std::int64_t>(world.random()() % 15'000)));
          break;
        default:
          break;
      }
      ExpectNoAmnesia(world, seed);
      ASSERT_FALSE(::testing::Test::HasFatalFailure());
    }
  }
}

TEST(StoreRace, EveryWipeAndRestartIsRepairedInTheEnd) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    World world(3, seed);
    for (int i = 0; i < 3; ++i) world.AddClient(FirstNodes(3));
    ASSERT_TRUE(world.RunUntilAvailable(0));
    for (int fault = 0; fault < 3; ++fault) {
      const int node = static_cast<int>(world.random()() % 3);
      if (world.random()() % 3 == 0) {
        world.Wipe(node);
      } else {
        world.Restart(node, world.random()() % 2 == 0);
      }
      for (int step = static_cast<int>(world.random()() % 200); step > 0; --step) world.Step();
    }
    if (seed % 2 == 0) world.AddClient(FirstNodes(3));
    world.Run(Millis(90'000));
    ExpectOneStore(world, 3, seed);
    for (int i = 0; i < static_cast<int>(world.clients()); ++i) {
      ASSERT_EQ(world.Counting(i).size(), 3U)
          << "seed " << seed << " client " << i << " "
          << (world.store(i).Problem() ? world.store(i).Problem()->Line() : "no problem");
    }
  }
}

TEST(StoreRace, ClientsOfDifferentListsNeverCountDisjointQuorums) {
  const std::vector<std::vector<std::vector<int>>> lists{
      {{0, 1, 2}, {2, 3, 4}},
      {{0, 1, 2}, {1, 2, 3}},
      {{0, 1, 2}, {2, 3, 4}, {4, 5, 0}},
      {{0, 1, 2}, {0, 1, 2, 3, 4}},
      {{0, 1, 2, 3, 4}, {0, 1, 2, 5, 6}},
      {{0}, {0, 1, 2}},
  };
  int available = 0;
  for (std::uint64_t seed = 0; seed < 900; ++seed) {
    const auto& chosen = lists[seed % lists.size()];
    World world(7, seed);
    for (const auto& list : chosen) {
      world.AddClient(list,
                      seed % 5 == 0 ? StoreCreation::kImmediate : StoreCreation::kQuarantined);
    }
    QuorumOracle oracle(world);
    for (int step = 0; step < 300; ++step) {
      world.Step();
      const int client = static_cast<int>(world.random()() % chosen.size());
      const auto roll = world.random()() % 64;
      if (roll == 0) world.BreakLink(client, 0);
      if (roll < 4) world.Pass(Millis(static_cast<std::int64_t>(world.random()() % 1'000)));
      oracle.Look();
    }
    for (int second = 0; second < 60; ++second) {
      world.Run(Millis(1'000));
      oracle.Look();
    }
    ASSERT_FALSE(oracle.Disjoint()) << "seed " << seed;
    int now_available = 0;
    for (int i = 0; i < static_cast<int>(chosen.size()); ++i) {
      now_available += world.store(i).Available() ? 1 : 0;
    }
    ASSERT_LE(now_available, 1) << "seed " << seed;
    available += now_available;
  }
  EXPECT_GT(available, 300);  // not by never letting anybody in
}

// A process that is stopped while a probe's answer is on its way, and goes on just before what it
// tells is too old to be relied on.
TEST(StoreProbes, AnAnswerThatTookLongIsAskedForAgainBeforeItIsTooOld) {
  World world(3);
  world.AddClient(FirstNodes(3));
  ASSERT_TRUE(world.RunUntilAvailable(0));
  NodeInfo info;
  info.call.sent_at = world.now().boot;
  world.nodes[0].Describe(world.NodeTime(0), info);
  world.Pass(kQuarantine - Millis(100));
  info.call.received_at = world.now().boot;
  Store& store = world.store(0);
  store.OnConnected(0, info, world.now());
  EXPECT_LE(store.NextTime(), world.now().boot);
  store.OnTime(world.now());
  EXPECT_TRUE(store.TakeCommand(0));
  EXPECT_TRUE(store.Open(0));
}

TEST(StoreProbes, LeaveATurnToWhatIsToBeWrittenWhereAnswersTakeLong) {
  World world(3);
  const int client = world.AddClient(FirstNodes(3));
  for (int step = 0; step < 2'000 && !world.store(client).Available(); ++step) {
    world.store(client).OnTime(world.now());  // as after each answer
    world.Step();
    world.Pass(Millis(150));
  }
  EXPECT_TRUE(world.store(client).Available());
}

}  // namespace
}  // namespace fencepost::locking
