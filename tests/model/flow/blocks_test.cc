// Positions: neighbouring offsets share a lock unit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model/flow/flow_bench.h"

namespace fencepost::consumer {
namespace {

using State = locking::NodeModel::State;

FlowOptions Blocks(Order order = Order::kNone, std::int64_t block = 4) {
  FlowOptions options = FlowBench::Options(order);
  options.identity = {};
  options.block = block;
  return options;
}

// Of the block with these offsets, at the first node.
State BlockState(const SharedWorld& world, const std::string& offsets) {
  return world.nodes[0].Look("fencepost:{p}:cluster/t/0/" + offsets, world.now.wall).state;
}

TEST(Block, IsAcquiredWithItsFirstRecordAndReleasedAfterItsLast) {
  SharedWorld world;
  FlowOptions options = Blocks();
  options.write_batch = 2;
  FlowBench worker(world, options);
  worker.Assign(0, 8);
  worker.Deliver(0, {"x", "x", "x"});
  EXPECT_EQ(BlockState(world, "8-11"), State::kHeld);
  ASSERT_TRUE(worker.Write());
  EXPECT_EQ(BlockState(world, "8-11"), State::kHeld) << "one of its records is still written";
  worker.WriteAll();
  EXPECT_EQ(BlockState(world, "8-11"), State::kFree) << "at once, and without a mark";
  EXPECT_EQ(worker.Watermark(0), 11);
}

TEST(Block, IsLostForAllItsRecords) {
  SharedWorld world;
  FlowOptions options = Blocks();
  options.write_batch = 1;
  options.writes_out = 1;
  FlowBench worker(world, options);
  worker.Assign(0);
  worker.Deliver(0, {"x", "x", "x"});
  worker.Pass(world.lock.ttl + Millis(1));
  worker.core.OnTime(world.now);
  worker.Settle();
  EXPECT_EQ(worker.Writes(), "cluster/t/0/0") << "it is in the output's hands";
  EXPECT_EQ(worker.told.done_late, 0);
  EXPECT_EQ(worker.Leased(), "cluster/t/0/1 cluster/t/0/2") << "under a lease of their own";
  worker.WriteAll();
  EXPECT_EQ(worker.Watermark(0), 3);
  EXPECT_EQ(worker.told.done_late, 1);
  EXPECT_EQ(worker.core.held(), 0);
}

// A replay in another partition waits for its original, which gives up: both are locked anew.
TEST(Block, ThatGaveUpIsAcquiredAgainThoughARecordWithTheSameIdWaitsInIt) {
  SharedWorld world;
  FlowOptions options = Blocks();
  options.identity.accept_replay_ids = true;
  FlowBench worker(world, options);
  world.Steal("fencepost:{p}:cluster/t/0/0-3");
  worker.Assign(0);
  worker.Deliver(0, {"x"});
  worker.Assign(1);
  worker.DeliverReplay(1, "cluster/t/0/0");
  worker.Wait(options.lock_wait + world.lock.ttl * 4);
  worker.WriteAll();
  worker.WriteAll();
  EXPECT_EQ(worker.Watermark(0), 1);
  EXPECT_EQ(worker.told.conflicts + worker.told.skips_by_ledger, 1) << "the other one";
  EXPECT_EQ(worker.told.takeovers, 0) << "the lock core counts that of a block";
}

TEST(Block, LetsEachOfItsRecordsCountWhereItGoesOnWithoutALock) {
  SharedWorld world;
  FlowBench worker(world, Blocks());
  worker.flow.SetUnlocked(true, world.now);
  worker.Assign(0);
  worker.Deliver(0, {"x", "x", "x"});
  EXPECT_EQ(worker.told.unlocked, 3);
}

}  // namespace
}  // namespace fencepost::consumer
