// ./dev bench locks: the shipped lock against the floor, on five real nodes.
#pragma once

#include <vector>

namespace fencepost::bench {

struct LocksBench {
  std::vector<int> in_flight{1, 16, 256, 4096};
  int rounds = 5;
  double seconds = 1.5;  // of one side in one round
  bool done = false;     // mark each name DONE instead of releasing it
  bool floor_only = false;
};

// Prints a table on stderr and one line of JSON for each number in flight on stdout. Throws when
// something cannot be started or measured.
void RunLocksBench(const LocksBench& bench);

}  // namespace fencepost::bench
