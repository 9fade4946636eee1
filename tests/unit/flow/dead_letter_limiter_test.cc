// How many dead letters go out while nothing takes effect.
#include "consumer/flow/state/dead_letter_limiter.h"

#include <gtest/gtest.h>

namespace fencepost::consumer {
namespace {

using enum LetterCause;

// How many of so many go out that are found bad now.
int Passed(DeadLetterLimiter& gate, LetterCause cause, int of) {
  int passed = 0;
  for (int i = 0; i < of; ++i) passed += gate.Pass(cause, gate.Now(cause), true) ? 1 : 0;
  return passed;
}

TEST(DeadLetterLimiterTest, LetsSoManyInARowOutAsItIsTold) {
  for (const int most : {1, 3, 10}) {
    DeadLetterLimiter gate(static_cast<std::size_t>(most));
    EXPECT_EQ(Passed(gate, kIdentity, 50), most);
    EXPECT_EQ(gate.in_a_row(), static_cast<std::size_t>(most)) << "what waits does not count";
  }
}

TEST(DeadLetterLimiterTest, UntilSomethingTakesEffectLetsOnlyTheOldestOfAPartitionOut) {
  DeadLetterLimiter gate(3);
  const auto then = gate.Now(kOutput);
  EXPECT_FALSE(gate.Pass(kOutput, then, false));
  EXPECT_TRUE(gate.Pass(kOutput, then, true));
  gate.Disprove(kOutput);
  ASSERT_TRUE(gate.EndMoment());
  EXPECT_TRUE(gate.Pass(kOutput, then, false));
  EXPECT_EQ(gate.in_a_row(), 0U);
}

TEST(DeadLetterLimiterTest, CountsNoneThatOnlyAsked) {
  DeadLetterLimiter gate(1);
  const auto then = gate.Now(kOutput);
  EXPECT_TRUE(gate.MayPass(kOutput, then, true));
  EXPECT_EQ(gate.in_a_row(), 0U);
  EXPECT_TRUE(gate.Pass(kOutput, then, true));
  EXPECT_FALSE(gate.MayPass(kOutput, then, true));
}

TEST(DeadLetterLimiterTest, WithoutALimitLetsAllOut) {
  DeadLetterLimiter gate(0);
  EXPECT_EQ(Passed(gate, kOutput, 5000), 5000);
}

TEST(DeadLetterLimiterTest, CountsCausesTogether) {
  DeadLetterLimiter gate(3);
  EXPECT_EQ(Passed(gate, kIdentity, 2), 2);
  EXPECT_EQ(Passed(gate, kOutput, 2), 1);
  EXPECT_EQ(Passed(gate, kIdentity, 1), 0);
}

TEST(DeadLetterLimiterTest, BeginsAnewWhenEveryCauseIsDisproved) {
  DeadLetterLimiter gate(3);
  Passed(gate, kIdentity, 3);
  gate.Disprove(kIdentity);
  gate.Disprove(kOutput);
  EXPECT_TRUE(gate.EndMoment());
  EXPECT_EQ(gate.in_a_row(), 0u);
  EXPECT_EQ(Passed(gate, kOutput, 9), 3);
}

TEST(DeadLetterLimiterTest, KeepsTheCountOfACauseThatIsNotDisproved) {
  DeadLetterLimiter gate(3);
  Passed(gate, kOutput, 2);
  Passed(gate, kIdentity, 1);
  gate.Disprove(kIdentity);
  gate.EndMoment();
  EXPECT_EQ(gate.in_a_row(), 2u);
  EXPECT_EQ(Passed(gate, kOutput, 9), 1);
}

TEST(DeadLetterLimiterTest, LiftsWhatAHandlerRefusedAtItsSuccessUntilTheOutputRefusesTheAnswer) {
  DeadLetterLimiter gate(3);
  Passed(gate, kHandler, 2);
  gate.OnAnswer();
  EXPECT_EQ(gate.in_a_row(), 0u);
  EXPECT_TRUE(gate.EndMoment()) << "what waits may be asked again";
  gate.OnOutputRefuses();
  EXPECT_EQ(gate.in_a_row(), 2u);
  gate.OnAnswer();
  EXPECT_EQ(gate.in_a_row(), 2u) << "what it answers may be refused too";
  EXPECT_FALSE(gate.EndMoment());
  gate.Disprove(kHandler);
  gate.Disprove(kOutput);
  gate.EndMoment();
  Passed(gate, kHandler, 1);
  gate.OnAnswer();
  EXPECT_EQ(gate.in_a_row(), 0u) << "something took effect";
}

TEST(DeadLetterLimiterTest, LiftsForGoodWhatIsFollowedByAnEffect) {
  DeadLetterLimiter gate(3);
  Passed(gate, kHandler, 2);
  gate.OnAnswer();
  gate.Disprove(kHandler);
  gate.EndMoment();
  gate.OnOutputRefuses();
  EXPECT_EQ(gate.in_a_row(), 0u);
}

TEST(DeadLetterLimiterTest, LetsOutUncountedWhatWasFoundBadBeforeItsCauseWasDisproved) {
  DeadLetterLimiter gate(1);
  const DeadLetterLimiter::Turn before = gate.Now(kOutput);
  gate.Disprove(kOutput);
  const DeadLetterLimiter::Turn in_that_moment = gate.Now(kOutput);
  gate.EndMoment();
  const DeadLetterLimiter::Turn after = gate.Now(kOutput);
  EXPECT_TRUE(gate.Pass(kOutput, after, true));
  EXPECT_FALSE(gate.Pass(kOutput, after, true));
  EXPECT_TRUE(gate.Pass(kOutput, before, true));
  EXPECT_TRUE(gate.Pass(kOutput, in_that_moment, true));
  EXPECT_FALSE(gate.Pass(kIdentity, gate.Now(kIdentity), true));
  EXPECT_FALSE(gate.EndMoment()) << "it is said once";
}

}  // namespace
}  // namespace fencepost::consumer
