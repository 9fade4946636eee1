// The way records come in: a queue that all assigned partitions are forwarded to, apart from the
// consumer's own queue (rebalances, errors). Belongs to the Kafka thread.
//
// Pausing. When everything is paused, the queue is simply not read: nothing that was fetched is
// thrown away, and librdkafka stops fetching when the queue is full. Only a part that is paused is
// paused at librdkafka, which drops what it had fetched of it and fetches it again afterwards.
// librdkafka 2.0.2 rewinds a partition that is resumed without being paused, so what was paused
// there is remembered; and an offset that was handed over already in this epoch is never handed
// over again.
//
// A record is a copy of its message, which goes at once: a few records that are kept for long would
// keep the fetch responses they came in, and with them all that was fetched beside them.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "consumer/kafka/client/rdkafka_holders.h"
#include "consumer/kafka/log_identity/log_sample.h"
#include "consumer/kafka/source/source.h"

namespace fencepost::consumer {

// A partition's error that came in its place among the records.
struct PartitionProblem {
  TopicPartition where;
  Offset offset = 0;
  rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR;
  std::string text;
};

struct SampledRecord {
  TopicPartition where;
  LogSample sample;
};

// To be told in this order: an end is behind all records of its partition that came before it.
struct IntakeBatch {
  std::vector<Record> records;
  std::vector<PartitionEnd> ends;
  std::vector<PartitionProblem> problems;
  std::vector<SampledRecord> samples;  // of `records`
  [[nodiscard]] bool empty() const { return records.empty() && ends.empty() && problems.empty(); }
};

class Intake {
 public:
  explicit Intake(rdkafka::SharedConsumer consumer);
  Intake(const Intake&) = delete;
  Intake& operator=(const Intake&) = delete;

  // Before rd_kafka_assign: directs the partitions' records here. Nothing is paused. What comes of
  // those in `apart`, which may be admitted later, is kept apart until they are released.
  void Open(const std::vector<AssignedPartition>& partitions,
            const std::vector<TopicPartition>& apart = {});
  void Admit(const AssignedPartition& partition);
  void Release(const TopicPartition& where);
  // After rd_kafka_assign(nullptr): what was fetched and not handed over is dropped.
  void Close();

  void Pause(const std::vector<PartitionIndex>& partitions);
  void Resume(const std::vector<PartitionIndex>& partitions);
  // Has the brokers asked again, so that they say where the end is, although nothing has come since
  // they last did.
  void AskForEnds(const std::function<bool(const TopicPartition&)>& of);
  // The next record of this partition comes with a sample.
  void Sample(PartitionIndex partition);
  // Where an assigned partition goes on: one after its last record that was handed over.
  [[nodiscard]] Offset NextOf(const TopicPartition& where) const;
  // Something is assigned, and not all of it is paused.
  [[nodiscard]] bool Flowing() const;

  // Waits for the first record at most so long, then takes what is there, within limits and at most
  // `room` records (at least 1); the record that reaches `bytes` is the last.
  IntakeBatch Gather(std::chrono::milliseconds wait, std::size_t room, std::uint64_t bytes);
  // Ends the wait of Gather, or of the next one, at once. Any thread.
  void Interrupt();
  // As Gather, for a message that came by the consumer's own queue.
  void Take(rdkafka::Message message, IntakeBatch& batch);

  // Ends as last heard from the brokers. No network.
  [[nodiscard]] std::vector<PartitionEnd> HighWatermarks() const;

 private:
  struct Assigned {
    AssignedPartition partition;
    Offset next = 0;  // one after the last record that was handed over
    bool paused = false;
    bool paused_there = false;  // at librdkafka
    bool sample = false;        // its next record
  };
  struct Key {
    const rd_kafka_topic_t* topic;
    std::int32_t partition;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const {
      return std::hash<const void*>()(key.topic) * 31 + static_cast<std::size_t>(key.partition);
    }
  };
  void Forward(const TopicPartition& where, rd_kafka_queue_t* to);
  void SetPaused(const std::vector<PartitionIndex>& partitions, bool paused);
  void PauseThere(bool pause, const std::vector<Assigned*>& partitions);
  Assigned* Find(const rd_kafka_message_t* message);
  static void TakeRecord(const rd_kafka_message_t* message, Assigned& assigned, IntakeBatch& batch);
  static void TakeError(const rd_kafka_message_t* message, const Assigned& assigned,
                        IntakeBatch& batch);

  void Exchange(rdkafka::Queue queue);

  rdkafka::SharedConsumer consumer_;
  std::mutex mutex_;      // of the pointer: the Kafka thread writes it, and reads it without
  rdkafka::Queue queue_;  // one for each assignment, so that none sees another's records
  std::map<TopicPartition, rdkafka::Queue> apart_;  // of this assignment, released ones too
  std::map<PartitionIndex, Assigned> assigned_;
  std::size_t paused_ = 0;
  std::unordered_map<Key, Assigned*, KeyHash> by_topic_;  // filled as messages come
};

}  // namespace fencepost::consumer
