// Who may be leased beside whom: chains, twins, hints. Numbers are PROTOCOL.md's.
#include <gtest/gtest.h>

#include "tests/model/flow/flow_bench.h"

namespace fencepost::consumer {
namespace {

// Two workers; the first holds the lease of "x".
struct Contended {
  explicit Contended(Order order) : holder(world), worker(world, FlowBench::Options(order), 2) {
    holder.Assign(9);
    holder.Deliver(9, {"x"});
    worker.Assign(0);
    worker.Assign(1);
  }
  SharedWorld world;
  FlowBench holder;
  FlowBench worker;
};

TEST(Chain, OfAPartitionIsLeasedAllAtOnceWhereNothingIsInTheWay) {
  SharedWorld world;
  FlowBench worker(world);
  worker.Assign(0);
  worker.Deliver(0, {"a", "b", "c"});
  EXPECT_EQ(worker.Leased(), "a b c");
}

TEST(Chain, OfAKeyHoldsUpOnlyThatKeyInThatPartition) {  // 15
  Contended test(Order::kKey);
  test.worker.Deliver(0, {"x@k", "a@k", "b@other", "c"});
  test.worker.Deliver(1, {"d@k"});
  EXPECT_EQ(test.worker.Leased(), "b c d");
}

TEST(Chain, IsNoneWhereNoOrderIsAskedForNorForRecordsWithoutAKey) {
  for (const Order order : {Order::kNone, Order::kKey}) {
    Contended test(order);
    test.worker.Deliver(0, {"x", "a", "b"});
    EXPECT_EQ(test.worker.Leased(), "a b");
  }
}

TEST(Chain, GoesOnWhenTheRecordInTheWayIsDone) {
  Contended test(Order::kPartition);
  test.worker.Deliver(0, {"x", "a"});
  EXPECT_EQ(test.worker.Leased(), "");
  test.holder.WriteAll();
  test.worker.Wait(Millis(1500));
  test.worker.WriteAll();
  EXPECT_EQ(test.worker.Watermark(0), 2);
  EXPECT_EQ(test.worker.told.skips_by_ledger, 1);
}

TEST(Chain, OfTwoWorkersWithCrossingIdsDoNotWaitForEachOther) {  // 15
  SharedWorld world;
  FlowBench first(world, FlowBench::Options(), 1);
  FlowBench second(world, FlowBench::Options(), 2);
  first.Assign(0);
  second.Assign(1);
  first.Deliver(0, {"a", "b"});
  second.Deliver(1, {"b", "a"});
  for (int turn = 0; turn < 300; ++turn) {
    first.Settle();
    first.Write();
    second.Write();
    first.Wait(Millis(10));
    second.Wait(Millis(10));
  }
  EXPECT_EQ(first.Watermark(0), 2);
  EXPECT_EQ(second.Watermark(1), 2);
  EXPECT_NE(world.ledger.Find("a"), nullptr);
}

TEST(Twin, TakesNoTurnBehindARecordThatHasLostItsLease) {  // 15
  SharedWorld world;
  FlowOptions options = FlowBench::Options();
  options.write_batch = 1;
  options.writes_out = 2;
  FlowBench worker(world, options);
  worker.Assign(0);
  worker.Deliver(0, {"a", "b", "b", "c"});
  ASSERT_EQ(worker.Writes(), "a | b");
  world.Steal(LockName("p", "a"));
  worker.Wait(world.lock.ttl / 2);  // the extension finds out
  worker.Answer({{WriteResult::kNotWritten}});
  ASSERT_EQ(worker.StageOf("a"), "locking");
  ASSERT_EQ(worker.Operations(), "extend 6 acquire 9");
  worker.Answer({{WriteResult::kCommitted}});
  EXPECT_EQ(worker.StageOf("b"), "queued");
  EXPECT_EQ(worker.Operations(), "extend 6 acquire 9");  // nothing more is asked for
}

TEST(Hint, IsLookedUpAndNotBelievedWithoutALedgerRow) {  // 11
  SharedWorld world;
  FlowBench worker(world);
  world.MarkDone("a");
  worker.Assign(0);
  worker.Deliver(0, {"a"});
  EXPECT_EQ(worker.Leased(), "") << "written without a lease";
  EXPECT_EQ(worker.Writes(), "a");
  worker.WriteAll();
  EXPECT_NE(world.ledger.Find("a"), nullptr);
}

TEST(Hint, HeardOfALeaseThatRanOutInTheQueueIsNotForgotten) {
  SharedWorld world;
  FlowOptions options = FlowBench::Options(Order::kNone);
  options.writes_out = 1;
  FlowBench worker(world, options);
  worker.Assign(0);
  worker.Deliver(0, {"a"});
  worker.Deliver(0, {"b"});
  ASSERT_EQ(worker.Leased(), "a b");
  worker.Pass(world.lock.ttl / 2);
  worker.core.OnTime(world.now);  // the extension is on its way
  world.MarkDone("b");
  worker.Pass(world.lock.ttl);  // the worker is stalled, past the end of its leases
  worker.Write();               // "b" is found without a valid lease; then DONE of it is heard
  worker.Wait(Millis(500));
  worker.WriteAll();
  EXPECT_EQ(worker.Watermark(0), 2);
}

}  // namespace
}  // namespace fencepost::consumer
