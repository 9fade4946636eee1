#include "tests/bench/floors/group_consumer.h"

#include <stdexcept>
#include <utility>

#include "tests/bench/shared/measure.h"

namespace fencepost::bench {

using consumer::rdkafka::Handle;
using consumer::rdkafka::Message;
using consumer::rdkafka::PartitionList;

Handle MakeClient(rd_kafka_type_t type, const std::map<std::string, std::string>& settings) {
  char error[512];
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  for (const auto& [name, value] : settings) {
    if (rd_kafka_conf_set(conf, name.c_str(), value.c_str(), error, sizeof error) !=
        RD_KAFKA_CONF_OK) {
      rd_kafka_conf_destroy(conf);
      throw std::runtime_error(error);
    }
  }
  Handle handle(rd_kafka_new(type, conf, error, sizeof error));
  if (!handle) throw std::runtime_error(error);
  return handle;
}

GroupConsumer::GroupConsumer(const std::string& bootstrap, std::string topic,
                             const std::string& group)
    : topic_(std::move(topic)),
      handle_(MakeClient(RD_KAFKA_CONSUMER, {{"bootstrap.servers", bootstrap},
                                             {"group.id", group},
                                             {"auto.offset.reset", "earliest"},
                                             {"enable.auto.commit", "false"},
                                             {"enable.auto.offset.store", "false"},
                                             {"partition.assignment.strategy", "range"}})) {
  rd_kafka_poll_set_consumer(handle_.get());
  const auto topics = consumer::rdkafka::MakeList(1);
  rd_kafka_topic_partition_list_add(topics.get(), topic_.c_str(), RD_KAFKA_PARTITION_UA);
  rd_kafka_subscribe(handle_.get(), topics.get());
}

GroupConsumer::~GroupConsumer() { rd_kafka_consumer_close(handle_.get()); }

void GroupConsumer::WaitForPartitions(int count) {
  const auto assigned = [this] {
    rd_kafka_topic_partition_list_t* list = nullptr;
    if (rd_kafka_assignment(handle_.get(), &list) != RD_KAFKA_RESP_ERR_NO_ERROR) return 0;
    const PartitionList holder(list);
    return list->cnt;
  };
  const auto start = Clock::now();
  while (assigned() < count) {
    if (SecondsSince(start) > 60) throw std::runtime_error("the floor got no partitions");
    if (Poll(100)) throw std::runtime_error("records were there before their time");
  }
}

Message GroupConsumer::Poll(int timeout_ms) {
  Message message(rd_kafka_consumer_poll(handle_.get(), timeout_ms));
  if (message && message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
    throw std::runtime_error(std::string("kafka: ") + rd_kafka_message_errstr(message.get()));
  }
  return message;
}

PartitionList GroupConsumer::Offsets(const std::map<std::int32_t, std::int64_t>& offsets) const {
  PartitionList list = consumer::rdkafka::MakeList(offsets.size());
  for (const auto& [partition, offset] : offsets) {
    rd_kafka_topic_partition_list_add(list.get(), topic_.c_str(), partition)->offset = offset;
  }
  return list;
}

}  // namespace fencepost::bench
