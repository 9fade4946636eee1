// The least that Kafka to Kafka in transactions costs: one librdkafka consumer and one
// transactional producer on one thread. A transaction ends when it has so many records or its first
// one is so old, as output.kafka's do; the group's offsets are in it. Nothing is survived: no
// abort, no rebalance.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace fencepost::bench {

struct KafkaFloor {
  std::string bootstrap, topic, group, output_topic;
  int partitions = 0;
  std::int64_t records = 0;
  // The defaults of output.kafka: max_records and linger.
  std::int64_t max_records = 10'000;
  std::chrono::milliseconds linger{100};
};

// Joins the group and, when it owns all partitions, calls `open`, which lets the records be seen.
// Returns when the last transaction is committed. Throws on any error.
void RunKafkaFloor(const KafkaFloor& floor, const std::function<void()>& open);

}  // namespace fencepost::bench
