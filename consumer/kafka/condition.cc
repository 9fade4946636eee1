#include "consumer/kafka/condition.h"

#include <utility>

namespace fencepost::consumer {
namespace {

constexpr std::chrono::seconds kQuiet{30};

}  // namespace

Meaning MeaningOf(rd_kafka_resp_err_t error) {
  switch (error) {
    case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
    case RD_KAFKA_RESP_ERR__SSL:
    case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
      return Meaning::kBrokersAway;
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
    case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
      return Meaning::kTopicMissing;
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
      return Meaning::kForbidden;
    case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
    case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
      return Meaning::kOutOfRange;
    case RD_KAFKA_RESP_ERR__BAD_MSG:
    case RD_KAFKA_RESP_ERR__BAD_COMPRESSION:
    case RD_KAFKA_RESP_ERR__NOT_IMPLEMENTED:
    case RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE:
    case RD_KAFKA_RESP_ERR_INVALID_MSG:
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
      return Meaning::kUnreadable;
    default:
      return Meaning::kWeather;
  }
}

// Brokers of Kafka 4 see a mistake in the SCRAM messages of librdkafka before 2.6.1, and call it
// wrong credentials (confluentinc/librdkafka#4895).
std::string LoginHint(rd_kafka_resp_err_t error, const std::string& mechanism, int librdkafka) {
  constexpr int kMended = 0x020601ff;
  const bool login = error == RD_KAFKA_RESP_ERR__AUTHENTICATION ||
                     error == RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED;
  if (!login || !mechanism.starts_with("SCRAM") || librdkafka >= kMended) return "";
  return " (librdkafka before 2.6.1 cannot log in by " + mechanism +
         " at brokers of Kafka 4: use PLAIN over TLS or a client certificate there)";
}

Condition::Condition(SourceSink* sink, ConsumerObserver* observer)
    : sink_(sink), observer_(observer) {}

void Condition::SetJoined(bool joined, std::string reason_when_not) {
  joined_ = joined;
  not_joined_ = std::move(reason_when_not);
  Tell();
}

void Condition::SetTrouble(Meaning kind, std::string reason) {
  troubles_.try_emplace(kind, std::move(reason));
  Tell();
}

void Condition::ClearTrouble(Meaning kind) {
  if (troubles_.erase(kind) > 0) Tell();
}

void Condition::Tell() {
  const std::string* down =
      troubles_.empty() ? (joined_ ? nullptr : &not_joined_) : &troubles_.begin()->second;
  const std::string now = down == nullptr ? "" : *down;
  if (now == told_) return;
  told_ = now;
  sink_->OnKafkaState(down == nullptr, now);
}

void Condition::Note(locking::Severity severity, std::string_view event, std::string_view text) {
  const auto now = Clock::now();
  const auto found = noted_.find(event);
  if (found != noted_.end() && now - found->second < kQuiet) return;
  noted_.insert_or_assign(std::string(event), now);
  observer_->OnNote(severity, event, text);
}

}  // namespace fencepost::consumer
