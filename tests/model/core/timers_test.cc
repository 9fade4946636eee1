// Timers against a sorted list.
#include "locking/core/timers.h"

#include <algorithm>
#include <map>
#include <random>

#include <gtest/gtest.h>

namespace fencepost::locking {
namespace {

Instant At(std::int64_t ms) { return Instant() + Millis(ms); }

// Waits of three lengths, and any: what a lock core pushes, and worse.
class AnyTimers : public ::testing::TestWithParam<int> {
 protected:
  std::int64_t DrawWait() {
    constexpr std::int64_t kWaits[] = {1, 20, 3333};
    const auto any = static_cast<std::int64_t>(random_() % 5000);
    return random_() % 100 < strays_ ? any : kWaits[random_() % 3];
  }
  std::mt19937_64 random_{static_cast<std::uint64_t>(GetParam())};
  std::uint64_t strays_ = static_cast<std::uint64_t>(GetParam()) % 3 * 50;  // percent
};

TEST_P(AnyTimers, ComeBackOnceEachTheEarliestFirst) {
  Timers timers;
  std::multimap<std::int64_t, std::uint32_t> expected;
  std::int64_t now = 0;
  for (std::uint32_t slot = 0; slot < 20'000; ++slot) {
    now += static_cast<std::int64_t>(random_() % 3);
    const std::int64_t at = now + DrawWait();
    timers.Push({At(at), slot});
    expected.emplace(at, slot);
    ASSERT_EQ(timers.First().at, At(expected.begin()->first));
    while (!timers.Empty() && timers.First().at <= At(now)) {
      const auto [first, last] = expected.equal_range(expected.begin()->first);
      const auto same = std::find_if(
          first, last, [&](const auto& other) { return other.second == timers.First().slot; });
      ASSERT_NE(same, last) << "one that was not pushed, or came before";
      ASSERT_EQ(timers.First().at, At(same->first));
      expected.erase(same);
      timers.Pop();
    }
    ASSERT_EQ(timers.size(), expected.size());
  }
  for (; !timers.Empty(); timers.Pop()) {
    ASSERT_EQ(timers.First().at, At(expected.begin()->first));
    expected.erase(expected.begin());
  }
  EXPECT_TRUE(expected.empty());
}

INSTANTIATE_TEST_SUITE_P(Seeds, AnyTimers, ::testing::Range(0, 9));

}  // namespace
}  // namespace fencepost::locking
