// A node is replaced, in every history with one disturbance, or with two.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/model/replacement/small_world.h"

namespace fencepost::replacement_model {
namespace {

class ReplacedNode : public ::testing::TestWithParam<Scenario> {};

// `./dev torture worlds`: whichever two messages are disturbed, else two writes.
TEST_P(ReplacedNode, NeverCountsBesideTheOneInItsPlaceAndSomebodyCanLockInTheEnd) {  // 12, 14
  const bool all = std::getenv("FENCEPOST_TORTURE") != nullptr;
  const Found found = Search(GetParam(), all ? Pairs::kAll : Pairs::kOfWrites);
  EXPECT_FALSE(found.violation) << *found.violation;
  EXPECT_GT(found.replaced, 0U);
  GTEST_LOG_(INFO) << GetParam().name << ": " << found.histories << " histories, " << found.replaced
                   << " with all three nodes in the end";
}

INSTANTIATE_TEST_SUITE_P(All, ReplacedNode, ::testing::ValuesIn(Scenarios()));

}  // namespace
}  // namespace fencepost::replacement_model
