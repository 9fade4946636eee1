#include "consumer/kafka/source/kafka_health.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include <fmt/format.h>

namespace fencepost::consumer {
namespace {

constexpr std::chrono::seconds kQuiet{30};

}  // namespace

// Brokers of Kafka 4 see a mistake in the SCRAM messages of librdkafka before 2.6.1, and call it
// wrong credentials (confluentinc/librdkafka#4895).
std::string LoginHint(rd_kafka_resp_err_t error, const ClusterOptions& cluster, int librdkafka) {
  constexpr int kFixed = 0x020601ff;
  const bool login = error == RD_KAFKA_RESP_ERR__AUTHENTICATION ||
                     error == RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED;
  if (!login) return "";
  const auto password = cluster.sasl_password.Read();
  if (!password) return " (kafka.sasl.password: " + password.error() + ")";
  const std::string& mechanism = cluster.sasl_mechanism;
  if (!mechanism.starts_with("SCRAM") || librdkafka >= kFixed) return "";
  return " (librdkafka before 2.6.1 cannot log in by " + mechanism +
         " at brokers of Kafka 4: use PLAIN over TLS or a client certificate there)";
}

std::string EventName(std::string_view prefix, std::string_view name) {
  std::string event(prefix);
  for (const char c : name.substr(std::min(name.find_first_not_of('_'), name.size()))) {
    event.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  }
  return event;
}

KafkaHealth::KafkaHealth(SourceSink* sink, ConsumerObserver* observer)
    : sink_(sink), observer_(observer) {}

void KafkaHealth::SetGroup(PartState group) {
  group_ = std::move(group);
  Tell();
}

void KafkaHealth::SetTrouble(Meaning kind, const std::string& subject, std::string reason) {
  troubles_[{kind, subject}] = Reason{std::move(reason), ++number_};
  Tell();
}

void KafkaHealth::ClearTrouble(Meaning kind) {
  std::erase_if(troubles_, [kind](const auto& trouble) { return trouble.first.first == kind; });
  Tell();
}

bool KafkaHealth::IsWith(const Key& trouble, const TopicPartition& where) {
  const auto& [kind, subject] = trouble;
  return kind != Meaning::kBrokersAway &&
         (subject == where.topic || subject == fmt::format("{}/{}", where.topic, where.partition));
}

void KafkaHealth::Seen(const TopicPartition& where) {
  std::erase_if(troubles_, [&](const auto& trouble) { return IsWith(trouble.first, where); });
  Tell();
}

bool KafkaHealth::TroubleWith(const TopicPartition& where) const {
  return std::any_of(troubles_.begin(), troubles_.end(),
                     [&](const auto& trouble) { return IsWith(trouble.first, where); });
}

bool KafkaHealth::Trouble(Meaning kind) const {
  const auto first = troubles_.lower_bound({kind, ""});
  return first != troubles_.end() && first->first.first == kind;
}

bool KafkaHealth::TopicTrouble() const {
  return Trouble(Meaning::kTopicMissing) || Trouble(Meaning::kForbidden) ||
         Trouble(Meaning::kOutOfRange);
}

const std::string* KafkaHealth::Worst() const {
  const Reason* worst = nullptr;
  bool away = false;
  for (const auto& [key, reason] : troubles_) {
    const bool this_away = key.first == Meaning::kBrokersAway;
    if (worst != nullptr && (this_away != away ? away : reason.number < worst->number)) continue;
    worst = &reason;
    away = this_away;
  }
  return worst == nullptr ? nullptr : &worst->text;
}

void KafkaHealth::Tell() {
  const std::string* worst = Worst();
  PartState now = worst == nullptr ? group_ : PartState{PartPhase::kDown, *worst};
  if (now == told_) return;
  told_ = now;
  sink_->OnKafkaState(std::move(now));
}

void KafkaHealth::Note(locking::Severity severity, std::string_view event, std::string_view text) {
  const auto now = Clock::now();
  const auto found = noted_.find(event);
  if (found != noted_.end() && now - found->second < kQuiet) return;
  noted_.insert_or_assign(std::string(event), now);
  observer_->OnNote(severity, event, text);
}

}  // namespace fencepost::consumer
