// Tests with a planted bug under them: passes only when the one test that is to see it, CAUGHT_BY,
// fails.
#include <cstdio>

#include <gtest/gtest.h>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  GTEST_FLAG_SET(filter, CAUGHT_BY);
  const bool seen = RUN_ALL_TESTS() != 0;
  const bool there = testing::UnitTest::GetInstance()->test_to_run_count() == 1;
  std::printf("%s: %s\n", CAUGHT_BY,
              !there ? "there is no such test" : (seen ? "found" : "not found"));
  return there && seen ? 0 : 1;
}
