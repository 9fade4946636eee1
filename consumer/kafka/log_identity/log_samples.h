// The samples of a group's position in the logs of one assignment: each offset is committed with
// one in its metadata, for the member that continues from there. A sample is read again now and
// then, by a consumer apart from the group (log_reader.h). A newer one takes the place of an older
// one only after the older one was found unchanged, and if its record was read before that.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "consumer/kafka/log_identity/log_sample.h"

namespace fencepost::consumer {

// The Kafka thread moves them on; any thread may ask for the text of a commit. At most kKept of
// each partition are kept.
class LogSamples {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kKept = 4;
  static constexpr std::chrono::seconds kBetween{10};  // questions of one partition, at least
  static constexpr std::chrono::seconds kQuiet{2};     // no record came that was wanted

  explicit LogSamples(std::string pipeline = "") : pipeline_(std::move(pipeline)) {}

  // `committed`: the sample that came with the offset; it is to be read again.
  void Begin(const TopicPartition& where, const std::optional<LogSample>& committed);
  // The next record that is read is wanted: Sampled takes it.
  [[nodiscard]] bool Wants(const TopicPartition& where, Clock::time_point now) const;
  // The offset that is to be read again now, if any.
  std::optional<Offset> Sampled(const TopicPartition& where, const LogSample& read,
                                Clock::time_point now);
  // Records were read since the last question, up to `next`, and none came that was wanted: the
  // newest sample is to be read again all the same, or what they were read of would not show before
  // the next one.
  std::optional<Offset> Unsampled(const TopicPartition& where, Offset next, Clock::time_point now);
  struct Next {
    LogComparison compared;
    std::optional<Offset> ask;  // an older sample's, where a newer one could not tell
  };
  // The log was read again at the offset that was asked for last.
  Next Answered(const TopicPartition& where, const LogState& log, Clock::time_point now);
  // All are wanted as soon as may be: something may have happened to the topics.
  void Hurry();

  // The metadata to commit this offset with, with a sample where one below it is known.
  std::string TextFor(const TopicPartition& where, Offset next,
                      std::vector<FailedRecord> failed = {});
  // The brokers take no metadata of this length: from now on there are no failed records in it, and
  // if that does not help, there is none.
  void Shorten();

 private:
  struct Chain {
    std::vector<LogSample> known;  // by offset; the last is the newest
    std::optional<LogSample> candidate;
    bool asking = false;
    Offset asked_at = 0;  // what was read before this was followed by a question
    Clock::time_point due;
  };
  static void Push(Chain& chain, const LogSample& sample);

  const std::string pipeline_;  // CommitMetadata
  mutable std::mutex mutex_;
  std::map<TopicPartition, Chain> chains_;
  enum class Length : std::uint8_t { kFull, kSample, kNone } length_ = Length::kFull;
  bool told_failures_ = false;  // since it was shortened
};

}  // namespace fencepost::consumer
