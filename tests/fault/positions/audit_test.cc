// The audit sees each kind of trouble.
#include "tests/fault/positions/audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fencepost::positions {
namespace {

using ::testing::HasSubstr;

const Expected kSent{.sent = {{.log = 0, .partition = 0, .offset = 0},
                              {.log = 0, .partition = 1, .offset = 0},
                              {.log = 1, .partition = 0, .offset = 0}}};

TEST(Audit, IsContentWithOneEffectOfEachFromItsPlace) {
  EXPECT_EQ(AuditEffects(kSent, {{0, 0, 0}, {2, 0, 0}, {1, 1, 0}}), "");
}

TEST(Audit, SeesWhatIsLostDoubledMisplacedOrNeverSent) {
  EXPECT_EQ(AuditEffects(kSent, {{0, 0, 0}, {1, 1, 0}}), "1 lost, the first is o-2 (log 1, 0/0)\n");
  EXPECT_THAT(AuditEffects(kSent, {{0, 0, 0}, {1, 1, 0}, {1, 1, 0}, {2, 0, 0}}),
              HasSubstr("1 doubled, the first is o-1"));
  EXPECT_THAT(AuditEffects(kSent, {{0, 0, 5}, {1, 1, 0}, {2, 0, 0}}),
              HasSubstr("1 from another place, the first is o-0"));
  EXPECT_THAT(AuditEffects(kSent, {{0, 0, 0}, {1, 1, 0}, {2, 0, 0}, {7, 0, 1}}),
              HasSubstr("1 never sent, the first is o-7"));
}

TEST(Audit, AllowsARepeatOnlyWhereItIsExpected) {
  Expected expected = kSent;
  expected.repeats[2] = 1;
  EXPECT_EQ(AuditEffects(expected, {{0, 0, 0}, {1, 1, 0}, {2, 0, 0}, {2, 0, 0}}), "");
  EXPECT_NE(AuditEffects(expected, {{0, 0, 0}, {1, 1, 0}, {1, 1, 0}, {2, 0, 0}}), "");
}

TEST(Audit, WantsOneRangeFromTheBeginningToTheEndOfEachPartition) {
  EXPECT_EQ(AuditLedger({{0, "{[0,5)}"}, {1, "{[0,7)}"}}, {5, 7, 0}), "");
  EXPECT_NE(AuditLedger({{0, "{[0,4)}"}, {1, "{[0,7)}"}}, {5, 7}), "");
  EXPECT_NE(AuditLedger({{0, "{[0,2),[3,5)}"}, {1, "{[0,7)}"}}, {5, 7}), "");
  EXPECT_NE(AuditLedger({{0, "{[0,5)}"}}, {5, 7}), "");
}

}  // namespace
}  // namespace fencepost::positions
