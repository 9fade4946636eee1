#include <gtest/gtest.h>

#include "consumer/cli/shared/command.h"

namespace fencepost::cli {
namespace {

int ExitForCode(const char* code, const char* what) { return ExitFor({code, what, "nightly", ""}); }

TEST(LockExecExit, IsOfUsageWhereTheCommandLineAsksWhatNoNodeGrants) {
  EXPECT_EQ(ExitForCode("refused", "the ttl of 1 ms is below what a clock may be off"), kUsage);
  EXPECT_EQ(ExitForCode("bad_options", "a drift_factor of 2"), kUsage);
}

TEST(LockExecExit, IsOfTheQuorumWhereTheNodesDoNotAcceptTheClock) {
  EXPECT_EQ(ExitForCode("clock", "a majority of the lock nodes refuses it"), kNoQuorum);
  EXPECT_EQ(ExitForCode("no_quorum", "too few lock nodes answered in time"), kNoQuorum);
}

TEST(LockExecExit, TellsAnotherHolderFromAFailureOfOurOwn) {
  EXPECT_EQ(ExitForCode("contended", "another holds the name"), kContended);
  EXPECT_EQ(ExitForCode("no_thread", "no more threads"), kFailed);
}

}  // namespace
}  // namespace fencepost::cli
