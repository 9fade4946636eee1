// Stores that are groups of one list: in which order they are made, and that a list with another
// number or order of groups is refused, whoever comes first.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "tests/unit/store/world.h"

namespace fencepost::locking {
namespace {

using Lists = std::vector<std::vector<int>>;
const Lists kTwo{{0, 1, 2}, {3, 4, 5}};
constexpr Millis kLong{60'000};

// --- the hash ----------------------------------------------------------------------------------

TEST(GroupOf, IsTheSameForEver) {  // reckoned by another program from PROTOCOL.md
  EXPECT_EQ(HashOf(""), 0xcbf29ce484222325U);
  EXPECT_EQ(HashOf("a"), 0xaf63dc4c8601ec8cU);
  const std::map<std::string, std::vector<int>> of{
      {"", {0, 1, 0, 3, 3, 3, 5, 3}},
      {"fencepost:{orders}:o-17", {0, 0, 0, 0, 1, 0, 3, 4}},
      {"fencepost:{orders}:o-18", {0, 1, 2, 1, 4, 5, 6, 1}},
      {"fencepost:{default}:invoice-7", {0, 1, 2, 3, 4, 5, 1, 7}},
      {"fencepost:{orders}:Zm9v/orders/0/1024", {0, 1, 2, 1, 3, 5, 3, 1}},
  };
  for (const auto& [name, groups] : of) {
    for (std::size_t i = 0; i < groups.size(); ++i) {
      EXPECT_EQ(GroupOf(name, static_cast<int>(i) + 1), groups[i]) << name << " of " << i + 1;
    }
  }
}

TEST(GroupOf, GivesEachGroupItsShareOfNamesThatAreMuchAlike) {
  for (const char* const form : {"fencepost:{orders}:%d", "fencepost:{orders}:o-%06d",
                                 "fencepost:{orders}:c/orders/7/%d", "%d0000000"}) {
    for (int groups = 2; groups <= kMaxGroups; ++groups) {
      constexpr int kNames = 40'000;
      std::vector<int> names(static_cast<std::size_t>(groups));
      for (int i = 0; i < kNames; ++i) {
        char name[80];
        std::snprintf(name, sizeof name, form, i);
        ++names[static_cast<std::size_t>(GroupOf(name, groups))];
      }
      for (const int count : names) {
        EXPECT_NEAR(count, kNames / groups, kNames / groups / 20) << form << " " << groups;
      }
    }
  }
}

// --- how they are made -------------------------------------------------------------------------

TEST(StoreGroups, RememberTheirPlacesAndCountThenAsAnyStore) {  // 24
  World world(6);
  const auto client = world.AddGroups(kTwo, StoreCreation::kImmediate);
  world.Run(Millis(3'000));
  for (int node = 0; node < 6; ++node) {
    ASSERT_TRUE(world.SentinelOf(node)) << node;
    EXPECT_EQ(world.SentinelOf(node)->place, (GroupPlace{node / 3, 2})) << node;
  }
  EXPECT_NE(world.SentinelOf(0)->store_id, world.SentinelOf(3)->store_id);
  for (const int group : client) EXPECT_TRUE(world.store(group).Available());
  const auto another = world.AddGroups(kTwo);
  world.Run(Millis(1'000));
  for (const int group : another) EXPECT_TRUE(world.store(group).Available());
}

TEST(StoreGroups, AreMadeInTheirOrderAndOnceTheOthersWereSeen) {  // 24
  World world(6);
  for (const int node : {4, 5}) world.Down(node, true);
  const auto client = world.AddGroups(kTwo);
  world.Run(kLong);
  for (int node = 0; node < 6; ++node) EXPECT_FALSE(world.SentinelOf(node)) << node;
  ASSERT_TRUE(world.store(client[0]).Problem());
  EXPECT_EQ(world.store(client[0]).Problem()->what,
            "there is no lock store of group 1 of 2 yet, and too few nodes of group 2 answer");
  world.Down(4, false);  // a quorum of the second group is enough for the first
  world.Run(Millis(5'000));
  EXPECT_TRUE(world.SentinelOf(0) && world.SentinelOf(0)->complete);
  EXPECT_FALSE(world.SentinelOf(3));
  world.Down(5, false);
  EXPECT_TRUE(world.RunUntilAvailable(client[1]));
  EXPECT_TRUE(world.store(client[0]).Available());
}

TEST(StoreGroups, GoOnEachByItselfWhileAnotherHasNoQuorum) {
  World world(6);
  world.AddGroups(kTwo, StoreCreation::kImmediate);
  world.Run(Millis(3'000));
  for (const int node : {3, 4, 5}) world.Down(node, true);
  const auto client = world.AddGroups(kTwo);  // it starts without the second group
  world.Run(Millis(2'000));
  EXPECT_TRUE(world.store(client[0]).Available());
  EXPECT_FALSE(world.store(client[1]).Available());
  EXPECT_EQ(world.store(client[1]).WhyUnavailable(), QuorumFailure::kUnreachable);
  for (const int node : {3, 4, 5}) world.Down(node, false);
  EXPECT_TRUE(world.RunUntilAvailable(client[1]));
}

TEST(StoreGroups, ThatWereWipedAreMadeAgainAtTheirPlaceInQuarantine) {
  World world(6);
  const auto client = world.AddGroups(kTwo, StoreCreation::kQuarantined);
  world.Run(kLong);
  for (const int node : {0, 1, 2}) world.Wipe(node);
  world.Run(Millis(20'000));
  EXPECT_FALSE(world.store(client[0]).Available());
  EXPECT_TRUE(world.store(client[1]).Available());
  EXPECT_TRUE(world.RunUntilAvailable(client[0]));
  EXPECT_EQ(world.SentinelOf(0)->place, (GroupPlace{0, 2}));
}

// --- lists that differ -------------------------------------------------------------------------

// Nodes 0 to 5 are two groups that count; nodes 6 to 8 are new.
class OtherLists : public ::testing::TestWithParam<Lists> {
 protected:
  OtherLists() {
    World first(9);
    first.AddGroups(kTwo, StoreCreation::kImmediate);
    first.Run(Millis(3'000));
    world.nodes = first.nodes;
  }
  World world{9, 5};
};

TEST_P(OtherLists, AreRefusedInAllTheirGroupsWithOneProblemAndMakeNothing) {  // 24
  const auto client = world.AddGroups(GetParam());
  bool told = false;
  for (int i = 0; i < 60; ++i) {
    world.Run(Millis(1'000));
    for (const int group : client) {
      EXPECT_FALSE(world.store(group).Available());
      const auto problem = world.store(group).Problem();
      told = told || (problem && problem->code == "foreign_group");
    }
  }
  EXPECT_TRUE(told);
  for (const int node : {6, 7, 8}) EXPECT_FALSE(world.SentinelOf(node)) << node;
  for (int node = 0; node < 6; ++node) {
    EXPECT_EQ(world.SentinelOf(node)->place, (GroupPlace{node / 3, 2})) << node;
  }
}

TEST_P(OtherLists, AreRefusedToo) {  // while the nodes that know better come and go
  const auto client = world.AddGroups(GetParam());
  world.Run(Millis(2'000));
  for (int node = 0; node < 6; ++node) world.Down(node, true);
  world.Run(kLong);
  for (const int group : client) EXPECT_FALSE(world.store(group).Available());
  for (const int node : {6, 7, 8}) EXPECT_FALSE(world.SentinelOf(node)) << node;
}

INSTANTIATE_TEST_SUITE_P(All, OtherLists,
                         ::testing::Values(Lists{{3, 4, 5}, {0, 1, 2}},             // turned
                                           Lists{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}},  // one more
                                           Lists{{6, 7, 8}, {0, 1, 2}},             // moved
                                           Lists{{0, 1, 2}},                        // one less
                                           Lists{{3, 4, 5}}));

TEST(StoreGroups, AreRefusedWhereTheStoreWasMadeForOneGroup) {  // 24
  World world(6);
  world.AddClient({0, 1, 2}, StoreCreation::kImmediate);
  world.Run(Millis(1'000));
  const auto client = world.AddGroups(kTwo);
  world.Run(kLong);
  for (const int group : client) EXPECT_FALSE(world.store(group).Available());
  ASSERT_TRUE(world.store(client[0]).Problem());
  EXPECT_EQ(world.store(client[0]).Problem()->Line(),
            "lock node a: its lock store is group 1 of 1, but it is listed in group 1 of 2; list "
            "the groups that the store was made for, in their order; how to change them: "
            "deploy/operations/groups.md");
  EXPECT_FALSE(world.SentinelOf(3));
}

TEST(StoreGroups, AreMadeAnewByForceWhateverTheirPlacesWere) {
  World world(6);
  world.AddGroups(kTwo, StoreCreation::kImmediate);
  world.Run(Millis(3'000));
  World next(6, 9);
  next.nodes = world.nodes;
  const auto client = next.AddGroups({{3, 4, 5}, {0, 1, 2}}, StoreCreation::kForced);
  next.Run(Millis(5'000));
  for (const int group : client) EXPECT_TRUE(next.store(group).Created());
  EXPECT_EQ(next.SentinelOf(3)->place, (GroupPlace{0, 2}));
  EXPECT_EQ(next.SentinelOf(0)->place, (GroupPlace{1, 2}));
}

// Two lists that begin at the same moment over nodes without a store: amid any order of messages,
// no name is ever in use in two groups.
TEST(StoreGroups, ThatBeginTogetherWithOtherListsAreNeverBothInUse) {  // 24
  int in_use = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    World world(9, seed);
    world.options.max_ttl = Millis(600);
    world.options.ttl = Millis(300);
    world.options.max_skew = Millis(100);
    const auto two = world.AddGroups(kTwo);
    const auto three = world.AddGroups({{0, 1, 2}, {3, 4, 5}, {6, 7, 8}});
    for (int step = 0; step < 6'000; ++step) {
      world.Step();
      if (step % 10 != 0) continue;
      const auto used = [&](const std::vector<int>& client) {
        return std::any_of(client.begin(), client.end(),
                           [&](int group) { return world.store(group).Available(); });
      };
      ASSERT_FALSE(used(two) && used(three)) << "seed " << seed;
      in_use += used(two) || used(three) ? 1 : 0;
    }
  }
  EXPECT_GT(in_use, 0);
}

}  // namespace
}  // namespace fencepost::locking
