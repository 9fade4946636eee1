#include "consumer/kafka/source/initial_offsets.h"

#include <gtest/gtest.h>

#include "consumer/kafka/source/offset_errors.h"

namespace fencepost::consumer {
namespace {

constexpr std::nullopt_t kNone = std::nullopt;

TEST(DecideStart, GivesTheFirstOffsetsOfAllToTheOwnerOfTheLowestPartition) {
  EXPECT_EQ(DecideStart({{true, kNone}, {false, kNone}, {false, kNone}}), StartStep::kCommitAll);
  EXPECT_EQ(DecideStart({{true, kNone}, {true, kNone}}), StartStep::kCommitAll);
}

TEST(DecideStart, LetsEveryOtherWorkerWaitWhileNothingIsCommitted) {
  EXPECT_EQ(DecideStart({{false, kNone}, {true, kNone}, {true, kNone}}), StartStep::kWait);
}

TEST(DecideStart, TakesAPartitionWithoutAnOffsetForNewOnceAnotherHasOne) {
  EXPECT_EQ(DecideStart({{true, kNone}, {false, 7}}), StartStep::kCommitNew);
  EXPECT_EQ(DecideStart({{true, 7}, {true, kNone}}), StartStep::kCommitNew);
}

TEST(DecideStart, IsReadyWhenEveryOwnedPartitionHasAnOffset) {
  EXPECT_EQ(DecideStart({{true, 0}, {true, 9}}), StartStep::kReady);
  EXPECT_EQ(DecideStart({{true, 0}, {false, kNone}}), StartStep::kReady);
}

TEST(DecideStart, TakesAPartitionInATransactionForOneThatHasAnOffset) {
  const KnownPartition held{.owned = true, .in_transaction = true};
  EXPECT_EQ(DecideStart({held, {true, 3}}), StartStep::kReady);
  EXPECT_EQ(DecideStart({held, {true, kNone}}), StartStep::kCommitNew);
}

// A worker that was frozen sees the group's offset at deleted records that another has in hand.
TEST(OffsetOutOfRange, SetsNoGroupBackThatHasReadBeyondWhatWasDeleted) {
  const Error deleted = OffsetOutOfRange("g", {"orders", 3}, 20, LogBounds{.first = 21, .end = 30});
  EXPECT_NE(deleted.hint.find("stop the workers and if the group's offset is below 21, set it: "),
            std::string::npos)
      << deleted.hint;
  const Error truncated =
      OffsetOutOfRange("g", {"orders", 3}, 20, LogBounds{.first = 0, .end = 10});
  EXPECT_NE(truncated.hint.find("stop the workers and set the offset: "), std::string::npos);
}

}  // namespace
}  // namespace fencepost::consumer
