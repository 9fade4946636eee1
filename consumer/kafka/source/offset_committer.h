// Offsets on their way to Kafka. At most one request is out at a time; what is asked meanwhile is
// gathered, the newest offset of a partition wins. So a retry inside librdkafka can never put an
// older offset over a newer one. Belongs to the Kafka thread.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/kafka/client/rdkafka_holders.h"
#include "consumer/kafka/log_identity/log_samples.h"
#include "consumer/kafka/source/source.h"

namespace fencepost::consumer {

// Rejected: the group has moved on and this member may not commit. Failed: anything else.
CommitResult ClassifyCommit(rd_kafka_resp_err_t error);

// To a list of offsets to commit, with its metadata (CommitMetadata). `samples` may be null.
void AddOffset(rd_kafka_topic_partition_list_t* list, const SourceOffset& offset,
               LogSamples* samples);
// The brokers' limit (offset.metadata.max.bytes) is below the length of the metadata: the next
// commits need LogSamples::Shorten.
constexpr bool IsMetadataTooLarge(rd_kafka_resp_err_t error) {
  return error == RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE;
}

struct CommitReport {
  std::vector<PartitionOffset> offsets;
  CommitResult result = CommitResult::kCommitted;
  locking::Instant sent;  // the request
  Nanos took{0};
  std::string why;  // when not committed
};

class OffsetCommitter {
 public:
  using Report = std::function<void(CommitReport)>;

  OffsetCommitter(rd_kafka_t* consumer, Report report);

  // A new assignment: what was asked for the former one is dropped. `samples`: of it.
  void Begin(const std::vector<AssignedPartition>& partitions, std::shared_ptr<LogSamples> samples);
  void Add(const AssignedPartition& partition);  // to the assignment that has begun
  void End();  // nothing is assigned; the answer to a request that is out is still reported

  // Other epochs, and offsets lower than what was asked before, are ignored.
  void Ask(const std::vector<PartitionOffset>& offsets);
  // Reads answers and sends what has gathered. Never blocks.
  void Pump();
  // Sends `last` and what has gathered, after the request that is out, and waits for the answer.
  // False: not all was committed within the limit (each result is reported).
  bool Flush(const std::vector<PartitionOffset>& last, std::chrono::milliseconds limit);
  // Commits a plain list and waits (the starts of an assignment). `keep_waiting` is asked about ten
  // times a second. Nothing of it is reported.
  tl::expected<void, rd_kafka_resp_err_t> CommitNow(const rd_kafka_topic_partition_list_t* list,
                                                    std::chrono::milliseconds limit,
                                                    const std::function<bool()>& keep_waiting);

 private:
  using Clock = std::chrono::steady_clock;  // of limits
  struct Assigned {
    TopicPartition where;
    AssignmentEpoch epoch = 0;
    Offset committed = 0;
    Offset asked = 0;  // highest; at least committed
  };

  void Send();
  void ReadAnswers(std::chrono::milliseconds wait);
  void OnAnswer(rd_kafka_event_t* event);
  void Settle(rd_kafka_resp_err_t error, const rd_kafka_topic_partition_list_t* list);

  rd_kafka_t* consumer_;
  Report report_;
  rdkafka::Queue answers_;
  std::shared_ptr<LogSamples> samples_;
  std::map<PartitionIndex, Assigned> assigned_;
  std::map<PartitionIndex, PartitionOffset> waiting_;
  // The request that is out; 0: none. An answer with another id belongs to one that was given up.
  std::uintptr_t out_id_ = 0;
  std::uintptr_t last_id_ = 0;
  std::vector<std::pair<TopicPartition, PartitionOffset>> out_;
  locking::Instant out_since_;
  // The plain list's request, while CommitNow waits.
  std::uintptr_t plain_id_ = 0;
  rd_kafka_resp_err_t plain_result_ = RD_KAFKA_RESP_ERR_NO_ERROR;
};

}  // namespace fencepost::consumer
