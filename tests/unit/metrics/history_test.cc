#include "metrics/status/history.h"

#include <gtest/gtest.h>

namespace fencepost::metrics {
namespace {

using locking::Instant;
using locking::Millis;

TEST(History, TellsTheRateOverTheLastTenSeconds) {
  History history;
  EXPECT_EQ(history.Rate(), 0);
  for (int second = 0; second <= 30; ++second) {
    history.Take(static_cast<std::uint64_t>(second < 20 ? 0 : (second - 20) * 50),
                 Instant(Millis(1000 * second)));
  }
  EXPECT_DOUBLE_EQ(history.Rate(), 50);
  EXPECT_EQ(history.PerSecond().size(), 30U);
  EXPECT_DOUBLE_EQ(history.PerSecond().front(), 0);
  EXPECT_DOUBLE_EQ(history.PerSecond().back(), 50);
}

TEST(History, KeepsAMinuteAndIsNotMovedByBeingLookedAtOften) {
  History history;
  for (int tenth = 0; tenth < 2000; ++tenth) {
    history.Take(static_cast<std::uint64_t>(tenth), Instant(Millis(100 * tenth)));
  }
  EXPECT_EQ(history.PerSecond().size(), History::kSeconds);
  EXPECT_NEAR(history.Rate(), 10, 1e-9);
  EXPECT_EQ(history.Gained(), 540U) << "60 samples, 0.9 s apart";
}

TEST(History, TellsWhatCameInTheLastMinute) {
  History history;
  EXPECT_EQ(history.Gained(), 0U);
  for (int second = 0; second < 90; ++second) {
    history.Take(second < 10 ? 0 : 7, Instant(Millis(1000 * second)));
    EXPECT_EQ(history.Gained(), second >= 10 && second < 70 ? 7U : 0U) << second;
  }
}

}  // namespace
}  // namespace fencepost::metrics
