// A quorum that is asked first, searched to the end of a small world, and the bugs that this finds.
#include <gtest/gtest.h>

#include "tests/model/contact/small_world.h"

namespace fencepost::contact_model {
namespace {

constexpr std::size_t kMost = 1'000'000;
constexpr int kRivalAt[] = {0, 1, 6};  // in ticks, see small_world.cc

bool Breaks(Rules rules) {
  for (const int at : kRivalAt) {
    rules.rival_at = at;
    if (Search(rules, kMost).violation) return true;
  }
  return false;
}

void NeverBreaks(Rules rules) {
  for (const int at : kRivalAt) {
    rules.rival_at = at;
    const Found found = Search(rules, kMost);
    EXPECT_FALSE(found.violation) << "rival at " << at << ": " << *found.violation;
    EXPECT_TRUE(found.to_its_end) << "rival at " << at << ": " << found.states << " states";
    EXPECT_GT(found.leases, 0U);
    EXPECT_GT(found.late, 0U);
    EXPECT_EQ(found.extended > 0, rules.extends);
    GTEST_LOG_(INFO) << "rival at " << at << ": " << found.states << " states, " << found.leases
                     << " leases";
  }
}

TEST(AQuorumFirstInASmallWorld, NeverLetsTwoHoldANameNorATokenFallNorLeavesAnythingBehind) {
  NeverBreaks({});
}

TEST(AQuorumFirstInASmallWorld, KeepsThatWhereALeaseIsExtended) { NeverBreaks({.extends = true}); }

TEST(AQuorumFirstInASmallWorld, KeepsThatWhereANodeIsWiped) { NeverBreaks({.wipes = true}); }

TEST(AQuorumFirstInASmallWorld, WouldBreakWithAnyOfTheseBugs) {
  EXPECT_TRUE(Breaks({.late_counts_from_its_sending = true}));
  EXPECT_TRUE(Breaks({.late_counts_twice = true}));
  EXPECT_TRUE(Breaks({.abort_forgets_late = true}));
  EXPECT_TRUE(Breaks({.one_is_enough = true})) << "less than a quorum of the configured nodes";
}

}  // namespace
}  // namespace fencepost::contact_model
