// Small Kafka clients for tests: an administrator, a producer and a reader. They work against a
// real broker and (without transactions) against consumer/kafka/client/mock_cluster.h. Errors throw
// std::runtime_error.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/process.h"

struct rd_kafka_s;

namespace fencepost::testing {

using KafkaConfig = std::map<std::string, std::string>;  // librdkafka settings

struct TestRecord {
  std::string topic;
  std::int32_t partition = 0;
  std::optional<std::string> key;
  std::optional<std::string> value;
  std::vector<std::pair<std::string, std::optional<std::string>>> headers;
  std::int64_t timestamp_ms = 0;  // 0 when producing: now
  std::int64_t offset = -1;       // when read

  // The first header of that name.
  [[nodiscard]] std::optional<std::string> Header(const std::string& name) const;
};

class KafkaAdmin {
 public:
  explicit KafkaAdmin(std::string bootstrap, const KafkaConfig& config = {});
  ~KafkaAdmin();
  KafkaAdmin(const KafkaAdmin&) = delete;
  KafkaAdmin& operator=(const KafkaAdmin&) = delete;

  // Answers a metadata request within the limit.
  [[nodiscard]] bool Answers(Deadline limit);
  [[nodiscard]] std::string ClusterId();
  // Returns when every partition has a leader.
  void CreateTopic(const std::string& topic, int partitions, const KafkaConfig& config = {});
  [[nodiscard]] bool Exists(const std::string& topic);
  enum class Right { kRead, kWrite, kDescribe };
  // Of a broker with an authorizer; `user` as in "User:app".
  void Allow(const std::string& user, Right right, const std::string& topic);
  void AllowGroup(const std::string& user, const std::string& group);  // to read as it
  void DeleteTopic(const std::string& topic);  // returns when it is gone from the metadata
  void SetTopicConfig(const std::string& topic, const std::string& name, const std::string& value);
  void AddPartitions(const std::string& topic, int total);
  void DeleteRecordsBefore(const std::string& topic, std::int32_t partition, std::int64_t offset);
  // By partition: one past the newest, and the oldest offset.
  std::vector<std::int64_t> EndOffsets(const std::string& topic);
  std::vector<std::int64_t> StartOffsets(const std::string& topic);
  // By partition: what the group has committed, -1 for nothing.
  std::vector<std::int64_t> CommittedOffsets(const std::string& group, const std::string& topic);
  // By partition: the metadata that came with it.
  std::vector<std::string> CommittedMetadata(const std::string& group, const std::string& topic);
  void CommitOffsets(const std::string& group, const std::string& topic,
                     const std::vector<std::int64_t>& offsets,  // of an empty group
                     const std::vector<std::string>& metadata = {});

 private:
  void AddRule(int kind, const std::string& name, const std::string& user, int operation);

  std::string bootstrap_;
  rd_kafka_s* handle_ = nullptr;
};

class TestProducer {
 public:
  // With a transactional id the producer is transactional: Begin … Commit or Abort.
  explicit TestProducer(const std::string& bootstrap, const std::string& transactional_id = "",
                        const KafkaConfig& config = {});
  ~TestProducer();
  TestProducer(const TestProducer&) = delete;
  TestProducer& operator=(const TestProducer&) = delete;

  // To exactly that partition. Queues; waits while the queue is full.
  void Send(const TestRecord& record);
  void Send(const std::string& topic, std::int32_t partition, std::optional<std::string> key,
            std::optional<std::string> value);
  void Flush();  // returns when all are acknowledged; throws when one was refused
  void Begin();
  void Commit();
  void Abort();

 private:
  rd_kafka_s* handle_ = nullptr;
  std::int64_t failed_ = 0;
  std::string first_error_;
};

// All records of all partitions from the oldest to the end seen at the call (with read_committed:
// to the last stable offset), ordered by partition and offset. Belongs to no group. Fails where
// nothing comes for as long as `limit`, short of the end.
std::vector<TestRecord> ReadTopic(const std::string& bootstrap, const std::string& topic,
                                  bool read_committed = true,
                                  Deadline limit = std::chrono::seconds(30));

}  // namespace fencepost::testing
