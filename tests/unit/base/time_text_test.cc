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

// What is read, as UTC; "" for what is no such text.
std::string Read(std::string_view text) {
  const auto time = ParseIso(text);
  if (!time) return "";
  std::string utc;
  AppendDateTime(time->point, 'T', time->digits, utc);
  return utc + (time->has_offset ? "Z" : "");
}

TEST(Iso8601, AnOffsetIsTakenOffTheTimeWithItsSign) {
  EXPECT_EQ(Read("2026-01-02T01:05:00+05:00"), "2026-01-01T20:05:00Z");
  EXPECT_EQ(Read("2026-01-02T01:05:00-05:00"), "2026-01-02T06:05:00Z");
  EXPECT_EQ(Read("2026-01-02T01:05:00-03:30"), "2026-01-02T04:35:00Z");
  EXPECT_EQ(Read("2026-01-02T01:05:00-0330"), "2026-01-02T04:35:00Z");
  EXPECT_EQ(Read("2026-01-02 01:05:00.250+09"), "2026-01-01T16:05:00.250Z");
  EXPECT_EQ(Read("2026-01-02T01:05z"), "2026-01-02T01:05:00Z");
  EXPECT_EQ(Read("2026-01-02T01:05:00"), "2026-01-02T01:05:00");
  EXPECT_EQ(Read("2026-01-02"), "2026-01-02T00:00:00");
  EXPECT_EQ(Read("13:05"), "1970-01-01T13:05:00");
  EXPECT_EQ(Read("01:05:00+09:00"), "1969-12-31T16:05:00Z");
}

TEST(Iso8601, IsReadAsAWholeOrNotAtAll) {
  for (const char* text :
       {"", "2026", "2026-1-2", "2026-02-29", "2026-01-02T", "2026-01-02T1:05", "2026-01-02T24:00",
        "2026-01-02T01:05:60", "2026-01-02T01:05:00.", "2026-01-02T01:05:00.1234567890",
        "2026-01-02T01:05:00+", "2026-01-02T01:05:00+9", "2026-01-02T01:05:00+09:", "T01:05",
        "2026-01-02T01:05:00+24:00", "2026-01-02T01:05:00Z ", "2026-01-02+09:00", "1305"}) {
    EXPECT_EQ(Read(text), "") << text;
  }
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
