// The stages of a record: what the table says of them, and what a transition refuses.
#include "consumer/flow/state/in_flight.h"

#include <gtest/gtest.h>

namespace fencepost::consumer {
namespace {

struct At : InFlight {
  explicit At(Stage stage) { stage_ = stage; }
};

TEST(Stages, GiveNothingBackThatIsInOthersHands) {
  for (const StageRow& row : kStages) {
    EXPECT_FALSE(Pinned(row.stage) && MayGiveBack(row.stage)) << row.name;
    EXPECT_FALSE(Pinned(row.stage) && !InLeasedPrefix(row.stage)) << row.name;
    EXPECT_FALSE(WaitsForPrefix(row.stage) && InLeasedPrefix(row.stage)) << row.name;
  }
}

TEST(Stages, CanEndFromEachButTheLast) {
  for (const StageRow& row : kStages) {
    const bool there = row.stage != Stage::kUnused && row.stage != Stage::kFinished;
    EXPECT_EQ(MayFollow(Stage::kFinished, row.stage), there) << row.name;
  }
}

TEST(InFlight, IsAnotherReferenceOnceItIsQueuedAgain) {
  At in(Stage::kHandled);
  const std::uint64_t before = in.Reference();
  in.BecomeQueued();
  EXPECT_NE(in.Reference(), before);
}

TEST(InFlight, LeavesNothingToTheNextRecordInItsPlaceButTheTicket) {
  At in(Stage::kFinished);
  in.index = 7;
  in.attempts = in.failing.failures = 3;
  in.handled = in.passed_limiter = in.without_id = true;
  in.letter = std::make_unique<DeadLetter>();
  in.bytes = 9;
  const std::uint64_t before = in.Reference();
  in.BecomeUnused();
  EXPECT_EQ(in.index, 7u);
  EXPECT_NE(in.Reference(), before);
  EXPECT_EQ(in.attempts + in.failing.failures, 0);
  EXPECT_FALSE(in.handled || in.passed_limiter || in.without_id);
  EXPECT_EQ(in.letter, nullptr);
  EXPECT_EQ(in.bytes, 0u);
}

TEST(InFlightDeathTest, RefusesAStageThatDoesNotFollow) {
  EXPECT_DEATH(At(Stage::kQueued).BecomeReady(), "ready to be written");
  EXPECT_DEATH(At(Stage::kBlocked).BecomeQueued(), "queued");
}

TEST(InFlightDeathTest, RefusesAStageWhoseFieldsAreNotThere) {
  EXPECT_DEATH(At(Stage::kQueued).BecomeLocking(), "nothing to lock");
  EXPECT_DEATH(At(Stage::kQueued).BecomeWithheld(), "without a dead letter");
  EXPECT_DEATH(At(Stage::kGranted).BecomePublishing(), "no dead letter");
  At in(Stage::kWaiting);
  in.call = 1;
  EXPECT_DEATH(in.BecomeHandling(2), "a second handler call");  // 18
}

}  // namespace
}  // namespace fencepost::consumer
