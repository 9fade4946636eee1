// The least that Kafka to PostgreSQL costs with the effect and a unique id in one transaction: one
// consumer, batches of 500 by unnest, one prepared statement a batch, no lock, offsets committed
// once a second. While PostgreSQL works on a batch the next one is gathered.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace fencepost::bench {

struct PipelineFloor {
  std::string bootstrap, topic, group, dsn;
  int partitions = 0;
  std::int64_t records = 0;
};

// Joins the group and, when it owns all partitions, calls `open`, which lets the records be seen.
// Returns when all of them are committed in PostgreSQL. Throws on any error.
void RunPipelineFloor(const PipelineFloor& floor, const std::function<void()>& open);

}  // namespace fencepost::bench
