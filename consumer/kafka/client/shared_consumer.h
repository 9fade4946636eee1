// A consumer that lives as long as somebody polls it. It is closed (left the group) by its thread
// before that.
#pragma once

#include <memory>

#include "consumer/kafka/client/rdkafka_holders.h"

namespace fencepost::consumer::rdkafka {

using SharedConsumer = std::shared_ptr<rd_kafka_t>;

// Where a topic was deleted under a consumer, librdkafka 2.0.2 may never come to the end of its own
// threads: after three seconds such a consumer is left behind, with its threads. A process in which
// that happened must end by _exit: static objects may not go under them.
SharedConsumer ShareConsumer(rd_kafka_t* handle);
int ConsumersLeftBehind();  // any thread

}  // namespace fencepost::consumer::rdkafka
