#include "tests/bench/floors/floors.h"

#include <map>
#include <stdexcept>
#include <string>

#include "tests/bench/floors/group_consumer.h"

namespace fencepost::bench {
namespace {

namespace rdkafka = consumer::rdkafka;
using rdkafka::Failure;
using rdkafka::Handle;

constexpr int kCallMs = 30'000;

void Require(rd_kafka_error_t* error) {
  const Failure failure(error);
  if (failure) throw std::runtime_error(std::string("kafka: ") + rd_kafka_error_string(error));
}

class Loop {
 public:
  explicit Loop(const KafkaFloor& floor)
      : floor_(floor),
        consumer_(floor.bootstrap, floor.topic, floor.group),
        producer_(MakeClient(RD_KAFKA_PRODUCER, {{"bootstrap.servers", floor.bootstrap},
                                                 {"transactional.id", floor.group},
                                                 {"queue.buffering.max.messages", "100000"},
                                                 // Right after a commit the coordinator is busy.
                                                 {"retry.backoff.ms", "5"}})),
        topic_(rd_kafka_topic_new(producer_.get(), floor.output_topic.c_str(), nullptr)) {
    Require(rd_kafka_init_transactions(producer_.get(), kCallMs));
    consumer_.WaitForPartitions(floor.partitions);
  }

  void Run() {
    for (std::int64_t done = 0; done < floor_.records; done += Transaction()) {
    }
  }

 private:
  // The first record opens it.
  std::int64_t Transaction() {
    std::int64_t records = 0;
    Clock::time_point end;
    offsets_.clear();
    while (records < floor_.max_records) {
      const auto message = consumer_.Poll(records == 0 ? 100 : 1);
      if (message) {
        if (records++ == 0) {
          Require(rd_kafka_begin_transaction(producer_.get()));
          end = Clock::now() + floor_.linger;
        }
        Pass(*message);
      }
      if (records > 0 && Clock::now() >= end) break;
    }
    Commit();
    return records;
  }

  void Pass(const rd_kafka_message_t& message) {
    if (rd_kafka_produce(topic_.get(), message.partition, RD_KAFKA_MSG_F_COPY, message.payload,
                         message.len, message.key, message.key_len, nullptr) != 0) {
      throw std::runtime_error(rd_kafka_err2str(rd_kafka_last_error()));
    }
    offsets_[message.partition] = message.offset + 1;
    rd_kafka_poll(producer_.get(), 0);
  }

  void Commit() {
    const rdkafka::Holder<rd_kafka_consumer_group_metadata_t,
                          &rd_kafka_consumer_group_metadata_destroy>
        group(rd_kafka_consumer_group_metadata(consumer_.handle()));
    const auto offsets = consumer_.Offsets(offsets_);
    Require(
        rd_kafka_send_offsets_to_transaction(producer_.get(), offsets.get(), group.get(), kCallMs));
    Require(rd_kafka_commit_transaction(producer_.get(), kCallMs));
  }

  const KafkaFloor& floor_;
  GroupConsumer consumer_;
  Handle producer_;
  rdkafka::Topic topic_;  // must go before the producer does
  std::map<std::int32_t, std::int64_t> offsets_;
};

}  // namespace

void RunKafkaFloor(const KafkaFloor& floor, const std::function<void()>& open) {
  Loop loop(floor);
  open();
  loop.Run();
}

}  // namespace fencepost::bench
