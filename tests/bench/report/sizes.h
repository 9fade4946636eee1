// What a fleet needs at a rate, from what ./dev bench pipeline measured that a record costs: the
// table of deploy/SIZING.md. Everything is laid out for half load.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/bench/shared/turns.h"

namespace fencepost::bench {

// A record's processor time in µs, and the records a second that one worker reached.
struct Costs {
  double client_us, redis_us, postgres_us, kafka_us;  // redis_us: of all nodes together
  double records_per_s;
};

struct Fleet {
  std::int64_t workers;         // processes; as many partitions at least
  double worker_cores;          // of all workers
  std::int64_t groups;          // of five lock nodes
  double node_load;             // of one lock node, of a core
  double node_mib;              // of one lock node: leases that live or were left behind
  double database_cores, broker_cores;
  std::int64_t connections;  // of one lock node, and of the database: one a worker
};

// Of the newest measurement of one worker `by` position or id; nullopt: there is none.
std::optional<Costs> CostsOf(const std::string& by, const std::vector<Json>& measurements);
Fleet FleetFor(double records_per_s, const Costs& costs, bool by_position);

// The table, and `document` with what stands between its two marks ("<!-- sizes -->",
// "<!-- end of sizes -->") replaced by it. Throws std::runtime_error where the marks are missing.
std::string SizesTable(const std::vector<Json>& measurements);
std::string WithSizes(const std::string& document, const std::vector<Json>& measurements);

}  // namespace fencepost::bench
