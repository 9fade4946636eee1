// Healing searched to the end of a small world, and the bugs that this search finds.
#include <gtest/gtest.h>

#include "tests/model/heal/small_world.h"

namespace fencepost::heal_model {
namespace {

constexpr std::size_t kMost = 1'500'000;
constexpr std::size_t kPart = 200'000;  // with an extension it is too big to be searched to its end
constexpr int kRivalAt[] = {0, 4, 6};   // in ticks, see small_world.cc

bool Breaks(Rules rules) {
  for (const int at : kRivalAt) {
    rules.rival_at = at;
    if (Search(rules, kMost).violation) return true;
  }
  return false;
}

TEST(HealingInASmallWorld, NeverLetsTwoHoldANameNorATokenFall) {
  std::size_t kept_for_anyone = 0;
  for (const bool extends : {false, true}) {
    for (const int at : kRivalAt) {
      if (extends && at != kRivalAt[1]) continue;
      const Found found = Search({.rival_at = at, .extends = extends}, extends ? kPart : kMost);
      EXPECT_FALSE(found.violation) << "rival at " << at << ": " << *found.violation;
      EXPECT_TRUE(found.to_its_end || extends) << "rival at " << at;
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
