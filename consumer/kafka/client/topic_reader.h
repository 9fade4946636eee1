// Reads a topic from end to end, or one record, without a group: for dlq and explain. One thread;
// every call blocks, within its limit.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

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

class TopicReader {
 public:
  // Error: a setting that is refused. Nothing is asked of the brokers yet.
  static tl::expected<std::unique_ptr<TopicReader>, Error> Make(const KafkaOptions& kafka);
  ~TopicReader();
  TopicReader(const TopicReader&) = delete;
  TopicReader& operator=(const TopicReader&) = delete;

  // Error "unknown_topic", or no broker answered within the limit.
  tl::expected<std::vector<PartitionRange>, Error> Ranges(const std::string& topic, Millis limit);
  // The records of these ranges as they are now, committed ones only; `visit` returns false to
  // stop. Error: nothing came for `limit` though the end was not reached.
  tl::expected<void, Error> Read(const std::vector<PartitionRange>& ranges,
                                 const std::function<bool(const TopicRecord&)>& visit,
                                 Millis limit);
  // The record at this offset; nothing where it is not there any more, or a hole.
  tl::expected<std::optional<TopicRecord>, Error> ReadOne(const TopicPartition& where,
                                                          Offset offset, Millis limit);
  // What the group has committed of this partition; nothing where it has not.
  tl::expected<std::optional<Offset>, Error> Committed(const std::string& group,
                                                       const TopicPartition& where, Millis limit);
  tl::expected<std::string, Error> ClusterId(Millis limit);

 private:
  struct Impl;
  explicit TopicReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fencepost::consumer
