// The lag of a group, of what the brokers say.
#include "consumer/kafka/client/group_lag.h"

#include <vector>

#include <gtest/gtest.h>

namespace fencepost::consumer {
namespace {

std::int64_t Of(const std::vector<Offset>& ends, const std::vector<Offset>& committed) {
  return LagOf(ends, committed);
}

TEST(GroupLag, IsTheSumOverThePartitions) { EXPECT_EQ(Of({10, 7, 3}, {4, 7, 0}), 9); }

TEST(GroupLag, OfAPartitionOfWhichNothingIsCommittedIsNotKnownAndCountsNothing) {
  EXPECT_EQ(Of({10, 7}, {-1, 5}), 2);
}

TEST(GroupLag, IsNeverNegativeWhereACommitIsAheadOfTheEnd) { EXPECT_EQ(Of({3, 7}, {5, 6}), 1); }

TEST(GroupLag, IsOfThePartitionsThatBothAnswersHave) { EXPECT_EQ(Of({3, 7, 9}, {1, 2}), 7); }

}  // namespace
}  // namespace fencepost::consumer
