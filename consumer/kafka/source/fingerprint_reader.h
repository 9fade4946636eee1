// Reads the records of fingerprints again, by a consumer of its own apart from the group, so that
// what is assigned starts where it is and nothing of it is disturbed. Belongs to the Kafka
// thread; no call waits for a broker.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/kafka/client/shared_consumer.h"
#include "consumer/kafka/source/log_fingerprint.h"
#include "consumer/pipeline/options.h"
#include "locking/base/error.h"

namespace fencepost::consumer {

class FingerprintReader {
 public:
  struct Finding {
    TopicPartition where;
    Fingerprint asked;
    FingerprintAnswer answer = FingerprintAnswer::kMissing;
    std::optional<Fingerprint> found;  // kDifferent: what is there
  };

  explicit FingerprintReader(const KafkaOptions& options) : options_(options) {}

  // One question a partition; a later one takes the place of the one before it. Each is asked until
  // it is answered.
  void Ask(const TopicPartition& where, const Fingerprint& fingerprint);
  std::vector<Finding> Poll();
  void Forget();  // all that was asked
  [[nodiscard]] bool Asking() const { return !questions_.empty(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Question {
    Fingerprint fingerprint;
    bool sent = false;
  };
  [[nodiscard]] bool ToBeSent(Clock::time_point now) const;
  void Assign();
  void Take(const rd_kafka_message_t* message, std::vector<Finding>& findings);

  const KafkaOptions& options_;
  rdkafka::SharedConsumer consumer_;  // made for the first question, and kept
  std::map<TopicPartition, Question> questions_;
  Clock::time_point sent_;  // last
};

}  // namespace fencepost::consumer
