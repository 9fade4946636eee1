#include "locking/core/store/node_clock.h"

#include <random>

#include <gtest/gtest.h>

namespace fencepost::locking {
namespace {

constexpr Millis kTtl{10'000};
constexpr std::int64_t kNodeZero = 1'800'000'000'000;  // the node's clock when BOOTTIME is 0

// A call sent at `sent` ms, read by the node at `read`, answered at `received`.
CallInfo Call(std::int64_t sent, std::int64_t read, std::int64_t received, std::int64_t skew = 0) {
  return {Instant(Millis(sent)), Instant(Millis(received)),
          WallTime(Millis(kNodeZero + read + skew))};
}

TEST(NodeClock, SeesAStepBeyondTheDriftEitherWay) {
  for (const std::int64_t step : {-60'000, -200, 200, 60'000}) {
    NodeClock clock(kTtl);
    EXPECT_FALSE(clock.Observe(Call(0, 1, 2)));
    EXPECT_TRUE(clock.Observe(Call(1'000, 1'001, 1'002, step))) << step;
    EXPECT_FALSE(clock.Observe(Call(2'000, 2'001, 2'002, step))) << "told once";
  }
}

TEST(NodeClock, LivesWithDrift) {
  NodeClock clock(kTtl);
  EXPECT_FALSE(clock.Observe(Call(0, 1, 2)));
  EXPECT_FALSE(clock.Observe(Call(1'000, 1'001, 1'002, 90)));
  EXPECT_FALSE(clock.Observe(Call(2'000, 2'001, 2'002, -90)));
}

TEST(NodeClock, TakesASlowNodeForSlowOnly) {
  NodeClock clock(kTtl);
  EXPECT_FALSE(clock.Observe(Call(0, 1, 2)));
  EXPECT_FALSE(clock.Observe(Call(1'000, 9'000, 9'001)));     // the request was held up
  EXPECT_FALSE(clock.Observe(Call(10'000, 10'001, 18'000)));  // the answer was
  EXPECT_FALSE(clock.Observe(Call(20'000, 20'001, 20'002)));
}

TEST(NodeClock, FindsTheStepThatASlowCallHid) {
  NodeClock clock(kTtl);
  clock.Observe(Call(0, 1, 2));
  EXPECT_FALSE(clock.Observe(Call(1'000, 5'000, 9'000, 3'000)));  // could be no step
  EXPECT_TRUE(clock.Observe(Call(9'100, 9'101, 9'102, 3'000)));
}

TEST(NodeClock, DoesNotAddUpSlewing) {
  NodeClock clock(kTtl);
  std::int64_t at = 0;
  for (int i = 0; i < 10'000; ++i, at += 100) {  // 500 ppm for 1,000 s: half a second in all
    ASSERT_FALSE(clock.Observe(Call(at, at + 1, at + 2, at / 2'000))) << at;
  }
  EXPECT_TRUE(clock.Observe(Call(at, at + 1, at + 2, at / 2'000 + 300))) << "a step still shows";
}

TEST(NodeClock, ReachesATimeNeverBeforeTheNodeDoes) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 2'000; ++round) {
    NodeClock clock(kTtl);
    const auto skew = static_cast<std::int64_t>(random() % 100'000) - 50'000;
    std::int64_t at = 0;
    for (int i = 0; i < 5; ++i) {
      const auto out = static_cast<std::int64_t>(random() % 300);
      const auto back = static_cast<std::int64_t>(random() % 300);
      ASSERT_FALSE(clock.Observe(Call(at, at + out, at + out + back, skew)));
      at += out + back + 50;
    }
    const std::int64_t target = at + 40'000;  // by BOOTTIME
    const auto surely = clock.SurelyAt(WallTime(Millis(kNodeZero + target + skew)));
    ASSERT_TRUE(surely);
    EXPECT_GE(*surely, Instant(Millis(target)));
    EXPECT_LE(*surely, Instant(Millis(target + 700)));
  }
}

TEST(NodeClock, HoldsThirteenDigitsOfMilliseconds) {
  NodeClock clock(kTtl);
  EXPECT_FALSE(clock.SurelyAt(WallTime(Millis(5))));
  clock.Observe(Call(0, 1, 2));
  EXPECT_GT(*clock.SurelyAt(WallTime(Millis(9'999'999'999'999))), Instant(Millis(2)));
}

}  // namespace
}  // namespace fencepost::locking
