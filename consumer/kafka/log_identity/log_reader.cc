#include "consumer/kafka/log_identity/log_reader.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "consumer/kafka/client/admin.h"
#include "consumer/kafka/client/message.h"
#include "consumer/kafka/client/settings.h"
#include "consumer/pipeline/read_topics.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

constexpr int kMessagesAtOnce = 10'000;
constexpr Millis kReadTurn{100};
constexpr Millis kReadLimit{3'000};   // of Read, the first time
constexpr Millis kImpatient{30'000};  // after a question that was not answered in time
constexpr Millis kShortAgain{1'000};  // an end that is not believed is read again

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

rdkafka::PartitionList ListOf(const TopicPartition& where, Offset offset) {
  rdkafka::PartitionList list = rdkafka::MakeList(1);
  rd_kafka_topic_partition_list_add(list.get(), where.topic.c_str(), where.partition)->offset =
      offset;
  return list;
}

// What is no member of a group may assign one partition without the others.
void Assign(rd_kafka_t* consumer, const TopicPartition& where, Offset offset) {
  rd_kafka_error_destroy(rd_kafka_incremental_assign(consumer, ListOf(where, offset).get()));
}

void Unassign(rd_kafka_t* consumer, const TopicPartition& where) {
  rd_kafka_error_destroy(rd_kafka_incremental_unassign(consumer, ListOf(where, 0).get()));
}

}  // namespace

bool ShortEnds::Believed(const TopicPartition& where, Clock::time_point now) {
  Found& found = found_.try_emplace(where, now, now).first->second;
  if (now - found.last > kForgottenAfter) found.first = now;
  found.last = now;
  return now - found.first >= kBelievedAfter || Planted("short_end_is_believed_at_once");
}

bool LogReader::Connect() {
  if (consumer_ == nullptr) consumer_ = NewConsumer(options_);
  return consumer_ != nullptr;
}

void LogReader::Ask(const TopicPartition& where, std::vector<Offset> offsets) {
  End(where);
  std::ranges::sort(offsets);
  questions_[where].left = std::move(offsets);
}

void LogReader::End(const TopicPartition& where) {
  const auto question = questions_.find(where);
  if (question == questions_.end()) return;
  if (question->second.begun) Unassign(consumer_.get(), where);
  questions_.erase(question);
}

void LogReader::Forget() {
  while (!questions_.empty()) End(TopicPartition(questions_.begin()->first));
  short_ends_.Forget();
}

// What librdkafka has fetched of the place before is outdated then, and does not come any more.
void LogReader::Begin(const TopicPartition& where, Question& question) {
  if (question.begun) Unassign(consumer_.get(), where);
  question.begun = true;
  Assign(consumer_.get(), where,
         question.at_end ? Offset{RD_KAFKA_OFFSET_END} : question.left.front());
}

std::vector<LogReader::Answer> LogReader::Poll(Millis wait) {
  std::vector<Answer> answers;
  if (questions_.empty() || !Connect()) return answers;
  for (auto& [where, question] : questions_) {
    if (!question.begun && Clock::now() >= question.from) Begin(where, question);
  }
  for (int i = 0; i < kMessagesAtOnce && !questions_.empty(); ++i) {
    const int wait_ms = i == 0 ? static_cast<int>(wait.count()) : 0;
    const rdkafka::Message message(rd_kafka_consumer_poll(consumer_.get(), wait_ms));
    if (message == nullptr) break;
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      trouble_ = rd_kafka_message_errstr(message.get());
    }
    if (message->rkt == nullptr) continue;
    const TopicPartition where{rd_kafka_topic_name(message->rkt), message->partition};
    const auto question = questions_.find(where);
    if (question == questions_.end() || !Take(message.get(), where, question->second)) continue;
    if (question->second.left.empty()) {
      answers.push_back({where, std::move(question->second.log)});
      End(where);
    } else if (question->second.begun) {
      Begin(where, question->second);
    }
  }
  return answers;
}

// False: nothing is known by it. The first that comes from an offset on tells of all before it. An
// end at the offset itself is asked for: a new leader's may be behind for a moment.
bool LogReader::Take(const rd_kafka_message_t* message, const TopicPartition& where,
                     Question& question) {
  const Offset asked = question.left.front();
  LogState& log = question.log;
  if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
    if (question.at_end) return OnEnd(where, question, message->offset + 1);
    if (message->offset < asked) return false;
    Pass(where, question, message->offset);
    log.end = std::max(log.end, message->offset + 1);
    if (question.left.empty() || question.left.front() != message->offset) return true;
    Record record;
    ReadMessage(message, record);
    log.records.push_back(SampleOf(record));
    Pass(where, question, message->offset + 1);
    return true;
  }
  if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
    if (question.at_end) return OnEnd(where, question, message->offset);
    log.end = std::max(log.end, message->offset);
    Pass(where, question, message->offset);
    question.at_end = message->offset <= asked;
    return true;
  }
  const Meaning meaning = MeaningOf(message->err);
  if (meaning != Meaning::kOutOfRange && meaning != Meaning::kUnreadable) return false;
  if (meaning == Meaning::kOutOfRange && !question.end_known) {
    question.at_end = true;
    return true;
  }
  log.end = std::max(log.end, asked + 1);
  Pass(where, question, asked + 1);  // below the first, or unreadable
  return true;
}

