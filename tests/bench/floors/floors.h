// The floors: programs that do only the unavoidable work. All of them throw on any error.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/bench/shared/measure.h"

namespace fencepost::bench {

// The least that a lock over several nodes costs: one thread pipelines `SET key nonce NX PX ttl`
// and then a compare-and-delete script for each lock to every node, and does nothing else. No
// fencing, no fault is survived, nothing is remembered. A cycle ends with a majority's answers to
// the script, as for the shipped lock. `addresses`: 127.0.0.1:PORT each. Returns cycles_per_s, and
// p50_ms and p99_ms of a whole cycle.
Figures RunLockFloor(const std::vector<std::string>& addresses, int in_flight, double seconds);

// The least that Kafka to PostgreSQL costs with the effect and a unique id in one transaction: one
// consumer, batches of 500 by unnest, one prepared statement a batch, no lock, offsets committed
// once a second. While PostgreSQL works on a batch the next one is gathered.
struct PipelineFloor {
  std::string bootstrap, topic, group, dsn;
  int partitions = 0;
  std::int64_t records = 0;
  int tables = 1;  // 2: the same rows into more_effects, in the same statement
};
// Joins the group and, when it owns all partitions, calls `open`, which lets the records be seen.
// Returns when all of them are committed in PostgreSQL.
void RunPipelineFloor(const PipelineFloor& floor, const std::function<void()>& open);

// The least that Kafka to Kafka in transactions costs: one librdkafka consumer and one
// transactional producer on one thread. A transaction ends when it has so many records or its first
// one is so old, as output.kafka's do; the group's offsets are in it. Nothing is survived: no
// abort, no rebalance.
struct KafkaFloor {
  std::string bootstrap, topic, group, output_topic;
  int partitions = 0;
  std::int64_t records = 0;
  // The defaults of output.kafka: max_records and linger.
  std::int64_t max_records = 10'000;
  std::chrono::milliseconds linger{100};
};
// As above. Returns when the last transaction is committed.
void RunKafkaFloor(const KafkaFloor& floor, const std::function<void()>& open);

// The least that calling an HTTP service for each record costs: libcurl's multi interface on one
// thread, with as many requests out as it may have, and nothing else.
struct HttpFloor {
  std::string url;
  int concurrency = 0;
  std::int64_t records = 0;
  std::size_t bytes = 0;  // of a body
};
// Returns when each has its answer: 200 with the body that was sent.
void RunHttpFloor(const HttpFloor& floor);

}  // namespace fencepost::bench
