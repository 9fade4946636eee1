// What the flow says to Kafka: the watermark, commits, pause, the end of an assignment, and when it
// stops. Numbers are PROTOCOL.md's.
#include <gtest/gtest.h>

#include "tests/model/flow/flow_bench.h"

namespace fencepost::consumer {
namespace {

FlowOptions Unordered() { return FlowBench::Options(Order::kNone); }
using Flowing = WorkerWith<Unordered>;

FlowOptions OneRecordATransaction() {
  FlowOptions options = FlowBench::Options(Order::kNone);
  options.write_batch = 1;
  return options;
}

using Watermark = WorkerWith<OneRecordATransaction>;

TEST_F(Watermark, WaitsForTheTransactionToBeKnownAsCommitted) {  // 16
  worker.Deliver(0, {"a"});
  EXPECT_EQ(worker.Writes(), "a");
  EXPECT_TRUE(worker.Commits().empty());
  worker.Write();
  EXPECT_EQ(worker.Commits().size(), 1u);
}

TEST_F(Flowing, TakesNoRecordOfAnotherAssignment) {
  Record record;
  record.partition = 0;
  record.epoch = 7;
  worker.flow.OnRecords({record}, world.now);
  EXPECT_EQ(worker.flow.in_flight(), 0u);
}

FlowOptions Small() {
  FlowOptions options = FlowBench::Options(Order::kNone);
  options.max_in_flight = 4;
  return options;
}

using Backpressure = WorkerWith<Small>;

TEST_F(Backpressure, PausesAPartitionThatComesWhileItIsFull) {
  worker.Deliver(0, {"a", "b", "c", "d"});
  worker.paused.clear();
  worker.Assign(1);
  EXPECT_EQ(worker.paused, std::vector<PartitionIndex>{1});
}

TEST_F(Flowing, PausesWithoutAQuorumAndGoesOnWithIt) {
  worker.core.OnDisconnected(0, world.now);
  worker.core.OnDisconnected(1, world.now);
  worker.flow.OnTime(world.now);
  worker.Settle();
  EXPECT_EQ(worker.paused, std::vector<PartitionIndex>{0});
  EXPECT_TRUE(worker.resumed.empty());
  worker.Connect(1);
  worker.Settle();
  EXPECT_EQ(worker.resumed, std::vector<PartitionIndex>{0});
}

// --- the end of an assignment --------------------------------------------------------------------

TEST_F(Flowing, FinishesWhatIsLeasedWhenItIsRevokedAndGivesBackTheRest) {
  worker.Deliver(0, {"a"});
  worker.settles = false;
  worker.Deliver(0, {"b"});  // asked for, not yet granted
  worker.Revoke(0);
  worker.settles = true;
  EXPECT_FALSE(worker.drained) << "a transaction is out";
  worker.WriteAll();
  ASSERT_TRUE(worker.drained);
  ASSERT_EQ(worker.drained->size(), 1u);
  EXPECT_EQ(worker.drained->at(0).next, 1);
  EXPECT_EQ(worker.flow.in_flight(), 0u);
  EXPECT_EQ(worker.core.held(), 0u);
  EXPECT_FALSE(world.nodes[0].Holder(LockName("p", "b"), world.now.wall));
}

TEST_F(Flowing, GivesUpADrainAtItsDeadline) {
  worker.Deliver(0, {"a"});
  worker.Revoke(0);
  worker.Wait(Millis(1100));
  ASSERT_TRUE(worker.drained);
  EXPECT_TRUE(worker.drained->empty()) << "its transaction may never have happened";
  worker.WriteAll();
  EXPECT_EQ(worker.flow.in_flight(), 0u);
  EXPECT_TRUE(worker.Commits().empty());
}

TEST_F(Flowing, CommitsNothingOfAnAssignmentThatIsLost) {
  worker.Deliver(0, {"a"});
  worker.WriteAll();
  worker.Deliver(0, {"b"});
  worker.Revoke(0, true);
  ASSERT_TRUE(worker.drained);
  EXPECT_TRUE(worker.drained->empty());
  worker.WriteAll();
  EXPECT_TRUE(worker.Commits().empty());
  EXPECT_NE(world.ledger.Find("b"), nullptr) << "what was sent goes on";
}

TEST_F(Flowing, TakesThePartitionAgainWhileAnOldTransactionIsStillOut) {
  worker.Deliver(0, {"a", "b"});
  worker.Revoke(0, true);
  worker.Assign(0, 0, 2);
  worker.Deliver(0, {"a", "b"});
  worker.WriteAll();
  EXPECT_EQ(worker.Watermark(0), 2);
  EXPECT_NE(world.ledger.Find("a"), nullptr);
}

// --- what the pipeline cannot go past ------------------------------------------------------------

TEST_F(Flowing, StopsAtAnIdWithOtherContentAndKeepsItsOffset) {
  worker.Deliver(0, {"a=one"});
  worker.WriteAll();
  worker.Deliver(0, {"a=two", "b"});
  worker.WriteAll();
  EXPECT_EQ(worker.told.conflicts, 1);
  ASSERT_TRUE(worker.stop);
  EXPECT_EQ(worker.stop->code, "id_conflict");
  EXPECT_EQ(worker.stop->where, "t/0/1");
  EXPECT_EQ(worker.Watermark(0), 1);
  EXPECT_NE(world.ledger.Find("a"), nullptr);
}

TEST_F(Flowing, StopsAtARecordWithoutAnIdAndKeepsItsOffset) {
  worker.Deliver(0, {"a", "", "b"});
  worker.WriteAll();
  ASSERT_TRUE(worker.stop);
  EXPECT_EQ(worker.stop->code, "bad_record");
  EXPECT_EQ(worker.stop->where, "t/0/1");
  EXPECT_EQ(worker.Watermark(0), 1);
}

FlowOptions Skipping() {
  FlowOptions options = FlowBench::Options();
  options.on_id_conflict = OnBad::kSkip;
  return options;
}

using SkippingConflicts = WorkerWith<Skipping>;

TEST_F(SkippingConflicts, GoesPastAnIdWithOtherContent) {
  worker.Deliver(0, {"a=one", "a=two", "b"});
  worker.WriteAll();
  EXPECT_FALSE(worker.stop);
  EXPECT_EQ(worker.told.conflicts, 1);
  EXPECT_EQ(worker.Watermark(0), 3);
}

FlowOptions Narrow() {
  FlowOptions options = FlowBench::Handling();
  options.max_in_flight = 2;
  return options;
}

using BackpressureTime = WorkerWith<Narrow>;

TEST_F(BackpressureTime, IsThePauseForTooMuchInFlightAndNoOther) {
  worker.CanPublish(false);
  worker.Wait(Millis(3000));
  worker.CanPublish(true);
  EXPECT_EQ(worker.told.pressed, Nanos(0)) << "an outage";
  worker.answers_lookups = false;
  worker.Deliver(0, {"a", "b"});
  worker.Pass(Millis(3000));
  worker.LookUpAll();
  worker.HandleAll();
  worker.WriteAll();
  EXPECT_EQ(worker.told.pressed, Nanos(Millis(3000)));
  EXPECT_FALSE(worker.resumed.empty());
}

}  // namespace
}  // namespace fencepost::consumer
