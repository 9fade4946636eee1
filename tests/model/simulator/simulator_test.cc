// The shipped LockCore and Flow against every trouble there is, in virtual time.
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>

#include "tests/model/simulator/plan.h"
#include "tests/model/simulator/run_seed.h"

namespace fencepost::simulator {
namespace {

constexpr std::uint64_t kLeastSeeds = 320;
constexpr std::uint64_t kMostSeeds = 6000;
constexpr std::chrono::seconds kUsualTime{30};

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
  // A simulator in which nothing goes wrong shows nothing.
  for (const char* const trouble : {"takeovers",
                                    "losses by own clock",
                                    "extensions failed",
                                    "restarts detected",
                                    "skips by the lock",
                                    "skips by the ledger",
                                    "fenced by the output",
                                    "unlocked",
                                    "id conflicts",
                                    "completed after expiry",
                                    "rounds stale",
                                    "woken",
                                    "calls leased",
                                    "calls cancelled",
                                    "calls given up",
                                    "lookups",
                                    "handler retries",
                                    "handler hangs",
                                    "calls called off",
                                    "dead letters",
                                    "dead letters not acknowledged",
                                    "dead letter and effect",
                                    "limits lifted",
                                    "effects repeated",
                                    "transactions refused",
                                    "transactions locked out",
                                    "transactions too slow",
                                    "batches handed back",
                                    "transactions",
                                    "transactions aborted",
                                    "offsets alone",
                                    "nodes healed",
                                    "leases given back by healing",
                                    "names kept for anyone by healing",
                                    "marks given back by healing",
                                    "stalls",
                                    "replies in pieces",
                                    "closed: Connection refused",
                                    "closed: Connection reset by peer",
                                    "closed: Broken pipe",
                                    "closed: the node closed the connection",
                                    "closed: no connection and login within the timeout",
                                    "closed: no answer for ten timeouts"}) {
    EXPECT_TRUE(counted || counts[trouble] > 0) << trouble;
  }
  GTEST_LOG_(INFO) << seed - 1 << " seeds, " << kKinds << " kinds of pipelines, " << kMixes
                   << " mixes of faults";
}

TEST(Simulator, GoesTheSameWayForTheSameSeed) {
  for (const std::uint64_t seed : {7, 8, 15, 20, 31}) {
    std::map<std::string, int> first;
    std::map<std::string, int> second;
    RunSeed(seed, &first);
    RunSeed(seed, &second);
    EXPECT_EQ(first, second) << "seed " << seed;
  }
}

}  // namespace
}  // namespace fencepost::simulator
