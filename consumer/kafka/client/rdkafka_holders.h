// Owners for the C handles of librdkafka.
#pragma once

#include <librdkafka/rdkafka.h>

#include <memory>

namespace fencepost::consumer::rdkafka {

template <auto kDestroy>
struct Destroyer {
  template <typename T>
  void operator()(T* object) const {
    kDestroy(object);
  }
};
template <typename T, auto kDestroy>
using Holder = std::unique_ptr<T, Destroyer<kDestroy>>;

using Conf = Holder<rd_kafka_conf_t, &rd_kafka_conf_destroy>;
void EndClient(rd_kafka_t* client);
using Handle = Holder<rd_kafka_t, &EndClient>;
using PartitionList =
    Holder<rd_kafka_topic_partition_list_t, &rd_kafka_topic_partition_list_destroy>;
using Queue = Holder<rd_kafka_queue_t, &rd_kafka_queue_destroy>;
using Event = Holder<rd_kafka_event_t, &rd_kafka_event_destroy>;
using Message = Holder<rd_kafka_message_t, &rd_kafka_message_destroy>;
using Topic = Holder<rd_kafka_topic_t, &rd_kafka_topic_destroy>;
using Metadata = Holder<const rd_kafka_metadata_t, &rd_kafka_metadata_destroy>;
using Failure = Holder<rd_kafka_error_t, &rd_kafka_error_destroy>;
using NewTopic = Holder<rd_kafka_NewTopic_t, &rd_kafka_NewTopic_destroy>;
using DeleteRecords = Holder<rd_kafka_DeleteRecords_t, &rd_kafka_DeleteRecords_destroy>;
using ConfigResource = Holder<rd_kafka_ConfigResource_t, &rd_kafka_ConfigResource_destroy>;
using AdminOptions = Holder<rd_kafka_AdminOptions_t, &rd_kafka_AdminOptions_destroy>;
using Headers = Holder<rd_kafka_headers_t, &rd_kafka_headers_destroy>;

inline PartitionList MakeList(std::size_t capacity) {
  return PartitionList(rd_kafka_topic_partition_list_new(static_cast<int>(capacity)));
}

// A consumer that lives as long as somebody polls it. It is closed (left the group) by its thread
// before that.
using SharedConsumer = std::shared_ptr<rd_kafka_t>;

// Where a topic was deleted under a consumer, librdkafka 2.0.2 may never come to the end of its own
// threads: after three seconds such a consumer is left behind, with its threads. A process in which
// that happened must end by _exit: static objects may not go under them.
SharedConsumer ShareConsumer(rd_kafka_t* handle);
int ConsumersLeftBehind();  // any thread

}  // namespace fencepost::consumer::rdkafka

namespace fencepost::consumer {

class LogSamples;

struct GroupMetadata {
  rdkafka::Holder<rd_kafka_consumer_group_metadata_t, &rd_kafka_consumer_group_metadata_destroy>
      held;
  std::shared_ptr<LogSamples> samples;  // of its assignment, for offsets; may be null
};

}  // namespace fencepost::consumer
