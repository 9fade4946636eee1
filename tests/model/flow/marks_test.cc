// Outputs without a ledger: the mark is sent after the effect and not awaited, and a record that is
// found DONE is skipped. Numbers are PROTOCOL.md's.
#include <gtest/gtest.h>

#include "tests/model/flow/flow_bench.h"

namespace fencepost::consumer {
namespace {

using State = locking::NodeModel::State;

FlowOptions Marks() {
  FlowOptions options = FlowBench::Options();
  options.finality = Finality::kWrite;
  return options;
}
FlowOptions Skipping() {
  FlowOptions options = Marks();
  options.on_id_conflict = OnBad::kSkip;
  return options;
}
FlowOptions WithHandler() {
  FlowOptions options = FlowBench::Handling();
  options.finality = Finality::kWrite;
  return options;
}
FlowOptions WithPureHandler() {
  FlowOptions options = WithHandler();
  options.handler.kind = JqHandlerOptions{"."};
  return options;
}
using Marking = WorkerWith<Marks>;
using MarkingSkipping = WorkerWith<Skipping>;
using MarkingHandled = WorkerWith<WithHandler>;
using MarkingPure = WorkerWith<WithPureHandler>;

locking::ContentCrc CrcOf(const std::string& record) {
  SharedWorld elsewhere;
  FlowBench other(elsewhere);
  other.Assign(0);
  other.Deliver(0, {record});
  locking::ContentCrc crc = 0;
  other.flow.ForEachRecord([&](const InFlight& in) { crc = in.identity.crc; });
  return crc;
}

TEST_F(Marking, HoldsNoOffsetUpWhileNoNodeIsThereToTakeIt) {  // 16
  worker.Deliver(0, {"a", "b"});
  for (const int node : {0, 1, 2}) worker.core.OnDisconnected(node, world.now);
  worker.WriteAll();
  EXPECT_EQ(worker.Watermark(0), 2);
  EXPECT_EQ(worker.StateOf("a"), State::kHeld);
}

TEST_F(Marking, GoesToAllNodes) {  // 10
  worker.Deliver(0, {"a"});
  worker.Write();
  for (const int node : {0, 1, 2}) EXPECT_EQ(worker.StateOf("a", node), State::kDone) << node;
}

TEST_F(Marking, GoesOnAfterAnEffectWhoseLeaseWasLost) {
  worker.Deliver(0, {"a"});
  LoseLease("a");
  EXPECT_EQ(worker.StageOf("a"), "writing");
  worker.Write();
  EXPECT_EQ(worker.Watermark(0), 1);
  EXPECT_EQ(worker.StateOf("a"), State::kDone);
}

TEST_F(Marking, GoesOnAfterAnEffectWhoseLeaseEndedInTheSameMoment) {
  worker.Deliver(0, {"a"});
  worker.Pass(world.lock.ttl * 2);
  worker.core.OnTime(world.now);  // the loss is known, but not told yet
  worker.Write();
  worker.Wait(Millis(100));
  EXPECT_EQ(worker.Watermark(0), 1);
  EXPECT_EQ(worker.StateOf("a"), State::kDone);
}

TEST_F(Marking, AnEffectWhoseWriteBeganAfterItsLeaseHadEndedIsAViolation) {
  worker.Deliver(0, {"a"});
  worker.Pass(world.lock.ttl * 2);
  worker.Settle();
  worker.core.OnTime(world.now);
  worker.Settle();  // told
  worker.Write();
  ASSERT_EQ(worker.told.broken.size(), 1u);
  EXPECT_EQ(worker.told.broken[0], locking::Invariant::kLeaseAfterLoss);
  ASSERT_FALSE(worker.told.notes.empty());
  EXPECT_TRUE(worker.told.notes.back().starts_with("invariant_violated: t/0/0: lease_after_loss"))
      << worker.told.notes.back();
}

TEST_F(Marking, AnEffectWhoseWriteBeganUnderItsLeaseIsNone) {
  worker.Deliver(0, {"a"});
  worker.writes.front()->began = world.now.boot;
  worker.Pass(world.lock.ttl * 2);
  worker.core.OnTime(world.now);
  worker.Settle();
  worker.Answer({{.result = WriteResult::kCommitted, .detail = {}}});
  EXPECT_TRUE(worker.told.broken.empty());
}

TEST_F(Marking, IsNotOfAnEffectThatTheOutputHadNotAnsweredWhenItEnded) {  // 10
  worker.Deliver(0, {"a"});
  ASSERT_EQ(worker.StageOf("a"), "writing");
  worker.flow.OnOutputEnded(world.now);
  worker.Wait(Millis(100));
  for (const int node : {0, 1, 2}) EXPECT_NE(worker.StateOf("a", node), State::kDone) << node;
  EXPECT_EQ(worker.Watermark(0), 0);
}

TEST_F(Marking, ThatIsHeardCompletesTheRecordAtOnceAndIsCarriedNowhere) {  // 1, 11
  world.MarkDone("a", CrcOf("a"), 1);
  worker.Deliver(0, {"a"});
  EXPECT_EQ(worker.Writes(), "");
  EXPECT_EQ(worker.Watermark(0), 1);
  EXPECT_EQ(worker.told.skips_by_hint, 1);
  EXPECT_NE(worker.StateOf("a", 1), State::kDone);
}

TEST_F(Marking, ThatIsHeardWithAnotherChecksumIsAConflict) {
  world.MarkDone("a", CrcOf("a=other"));
  worker.Deliver(0, {"a"});
  EXPECT_EQ(worker.told.conflicts, 1);
  ASSERT_TRUE(worker.stop);
  EXPECT_EQ(worker.stop->code, "id_conflict");
  EXPECT_EQ(worker.Watermark(0), 0);
}

// Two clusters with one lock store and one pipeline name.
TEST_F(Marking, OfAnotherClusterCountsAndIsNamed) {
  for (const char* id : {"a", "b"}) world.MarkDone(id, MarkOf(CrcOf(id), TagOf("elsewhere")));
  worker.Deliver(0, {"a", "b", "c"});
  EXPECT_EQ(worker.Writes(), "c");
  worker.WriteAll();
  EXPECT_EQ(worker.Watermark(0), 3);
  ASSERT_EQ(worker.told.notes.size(), 1u);  // once a minute
  EXPECT_TRUE(worker.told.notes.back().starts_with("mark_of_another_cluster: t/0/"))
      << worker.told.notes.back();
}

TEST_F(MarkingSkipping, OfTheSameClusterIsOne) {
  const ClusterTag here = TagOf("cluster");
  world.MarkDone("a", MarkOf(CrcOf("a"), here));
  world.MarkDone("b", MarkOf(CrcOf("b=other"), here));
  worker.Deliver(0, {"a", "b"});
  EXPECT_EQ(worker.Writes(), "");
  EXPECT_EQ(worker.told.conflicts, 1);
  EXPECT_EQ(worker.Watermark(0), 2);
}

TEST_F(Marking, NamesItsCluster) {
  worker.Deliver(0, {"a"});
  worker.Write();
  const locking::ContentCrc mark = world.nodes[0].Look(LockName("p", "a"), world.now.wall).crc;
  EXPECT_FALSE(IsOfAnotherCluster(mark, TagOf("cluster")));
  EXPECT_TRUE(IsOfAnotherCluster(mark, TagOf("elsewhere")));
}

TEST_F(MarkingSkipping, SkipsOneConflictAfterTheOtherOfAChain) {
  world.MarkDone("b", CrcOf("b=other"));  // heard first
  world.MarkDone("a", CrcOf("a=other"));
  worker.Deliver(0, {"a", "b", "c"});
  worker.WriteAll();
  EXPECT_EQ(worker.told.conflicts, 2);
  EXPECT_EQ(worker.Watermark(0), 3);
}

TEST_F(MarkingHandled, NeedsNoLookUp) {
  worker.answers_lookups = false;
  worker.Deliver(0, {"a"});
  EXPECT_EQ(worker.Lookups(), "");
  EXPECT_EQ(worker.Calls(), "a");
}

TEST_F(MarkingHandled, ThatIsHeardWhileHandlingCallsItOffAndCompletesTheRecord) {  // 11
  worker.Deliver(0, {"a"});
  world.MarkDone("a", CrcOf("a"));
  worker.Wait(world.lock.ttl / 2);
  EXPECT_EQ(worker.Calls(), "a!");
  worker.Handle("a");
  EXPECT_EQ(worker.Writes(), "");
  EXPECT_EQ(worker.Watermark(0), 1);
  EXPECT_EQ(worker.told.skips_by_hint, 1);
}

TEST_F(MarkingPure, ThatIsHeardDoesNotLetThoseBehindItOvertakeThoseBeforeIt) {  // 21
  world.MarkDone("done", CrcOf("done"));
  worker.Deliver(0, {"a", "done", "b"});
  worker.Round();
  ASSERT_EQ(worker.StageOf("done"), "");
  ASSERT_EQ(worker.Calls(), "a b");
  worker.Handle("b");
  EXPECT_EQ(worker.Writes(), "");
  worker.Handle("a");
  EXPECT_EQ(worker.Writes(), "a b");
  worker.WriteAll();
  EXPECT_EQ(worker.Watermark(0), 3);
}

// As where there is a ledger.
TEST_F(MarkingPure, OfAnotherContentIsAConflictOnlyOfARecordThatMakesARow) {
  for (const Finality finality : {Finality::kWrite, Finality::kTransaction}) {
    SharedWorld own;
    FlowOptions options = WithPureHandler();
    options.finality = finality;
    FlowBench flow(own, options);
    flow.Assign(0);
    own.MarkDone("a", CrcOf("a=other"));
    flow.Deliver(0, {"a"});
    EXPECT_EQ(flow.Calls(), "a");
    flow.Handle("a", {});
    EXPECT_EQ(flow.Writes(), "a");
    flow.Answer({{.result = WriteResult::kNoOutput, .took_rows = false}});
    EXPECT_EQ(flow.Watermark(0), 1);
    EXPECT_EQ(flow.told.without_output, 1);
    EXPECT_EQ(flow.told.conflicts, 0);
    EXPECT_EQ(flow.StateOf("a"), State::kDone) << "of the other content, still";
    flow.Deliver(0, {"a=third"});
    flow.Handle("a");
    EXPECT_EQ(flow.told.conflicts, 1);
  }
}

TEST_F(MarkingHandled, ThatIsHeardWithAnotherChecksumIsADeadLetterWithoutALookUp) {
  world.MarkDone("a", CrcOf("a=other"));
  worker.Deliver(0, {"a"});
  EXPECT_EQ(worker.Letters(), "a:id_conflict");
}

}  // namespace
}  // namespace fencepost::consumer
