// What librdkafka holds of a message, as a Record. Any thread.
#pragma once

#include "consumer/kafka/rdkafka_holders.h"
#include "consumer/record.h"

namespace fencepost::consumer {

// Fills in offset, timestamp, key, value and headers. The views point into the message: `owner`,
// which must keep it, is the caller's to set.
void ReadMessage(const rd_kafka_message_t* message, Record& record);

}  // namespace fencepost::consumer
