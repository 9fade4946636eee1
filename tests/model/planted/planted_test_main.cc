// Tests with a planted bug under them: `PROGRAM BUG TEST` passes only when that one test fails with
// the bug, and passes without it.
#include <cstdio>

#include <gtest/gtest.h>

#include "tests/model/planted/planted.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 3) return std::fprintf(stderr, "usage: %s BUG TEST\n", argv[0]), 2;
  GTEST_FLAG_SET(filter, argv[2]);
  const bool passes = RUN_ALL_TESTS() == 0;
  const bool there = testing::UnitTest::GetInstance()->test_to_run_count() == 1;
  fencepost::Plant(argv[1]);
  const bool seen = RUN_ALL_TESTS() != 0;
  std::printf("%s: %s\n", argv[2],
              !there    ? "there is no such test"
              : !passes ? "it fails without the bug"
              : seen    ? "found"
                        : "not found");
  return there && passes && seen ? 0 : 1;
}
