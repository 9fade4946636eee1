// Tests with a planted bug under them: `PROGRAM BUG TEST` passes only when that one test fails with
// the bug, and passes without it. A test that hangs with the bug has found nothing: it needs a
// bound of its own.
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include <gtest/gtest.h>

#include "tests/model/planted/planted.h"

namespace {

constexpr unsigned kMostSeconds = 240;

extern "C" void OnAlarm(int) {
  constexpr char kText[] = "no end: the test needs a bound\n";
  (void)!write(STDOUT_FILENO, kText, sizeof(kText) - 1);
  _exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 3) return std::fprintf(stderr, "usage: %s BUG TEST\n", argv[0]), 2;
  GTEST_FLAG_SET(filter, argv[2]);
  std::signal(SIGALRM, OnAlarm);
  alarm(kMostSeconds);
  const bool passes = RUN_ALL_TESTS() == 0;
  const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  const bool there = tests.test_to_run_count() == 1 && tests.skipped_test_count() == 0;
  fencepost::Plant(argv[1]);
  const bool seen = RUN_ALL_TESTS() != 0;
  std::printf("%s: %s\n", argv[2],
              !there    ? "there is no such test here"
              : !passes ? "it fails without the bug"
              : seen    ? "found"
                        : "not found");
  return there && passes && seen ? 0 : 1;
}
