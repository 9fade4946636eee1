// The state of the connection to Kafka, told to the sink when it changes and to the log once in a
// while. Belongs to the Kafka thread.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "consumer/kafka/client/message.h"
#include "consumer/kafka/client/rdkafka_holders.h"
#include "consumer/kafka/source/source.h"

namespace fencepost::consumer {

// A name of librdkafka's as an event of ours: kafka_ and _TRANSPORT is kafka_transport.
std::string EventName(std::string_view prefix, std::string_view name);
// What to add to a refused login; empty where nothing is known. `librdkafka`: rd_kafka_version().
std::string LoginHint(rd_kafka_resp_err_t error, const ClusterOptions& cluster, int librdkafka);

class KafkaHealth {
 public:
  KafkaHealth(SourceSink* sink, ConsumerObserver* observer);

  // Its place in the group; the reason of one that is up: what of it is still waited for.
  void SetGroup(PartState group);
  // Of kBrokersAway, kTopicMissing, kForbidden. What is told is the newest trouble there is, but
  // that brokers are away comes first: the others can only be looked at once they are back.
  // `subject`: what the trouble is with ("orders", "orders/3"; empty: not known). Of one subject
  // the newest reason counts.
  void SetTrouble(Meaning kind, const std::string& subject, std::string reason);
  void ClearTrouble(Meaning kind);
  // Its records come: it is there, and may be read. The troubles of `where` and of its topic end.
  void Seen(const TopicPartition& where);
  [[nodiscard]] bool Trouble(Meaning kind) const;
  // Something is missing or forbidden (Seen may end it): at all, with this partition or its topic.
  [[nodiscard]] bool TopicTrouble() const;
  [[nodiscard]] bool TroubleWith(const TopicPartition& where) const;

  // At most one line in half a minute for an event.
  void Note(locking::Severity severity, std::string_view event, std::string_view text);

 private:
  using Clock = std::chrono::steady_clock;
  using Key = std::pair<Meaning, std::string>;
  struct Reason {
    std::string text;
    std::uint64_t number = 0;  // counted: the highest is the newest
  };
  void Tell();
  [[nodiscard]] const std::string* Worst() const;
  [[nodiscard]] static bool IsWith(const Key& trouble, const TopicPartition& where);

  SourceSink* sink_;
  ConsumerObserver* observer_;
  PartState group_{PartPhase::kJoining, ""};
  std::map<Key, Reason> troubles_;
  std::uint64_t number_ = 0;
  std::optional<PartState> told_;
  std::map<std::string, Clock::time_point, std::less<>> noted_;
};

}  // namespace fencepost::consumer
