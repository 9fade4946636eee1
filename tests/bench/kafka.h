// ./dev bench kafka: from topic to topic in transactions, by position: shipped workers, the floor
// (floors/kafka_floor.h) and Kafka Streams with exactly_once_v2 (peers/streams).
#pragma once

#include "tests/bench/shared/options.h"

namespace fencepost::bench {

// Each run ends when the group has committed the end of the topic, which happens in the last
// transaction. Throws when something cannot be started or measured, or a record was not written
// exactly once for a reader of committed records.
void RunKafkaBench(const Options& options);

}  // namespace fencepost::bench
