// What librdkafka holds of a message, as a Record. Any thread.
#pragma once

#include "consumer/kafka/client/rdkafka_holders.h"
#include "consumer/record/record.h"

namespace fencepost::consumer {

// Fills in offset, timestamp, key, value, headers and their owner: a copy, in one allocation. The
// message itself, and with it the fetch response of which it is a part, need not be kept.
void ReadMessage(const rd_kafka_message_t* message, Record& record);

}  // namespace fencepost::consumer
