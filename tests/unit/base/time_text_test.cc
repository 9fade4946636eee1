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
TEST(Rfc3339, CountsMillisecondsForwardsBefore1970) {
  EXPECT_EQ(Rfc3339(milliseconds(-1)), "1969-12-31T23:59:59.999Z");
}

}  // namespace
}  // namespace fencepost
