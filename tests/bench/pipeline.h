// ./dev bench pipeline: Kafka to PostgreSQL by the shipped worker, against the floor.
#pragma once

#include <cstdint>
#include <vector>

namespace fencepost::bench {

struct PipelineBench {
  std::int64_t records = 300'000;
  std::vector<int> workers{1, 3};
  int rounds = 3;
  bool fsync = true;
  bool floor_only = false;
  bool to_topic = false;  // Kafka to Kafka, in transactions, instead
};

// Prints a table on stderr and one line of JSON for each number of workers on stdout. Throws when
// something cannot be started or measured, or an effect is missing or there twice.
void RunPipelineBench(const PipelineBench& bench);

}  // namespace fencepost::bench
