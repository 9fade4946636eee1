#include "consumer/cli/shared/progress.h"

#include <gtest/gtest.h>

namespace fencepost::cli {
namespace {

using std::chrono::seconds;

TEST(ProgressBar, TellsCountTotalAndRate) {
  EXPECT_EQ(ProgressBar("replayed", 0, 300, seconds(0)),
            "[------------------------------] 0/300 replayed, 0/s");
  EXPECT_EQ(ProgressBar("replayed", 100, 300, seconds(2)),
            "[##########--------------------] 100/300 replayed, 50/s");
  EXPECT_EQ(ProgressBar("replayed", 300, 300, seconds(3)),
            "[##############################] 300/300 replayed, 100/s");
}

TEST(ProgressBar, IsFullWhereThereIsNothingToDo) {
  EXPECT_EQ(ProgressBar("replayed", 0, 0, seconds(1)),
            "[##############################] 0/0 replayed, 0/s");
}

}  // namespace
}  // namespace fencepost::cli
