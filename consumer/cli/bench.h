// How fast the lock is: acquire + release (or done) of a fresh name each, with N in flight, on one
// thread. Used by `fencepost bench locks` and by tests/bench.
#pragma once

#include <cstdint>

#include "consumer/cli/shared/lock_nodes.h"

namespace fencepost::cli {

struct LockBenchResult {
  double cycles_per_s = 0;
  double p50_ms = 0;  // of a whole cycle
  double p99_ms = 0;
  std::uint64_t errors = 0;  // cycles that ended without a lease
};

// The store must exist. Returns after `seconds`, or at once with errors when there is no quorum for
// 5 s.
LockBenchResult BenchLocks(const LockNodes& nodes, int in_flight, double seconds, bool done);

}  // namespace fencepost::cli
