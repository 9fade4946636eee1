#include "consumer/cli/shared/moments.h"

#include <gtest/gtest.h>
#include <CLI/CLI.hpp>

#include "locking/base/time_text.h"

namespace fencepost::cli {
namespace {

constexpr WallTime kNow{Millis(1793700000000)};  // 2026-11-03T10:00:00Z

std::string Parsed(std::string_view text) {
  const auto moment = ParseMoment(text, kNow);
  return moment ? MomentText(*moment) : moment.error();
}

TEST(Moment, IsReadFromRfc3339) {
  EXPECT_EQ(MomentText(kNow), "2026-11-03T10:00:00.000Z");
  EXPECT_EQ(Parsed("2026-11-03T10:00:00Z"), "2026-11-03T10:00:00.000Z");
  EXPECT_EQ(Parsed("2026-11-03T10:00:00.1239+01:30"), "2026-11-03T08:30:00.123Z");
  EXPECT_EQ(Parsed("2026-11-03t10:00:00-01:00"), "2026-11-03T11:00:00.000Z");
  EXPECT_EQ(Parsed("2024-02-29"), "2024-02-29T00:00:00.000Z");
}

TEST(Moment, IsReadFromAnAge) {
  EXPECT_EQ(Parsed("2h"), "2026-11-03T08:00:00.000Z");
  EXPECT_EQ(Parsed("7d"), "2026-10-27T10:00:00.000Z");
  EXPECT_EQ(Parsed("90s"), "2026-11-03T09:58:30.000Z");
}

TEST(Moment, SaysWhichFormsThereAre) {
  for (const char* text :
       {"", "yesterday", "2026-13-01", "2026-02-30T00:00:00Z", "2026-11-03T10:00:00",
        "2026-11-03T24:00:00Z", "2026-11-03T10:00:00.Z", "2026-11-03T10:00:00Zx", "-5m", "5"}) {
    EXPECT_EQ(Parsed(text), std::string("\"") + text +
                                "\" is neither a time (2026-11-03T10:00:00Z) nor an age (90s, 2h, "
                                "7d)");
  }
}

TEST(Moment, HasAnAge) {
  EXPECT_EQ(AgeText(kNow - Millis(12'000), kNow), "12 s ago");
  EXPECT_EQ(AgeText(kNow + Millis(3'000), kNow), "in 3 s");
}

// What the option --wait has after the parsing of `text`; the error, where there is one.
std::string DurationOf(const std::string& text) {
  CLI::App app;
  Millis value{7};
  AddDuration(app, "--wait", value, "");
  try {
    app.parse("--wait=" + text);
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return SpanText(value);
}

TEST(DurationOption, TakesWhatPipelineFilesTake) {
  EXPECT_EQ(DurationOf("250ms"), "250 ms");
  EXPECT_EQ(DurationOf("5m"), "5 min");
  EXPECT_EQ(DurationOf("7d"), "7 d");
  EXPECT_EQ(DurationOf("ten"), "--wait: ten is not a duration; write 250ms, 10s, 5m, 24h or 7d");
  EXPECT_EQ(DurationOf("10"), "--wait: 10 is not a duration; write 250ms, 10s, 5m, 24h or 7d");
}

// A node counts milliseconds in twelve digits.
TEST(DurationOption, RefusesWhatALockNodeCannotCount) {
  EXPECT_EQ(DurationOf("999999999999ms"), "11574 d 1 h");
  EXPECT_EQ(DurationOf("1000000000000ms"), "--wait: 1000000000000ms is too long");
}

}  // namespace
}  // namespace fencepost::cli
