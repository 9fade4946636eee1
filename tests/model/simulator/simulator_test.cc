// The shipped LockCore and Flow against every trouble there is, in virtual time.
#include <gtest/gtest.h>

#include <chrono>

#include "tests/model/simulator/plan.h"
#include "tests/model/simulator/run_seed.h"

namespace fencepost::simulator {
namespace {

constexpr std::uint64_t kLeastSeeds = 320;
constexpr std::uint64_t kMostSeeds = 4000;
constexpr std::chrono::seconds kUsualTime{25};

TEST(Simulator, KeepsEveryInvariantUnderEveryFault) {
  if (const auto seed = OnlySeed()) {
    const auto failure = RunSeed(*seed);
    EXPECT_FALSE(failure) << *failure;
    return;
  }
  const bool counted = SeedCount(0) != 0;
  const std::uint64_t most = SeedCount(kMostSeeds);
  const auto begun = std::chrono::steady_clock::now();
  std::uint64_t seed = 1;
  std::map<std::string, int> counts;
  for (; seed <= most; ++seed) {
    const auto took = std::chrono::steady_clock::now() - begun;
    if (!counted && seed > kLeastSeeds && took > kUsualTime) break;
    const auto failure = RunSeed(seed, &counts);
    ASSERT_FALSE(failure) << *failure;
  }
  for (const auto& [what, count] : counts) GTEST_LOG_(INFO) << what << ": " << count;
  GTEST_LOG_(INFO) << seed - 1 << " seeds, " << kMixes << " mixes of faults";
}

TEST(Simulator, GoesTheSameWayForTheSameSeed) {
  const Plan plan = MakePlan(7);
  EXPECT_EQ(MakePlan(7).records, plan.records);
}

}  // namespace
}  // namespace fencepost::simulator
