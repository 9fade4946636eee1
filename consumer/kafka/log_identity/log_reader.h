// Reads single records of logs again, by a consumer of its own apart from the group, so that what
// is assigned starts where it is and nothing of it is disturbed. It is made for the first question,
// and kept. One thread.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/kafka/client/rdkafka_holders.h"
#include "consumer/kafka/log_identity/log_sample.h"
#include "consumer/pipeline/options.h"
#include "locking/base/error.h"

namespace fencepost::consumer {

// A leader that was deposed and resumes may answer for a moment from a log that ends before a
// record that was read of it. So such an end is believed once it was found for ten seconds, and no
// other one meanwhile. The clock is passed in.
class ShortEnds {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kBelievedAfter{10};
  static constexpr std::chrono::seconds kForgottenAfter{120};  // where it was not asked for

  // The log was found to end too early; whether that is to be believed.
  bool Believed(const TopicPartition& where, Clock::time_point now);
  // It was found to be as long as it has to be.
  void OnLongEnough(const TopicPartition& where) { found_.erase(where); }
  void Forget() { found_.clear(); }

 private:
  struct Found {
    Clock::time_point first, last;
  };
  std::map<TopicPartition, Found> found_;
};

class LogReader {
 public:
  struct Answer {
    TopicPartition where;
    LogState log;
  };

  explicit LogReader(KafkaOptions options) : options_(std::move(options)) {}

  // One question a partition; a later one takes the place of the one before it. Each is asked until
  // it is answered, and none waits for another. No call but Read waits for a broker.
  void Ask(const TopicPartition& where, std::vector<Offset> offsets);
  std::vector<Answer> Poll(Millis wait = {});
  void Forget();  // all that was asked
  [[nodiscard]] bool Asking() const { return !questions_.empty(); }
  // It was found, and is not believed yet.
  [[nodiscard]] bool EndsTooEarly(const TopicPartition& where) const;

  // Asks, and waits for the answer. What was asked in a former assignment is forgotten.
  tl::expected<std::optional<LogState>, Error> Read(const LogQuestion& question);

 private:
  using Clock = std::chrono::steady_clock;
  struct Question {
    std::vector<Offset> left;  // ascending: the first is read next
    LogState log;
    bool begun = false;
    bool at_end = false;     // where the log ends is read next, instead
    bool end_known = false;  // since the first was out of its range
    bool short_end = false;  // it was found, and is not believed yet
    Clock::time_point from;  // when to read, at the earliest
  };
  struct Waiting {  // in Read, for what was asked
    std::string cluster;
    std::vector<Offset> offsets;
    std::optional<LogState> log;
  };

  bool Connect();
  void Begin(const TopicPartition& where, Question& question);
  void End(const TopicPartition& where);
  bool Take(const rd_kafka_message_t* message, const TopicPartition& where, Question& question);
  void Pass(const TopicPartition& where, Question& question, Offset next);
  bool OnEnd(const TopicPartition& where, Question& question, Offset end);
  void Keep(std::vector<Answer> answers);
  tl::expected<bool, Error> Exists(const LogQuestion& question, Millis limit);
  [[nodiscard]] Error NoAnswer() const;

  const KafkaOptions options_;
  rdkafka::SharedConsumer consumer_;
  std::map<TopicPartition, Question> questions_;
  std::map<TopicPartition, Waiting> waiting_;  // of the assignment
  ShortEnds short_ends_;
  AssignmentEpoch epoch_ = 0;
  Clock::time_point impatient_until_;
  std::string trouble_;  // with brokers, the last
};

// For one thread.
ReadLog MakeReadLog(KafkaOptions options);

}  // namespace fencepost::consumer
