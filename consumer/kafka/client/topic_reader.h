// Reads a topic from end to end, or one record, without a group: for dlq and explain. One thread;
// every call blocks, within its limit.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/kafka/client/rdkafka_holders.h"
#include "consumer/pipeline/options.h"
#include "consumer/record/record.h"
#include "locking/base/error.h"

namespace fencepost::consumer {

struct TopicRecord {
  TopicPartition where;
  Record record;  // its `owner` keeps the views good
};

struct PartitionRange {
  TopicPartition where;
  Offset first = 0;  // the oldest offset that is kept
  Offset end = 0;    // the next one to be written (read_committed: the last stable offset)
};

struct CommittedOffset {
  TopicPartition where;
  std::optional<Offset> next;  // nothing: the group has not committed any
  std::string metadata;        // the text beside it
};

class TopicReader {
 public:
  // Error: a setting that is refused. Nothing is asked of the brokers yet.
  static tl::expected<std::unique_ptr<TopicReader>, Error> Make(const KafkaOptions& kafka);
  ~TopicReader() = default;
  TopicReader(const TopicReader&) = delete;
  TopicReader& operator=(const TopicReader&) = delete;

  // Error "unknown_topic", or no broker answered within the limit.
  tl::expected<std::vector<PartitionRange>, Error> Ranges(const std::string& topic, Millis limit);
  // The ranges without what is older: each begins at its first record of that time or later.
  tl::expected<std::vector<PartitionRange>, Error> Since(std::vector<PartitionRange> ranges,
                                                         Millis unix_time, Millis limit);
  // The records of these ranges as they are now, committed ones only; `visit` returns false to
  // stop. Error: nothing came for `limit` though the end was not reached.
  tl::expected<void, Error> Read(const std::vector<PartitionRange>& ranges,
                                 const std::function<bool(const TopicRecord&)>& visit,
                                 Millis limit);
  // The record at this offset; nothing where it is not there any more, or a hole.
  tl::expected<std::optional<TopicRecord>, Error> ReadOne(const TopicPartition& where,
                                                          Offset offset, Millis limit);
  // What the group has committed of these partitions, in their order.
  tl::expected<std::vector<CommittedOffset>, Error> Committed(
      const std::string& group, const std::vector<TopicPartition>& partitions, Millis limit);
  tl::expected<std::string, Error> ClusterId(Millis limit);

 private:
  class Until;
  struct Reading;

  explicit TopicReader(const KafkaOptions& kafka) : options_(kafka) {}
  [[nodiscard]] Error Failed(rd_kafka_resp_err_t error, const std::string& where) const;
  rd_kafka_resp_err_t Ask(const Until& until,
                          const std::function<rd_kafka_resp_err_t()>& ask) const;
  [[nodiscard]] tl::expected<PartitionRange, Error> RangeOf(const TopicPartition& where,
                                                            const Until& until) const;
  // nullptr: nothing came. An error that only says that brokers are away is kept for later.
  tl::expected<rdkafka::Message, Error> Poll();
  tl::expected<void, Error> Assign(const std::vector<Reading>& readings);

  const KafkaOptions options_;
  std::string last_connection_error_;
  rdkafka::SharedConsumer consumer_;  // goes before it
};

}  // namespace fencepost::consumer
