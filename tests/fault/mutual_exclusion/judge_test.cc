// The judge finds what it is there to find.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fault/mutual_exclusion/judge.h"

namespace fencepost::torture {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = Entry::Kind;

Entry Says(Kind kind, std::uint64_t token, std::int64_t at, std::int64_t until = 0,
           std::uint32_t name = 0) {
  return {kind, name, token, at, until};
}

TEST(Judge, FindsTwoLeasesThatStandAtOnce) {
  Judge judge;
  judge.Hear({Says(Kind::kHeld, 5, 100, 200), Says(Kind::kHeld, 5, 150, 400)});
  judge.Hear({Says(Kind::kHeld, 6, 399, 500)});
  EXPECT_THAT(judge.Overlaps(), SizeIs(1));
  EXPECT_THAT(judge.Disorders(), IsEmpty());
}

TEST(Judge, FindsAnOverlapWithALeaseFurtherBack) {
  Judge judge;
  judge.Hear({Says(Kind::kHeld, 5, 100, 1000), Says(Kind::kHeld, 6, 200, 300)});
  judge.Hear({Says(Kind::kHeld, 7, 400, 500)});
  EXPECT_THAT(judge.Overlaps(), SizeIs(2));
}

TEST(Judge, EndsALeaseAtItsReleaseItsLossOrItsTime) {
  Judge judge;
  judge.Hear({Says(Kind::kHeld, 5, 100, 200), Says(Kind::kReleasing, 5, 150)});
  judge.Hear({Says(Kind::kHeld, 6, 151, 300), Says(Kind::kLost, 6, 160)});
  judge.Hear({Says(Kind::kHeld, 7, 161, 300), Says(Kind::kReleasing, 7, 900)});
  judge.Hear({Says(Kind::kHeld, 8, 300, 400), Says(Kind::kHeld, 9, 300, 400, 1)});
  EXPECT_THAT(judge.Overlaps(), IsEmpty());
  EXPECT_EQ(judge.tally().leases, 5);
  EXPECT_EQ(judge.tally().losses, 1);
}

TEST(Judge, FindsATokenThatIsNotAboveTheOneBefore) {
  Judge judge;
  judge.Hear({Says(Kind::kHeld, 6, 100, 200)});
  judge.Hear({Says(Kind::kHeld, 5, 300, 400), Says(Kind::kHeld, 4, 500, 600, 1)});
  EXPECT_THAT(judge.Disorders(), SizeIs(1));
}

TEST(Judge, FindsALostUpdateOfACounter) {
  Resource resource(1);
  const ResourceClient client(resource.path());
  const auto write = [&](std::uint64_t token, std::int64_t value) {
    return client.Ask({Request::Kind::kWrite, 0, 1, token, value}).admitted;
  };
  EXPECT_EQ(write(5, 1), 1U);
  EXPECT_EQ(write(5, 2), 1U);
  EXPECT_EQ(client.Ask({Request::Kind::kRead, 0, 1, 6, 0}).value, 2);
  EXPECT_EQ(write(5, 3), 0U);
  EXPECT_EQ(resource.Fenced(0).refused, 1);
  EXPECT_EQ(WrongWith(resource.Fenced(0)), "");
  EXPECT_EQ(write(6, 2), 1U);
  EXPECT_NE(WrongWith(resource.Fenced(0)), "");
}

}  // namespace
}  // namespace fencepost::torture
