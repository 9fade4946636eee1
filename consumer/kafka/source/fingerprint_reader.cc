#include "consumer/kafka/source/fingerprint_reader.h"

#include <algorithm>
#include <utility>

#include "consumer/kafka/client/message.h"
#include "consumer/kafka/client/settings.h"
#include "consumer/kafka/source/kafka_health.h"

namespace fencepost::consumer {
namespace {

constexpr int kMessagesAtOnce = 10'000;
constexpr std::chrono::seconds kTime{1};

rdkafka::SharedConsumer NewConsumer(const KafkaOptions& options) {
  KafkaSettings settings = ConnectionSettings(options);
  SetSafeReading(settings);
  // librdkafka wants a group's name for any consumer, and looks for its coordinator, which this
  // user may do for this group. It is not joined, and nothing is committed.
  settings["group.id"] = options.group;
  settings["fetch.wait.max.ms"] = "100";
  settings["fetch.error.backoff.ms"] = "100";
  // One record is wanted. A batch that is larger comes nevertheless.
  settings["max.partition.fetch.bytes"] = "65536";
  settings["queued.max.messages.kbytes"] = "16384";
  settings["topic.metadata.refresh.interval.ms"] = "10000";
  settings["log_level"] = "0";
  auto conf = MakeConf(settings);
  if (!conf) return nullptr;
  auto handle = MakeHandle(RD_KAFKA_CONSUMER, *conf);
  if (!handle) return nullptr;
  rd_kafka_poll_set_consumer(handle->get());
  return rdkafka::ShareConsumer(handle->release());
}

}  // namespace

void FingerprintReader::Ask(const TopicPartition& where, const Fingerprint& fingerprint) {
  questions_.insert_or_assign(where, Question{fingerprint});
}

void FingerprintReader::Forget() {
  if (questions_.empty()) return;
  questions_.clear();
  if (consumer_ != nullptr) rd_kafka_assign(consumer_.get(), nullptr);
}

// With rd_kafka_assign all that are open are asked again: not before those that were are answered,
// or had some time.
bool FingerprintReader::ToBeSent(Clock::time_point now) const {
  const auto sent = [](const auto& one) { return one.second.sent; };
  if (std::all_of(questions_.begin(), questions_.end(), sent)) return false;
  return now >= sent_ + kTime || std::none_of(questions_.begin(), questions_.end(), sent);
}

void FingerprintReader::Assign() {
  const rdkafka::PartitionList list = rdkafka::MakeList(questions_.size());
  for (auto& [where, question] : questions_) {
    rd_kafka_topic_partition_list_add(list.get(), where.topic.c_str(), where.partition)->offset =
        question.fingerprint.offset;
    question.sent = true;
  }
  rd_kafka_assign(consumer_.get(), list.get());
}

std::vector<FingerprintReader::Finding> FingerprintReader::Poll() {
  std::vector<Finding> findings;
  if (questions_.empty()) return findings;
  if (consumer_ == nullptr) consumer_ = NewConsumer(options_);
  if (consumer_ == nullptr) return findings;
  if (const auto now = Clock::now(); ToBeSent(now)) {
    sent_ = now;
    Assign();
  }
  for (int i = 0; i < kMessagesAtOnce && !questions_.empty(); ++i) {
    const rdkafka::Message message(rd_kafka_consumer_poll(consumer_.get(), 0));
    if (message == nullptr) break;
    if (message->rkt != nullptr) Take(message.get(), findings);
  }
  if (questions_.empty()) rd_kafka_assign(consumer_.get(), nullptr);
  return findings;
}

// The first that comes from its offset on is the answer. An error that may pass is none.
void FingerprintReader::Take(const rd_kafka_message_t* message, std::vector<Finding>& findings) {
  const auto question =
      questions_.find(TopicPartition{rd_kafka_topic_name(message->rkt), message->partition});
  if (question == questions_.end() || !question->second.sent) return;
  Finding finding{question->first, question->second.fingerprint, FingerprintAnswer::kMissing,
                  std::nullopt};
  if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
    if (message->offset < finding.asked.offset) return;
    if (message->offset == finding.asked.offset) {
      Record record;
      ReadMessage(message, record);
      finding.found = FingerprintOf(record);
      finding.answer = *finding.found == finding.asked ? FingerprintAnswer::kSame
                                                       : FingerprintAnswer::kDifferent;
    }
  } else if (message->err != RD_KAFKA_RESP_ERR__PARTITION_EOF) {
    const Meaning meaning = MeaningOf(message->err);
    if (meaning != Meaning::kOutOfRange && meaning != Meaning::kUnreadable) return;
  }
  findings.push_back(std::move(finding));
  questions_.erase(question);
}

}  // namespace fencepost::consumer
