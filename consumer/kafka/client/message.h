// What librdkafka holds of a message, as a Record, and what an error means. Any thread.
#pragma once

#include <cstdint>

#include "consumer/kafka/client/rdkafka_holders.h"
#include "consumer/record/record.h"

namespace fencepost::consumer {

// Fills in offset, timestamp, key, value, headers and their owner: a copy, in one allocation. The
// message itself, and with it the fetch response of which it is a part, need not be kept.
void ReadMessage(const rd_kafka_message_t* message, Record& record);

// What one librdkafka error means for a consumer.
enum class Meaning : std::uint8_t {
  kBrokersAway,   // none can be reached, or they refuse the login: retried until it works
  kTopicMissing,  // the topic does not exist (yet): retried until it does
  kNoSchemas,     // the schema registry gives none: asked again until it does
  kForbidden,     // an ACL is missing: retried until the operator grants it
  kNotJoined,     // the group does not take this member: retried until it does
  kTransient,     // ends without our doing; worth a line in the log
  kOutOfRange,    // the offset to go on from is not there any more
  kUnreadable,    // librdkafka would skip records: the pipeline must stop
};
Meaning MeaningOf(rd_kafka_resp_err_t error);

}  // namespace fencepost::consumer
