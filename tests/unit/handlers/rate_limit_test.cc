#include "consumer/handlers/rate_limit.h"

#include <gtest/gtest.h>

namespace fencepost::consumer {
namespace {

using locking::Instant;
using locking::Millis;
using locking::Nanos;
using std::chrono::seconds;

// Calls within so long of someone who always has one more to make.
int CallsWithin(RateLimit& limit, Instant from, Nanos time) {
  int calls = 0;
  for (Instant now = from; now < from + time;) {
    const Instant next = limit.NextCall();
    if (next > now) {
      now = next;
      continue;
    }
    limit.OnCall(now);
    ++calls;
  }
  return calls;
}

TEST(RateLimit, LetsSoManyCallsASecondOut) {
  const Instant start(seconds(1000));
  RateLimit limit(50);
  EXPECT_NEAR(CallsWithin(limit, start, seconds(10)), 500, 5);
  RateLimit slow(0.5);
  EXPECT_EQ(CallsWithin(slow, start, seconds(10)), 5);
}

TEST(RateLimit, SavesNothingUpWhileNobodyCalls) {
  const Instant start(seconds(1000));
  RateLimit limit(50);
  limit.OnCall(start);
  EXPECT_LE(CallsWithin(limit, start + seconds(3600), Millis(20)), 6) << "a tenth of a second's";
}

TEST(RateLimit, OfNothingIsNoLimit) {
  RateLimit limit(0);
  limit.OnCall(Instant(seconds(1)));
  EXPECT_EQ(limit.NextCall(), Instant());
}

TEST(RateLimit, ThatIsRaisedLetsNothingWaitForTheOldOne) {
  const Instant start(std::chrono::seconds(100));
  RateLimit limit(0.001);
  limit.OnCall(start);
  EXPECT_GT(limit.NextCall(), start + std::chrono::seconds(900));
  limit.Set(100);
  EXPECT_LE(limit.NextCall(), start);
}

}  // namespace
}  // namespace fencepost::consumer
