// Clients whose node lists differ, amid wipes, restarts and nodes that turn unfit.
#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/store/world.h"

namespace fencepost::locking {
namespace {

const std::vector<int> kOld{0, 1, 2};
const std::vector<int> kNew{3, 1, 2};  // 3 in the place of 0

// A store of nodes 0 to 2 that counts, and a node 3; no client.
World After(std::uint64_t seed) {
  World world(4, seed);
  world.AddClient(kOld, StoreCreation::kImmediate);
  world.Run(Millis(200));
  World next(4, seed + 77);
  next.nodes = world.nodes;
  return next;
}

TEST(StoreLists, StopAtTheLastEpochInsteadOfGoingOn) {
  World world = After(1);
  Sentinel odd = *world.SentinelOf(0);
  odd.epoch = kMaxEpoch - 1;
  world.nodes[0].sentinel = odd.Encode();
  const int client = world.AddClient(kOld);
  world.Run(Millis(30'000));
  ASSERT_TRUE(world.store(client).Problem());
  EXPECT_EQ(world.store(client).Problem()->code, "bad_sentinel");
}

// An old client's raise was left half way, and node 0 of a generation that has ended stands among
// the members: it must not count for what was locked since.
TEST(StoreLists, PutAMemberOfAnEndedGenerationInQuarantine) {  // 12, 14
  World world = After(2);
  for (const int node : {1, 2}) {
    Sentinel raised = *world.SentinelOf(node);
    raised.epoch = 4'000;
    world.nodes[static_cast<std::size_t>(node)].sentinel = raised.Encode();
  }
  world.Wipe(2);
  const int client = world.AddClient(kOld);
  world.Run(Millis(30'000));
  EXPECT_GE(world.SentinelOf(0)->epoch, 4'000U);
  EXPECT_TRUE(world.store(client).Quarantined(0));
  EXPECT_FALSE(world.store(client).Available());
  world.Run(Millis(60'000));
  EXPECT_TRUE(world.store(client).Available());
}

TEST(StoreLists, NeverCountDisjointQuorumsAndAreRepairedInTheEnd) {  // 14
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    World world = After(seed);
    world.AddClient(kOld);
    for (int i = 0; i < 60; ++i) world.Step();
    QuorumOracle quorums(world);
    const bool one_list = seed % 3 == 0;
    auto& random = world.random();
    for (int step = 0; step < 700; ++step) {
      world.Step();
      switch (random() % 120) {
        case 0:
          world.Wipe(0);
          break;
        case 1:
          world.Restart(one_list ? 0 : 3, false);
          break;
        case 2:
          world.Restart(0, random() % 2 == 0);
          break;
        case 3:
          world.BreakLink(static_cast<int>(random() % world.clients()),
                          static_cast<int>(random() % 3));
          break;
        case 4:
          if (world.clients() < 5) world.AddClient(one_list || random() % 2 == 0 ? kOld : kNew);
          break;
        case 5:
          world.nodes[random() % 4].policy = "allkeys-lru";
          break;
        case 6:
        case 7:
          for (auto& node : world.nodes) node.policy = "noeviction";
          break;
        case 8:
          world.Pass(Millis(static_cast<std::int64_t>(random() % 15'000)));
          break;
        case 9:
          world.Run(Millis(static_cast<std::int64_t>(random() % 9'000)));
          break;
        default:
          break;
      }
      quorums.Look();
    }
    for (auto& node : world.nodes) node.policy = "noeviction";
    for (int second = 0; second < 120; ++second) {
      world.Run(Millis(1'000));
      quorums.Look();
    }
    EXPECT_FALSE(quorums.Disjoint()) << seed;
    int whole = 0;
    const int clients = static_cast<int>(world.clients());
    for (int client = 0; client < clients; ++client) whole += world.Counting(client).size() == 3;
    EXPECT_GE(whole, one_list ? clients : 1) << seed;
  }
}

}  // namespace
}  // namespace fencepost::locking
