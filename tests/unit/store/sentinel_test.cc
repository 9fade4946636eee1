#include "locking/core/store/sentinel.h"

#include <gtest/gtest.h>

namespace fencepost::locking {
namespace {

Sentinel Some() {
  Sentinel sentinel;
  sentinel.complete = true;
  sentinel.store_id = "0123456789abcdef0123456789abcdef";
  sentinel.index = 2;
  sentinel.nodes = 5;
  sentinel.epoch = 7;
  sentinel.run_id = std::string(40, 'f');
  sentinel.quarantine_until = WallTime(Millis(1'800'000'000'123));
  sentinel.max_ttl = Millis(30'000);
  return sentinel;
}

TEST(Sentinel, IsTheFixedWidthLineThatTheScriptsReadByPosition) {
  const std::string text = Some().Encode();
  EXPECT_EQ(text, "C|0123456789abcdef0123456789abcdef|2|5|00000007|" + std::string(40, 'f') +
                      "|1800000000123|00030000");
  EXPECT_EQ(text.size(), static_cast<std::size_t>(kSentinelSize));
  EXPECT_EQ(text.substr(kSentinelQuarantineAt, 13), "1800000000123");
}

TEST(Sentinel, ReadsBackWhatItWrote) {
  Sentinel sentinel = Some();
  EXPECT_EQ(Sentinel::Decode(sentinel.Encode()), sentinel);
  sentinel.complete = false;
  sentinel.quarantine_until = WallTime{};
  EXPECT_EQ(Sentinel::Decode(sentinel.Encode()), sentinel);
}

TEST(Sentinel, IsNotReadFromAnythingElse) {
  const std::string good = Some().Encode();
  EXPECT_FALSE(Sentinel::Decode(""));
  EXPECT_FALSE(Sentinel::Decode(good + " "));
  EXPECT_FALSE(Sentinel::Decode(good.substr(1)));
  // Every position refuses a character that does not belong there.
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = '\n';
    EXPECT_FALSE(Sentinel::Decode(bad)) << at;
    EXPECT_FALSE(Sentinel::Decode(good.substr(0, at))) << at;
  }
}

TEST(SentinelDeathTest, RefusesToWriteWhatDoesNotFit) {
  Sentinel sentinel = Some();
  sentinel.run_id = "short";
  EXPECT_DEATH(static_cast<void>(sentinel.Encode()), "run_id");
}

}  // namespace
}  // namespace fencepost::locking
