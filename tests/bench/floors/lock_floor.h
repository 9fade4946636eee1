// The least that a lock over several nodes costs: one thread pipelines `SET key nonce NX PX ttl`
// and then a compare-and-delete script for each lock to every node, and does nothing else. No
// fencing, no fault is survived, nothing is remembered.
#pragma once

#include <string>
#include <vector>

namespace fencepost::bench {

struct CycleFigures {
  double cycles_per_s = 0;
  double p50_ms = 0;  // of a whole cycle
  double p99_ms = 0;
};

// A cycle ends with a majority's answers to the script, as for the shipped lock. Throws on an
// answer that a fresh name cannot get. `addresses`: 127.0.0.1:PORT each.
CycleFigures RunLockFloor(const std::vector<std::string>& addresses, int in_flight, double seconds);

}  // namespace fencepost::bench
