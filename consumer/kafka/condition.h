// How the connection to Kafka stands, told to the sink when it changes and to the log once in a
// while. Belongs to the Kafka thread.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>

#include "consumer/kafka/rdkafka_holders.h"
#include "consumer/kafka/source.h"

namespace fencepost::consumer {

// What one librdkafka error means for a consumer.
enum class Meaning : std::uint8_t {
  kBrokersAway,   // none can be reached, or they do not let us in: patience
  kTopicMissing,  // the topic does not exist (yet): patience
  kForbidden,     // an ACL is missing: patience, the operator mends it
  kWeather,       // passes by itself; worth a line in the log
  kOutOfRange,    // the offset to go on from is not there any more
  kUnreadable,    // librdkafka would skip records: the pipeline must stop
};
Meaning MeaningOf(rd_kafka_resp_err_t error);
// What to add to a refused login; empty where nothing is known. `librdkafka`: rd_kafka_version().
std::string LoginHint(rd_kafka_resp_err_t error, const std::string& mechanism, int librdkafka);

class Condition {
 public:
  Condition(SourceSink* sink, ConsumerObserver* observer);

  void SetJoined(bool joined, std::string reason_when_not);
  void SetTrouble(Meaning kind, std::string reason);  // kBrokersAway, kTopicMissing, kForbidden
  void ClearTrouble(Meaning kind);
  [[nodiscard]] bool Trouble(Meaning kind) const { return troubles_.contains(kind); }

  // At most one line in half a minute for an event.
  void Note(locking::Severity severity, std::string_view event, std::string_view text);

 private:
  using Clock = std::chrono::steady_clock;
  void Tell();

  SourceSink* sink_;
  ConsumerObserver* observer_;
  bool joined_ = false;
  std::string not_joined_ = "joining the group";
  std::map<Meaning, std::string> troubles_;
  std::string told_ = "nothing yet";  // empty: up
  std::map<std::string, Clock::time_point, std::less<>> noted_;
};

}  // namespace fencepost::consumer
