// Records that `when` leaves out: finished as they come, in their places.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model/flow/flow_bench.h"

namespace fencepost::consumer {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

FlowOptions WithAHandler() { return FlowBench::Handling(Order::kKey); }
using Filtered = WorkerWith<WithAHandler>;

TEST_F(Filtered, IsFinishedWithoutLockHandlerOrOutputWhateverItIs) {
  worker.Deliver(0, {"!a@k", "!", "!a=other", "!a@k"});
  EXPECT_EQ(worker.told.filtered, 4);
  EXPECT_EQ(worker.flow.in_flight(), 0u);
  EXPECT_EQ(worker.Operations(), "");
  EXPECT_EQ(worker.Calls() + worker.Writes() + worker.Lookups() + worker.Letters(), "");
  EXPECT_EQ(worker.Watermark(0), 4);
  worker.Wait(Millis(1000));
  EXPECT_THAT(worker.TakeCommits(), ElementsAre(Field(&PartitionOffset::next, 4)));
}

TEST_F(Filtered, HoldsNobodyUpAndLetsNoOffsetPassARecordThatIsNotFinished) {  // 16
  worker.Deliver(0, {"a@k", "!x@k", "b@k", "!y@k"});
  EXPECT_EQ(worker.Watermark(0), 0);
  worker.Handle("a");
  worker.WriteAll();
  EXPECT_EQ(worker.Watermark(0), 2);
  worker.HandleAll();
  worker.WriteAll();
  EXPECT_EQ(worker.Watermark(0), 4);
}

TEST_F(Filtered, TakesNoRoomHoweverManyAreBehindARecordThatIsNotFinished) {
  worker.Deliver(0, {"a"});
  for (int i = 0; i < 200; ++i) worker.Deliver(0, std::vector<std::string>(1000, "!x"));
  WorkerStatus status;
  worker.flow.FillStatus(status, world.now);
  EXPECT_EQ(status.in_flight_records, 1u);
  EXPECT_EQ(status.partitions.at(0).finished_behind, 0u);
  EXPECT_THAT(worker.paused, IsEmpty());
  worker.HandleAll();
  worker.WriteAll();
  EXPECT_EQ(worker.Watermark(0), 200'001);
}

TEST_F(Filtered, IsForgottenAsOneThatFailed) {
  worker.Assign(1, 0, 1, 0, {{.offset = 1, .attempts = 3}, {.offset = 2, .attempts = 3}});
  worker.Deliver(1, {"a", "!x"});
  worker.Handle("a");
  worker.WriteAll();
  worker.Wait(Millis(1000));
  const auto commits = worker.TakeCommits();
  ASSERT_EQ(commits.size(), 1u);
  EXPECT_EQ(commits[0].next, 2);
  EXPECT_THAT(commits[0].failed, ElementsAre(Field(&FailedRecord::offset, 2)));
}

TEST_F(Filtered, ShowsThatThoseWhoseFilterFailsAreNotAll) {
  int letters = 0;
  for (int i = 0; i < 40; ++i) {
    worker.Deliver(0, {"!x", "?y", "!x"});
    while (worker.Acknowledge()) ++letters;
  }
  EXPECT_EQ(letters, 40);
  EXPECT_EQ(worker.Watermark(0), 120);
  for (int i = 0; i < 40; ++i) {
    worker.Deliver(0, {"?y"});
    while (worker.Acknowledge()) ++letters;
  }
  EXPECT_EQ(letters, 40 + 10);
}

TEST_F(Filtered, IsCommittedWithARevoke) {
  worker.Deliver(0, {"!x", "!y"});
  worker.Revoke(0);
  ASSERT_TRUE(worker.drained);
  EXPECT_THAT(*worker.drained, ElementsAre(Field(&PartitionOffset::next, 2)));
}

TEST_F(Filtered, IsNoHoleInTheRangesOfALedgerByPosition) {
  worker.Deliver(0, {"a", "!x", "!y", "b", "c"});
  worker.HandleAll();
  std::vector<Offset> gaps;
  for (; !worker.writes.empty(); worker.Write()) {
    for (const WriteItem& item : worker.writes.at(0)->request.items)
      gaps.push_back(item.record->gap);
  }
  EXPECT_THAT(gaps, ElementsAre(0, 2, 0));
}

FlowOptions Transactions() {
  FlowOptions options = FlowBench::Options();
  options.finality = Finality::kTransaction;
  options.writes_out = 1;
  return options;
}
using FilteredInTransactions = WorkerWith<Transactions>;

TEST_F(FilteredInTransactions, MovesTheOffsetInOneOfItsOwnOrWithTheRecordsBeside) {
  worker.Deliver(0, {"!x", "!y"});
  worker.Wait(Millis(1000));
  EXPECT_EQ(worker.Writes(), "");
  EXPECT_EQ(worker.Offsets(), "0:2");
  worker.WriteAll();
  worker.Deliver(0, {"a", "!z"});
  EXPECT_EQ(worker.Writes(), "a");
  EXPECT_EQ(worker.Offsets(), "0:4");
}

FlowOptions Blocks() {
  FlowOptions options = FlowBench::Options(Order::kNone);
  options.identity = {};
  options.block = 4;
  return options;
}
using FilteredInABlock = WorkerWith<Blocks>;

TEST_F(FilteredInABlock, KeepsItsLockNoLongerThanTheOthers) {
  worker.Deliver(0, {"x", "!x", "x", "!x", "!x", "!x", "!x", "!x"});
  EXPECT_EQ(worker.core.held(), 1u);
  worker.WriteAll();
  EXPECT_EQ(worker.core.held(), 0u);
  EXPECT_EQ(worker.Watermark(0), 8);
}

}  // namespace
}  // namespace fencepost::consumer
