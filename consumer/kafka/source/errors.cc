// What librdkafka says went wrong: patience, a word in the log, or the end.
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "consumer/kafka/client/admin.h"
#include "consumer/kafka/client/settings.h"
#include "consumer/kafka/source/source_impl.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

constexpr int kAskMs = 2000;
constexpr std::chrono::seconds kBetweenRejoins{10};
constexpr Millis kProbe{500};

std::string Place(const PartitionProblem& problem) {
  return fmt::format("{}/{}/{}", problem.where.topic, problem.where.partition, problem.offset);
}

// librdkafka does not always say of which topic it speaks, but in words.
std::string Named(const std::string& topic, const std::string& text, bool matched) {
  if (matched) return "a topic that kafka.topics matches";
  return topic.empty() ? fmt::format("a topic ({})", text) : fmt::format("topic '{}'", topic);
}

const char* WhyNotJoined(rd_kafka_resp_err_t error) {
  switch (error) {
    case RD_KAFKA_RESP_ERR_INCONSISTENT_GROUP_PROTOCOL:
      return "; it has members that share partitions otherwise than by range: give the pipeline a "
             "group of its own, or wait until they have left";
    case RD_KAFKA_RESP_ERR_INVALID_SESSION_TIMEOUT:
      return "; keep session.timeout.ms between the brokers' group.min.session.timeout.ms and "
             "group.max.session.timeout.ms";
    default:
      return "";
  }
}

}  // namespace

void KafkaSource::Impl::OnError(rd_kafka_resp_err_t error, const std::string& text,
                                const std::string& topic) {
  if (error == RD_KAFKA_RESP_ERR__FATAL) {
    char why[512];
    const auto cause = rd_kafka_fatal_error(consumer.get(), why, sizeof(why));
    if (cause == RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID) {
      Fail(Error{"worker_name_taken",
                 fmt::format("another worker of group '{}' has taken this worker's name "
                             "(group.instance.id '{}')",
                             options.group, InstanceIdIn(client_id)),
                 "kafka.static_members",
                 "give each worker a name of its own (--worker, FENCEPOST_WORKER)"});
      return;
    }
    Fail(Error{"kafka_fatal", fmt::format("{}: {}", rd_kafka_err2name(cause), why), "kafka",
               "start the worker again"});
    return;
  }
  if (error == RD_KAFKA_RESP_ERR__TRANSPORT || error == RD_KAFKA_RESP_ERR__RESOLVE) {
    broker_error = text;
  }
  // librdkafka counts the address that it began with and the broker behind it as two.
  const std::string plain =
      error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN
          ? "all brokers are unreachable" + (broker_error.empty() ? "" : " (" + broker_error + ")")
          : text;
  const std::string all = (topic.empty() ? plain : fmt::format("{}: {}", topic, plain)) +
                          LoginHint(error, options, rd_kafka_version());
  switch (const Meaning meaning = MeaningOf(error)) {
    case Meaning::kBrokersAway:
      // "All brokers are down" also follows a login that was refused, and must not hide it.
      if (error != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN || !health.Trouble(meaning)) {
        health.SetTrouble(
            meaning, "",
            fmt::format("no broker of {} serves us: {}", fmt::join(options.brokers, ","), all));
      }
      health.Note(locking::Severity::kWarn, "brokers_away", all);
      return;
    case Meaning::kTopicMissing: {
      if (samples != nullptr) samples->Hurry();
      const bool none = !read.pattern().empty() && topic == read.pattern();
      // One that comes and goes is told as it goes: topics_gone. Where only words say which it is,
      // it is one of these if no other topic is read.
      const std::string name = topic.substr(0, topic.find('/'));
      const bool matched = name.empty() ? read.names().empty() && !read.pattern().empty()
                                        : read.Matches(name) && !read.Names(name);
      if (!none && matched) return;
      if (none) starts->NothingMatches();
      health.SetTrouble(meaning, topic,
                        fmt::format("{} does not exist (yet)", Named(topic, text, none)));
      // Who has a pattern asks for all topics, and is not told which of them are hidden.
      health.Note(locking::Severity::kWarn, "topic_missing",
                  fmt::format("{} does not exist (yet){}", Named(topic, text, none),
                              read.pattern().empty()
                                  ? ": create it, workers do not"
                                  : ", or this user may not see it: create it, or grant READ"));
      return;
    }
    case Meaning::kForbidden:
      health.SetTrouble(meaning, topic, fmt::format("not authorised: {}", all));
      health.Note(locking::Severity::kWarn, "not_authorised",
                  fmt::format("{}; grant READ on the topic and on group '{}'", all, options.group));
      return;
    case Meaning::kNotJoined:
      health.SetTrouble(meaning, "",
                        fmt::format("group '{}': {}{}", options.group, all, WhyNotJoined(error)));
      [[fallthrough]];
    default:
      health.Note(locking::Severity::kWarn, EventName("kafka_", rd_kafka_err2name(error)), all);
      return;
  }
}

