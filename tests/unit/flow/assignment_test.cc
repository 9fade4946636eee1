// An assignment by itself: its watermark, its commits, and when it may go. Numbers are
// PROTOCOL.md's.
#include "consumer/flow/state/assignment.h"

#include <deque>

#include <gtest/gtest.h>

namespace fencepost::consumer {
namespace {

struct At : InFlight {
  void Be(Stage stage) { stage_ = stage; }
};

// Delivered from offset 10 on.
struct AssignmentTest : ::testing::Test {
  AssignmentTest() : partition({.partition = 0, .where = {"t", 0}, .epoch = 1, .start = 10}) {}

  At& Deliver(Offset offset, Stage stage = Stage::kHandled) {
    At& in = records.emplace_back();
    in.record.offset = offset;
    in.Be(stage);
    partition.Deliver(in, now);
    return in;
  }
  Offset WatermarkAfter(const InFlight& in) {
    partition.Finish(in);
    partition.AdvanceWatermark(now);
    return partition.watermark;
  }

  Instant now{std::chrono::seconds(1000)};
  Assignment partition;
  std::deque<At> records;
};

TEST_F(AssignmentTest, MovesItsWatermarkToTheFirstRecordThatIsNotFinished) {  // 16
  At& a = Deliver(10);
  At& b = Deliver(11);
  Deliver(12);
  EXPECT_EQ(WatermarkAfter(b), 10);
  EXPECT_EQ(partition.finished_behind(), 1u);
  EXPECT_EQ(WatermarkAfter(a), 12);
  EXPECT_EQ(partition.finished_behind(), 0u);
  EXPECT_FALSE(partition.WatermarkPastHole());
}

TEST_F(AssignmentTest, MovesItsWatermarkPastOffsetsThatHoldNoRecord) {  // 16
  At& a = Deliver(10);
  At& b = Deliver(15);
  EXPECT_EQ(WatermarkAfter(a), 15);
  partition.PassHoles(20);
  EXPECT_EQ(WatermarkAfter(b), 20);
  partition.PassHoles(19);
  partition.AdvanceWatermark(now);
  EXPECT_EQ(partition.watermark, 20) << "it never goes back";
}

TEST_F(AssignmentTest, KnowsItsOldestRecordAndSinceWhenItIsThat) {
  EXPECT_EQ(partition.Oldest(), nullptr);
  At& a = Deliver(10);
  At& b = Deliver(11);
  const Instant first = now;
  now += std::chrono::seconds(5);
  EXPECT_EQ(partition.Oldest(), &a);
  EXPECT_EQ(partition.oldest_since, first);
  WatermarkAfter(a);
  EXPECT_EQ(partition.Oldest(), &b);
  EXPECT_EQ(partition.oldest_since, now);
}

TEST_F(AssignmentTest, IsToBeCommittedOnceForEachMoveOfTheWatermark) {
  EXPECT_FALSE(partition.CommitDue());
  WatermarkAfter(Deliver(10));
  EXPECT_TRUE(partition.CommitDue());
  partition.committing = partition.watermark;
  EXPECT_FALSE(partition.CommitDue());
  partition.OnCommitted(11, Instant{});
  EXPECT_EQ(partition.committed, 11);
  EXPECT_FALSE(partition.CommitDue());
}

TEST_F(AssignmentTest, IsToBeCommittedAgainAfterACommitThatFailed) {
  WatermarkAfter(Deliver(10));
  partition.committing = partition.watermark;
  partition.OnCommitted(11, std::nullopt);
  EXPECT_EQ(partition.committed, 10);
  EXPECT_TRUE(partition.CommitDue());
}

TEST_F(AssignmentTest, IsNotCommittedBackwardsByALateAnswer) {
  WatermarkAfter(Deliver(10));
  WatermarkAfter(Deliver(11));
  partition.OnCommitted(12, Instant{});
  partition.OnCommitted(11, Instant{});
  EXPECT_EQ(partition.committed, 12);
}

TEST_F(AssignmentTest, MovesOffsetsInATransactionPastWhatIsWrittenInItAndNoFurther) {  // 20
  EXPECT_EQ(partition.NextAfterWrites(), 10);
  Deliver(10, Stage::kWriting);
  Deliver(11, Stage::kWriting);
  EXPECT_EQ(partition.NextAfterWrites(), 12);
  Deliver(13, Stage::kReady);
  Deliver(14, Stage::kWriting);
  EXPECT_EQ(partition.NextAfterWrites(), 13);
}

TEST_F(AssignmentTest, MayGoWhileNothingOfItHoldsALeaseOrIsInOthersHands) {
  for (const Stage idle : {Stage::kQueued, Stage::kWithheld, Stage::kWaitingForSameId,
                           Stage::kLocking, Stage::kGranted, Stage::kRetrying, Stage::kBlocked}) {
    Deliver(partition.position, idle);
    EXPECT_FALSE(partition.Busy()) << StageName(idle);
  }
  At& in = Deliver(partition.position);
  for (const Stage busy : {Stage::kLookup, Stage::kWaiting, Stage::kHandling, Stage::kHandled,
                           Stage::kReady, Stage::kWriting}) {
    in.Be(busy);
    EXPECT_TRUE(partition.Busy()) << StageName(busy);
  }
}

TEST_F(AssignmentTest, WaitsForADeadLetterUnlessItsTopicRefusesIt) {
  At& in = Deliver(10, Stage::kPublishingDeadLetter);
  EXPECT_TRUE(partition.Busy());
  in.letter_refused = true;
  EXPECT_FALSE(partition.Busy());
}

TEST_F(AssignmentTest, HasCaughtUpOnceTheGroupHasCommittedTheFirstEndThatItHeard) {
  EXPECT_FALSE(partition.CaughtUp()) << "no end is known";
  partition.UpdateEnd(12);
  partition.UpdateEnd(30);
  EXPECT_EQ(partition.end, 30);
  partition.OnCommitted(11, Instant{});
  EXPECT_FALSE(partition.CaughtUp());
  partition.OnCommitted(12, Instant{});
  EXPECT_TRUE(partition.CaughtUp());
}

}  // namespace
}  // namespace fencepost::consumer
