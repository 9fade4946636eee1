// The rounds that follow an acquire, each by itself: extension, release, mark.
#include <gtest/gtest.h>

#include "locking/core/lock/rounds.h"

namespace fencepost::locking {
namespace {

constexpr Token kRival{7};

Reply Says(ReplyCode code) { return {.code = code}; }

class Extension : public ::testing::Test {
 protected:
  ExtendRound round{3, AllNodes(3)};
};

TEST_F(Extension, IsWonByAMajorityAndLearnsFromLaterRepliesWithoutASecondVerdict) {
  EXPECT_EQ(round.Begin(AllNodes(3)), AllNodes(3));
  EXPECT_EQ(round.OnReply(0, Says(ReplyCode::kExtended)), Tally::kPending);
  EXPECT_EQ(round.OnReply(0, Says(ReplyCode::kExtended)), Tally::kPending) << "one vote a node";
  EXPECT_EQ(round.OnReply(1, Says(ReplyCode::kExtended)), Tally::kWon);
  EXPECT_FALSE(round.open());
  EXPECT_EQ(round.OnReply(2, Says(ReplyCode::kExpired)), Tally::kPending);
  EXPECT_TRUE(round.SeenWiped());
  EXPECT_EQ(round.Begin(AllNodes(3)), Bit(0) | Bit(1)) << "node 2 has lost it";
}

TEST_F(Extension, AsksOnlyNodesThatHoldTheLease) {
  ExtendRound partly(3, Bit(0) | Bit(2));
  EXPECT_EQ(partly.Begin(Bit(0) | Bit(1)), Bit(0));
  EXPECT_EQ(partly.OnReply(0, Says(ReplyCode::kExtended)), Tally::kLost) << "one of three";
  EXPECT_EQ(partly.Loss(), std::nullopt) << "two nodes were not asked";
}

TEST_F(Extension, OfNoNodeIsOverAtOnce) {
  EXPECT_EQ(round.Begin(0), 0);
  EXPECT_FALSE(round.open());
  EXPECT_EQ(round.Loss(), std::nullopt);
}

TEST_F(Extension, DoesNotCountANodeInQuarantine) {
  round.Begin(AllNodes(3));
  round.OnReply(0, {.code = ReplyCode::kExtended, .quarantined = true});
  EXPECT_EQ(round.OnReply(1, Says(ReplyCode::kExtended)), Tally::kPending);
  EXPECT_EQ(round.OnReply(2, Says(ReplyCode::kTimeout)), Tally::kLost);
  EXPECT_EQ(round.Loss(), std::nullopt);
}

TEST(ReleaseRound, CountsNoAnswerOfANodeThatARivalHolds) {
  ReleaseRound round(3, AllNodes(3));
  round.OnReply(0, Says(ReplyCode::kFreed));
  round.OnReply(1, Says(ReplyCode::kStolen));
  EXPECT_EQ(round.Result(), Tally::kPending);
  round.OnReply(2, Says(ReplyCode::kExpired));
  EXPECT_EQ(round.Result(), Tally::kLost);
  EXPECT_EQ(round.Outcome(false), ReleaseOutcome::kStolen);
}

TEST(ReleaseRound, HearsEveryNodeBeforeItIsLost) {
  ReleaseRound round(3, Bit(0) | Bit(1));
  round.OnReply(0, Says(ReplyCode::kTimeout));
  EXPECT_EQ(round.Result(), Tally::kPending);
  round.OnUnreachable(1);
  EXPECT_EQ(round.Result(), Tally::kLost);
  EXPECT_EQ(round.Outcome(false), ReleaseOutcome::kUnknown);
  EXPECT_EQ(round.Outcome(true), ReleaseOutcome::kExpired);
}

TEST(MarkRound, DecidesOnceAndIsCompleteWhenEveryNodeHasAnswered) {
  MarkRound round(3, AllNodes(3));
  EXPECT_EQ(round.OnReply(0, Says(ReplyCode::kMarked)), Tally::kPending);
  EXPECT_EQ(round.OnReply(1, Says(ReplyCode::kConflict)), Tally::kWon) << "DONE is DONE";
  EXPECT_FALSE(round.Complete());
  EXPECT_EQ(round.OnReply(2, Says(ReplyCode::kAlreadyDone)), Tally::kPending);
  EXPECT_TRUE(round.Complete());
  EXPECT_FALSE(round.Late());
}

TEST(MarkRound, IsLateWhereAMajorityHadEndedTheLease) {
  MarkRound round(3, AllNodes(3));
  round.OnReply(0, Says(ReplyCode::kMarkedLate));
  round.OnReply(1, Says(ReplyCode::kMarked));
  EXPECT_FALSE(round.Late());
  round.OnReply(2, Says(ReplyCode::kMarkedLate));
  EXPECT_TRUE(round.Late());
}

}  // namespace
}  // namespace fencepost::locking
