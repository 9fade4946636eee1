// Retry-After, as a number of seconds and as a date.
#include "consumer/handlers/http/http_answer.h"

#include <gtest/gtest.h>

namespace fencepost::consumer {
namespace {

constexpr Millis kNow{1'800'000'000'250};  // 2027-01-15 08:00:00.250 GMT

TEST(RetryAfter, IsANumberOfSecondsOrADate) {
  EXPECT_EQ(ParseRetryAfter("7", kNow), Millis(7000));
  EXPECT_EQ(ParseRetryAfter("0", kNow), Millis(0));
  EXPECT_EQ(ParseRetryAfter("Fri, 15 Jan 2027 08:00:10 GMT", kNow), Millis(9750));
}

TEST(RetryAfter, ADateThatIsPastMeansAtOnce) {
  EXPECT_EQ(ParseRetryAfter("Fri, 15 Jan 2027 07:59:00 GMT", kNow), Millis(0));
}

TEST(RetryAfter, WhatIsNeitherSaysNothing) {
  EXPECT_EQ(ParseRetryAfter("", kNow), std::nullopt);
  EXPECT_EQ(ParseRetryAfter("-1", kNow), std::nullopt);
  EXPECT_EQ(ParseRetryAfter("soon", kNow), std::nullopt);
}

TEST(RetryAfter, AHugeNumberIsAYear) {
  EXPECT_EQ(ParseRetryAfter("99999999999999999999999", kNow), std::chrono::hours(366 * 24));
  EXPECT_EQ(ParseRetryAfter("9999999999", kNow), std::chrono::hours(366 * 24));
  EXPECT_EQ(ParseRetryAfter("1 Oct 950000000", kNow), std::chrono::hours(366 * 24));
}

}  // namespace
}  // namespace fencepost::consumer
