#include "consumer/record/position_id.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace fencepost::consumer {
namespace {

constexpr std::int64_t kLastOffset = std::numeric_limits<std::int64_t>::max();

TEST(PositionId, IsReadFromWhatIsWritten) {
  const PositionId position{"MkU3OEVBNTcwNTJENDM2Qg", "orders.eu-1", 7, 1042};
  const std::string id = FormatPositionId(position);
  EXPECT_EQ(id, "MkU3OEVBNTcwNTJENDM2Qg/orders.eu-1/7/1042");
  EXPECT_EQ(ParsePositionId(id), position);
  EXPECT_EQ(ParsePositionId("c/t/0/0"), (PositionId{"c", "t", 0, 0}));
  EXPECT_EQ(ParsePositionId("c/t/2147483647/9223372036854775807"),
            (PositionId{"c", "t", 2147483647, kLastOffset}));
}

TEST(PositionId, OfAClusterWhoseNameHasSlashesIsReadFromTheRight) {
  EXPECT_EQ(ParsePositionId("a/b/t/1/2"), (PositionId{"a/b", "t", 1, 2}));
}

TEST(PositionId, IsNothingThatWouldBeWrittenOtherwise) {
  for (const char* id : {"",
                         "/",
                         "o-17",
                         "t/1/2",
                         "/t/1/2",
                         "c//1/2",
                         "c/t//2",
                         "c/t/1/",
                         "c/t/1",
                         "c/t/01/2",
                         "c/t/1/02",
                         "c/t/-1/2",
                         "c/t/1/-2",
                         "c/t/+1/2",
                         "c/t/1/2 ",
                         "c/t/ 1/2",
                         "c/t/1/0x2",
                         "c/t/2147483648/2",
                         "c/t/1/9223372036854775808",
                         "c/t/1/2-3",
                         "c/t/1/-0"}) {
    EXPECT_FALSE(ParsePositionId(id)) << id;
  }
}

TEST(BlockName, IsOneForAllOffsetsOfAnAlignedBlock) {
  const PositionId first{"c", "t", 3, 1024};
  EXPECT_EQ(BlockName(first, 1024), "c/t/3/1024-2047");
  EXPECT_EQ(BlockName({"c", "t", 3, 2047}, 1024), "c/t/3/1024-2047");
  EXPECT_EQ(BlockName({"c", "t", 3, 2048}, 1024), "c/t/3/2048-3071");
  EXPECT_EQ(BlockName({"c", "t", 4, 2047}, 1024), "c/t/4/1024-2047");
  EXPECT_EQ(BlockName({"c", "t", 3, 7}, 3), "c/t/3/6-8");
}

TEST(BlockName, OfOneOffsetIsItsId) { EXPECT_EQ(BlockName({"c", "t", 3, 1024}, 1), "c/t/3/1024"); }

TEST(BlockName, OfTheLastOffsetsEndsWithThem) {
  EXPECT_EQ(BlockName({"c", "t", 0, kLastOffset}, 1000),
            "c/t/0/9223372036854775000-9223372036854775807");
}

TEST(LockedId, IsTheBlockOfAPositionAndElseTheId) {
  EXPECT_EQ(LockedId("c/t/3/1030", 1024), "c/t/3/1024-2047");
  EXPECT_EQ(LockedId("c/t/3/1030", 1), "c/t/3/1030");
  EXPECT_EQ(LockedId("sha256:00ff", 1024), "sha256:00ff") << "a position that is too long";
}

}  // namespace
}  // namespace fencepost::consumer
