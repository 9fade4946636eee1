// Healing searched to the end of a small world, and the bugs that this search finds.
#include <cstdlib>

#include <gtest/gtest.h>

#include "tests/model/heal/small_world.h"

namespace fencepost::heal_model {
namespace {

constexpr std::size_t kMost = 10'000'000;
constexpr int kRivalAt[] = {0, 4, 6};  // in ticks, see small_world.cc

bool Breaks(Rules rules) {
  for (const int at : kRivalAt) {
    rules.rival_at = at;
    if (Search(rules, kMost).violation) return true;
  }
  return false;
}

// With an extension the worlds are thirty times as big: two of them in `./dev torture worlds`
// alone.
TEST(HealingInASmallWorld, NeverLetsTwoHoldANameNorATokenFall) {
  std::size_t kept_for_anyone = 0;
  for (const bool extends : {false, true}) {
    for (const int at : kRivalAt) {
      if (extends && at != kRivalAt[2] && std::getenv("FENCEPOST_TORTURE") == nullptr) continue;
      const Found found = Search({.rival_at = at, .extends = extends}, kMost);
      EXPECT_FALSE(found.violation) << "rival at " << at << ": " << *found.violation;
      EXPECT_TRUE(found.to_its_end) << "rival at " << at;
      EXPECT_GT(found.healed, 0U) << "rival at " << at;
      kept_for_anyone += found.kept_for_anyone;
      GTEST_LOG_(INFO) << "rival at " << at << (extends ? ", extension" : "") << ": "
                       << found.states << " states, " << found.healed << " ends of healing";
    }
  }
  EXPECT_GT(kept_for_anyone, 0U);
}

TEST(HealingInASmallWorld, WouldBreakIfItReadBeforeOldAttemptsAreRefused) {
  EXPECT_TRUE(Breaks({.reads_at_once = true}));
}

TEST(HealingInASmallWorld, WouldBreakIfItCopiedFloorsOnly) {
  EXPECT_TRUE(Breaks({.gives_no_leases = true}));
}

TEST(HealingInASmallWorld, WouldBreakIfItLiftedTheQuarantineBeforeItCopied) {
  EXPECT_TRUE(Breaks({.lifts_first = true}));
}

}  // namespace
}  // namespace fencepost::heal_model
