#include "locking/base/time_text.h"

#include <gtest/gtest.h>

namespace fencepost {
namespace {

using std::chrono::milliseconds;

TEST(Rfc3339, WritesMillisecondsInUtc) {
  EXPECT_EQ(Rfc3339(milliseconds(0)), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(Rfc3339(milliseconds(951'827'696'007)), "2000-02-29T12:34:56.007Z");
}

// What is cut off to whole seconds is cut towards the past, so that no millisecond is negative.
TEST(Rfc3339, GivesTheNumberWhereTheYearHasNotFourDigits) {
  EXPECT_EQ(Rfc3339(milliseconds(253'402'300'799'999)), "9999-12-31T23:59:59.999Z");
  EXPECT_EQ(Rfc3339(milliseconds(253'402'300'800'000)), "253402300800000 ms");
  EXPECT_EQ(Rfc3339(milliseconds(1'700'000'000'000'000)), "1700000000000000 ms");
  EXPECT_EQ(Rfc3339(milliseconds(INT64_MIN)), "-9223372036854775808 ms");
}

TEST(Rfc3339, CountsMillisecondsForwardsBefore1970) {
  EXPECT_EQ(Rfc3339(milliseconds(-1)), "1969-12-31T23:59:59.999Z");
}

TEST(Span, IsShownInItsTwoLargestUnits) {
  EXPECT_EQ(SpanText(milliseconds(0)), "0 ms");
  EXPECT_EQ(SpanText(milliseconds(350)), "350 ms");
  EXPECT_EQ(SpanText(milliseconds(12'900)), "12 s");
  EXPECT_EQ(SpanText(milliseconds(252'000)), "4 min 12 s");
  EXPECT_EQ(SpanText(milliseconds(7'200'000)), "2 h");
  EXPECT_EQ(SpanText(std::chrono::hours(76)), "3 d 4 h");
  EXPECT_EQ(SpanText(milliseconds(-3'000)), "-3 s");
}

}  // namespace
}  // namespace fencepost
