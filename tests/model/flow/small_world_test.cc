// Blocks of offsets, and leases that are left behind, searched to the end of small worlds. The
// bugs that they find: tests/model/README.md.
#include <gtest/gtest.h>

#include "tests/model/flow/small_world.h"

namespace fencepost::consumer::small_world {
namespace {

constexpr std::size_t kMost = 40'000;

Found NeverBreaks(const Rules& rules) {
  Found found = Search(rules, kMost);
  EXPECT_FALSE(found.violation) << *found.violation;
  EXPECT_TRUE(found.to_its_end) << found.states << " states";
  EXPECT_GT(found.ends, 0U);
  EXPECT_GT(found.written, 0U);
  GTEST_LOG_(INFO) << found.states << " states, " << found.ends << " ends, " << found.found
                   << " times a row was there, " << found.contended << " looks";
  return found;
}

std::vector<std::string> Positions(std::size_t count) { return std::vector<std::string>(count); }

TEST(BlocksInASmallWorld, CoverWhatIsProcessedThroughTheEndAndTheExtensionOfTheirLeases) {
  NeverBreaks({.ids = Positions(3)});
  NeverBreaks({.ids = Positions(3), .handler = true, .half_ttls = 0});
}

TEST(BlocksInASmallWorld, CoverWhatIsProcessedWhereTheirPartitionGoesToAnotherUnheard) {
  EXPECT_GT(NeverBreaks({.ids = Positions(3), .half_ttls = 0, .ttls = 0, .losses = 1}).found, 0U);
  EXPECT_GT(NeverBreaks({.ids = Positions(2), .half_ttls = 0, .losses = 1}).found, 0U);
  NeverBreaks({.ids = Positions(2), .handler = true, .half_ttls = 0, .ttls = 0, .losses = 1});
}

TEST(BlocksInASmallWorld, CoverWhatIsProcessedWhereTheirPartitionIsTakenAway) {
  NeverBreaks({.ids = Positions(4), .half_ttls = 0, .ttls = 0, .revokes = 1});
  NeverBreaks({.ids = Positions(2), .half_ttls = 0, .revokes = 1});
}

TEST(BlocksInASmallWorld, CoverWhatIsProcessedAfterTheirWorkerDied) {
  EXPECT_GT(NeverBreaks({.ids = Positions(3), .half_ttls = 0, .crashes = 1}).found, 0U);
}

TEST(BlocksInASmallWorld, CoverWhatIsWrittenAgainBecauseItWasNotAnsweredOrAborted) {
  EXPECT_GT(NeverBreaks({.ids = Positions(3), .half_ttls = 0, .unanswered = 1, .aborted = 1}).found,
            0U);
}

TEST(BlocksInASmallWorld, EndBesideARecordThatIsRefused) {
  NeverBreaks({.ids = Positions(3), .refused = 1, .half_ttls = 0});
  NeverBreaks({.ids = Positions(2), .refused = 1, .half_ttls = 0, .ttls = 0, .losses = 1});
}

TEST(BlocksInASmallWorld, CoverWhatIsProcessedInTheOrderOfItsPartition) {
  NeverBreaks(
      {.ids = Positions(3), .order = Order::kPartition, .half_ttls = 0, .ttls = 0, .losses = 1});
}

TEST(BlocksInASmallWorld, EndWhereARecordWaitsForItsReplay) {
  EXPECT_GT(NeverBreaks({.ids = Positions(2), .replay = true}).found, 0U);
  NeverBreaks({.ids = Positions(1), .replay = true, .ttls = 0, .losses = 1});
  NeverBreaks({.ids = Positions(2), .replay = true, .half_ttls = 0, .ttls = 0, .losses = 1});
}

TEST(LeasesLeftBehindInASmallWorld, AreOfRecordsThatTheLedgerHas) {
  EXPECT_GT(NeverBreaks({.block = 1, .ids = {"a", "b", "a"}}).found, 0U);
  EXPECT_GT(NeverBreaks({.block = 1, .ids = {"a", "a"}, .half_ttls = 0, .losses = 1}).contended,
            0U);
  NeverBreaks({.block = 1, .ids = {"a", "b"}, .half_ttls = 0, .ttls = 0, .losses = 1});
}

TEST(LeasesLeftBehindInASmallWorld, AreOfRecordsThatTheLedgerHasThoughAWorkerDiedOrWasNotAnswered) {
  NeverBreaks({.block = 1, .ids = {"a", "a"}, .half_ttls = 0, .revokes = 1});
  NeverBreaks({.block = 1, .ids = {"a", "a"}, .half_ttls = 0, .crashes = 1});
  NeverBreaks({.block = 1, .ids = {"a", "a"}, .half_ttls = 0, .unanswered = 1, .aborted = 1});
  NeverBreaks(
      {.block = 1, .ids = {"a", "a"}, .handler = true, .half_ttls = 0, .ttls = 0, .losses = 1});
}

}  // namespace
}  // namespace fencepost::consumer::small_world
