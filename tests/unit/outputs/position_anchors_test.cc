#include "consumer/outputs/ledger/position_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fencepost::consumer {
namespace {

using ::testing::ElementsAre;

constexpr locking::ContentCrc kRule = 7ull << 32;

LogSample At(Offset offset, std::uint32_t content = 1) {
  return {.offset = offset, .timestamp = 1000 + offset, .crc = {}, .content = kRule | content};
}

TEST(PositionAnchors, AreFewAndReachFarBack) {
  PositionAnchors anchors;
  for (Offset offset = 0; offset < 1'000'000; offset += 37) anchors.Add(At(offset));
  const auto& all = anchors.all();
  EXPECT_EQ(all.front().offset, 999'999 / 37 * 37);
  EXPECT_LE(all.size(), PositionAnchors::kMost);
  EXPECT_GE(all.size(), 4u);
  EXPECT_LT(all.back().offset, 500'000);
  EXPECT_EQ(PositionAnchors::Parse(anchors.Text()), anchors);
}

TEST(PositionAnchors, KeepTheEarlierOfTwoRecordsAtOneOffset) {
  PositionAnchors anchors;
  anchors.Add(At(5, 1));
  anchors.Add(At(9, 1));
  anchors.Add(At(5, 2));
  EXPECT_EQ(anchors.all().back(), At(5, 1));
}

// One of a former log may be written late, behind those of the next.
TEST(PositionAnchors, KeepTheOldestAndTheNewestOfABatch) {
  PositionAnchors anchors;
  anchors.Add(At(1));
  anchors.Add(At(0, 2), At(1, 2));
  EXPECT_THAT(anchors.all(), ElementsAre(At(1), At(0, 2)));
  anchors.Add(std::nullopt, std::nullopt);
  EXPECT_THAT(anchors.all(), ElementsAre(At(1), At(0, 2)));
}

TEST(PositionAnchors, KeepTheOneThatWasAddedLastAtWhateverDistance) {
  PositionAnchors anchors;
  anchors.Add(At(0));
  anchors.Add(At(2));
  anchors.Add(At(1, 2));
  EXPECT_THAT(anchors.all(), ElementsAre(At(2), At(1, 2), At(0)));
  anchors.Add(At(3));
  EXPECT_THAT(anchors.all(), ElementsAre(At(3), At(0)));
}

TEST(PositionAnchors, LeaveOutWhatTheyCannotRead) {
  EXPECT_EQ(PositionAnchors::Parse("9:1009:1 x 5:1005:1").Text(), "9:1009:1 5:1005:1");
  EXPECT_EQ(PositionAnchors::Parse("").Text(), "");
}

}  // namespace
}  // namespace fencepost::consumer
