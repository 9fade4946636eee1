// The shipped LockCore and Flow against every trouble there is, in virtual time.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/model/simulator/plan.h"
#include "tests/model/simulator/run_seed.h"

namespace fencepost::simulator {
namespace {

constexpr std::uint64_t kSeeds = 20'000;
constexpr std::uint64_t kHours = 16;

// Offsets are lost when all members of the group have given back what they had: only one that was
// late, and thrown out, is still at work. Rows are pruned where a worker has caught up: hardly ever
// while one drains.
bool MayMeet(Fault fault, Phase phase) {
  if (fault == Fault::kPruned && phase == Phase::kDraining) return false;
  const bool at_work = phase == Phase::kAcquiring || phase == Phase::kHandling ||
                       phase == Phase::kDraining || phase == Phase::kCommitting;
  return fault != Fault::kOffsetsLost || !at_work;
}

TEST(Simulator, KeepsEveryInvariantUnderEveryFault) {
  if (const auto seed = OnlySeed()) {
    const auto failure = RunSeed(*seed);
    EXPECT_FALSE(failure) << *failure;
    return;
  }
  Counts counts;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const auto failure = RunSeed(seed, &counts);
    ASSERT_FALSE(failure) << *failure;
  }
  // A simulator in which nothing goes wrong shows nothing.
  for (const char* const trouble : {"takeovers",
                                    "losses by own clock",
                                    "extensions failed",
                                    "restarts detected",
                                    "nodes that went back",
                                    "skips by the lock",
                                    "skips by the ledger",
                                    "fenced by the output",
                                    "unlocked",
                                    "filtered",
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
                                    "changes lost to newer ones",
                                    "searches that found several",
                                    "refused by effect 1",
                                    "refused by effect 2",
                                    "searches unanswered",
                                    "names evicted",
                                    "sentinels evicted",
                                    "rows lost",
                                    "rows pruned",
                                    "stopped: lost_commits",
                                    "offsets set back",
                                    "stopped: offset_out_of_range",
                                    "offsets reset",
                                    "stopped: topic_replaced",
                                    "partitions taken back",
                                    "transactions",
                                    "transactions aborted",
                                    "offsets alone",
                                    "stalls",
                                    "replies in pieces",
                                    "closed: Connection refused",
                                    "closed: Connection reset by peer",
                                    "closed: Broken pipe",
                                    "closed: the node closed the connection",
                                    "closed: no connection and login within the timeout",
                                    "closed: no answer for ten timeouts"}) {
    EXPECT_GT(counts[trouble], 0) << trouble;
  }
  for (std::size_t fault = 0; fault < kFaults; ++fault) {
    for (std::size_t phase = 0; phase < kPhases; ++phase) {
      const std::string key = Key(static_cast<Fault>(fault), static_cast<Phase>(phase));
      if (MayMeet(static_cast<Fault>(fault), static_cast<Phase>(phase))) {
        EXPECT_GT(counts[key], 0) << key;
      }
    }
  }
}

TEST(Simulator, KeepsEveryInvariantForAnHourWithTheProgramsOwnTimes) {
  Counts counts;
  for (std::uint64_t seed = kFirstLasting; seed < kFirstLasting + kHours; ++seed) {
    const auto failure = RunSeed(seed, &counts);
    ASSERT_FALSE(failure) << *failure;
  }
  EXPECT_GT(counts["takeovers"], 0);
  EXPECT_GT(counts["restarts detected"], 0);
}

TEST(Simulator, GoesTheSameWayForTheSameSeed) {
  for (const std::uint64_t seed : {7, 8, 15, 20, 31, 40}) {
    Counts first;
    Counts second;
    RunSeed(seed, &first);
    RunSeed(seed, &second);
    EXPECT_EQ(first, second) << "seed " << seed;
  }
}

}  // namespace
}  // namespace fencepost::simulator