// An error that came by the consumer's own queue: of the group, or of a whole topic (whose
// partition means nothing then).
void KafkaSource::Impl::OnConsumerError(const rd_kafka_message_t* message) {
  const std::string topic = message->rkt == nullptr ? "" : rd_kafka_topic_name(message->rkt);
  const char* said = rd_kafka_message_errstr(message);
  const std::string text = said == nullptr ? "" : said;
  const Meaning meaning = MeaningOf(message->err);
  if (meaning == Meaning::kOutOfRange || meaning == Meaning::kUnreadable) {
    OnProblem({{topic, message->partition}, message->offset, message->err, text});
  } else {
    OnError(message->err, text, topic);
  }
}

void KafkaSource::Impl::OnProblem(const PartitionProblem& problem) {
  switch (MeaningOf(problem.error)) {
    case Meaning::kOutOfRange:
      return OnOutOfRange(problem);
    case Meaning::kUnreadable:
      Fail(Error{
          "kafka_unreadable",
          fmt::format("the record cannot be read and would be passed over: {}", problem.text),
          Place(problem),
          "raise fetch.message.max.bytes if it is too large; otherwise set the group's offset "
          "to the one after it once it is dealt with"});
      return;
    default:
      OnError(problem.error, problem.text,
              fmt::format("{}/{}", problem.where.topic, problem.where.partition));
      return;
  }
}

// One broker said so: perhaps a follower that has deleted more than its leader, or a leader that
// was deposed. So the leader of now is asked. If it has the offset the worker joins again, since
// librdkafka has given the partition up and seeks in it no more; otherwise it is believed once it
// has said so for ten seconds.
void KafkaSource::Impl::OnOutOfRange(PartitionProblem problem) {
  if (failed) return;
  const bool known = problem.offset >= 0;  // not where a truncation shows by the leader's epoch
  if (!known) problem.offset = intake->NextOf(problem.where);
  const auto committed = starts->AskOne(problem.where, kAskMs);
  if (known && committed && *committed > problem.offset && !Planted("old_position_is_the_groups"))
    return Fail(PartitionTakenOver(options.group, problem.where, problem.offset, *committed));
  LogBounds log{-1, -1};
  const auto asked =
      rd_kafka_query_watermark_offsets(consumer.get(), problem.where.topic.c_str(),
                                       problem.where.partition, &log.first, &log.end, kAskMs);
  const bool answered = asked == RD_KAFKA_RESP_ERR_NO_ERROR;
  const bool inside = answered && problem.offset >= log.first && problem.offset <= log.end;
  if (answered && !inside && out_of_range.Believed(problem.where, Clock::now()))
    return Fail(OffsetOutOfRange(options.group, problem.where, problem.offset, log));
  const std::string why =
      fmt::format("a broker says that {} is out of range, {}; it is asked again", Place(problem),
                  !answered ? "and the leader does not answer"
                  : inside  ? "but the leader has it"
                            : "and so does the leader");
  health.SetTrouble(Meaning::kOutOfRange,
                    fmt::format("{}/{}", problem.where.topic, problem.where.partition), why);
  health.Note(locking::Severity::kWarn, "offset_in_doubt", why);
  if (samples != nullptr) samples->Hurry();  // it may be another log, which is longer by now
  if (inside) out_of_range.OnLongEnough(problem.where);
  if (inside && Clock::now() >= next_rejoin) {
    next_rejoin = Clock::now() + kBetweenRejoins;
    return AskToRejoin(why);
  }
  doubted.push_back(std::move(problem));
}

void KafkaSource::Impl::Fail(Error error) {
  if (std::exchange(failed, true)) return;
  observer->OnNote(locking::Severity::kError, error.code, error.Line());
  sink->OnFatal(std::move(error));
}

// librdkafka says when the last connection is gone, not when one is back. Whatever a broker says of
// the topics, it is there; an error of the client's own is below zero.
void KafkaSource::Impl::ProbeBrokers() {  // outside of callbacks
  const auto topics = AskTopics(consumer.get(), read, kProbe);
  if (!topics && topics.error() < RD_KAFKA_RESP_ERR_NO_ERROR) return;
  health.ClearTrouble(Meaning::kBrokersAway);
}

}  // namespace fencepost::consumer
