#include "consumer/cli/dlq/dlq_topic.h"

#include <utility>

namespace fencepost::cli {

using consumer::Millis;
using consumer::TopicReader;
using consumer::TopicRecord;

tl::expected<LetterTopic, Error> LetterTopic::Open(const consumer::PipelineOptions& options,
                                                   Millis limit) {
  auto reader = TopicReader::Make(options.kafka);
  if (!reader) return tl::unexpected(reader.error());
  auto ranges = (*reader)->Ranges(options.dead_letter->topic, limit);
  if (!ranges) {
    Error error = ranges.error();
    if (error.code == "unknown_topic") {
      error.hint = "is dead_letter.topic right? The topic has to be made before workers need it";
    }
    return tl::unexpected(std::move(error));
  }
  return LetterTopic(std::move(*reader), std::move(*ranges));
}

tl::expected<void, Error> LetterTopic::Scan(const Meet& meet, Millis limit) {
  bool goes_on = true;
  for (const consumer::PartitionRange& range : ranges_) {
    const auto read = reader_->Read(
        {range},
        [&](const TopicRecord& stored) {
          goes_on = meet(stored, ReadLetter(stored));
          return goes_on;
        },
        limit);
    if (!read) return read;
    if (!goes_on) break;
  }
  return {};
}

tl::expected<LettersSeen, Error> LetterTopic::Visit(
    const LetterFilter& filter, const std::function<bool(const StoredLetter&)>& visit,
    Millis limit) {
  LettersSeen seen;
  const auto scanned = Scan(
      [&](const TopicRecord&, const tl::expected<StoredLetter, std::string>& letter) {
        if (!letter) {
          ++seen.strange;
        } else if (letter->pipeline != filter.pipeline) {
          ++seen.of_others;
        } else if (Matches(filter, *letter)) {
          ++seen.matched;
          return visit(*letter);
        }
        return true;
      },
      limit);
  if (!scanned) return tl::unexpected(scanned.error());
  return seen;
}

}  // namespace fencepost::cli
