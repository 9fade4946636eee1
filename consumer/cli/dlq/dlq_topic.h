// The dead letter topic of a pipeline, read from end to end as it is when it is opened: letters
// that are published meanwhile are left out, so that a replay never meets what it has caused. One
// thread; every call blocks.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/cli/dlq/dlq_letter.h"
#include "consumer/kafka/client/topic_reader.h"
#include "consumer/pipeline/options.h"
#include "locking/base/error.h"

namespace fencepost::cli {

// What a visit met.
struct LettersSeen {
  std::size_t matched = 0;
  std::size_t of_others = 0;  // dead letters of other pipelines that share the topic
  std::size_t strange = 0;    // records that are no dead letters
};

class LetterTopic {
 public:
  // The pipeline must have a dead_letter section. Error: no such topic, no broker answers.
  static tl::expected<LetterTopic, Error> Open(const consumer::PipelineOptions& options,
                                               consumer::Millis limit);

  // Partition by partition, each in order of its offsets, until `visit` returns false. Error:
  // nothing came for `limit` though the end was not reached.
  tl::expected<LettersSeen, Error> Visit(const LetterFilter& filter,
                                         const std::function<bool(const StoredLetter&)>& visit,
                                         consumer::Millis limit);
  // As Visit, but over all records, whether they are letters that match or not; false stops.
  using Meet = std::function<bool(const consumer::TopicRecord&,
                                  const tl::expected<StoredLetter, std::string>&)>;
  tl::expected<void, Error> Scan(const Meet& meet, consumer::Millis limit);

 private:
  LetterTopic(std::unique_ptr<consumer::TopicReader> reader,
              std::vector<consumer::PartitionRange> ranges)
      : reader_(std::move(reader)), ranges_(std::move(ranges)) {}

  std::unique_ptr<consumer::TopicReader> reader_;
  std::vector<consumer::PartitionRange> ranges_;
};

}  // namespace fencepost::cli