void LogReader::Pass(const TopicPartition& where, Question& question, Offset next) {
  std::erase_if(question.left, [next](Offset offset) { return offset < next; });
  question.end_known = false;
  if (question.left.empty()) short_ends_.OnLongEnough(where);
}

// What is below the end is read once more: it was written meanwhile, or is deleted.
bool LogReader::OnEnd(const TopicPartition& where, Question& question, Offset end) {
  question.at_end = false;
  question.end_known = true;
  question.log.end = end;
  question.short_end = false;
  if (question.left.front() < end) return true;
  if (short_ends_.Believed(where, Clock::now())) {
    question.left.clear();
    return true;
  }
  Unassign(consumer_.get(), where);
  question.begun = question.end_known = false;
  question.short_end = true;
  question.log.shortest = std::min(question.log.shortest, end);
  question.from = Clock::now() + kShortAgain;
  return true;
}

// --- one that is waited for --------------------------------------------------------------------

tl::expected<std::optional<LogState>, Error> LogReader::Read(const LogQuestion& question) {
  if (question.offsets.empty()) return LogState{};
  if (!Connect()) return tl::unexpected(NoAnswer());
  if (question.epoch > std::exchange(epoch_, std::max(epoch_, question.epoch))) {
    Forget();
    waiting_.clear();
  }
  const auto began = Clock::now();
  const bool patient = began >= impatient_until_;
  const Millis limit = patient ? kReadLimit : kReadTurn;
  Waiting& waiting = waiting_[question.where];
  const bool again = waiting.offsets == question.offsets && waiting.cluster == question.cluster;
  if (!again) {
    // Whether it exists is asked before its log is.
    const auto exists = Exists(question, limit);
    if (!exists && patient) impatient_until_ = Clock::now() + kImpatient;
    if (!exists) return tl::unexpected(exists.error());
    if (!*exists) return std::nullopt;
    Ask(question.where, question.offsets);
    waiting = {.cluster = std::string(question.cluster), .offsets = question.offsets, .log = {}};
  }
  const auto until = began + (again ? Millis(0) : limit);
  do {
    Keep(Poll(again ? Millis(0) : kReadTurn));
    if (waiting.log) {
      LogState log = std::move(*waiting.log);
      waiting_.erase(question.where);
      return log;
    }
  } while (Clock::now() < until && !EndsTooEarly(question.where));
  if (EndsTooEarly(question.where)) {
    return tl::unexpected(Error{"topic_in_doubt",
                                "its log ends before a record that was read of it, and is read "
                                "again for some seconds, since its leader may be an outdated one",
                                "", ""});
  }
  if (patient && !again) impatient_until_ = Clock::now() + kImpatient;
  return tl::unexpected(NoAnswer());
}

void LogReader::Keep(std::vector<Answer> answers) {
  for (Answer& answer : answers) waiting_[answer.where].log = std::move(answer.log);
}

// A topic that only a replayed dead letter names may be gone: nothing of its log is left to
// compare. One that the pipeline reads may come back.
tl::expected<bool, Error> LogReader::Exists(const LogQuestion& question, Millis limit) {
  const int limit_ms = static_cast<int>(limit.count());
  char* id = rd_kafka_clusterid(consumer_.get(), limit_ms);
  if (id == nullptr) {
    Keep(Poll(kReadTurn));  // the reason comes as an event
    return tl::unexpected(NoAnswer());
  }
  const bool ours = question.cluster == id;
  rd_kafka_mem_free(consumer_.get(), id);
  if (!ours) return false;
  const auto count = AskPartitionCount(consumer_.get(), question.where.topic, Millis(limit_ms));
  if (count) return question.where.partition < *count;
  const bool missing = MeaningOf(count.error()) == Meaning::kTopicMissing;
  if (missing && !ReadTopics(options_.topics).Has(question.where.topic)) return false;
  trouble_ = rd_kafka_err2str(count.error());
  return tl::unexpected(NoAnswer());
}

bool LogReader::EndsTooEarly(const TopicPartition& where) const {
  const auto question = questions_.find(where);
  return question != questions_.end() && question->second.short_end;
}

Error LogReader::NoAnswer() const {
  return {"kafka_unreachable",
          fmt::format("no broker of {} answers", fmt::join(options_.brokers, ",")), trouble_,
          "check the addresses, and TLS and SASL"};
}

ReadLog MakeReadLog(KafkaOptions options) {
  return [reader = std::make_shared<LogReader>(std::move(options))](const LogQuestion& question) {
    return reader->Read(question);
  };
}

}  // namespace fencepost::consumer
