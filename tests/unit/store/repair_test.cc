#include <gtest/gtest.h>

#include "tests/unit/store/world.h"

namespace fencepost::locking {
namespace {

const std::vector<int> kThree{0, 1, 2};
constexpr Millis kQuarantine{40'000};

// A store of three that counts, with one client.
struct Standing {
  World world{3};
  int client = 0;
  Standing() {
    const int init = world.AddClient(kThree, StoreCreation::kImmediate);
    world.Run(Millis(100));
    EXPECT_TRUE(world.store(init).Created());
    client = world.AddClient(kThree);
    world.Run(Millis(100));
    EXPECT_TRUE(world.store(client).Available());
  }
  Store& store() { return world.store(client); }
};
class StandingTest : public ::testing::Test, public Standing {};
using StoreRepair = StandingTest;
using StoreClock = StandingTest;

void ExpectQuarantinedFor(World& world, int client, int node, Millis least, Millis most) {
  const NodeStatus status = world.store(client).Status(node, world.now());
  EXPECT_TRUE(status.open);
  EXPECT_TRUE(status.quarantined);
  EXPECT_GE(status.quarantine_left, least);
  EXPECT_LE(status.quarantine_left, most);
}

TEST_F(StoreRepair, PutsARestartedNodeInQuarantineThoughItsDataIsThere) {
  world.Restart(1, true);
  world.Run(Millis(100));
  EXPECT_EQ(world.SentinelOf(1)->run_id, world.nodes[1].run_id);
  ExpectQuarantinedFor(world, client, 1, Millis(39'000), kQuarantine);
  EXPECT_EQ(world.told(client).restarts, 1);
  EXPECT_TRUE(store().Available());  // two others count
  world.Run(kQuarantine);
  EXPECT_FALSE(store().Quarantined(1));
  EXPECT_EQ(world.told(client).restarts, 1);
}

TEST_F(StoreRepair, PutsAWipedNodeInQuarantineWithItsOldPlace) {
  const Sentinel before = *world.SentinelOf(2);
  world.Restart(2, false);
  world.Run(Millis(100));
  const Sentinel after = *world.SentinelOf(2);
  EXPECT_EQ(after.store_id, before.store_id);
  EXPECT_EQ(after.index, before.index);
  EXPECT_EQ(after.max_ttl, before.max_ttl);
  EXPECT_EQ(after.epoch, before.epoch);
  ExpectQuarantinedFor(world, client, 2, Millis(39'000), kQuarantine);
}

TEST_F(StoreRepair, ClosesANodeThatWasFlushedUntilItIsRepaired) {
  world.Wipe(0);
  store().OnNoSentinel(0, world.now());
  EXPECT_FALSE(store().Open(0));
  world.Run(Millis(10));
  ExpectQuarantinedFor(world, client, 0, Millis(39'000), kQuarantine);
}

TEST_F(StoreRepair, FindsAFlushByItselfWithinSeconds) {
  world.Wipe(0);
  world.Run(Millis(2'500));
  ExpectQuarantinedFor(world, client, 0, Millis(37'000), kQuarantine);
}

TEST_F(StoreRepair, ProbesOnceForManyAnswersOfOneWipe) {
  world.Wipe(0);
  const int before = world.commands();
  for (int i = 0; i < 100; ++i) store().OnNoSentinel(0, world.now());
  world.Run(Millis(10));
  EXPECT_LE(world.commands() - before, 4);
}

TEST_F(StoreRepair, LetsOnlyTheFirstClientsQuarantineCount) {
  world.AddClient(kThree);
  world.AddClient(kThree);
  world.Run(Millis(100));
  const int writes = world.writes();
  world.Restart(1, true);
  world.Run(Millis(50));
  EXPECT_EQ(world.writes(), writes + 1);
}

TEST(StoreWrites, GoesOnFromWhatStandsAfterALostCompareAndSet) {
  World world(1);
  Told told;
  Store store(1, world.options, StoreCreation::kQuarantined, Nonce{{1, 2}}, &told);
  Sentinel sentinel = CompleteSentinel(RunId(1), 0, 1, Millis(30'000));
  const Now now = world.now();
  const CallInfo call{now.boot, now.boot, now.wall};
  store.OnConnected(0, {RunId(2), "noeviction", "master", "standalone", sentinel.Encode(), call},
                    now);
  const auto command = store.TakeCommand(0);
  ASSERT_TRUE(command);
  ASSERT_EQ(command->kind, StoreCommand::Kind::kWrite);
  EXPECT_EQ(command->write.expected, sentinel.Encode());
  EXPECT_EQ(command->write.quarantine_for, kQuarantine);
  EXPECT_FALSE(store.Open(0));
  EXPECT_FALSE(store.TakeCommand(0)) << "one at a time";
  // Another client accepted the same run_id ten seconds ago.
  sentinel.run_id = RunId(2);
  sentinel.quarantine_until = now.wall + Millis(30'000);
  store.OnSentinel(0, sentinel.Encode(), call, now);
  EXPECT_FALSE(store.TakeCommand(0));
  EXPECT_TRUE(store.Open(0));
  EXPECT_TRUE(store.Quarantined(0));
  const Now later{now.boot + Millis(30'002), now.wall + Millis(30'002)};
  store.OnTime(later);
  EXPECT_FALSE(store.Quarantined(0));
}

TEST(StoreWrites, HoldsBackAfterAWriteWithoutEffect) {
  World world(1);
  Store store(1, world.options, StoreCreation::kQuarantined, Nonce{{1, 2}}, nullptr);
  Now now = world.now();
  const CallInfo call{now.boot, now.boot, now.wall};
  store.OnConnected(0, {RunId(2), "noeviction", "master", "standalone", std::nullopt, call}, now);
  ASSERT_TRUE(store.TakeCommand(0));
  store.OnSentinel(0, std::nullopt, call, now);
  EXPECT_FALSE(store.TakeCommand(0));
  EXPECT_GT(store.NextTime(), now.boot);
  now.boot += Millis(1'000);
  store.OnTime(now);
  EXPECT_TRUE(store.TakeCommand(0));
}

TEST_F(StoreRepair, CutsAQuarantineThatIsTooLong) {
  Sentinel far = *world.SentinelOf(1);
  far.quarantine_until = world.NodeTime(1) + Millis(3'600'000);
  world.nodes[1].sentinel = far.Encode();
  world.Run(Millis(2'500));
  ExpectQuarantinedFor(world, client, 1, Millis(37'000), kQuarantine);
  const int writes = world.writes();
  world.Run(Millis(60'000));
  EXPECT_EQ(world.writes(), writes);
  EXPECT_FALSE(store().Quarantined(1));
}

TEST_F(StoreRepair, LivesWithAQuarantineFurtherAheadThanNanosecondsReach) {
  Sentinel far = *world.SentinelOf(1);
  far.quarantine_until = WallTime(Millis(9'999'999'999'999));
  world.nodes[1].sentinel = far.Encode();
  world.Run(Millis(2'500));
  ExpectQuarantinedFor(world, client, 1, Millis(37'000), kQuarantine);
}

TEST(StoreWrites, LeavesAloneWhatIsNotFurtherAheadThanTheCallLeavesOpen) {
  World world(1);
  Store store(1, world.options, StoreCreation::kQuarantined, Nonce{{1, 2}}, nullptr);
  Sentinel sentinel = CompleteSentinel(RunId(1), 0, 1, Millis(30'000));
  sentinel.quarantine_until = world.now().wall + kQuarantine + Millis(15);
  const Now now = world.now();
  const CallInfo call{now.boot - Millis(20), now.boot, now.wall};
  store.OnConnected(0, {RunId(1), "noeviction", "master", "standalone", sentinel.Encode(), call},
                    now);
  EXPECT_FALSE(store.TakeCommand(0));
}

TEST_F(StoreRepair, ReliesOnNothingReadBeforeALongPause) {
  world.Pass(kQuarantine + Millis(3'000));  // this process was stopped
  store().OnTime(world.now());
  EXPECT_FALSE(store().Open(0));
  EXPECT_FALSE(store().Available());
  world.Run(Millis(10));
  EXPECT_TRUE(store().Available());
}

TEST(StoreWrites, TakesMaxTtlAfterAWipeFromTheOtherNodes) {
  World world(3);
  world.options.max_ttl = Millis(60'000);
  world.AddClient(kThree, StoreCreation::kImmediate);
  world.Run(Millis(100));
  World next(3, 2);  // without the client that made it
  next.nodes = world.nodes;
  next.options.max_ttl = Millis(10'000);
  const int client = next.AddClient(kThree);
  next.Run(Millis(100));
  next.Restart(0, false);
  next.Run(Millis(100));
  EXPECT_EQ(next.SentinelOf(0)->max_ttl, Millis(60'000));
  ExpectQuarantinedFor(next, client, 0, Millis(69'000), Millis(70'000));
}

// --- clocks
// ---------------------------------------------------------------------------------------

void Call(World& world, int client, int node, Millis round_trip) {
  const Now sent = world.now();
  world.Pass(round_trip / 2);
  const WallTime node_time = world.NodeTime(node);
  world.Pass(round_trip / 2);
  world.store(client).OnCall(node, {sent.boot, world.now().boot, node_time}, world.now());
}

TEST_F(StoreClock, QuarantinesANodeWhoseClockWasStepped) {
  for (const Millis step : {Millis(60'000), Millis(-60'000), Millis(500)}) {
    Standing s;
    Call(s.world, s.client, 1, Millis(2));
    s.world.nodes[1].skew = step;
    Call(s.world, s.client, 1, Millis(2));
    EXPECT_TRUE(s.store().Quarantined(1)) << "before the write is answered";
    s.world.Run(Millis(10));
    ExpectQuarantinedFor(s.world, s.client, 1, Millis(39'000), kQuarantine);
    EXPECT_EQ(s.world.told(s.client).Notes("node_clock_stepped"), 1);
    s.world.Run(kQuarantine + Millis(2'500));  // the other client sees it at its next probe
    EXPECT_FALSE(s.store().Quarantined(1));
  }
}

TEST_F(StoreClock, IsTheReasonWhenAMajorityWasStepped) {
  for (const int node : {0, 1}) {
    world.nodes[static_cast<std::size_t>(node)].skew = Millis(7'000);
    Call(world, client, node, Millis(2));
  }
  world.Run(Millis(10));
  EXPECT_FALSE(store().Available());
  EXPECT_EQ(store().WhyUnavailable(), QuorumFailure::kClock);
}

TEST_F(StoreClock, IsToldAboutOnceASecondANode) {
  world.nodes[0].skew = Millis(50);
  Told& told = world.told(client);
  world.Run(Millis(2'000));
  told.offsets.clear();
  for (int i = 0; i < 500; ++i) Call(world, client, 0, Millis(10));
  EXPECT_GE(told.offsets.size(), 4U);
  EXPECT_LE(told.offsets.size(), 6U);
  for (const Nanos offset : told.offsets) {
    EXPECT_NEAR(static_cast<double>(offset.count()), 50e6, 2e6);
  }
}

// --- who belongs
// ------------------------------------------------------------------------------------

TEST(StoreMembers, OfTwoStoresMakeNoQuorum) {
  World world(6);
  world.AddClient({0, 1, 2}, StoreCreation::kImmediate);
  world.AddClient({3, 4, 5}, StoreCreation::kImmediate);
  world.Run(Millis(100));
  const int mixed = world.AddClient({0, 1, 3});
  const int writes = world.writes();
  world.Run(Millis(60'000));
  EXPECT_FALSE(world.store(mixed).Available());
  EXPECT_EQ(world.store(mixed).Problem()->code, "foreign_store");
  EXPECT_EQ(world.writes(), writes);
}

TEST(StoreMembers, OfAStoreOfAnotherSizeMakeNoQuorum) {
  World world(5);
  world.AddClient({0, 1, 2, 3, 4}, StoreCreation::kImmediate);
  world.Run(Millis(100));
  const int fewer = world.AddClient({0, 1, 2});
  const int writes = world.writes();
  world.Run(Millis(60'000));
  EXPECT_FALSE(world.store(fewer).Available());
  EXPECT_EQ(world.writes(), writes);
}

TEST(StoreMembers, AreKnownByTheirPlaceInTheStoreAndNotInTheList) {
  Standing s;
  const int client = s.world.AddClient({2, 0, 1});
  s.world.Run(Millis(100));
  EXPECT_TRUE(s.world.store(client).Available());
}

TEST(StoreMembers, AreNotRepairedWhenAMajorityIsLostToAClientThatNeverSawThem) {
  World world(5);
  world.AddClient({0, 1, 2}, StoreCreation::kImmediate);
  world.Run(Millis(100));
  const int other = world.AddClient({2, 3, 4});  // overlaps in one node
  world.Run(Millis(60'000));
  EXPECT_FALSE(world.store(other).Available());
  EXPECT_EQ(world.store(other).Problem()->code, "majority_lost");
  EXPECT_FALSE(world.nodes[3].sentinel);
}

TEST(StoreReplacement, TakesInANewNodeAndStopsTheClientsThatListTheOldOne) {
  World world(4);
  world.AddClient({0, 1, 2}, StoreCreation::kImmediate);
  world.Run(Millis(100));
  World next(4, 5);  // only clients of `run` from here on
  next.nodes = world.nodes;
  const int before = next.AddClient({0, 1, 2});
  next.Run(Millis(3'000));
  ASSERT_TRUE(next.store(before).Available());
  const int after = next.AddClient({3, 1, 2});
  next.Run(Millis(9'000));
  EXPECT_TRUE(next.store(after).Available());  // nodes 1 and 2
  EXPECT_TRUE(next.store(after).Quarantined(0));
  EXPECT_EQ(next.SentinelOf(3)->index, next.SentinelOf(0)->index);
  EXPECT_GT(next.SentinelOf(3)->epoch, next.SentinelOf(0)->epoch);
  EXPECT_FALSE(next.store(before).Available());
  EXPECT_EQ(next.store(before).Problem()->code, "replaced");
  next.Down(0, true);  // as it is with a machine that died: then the old list is harmless
  next.Run(Millis(60'000));
  EXPECT_TRUE(next.store(before).Available());
  EXPECT_EQ(next.Counting(after).size(), 3U);
}

TEST(StoreReplacement, CountsNoQuorumAcrossGenerations) {
  for (const std::uint32_t epoch : {1U, 2U, 3U}) {
    World world(3);
    const int client = world.AddClient(kThree, StoreCreation::kNever);
    for (const int node : {0, 1}) {
      Sentinel sentinel = CompleteSentinel(RunId(node), node, 3, Millis(30'000));
      if (node == 1) sentinel.epoch = epoch;
      world.nodes[static_cast<std::size_t>(node)].sentinel = sentinel.Encode();
    }
    world.Down(2, true);  // out of reach: it may be of either generation
    world.Run(Millis(3'000));
    EXPECT_EQ(world.store(client).Available(), epoch == 1) << epoch;
  }
}

TEST(StoreReplacement, RepairsAWipedNodeForAClientThatIsNew) {
  Standing s;
  World next(3, 5);
  next.nodes = s.world.nodes;
  next.Restart(0, false);
  const int client = next.AddClient(kThree);
  next.Run(Millis(9'000));
  EXPECT_TRUE(next.store(client).Quarantined(0));
  next.Run(kQuarantine);
  EXPECT_EQ(next.Counting(client).size(), 3U);
}

// A client that was stopped while the store was made goes on, and finds a node that was wiped
// since.
TEST(StoreReplacement, TakesInANodeWithTheLateBeginningsOfAnotherClientOfTheSameNodes) {
  for (const bool same_nodes : {true, false}) {
    Standing s;
    World next(3, 5);
    next.nodes = s.world.nodes;
    Sentinel late = *next.SentinelOf(0);
    late.complete = false;
    late.epoch = 0;
    late.store_id =
        std::string(16, '0') + (same_nodes ? late.store_id.substr(16) : std::string(16, '0'));
    next.nodes[0].sentinel = late.Encode();
    const int client = next.AddClient(kThree);
    next.Run(Millis(9'000));
    EXPECT_EQ(next.store(client).Available(), same_nodes);
    EXPECT_EQ(next.store(client).Quarantined(0), same_nodes);
    next.Run(kQuarantine);
    EXPECT_EQ(next.store(client).Available(), same_nodes);
    EXPECT_EQ(next.Counting(client).size(), same_nodes ? 3U : 2U);
  }
}

TEST(StoreReplacement, GivesSeveralMissingPlacesByTheRankOfRunIds) {
  World world(5);
  const std::vector<int> five{0, 1, 2, 3, 4};
  world.AddClient(five, StoreCreation::kImmediate);
  world.Run(Millis(100));
  World next(5, 3);
  next.nodes = world.nodes;
  next.Restart(0, false);
  next.Restart(3, false);
  const int a = next.AddClient(five);
  const int b = next.AddClient(five);
  ASSERT_TRUE(next.RunUntilAvailable(a));
  next.Run(Millis(60'000));
  EXPECT_EQ(next.Counting(a).size(), 5U);
  EXPECT_EQ(next.Counting(b).size(), 5U);
}

}  // namespace
}  // namespace fencepost::locking
