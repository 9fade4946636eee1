// Behind a record that the output refuses nothing of its order chain takes effect before it is
// known what becomes of that record. The output holds it back (kNotWritten); the flow keeps its
// place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model/flow/flow_bench.h"

namespace fencepost::consumer {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;
using State = locking::NodeModel::State;

const WriteOutcome kBad{WriteResult::kBadRecord, "value too long", DeadLetterReason::kOutput};
const WriteOutcome kHeld{.result = WriteResult::kNotWritten, .detail = {}};
const WriteOutcome kWritten{};

FlowOptions WithDeadLetters() {
  FlowOptions options = FlowBench::Options(Order::kKey);
  options.dead_letters = true;
  options.on_bad_record = OnBad::kDeadLetter;
  return options;
}
using Refused = WorkerWith<WithDeadLetters>;

TEST_F(Refused, HoldsBackItsKeyUntilItsDeadLetterIsAcknowledged) {
  worker.Deliver(0, {"a@k", "b@k", "c@j"});
  ASSERT_EQ(worker.Writes(), "a b c");
  const auto lease = [this] {
    return world.nodes[0].Look(LockName("p", "b"), world.now.wall).nonce;
  };
  const auto before = lease();
  worker.Answer({kBad, kHeld, kWritten});
  EXPECT_EQ(worker.Letters(), "a:output");
  EXPECT_EQ(worker.Writes(), "");
  EXPECT_EQ(worker.Leased(), "a b");
  EXPECT_EQ(lease(), before) << "it keeps its lease meanwhile";
  worker.Deliver(0, {"d@k", "e@j"});
  EXPECT_EQ(worker.Writes(), "e") << "other keys go on";
  ASSERT_TRUE(worker.Acknowledge());
  worker.Write();
  EXPECT_EQ(worker.Writes(), "b d");
}

// Without a handler what is behind it is handled as soon as it is leased.
TEST_F(Refused, HoldsUpNoRevokeOnceItsDeadLetterIsRefusedTooNorDoesWhatIsBehindIt) {
  for (const bool before : {false, true}) {
    if (before) worker.Assign(0, 0, 2);
    worker.Deliver(0, {"a@k", "b@k"});
    worker.Answer({kBad, kHeld});
    ASSERT_EQ(worker.Letters(), "a:output");
    if (before) worker.RefuseLetters();
    worker.Revoke(0);
    EXPECT_EQ(worker.drained.has_value(), before);
    worker.RefuseLetters();
    EXPECT_TRUE(worker.drained);
  }
}

TEST_F(Refused, HoldsBackWhatALaterTransactionHeldToo) {
  worker.Deliver(0, {"a@k"});
  worker.Deliver(0, {"b@k"});
  worker.Answer({kBad});
  EXPECT_EQ(worker.Writes(), "");
  worker.Acknowledge();
  EXPECT_EQ(worker.Writes(), "b");
}

TEST_F(Refused, IsLockedAnewWithWhatIsBehindItWhenItsLeaseIsLostMeanwhile) {
  worker.Deliver(0, {"a@k", "b@k"});
  worker.Pass(world.lock.ttl);
  worker.Answer({kHeld, kHeld});
  worker.Wait(Millis(100));
  EXPECT_EQ(worker.Writes(), "a b") << "in their order";
  EXPECT_EQ(worker.Leased(), "a b");
}

TEST_F(Refused, NamesTheChainOfEachRecordToTheOutput) {
  worker.Deliver(0, {"a@k", "b@j", "c@k", "d", "e"});
  ASSERT_EQ(worker.writes.size(), 1u);
  std::vector<std::uint64_t> chains;
  for (const WriteItem& item : worker.writes[0]->request.items) chains.push_back(item.chain);
  EXPECT_THAT(chains, ElementsAre(1, 2, 1, 0, 0)) << "without a key it has none";
}

FlowOptions WithoutOrder() { return FlowBench::Options(Order::kNone); }
using Unordered = WorkerWith<WithoutOrder>;

TEST_F(Unordered, RecordsHaveNoChain) {
  worker.Deliver(0, {"a@k"});
  EXPECT_EQ(worker.writes.at(0)->request.items.at(0).chain, 0u);
}

TEST(Answers, AreNamedByTheBatchesThatWereFilledBehindThem) {
  SharedWorld world;
  FlowOptions options = FlowBench::Options(Order::kPartition);
  options.write_batch = 1;
  FlowBench worker(world, options);
  worker.Assign(0);
  worker.Deliver(0, {"a", "b", "c"});
  ASSERT_EQ(worker.Writes(), "a | b");
  EXPECT_EQ(worker.writes[1]->answered, 0u);
  worker.Write();
  ASSERT_EQ(worker.Writes(), "b | c");
  EXPECT_EQ(worker.writes[1]->answered, 1u);
}

// --- skipped conflicts ---------------------------------------------------------------------------

TEST(SkippedConflictWithoutAHandler, LeavesNoMarkOfItsOwnContent) {
  SharedWorld world;
  FlowOptions options = FlowBench::Options(Order::kNone);
  options.on_id_conflict = OnBad::kSkip;
  world.WriteRow("a=1");
  FlowBench worker(world, options);
  worker.Assign(0);
  worker.Deliver(0, {"a=2"});
  worker.WriteAll();
  EXPECT_EQ(worker.told.conflicts, 1);
  EXPECT_EQ(worker.Watermark(0), 1);
  EXPECT_EQ(worker.StateOf("a"), State::kFree);
}

// --- what may be pruned --------------------------------------------------------------------------

class Prunable : public Refused {
 protected:
  void Report() { worker.Wait(Millis(1100)); }
  std::vector<std::string> Told() {
    std::vector<std::string> told;
    for (const SourceOffset& one : worker.prunable.value_or(std::vector<SourceOffset>())) {
      told.push_back(SourceText(one.where, one.next));
    }
    return told;
  }
};

TEST_F(Prunable, IsNothingUntilThePartitionHasCaughtUpWithItsEndAtTheAssignment) {
  worker.flow.OnHighWatermark({{0, 1, 2}});
  worker.Deliver(0, {"a"});
  worker.WriteAll();
  worker.Committed(worker.Commits());
  Report();
  EXPECT_THAT(worker.prunable, Optional(IsEmpty()));
  worker.Deliver(0, {"b"});
  worker.WriteAll();
  Report();
  EXPECT_THAT(Told(), IsEmpty()) << "b is not committed";
  worker.Committed(worker.Commits());
  Report();
  EXPECT_THAT(Told(), ElementsAre("t/0/2"));
}

TEST_F(Prunable, FollowsWhatTheGroupHasCommitted) {
  worker.End(0, 0);
  worker.Deliver(0, {"a"});
  worker.WriteAll();
  Report();
  EXPECT_THAT(Told(), ElementsAre("t/0/0")) << "a took effect, and is not committed";
}

TEST_F(Prunable, IsNothingWhileAnotherPartitionIsBehind) {
  worker.Assign(1);
  worker.End(0, 0);
  worker.flow.OnHighWatermark({{1, 1, 5}});
  Report();
  EXPECT_THAT(Told(), IsEmpty());
  worker.Revoke(1);
  Report();
  EXPECT_THAT(Told(), ElementsAre("t/0/0"));
}

// Rows stay for 40 s: half of that is how late a transaction may be whose retry was answered.
TEST(PrunableWithAKeep, IsWhatTheGroupHasHadCommittedForAWhile) {
  SharedWorld world;
  FlowOptions options = FlowBench::Options(Order::kNone);
  options.ledger_row_lifetime = Millis(40'000);
  FlowBench worker(world, options);
  worker.Assign(0);
  worker.Confirm();
  worker.End(0, 0);
  worker.Deliver(0, {"a"});
  worker.WriteAll();
  worker.Committed(worker.Commits());
  const Instant committed = world.now.boot;
  const auto told = [&] {
    worker.Wait(Millis(1000));
    return worker.prunable && !worker.prunable->empty() ? worker.prunable->front().next : -1;
  };
  while (told() < 1) ASSERT_LT(world.now.boot - committed, Millis(42'000));
  EXPECT_GE(world.now.boot - committed, Millis(20'000));
}

}  // namespace
}  // namespace fencepost::consumer
