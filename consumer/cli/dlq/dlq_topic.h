// The dead letter topic of a pipeline, read from end to end as it is when it is opened: letters
// that are published meanwhile are left out, so that a replay never meets what it has caused. One
// thread; every call blocks.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/cli/dlq/dlq_letter.h"
#include "consumer/kafka/client/topic_reader.h"
#include "consumer/pipeline/options.h"
#include "locking/base/error.h"

namespace fencepost::cli {

class LedgerView;

// What a visit met.
struct LettersSeen {
  std::size_t matched = 0;
  std::size_t of_others = 0;  // dead letters of other pipelines that share the topic
  std::size_t strange = 0;    // records that are no dead letters
  std::string program;        // of one of these, where it is another program's dead letter

  // What a reader of a command's total should know besides; empty: nothing.
  [[nodiscard]] std::string LeftOut() const;
};

// A record of the topic.
struct Met {
  Position at;
  tl::expected<StoredLetter, std::string> letter;  // or why it is none
  std::string_view program{};                      // then: ProgramOfLetter
};

class LetterTopic {
 public:
  // The pipeline must have a dead_letter section. Error: no such topic, no broker answers.
  static tl::expected<LetterTopic, Error> Open(const consumer::PipelineOptions& options,
                                               consumer::Millis limit);

  // All records, partition by partition, each in order of its offsets, until `look` returns false.
  // Error: nothing came for `limit` though the end was not reached.
  using Look = std::function<bool(const Met&)>;
  tl::expected<void, Error> Scan(const Look& look,
                                 consumer::Millis limit = std::chrono::seconds(30));
  // The letters alone that the filter lets through, some hundreds at a time, as many as the request
  // says at most. Error: that of `take`; or of Scan, and what was not taken yet is not.
  using TakeLetters = std::function<tl::expected<void, Error>(const std::vector<StoredLetter>&)>;
  tl::expected<LettersSeen, Error> Visit(const LetterRequest& request, const TakeLetters& take);

 private:
  LetterTopic(std::unique_ptr<consumer::TopicReader> reader,
              std::vector<consumer::PartitionRange> ranges)
      : reader_(std::move(reader)), ranges_(std::move(ranges)) {}

  std::unique_ptr<consumer::TopicReader> reader_;
  std::vector<consumer::PartitionRange> ranges_;
};

// Which letters have taken effect since, by the ledger: one answer a letter, in their order. The id
// of a conflict is another record's: of those only a replay as a new record counts. Error: the
// ledger or Kafka cannot be asked.
tl::expected<std::vector<LetterEffect>, Error> EffectsOf(const consumer::PipelineOptions& options,
                                                         LedgerView& ledger,
                                                         const std::vector<StoredLetter>& letters);

}  // namespace fencepost::cli
