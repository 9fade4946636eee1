// The brokers' part of `lint --online`.
#include <optional>

#include <fmt/format.h>

#include "consumer/cli/lint/online.h"
#include "consumer/kafka/client/admin.h"
#include "consumer/kafka/client/topic_reader.h"

namespace fencepost::cli {
namespace {

using consumer::PartitionRange;
using consumer::TopicReader;

std::string Text(std::string_view what, const Error& error) {
  return fmt::format("{}: {}{}", what, error.what, error.hint.empty() ? "" : "; " + error.hint);
}

// Whether it is there, and may be read: the newest record of a partition is.
std::optional<std::vector<PartitionRange>> LintTopic(OnlineLint& lint, TopicReader& reader,
                                                     const std::string& topic) {
  const std::string name = fmt::format("topic '{}'", topic);
  const auto ranges = reader.Ranges(topic, lint.limit);
  if (!ranges) {
    const bool missing = ranges.error().code == "unknown_topic";
    lint.Error("kafka.topics",
               missing ? fmt::format("{} does not exist; create it, or correct the name", name)
                       : Text(name, ranges.error()));
    return std::nullopt;
  }
  for (const PartitionRange& range : *ranges) {
    if (range.end <= range.first) continue;
    const auto read = reader.ReadOne(range.where, range.end - 1, lint.limit);
    if (!read) lint.Error("kafka.topics", Text(name + " cannot be read", read.error()));
    break;
  }
  return *ranges;
}

// A topic that is written to. The right to write shows only when something is written.
void LintTarget(OnlineLint& lint, TopicReader& reader, std::string_view key,
                const std::string& topic) {
  const auto ranges = reader.Ranges(topic, lint.limit);
  if (ranges) return;
  if (ranges.error().code == "unknown_topic") {
    lint.Error(key, fmt::format("topic '{}' does not exist; create it, workers do not", topic));
  } else {
    lint.Error(key, Text(fmt::format("topic '{}'", topic), ranges.error()));
  }
}

// Dead letters keep the time of their records, and Kafka's retention counts from it. A role that
// may not describe settings learns nothing here.
void LintRetention(OnlineLint& lint, const std::string& topic) {
  const auto admin = consumer::KafkaAdmin::Make(lint.options().kafka);
  if (!admin) return;
  const auto kept = (*admin)->TopicSetting(topic, "retention.ms", lint.limit);
  const auto time = (*admin)->TopicSetting(topic, "message.timestamp.type", lint.limit);
  if (!kept || !time || kept->empty() || *kept == "-1" || *time == "LogAppendTime") return;
  lint.Warning("dead_letter.topic",
               fmt::format("topic '{}' keeps records for {} ms (retention.ms) from the time of the "
                           "record, which its dead letter keeps: those of older records are "
                           "deleted at once; set retention.ms=-1 and delete with `fencepost dlq "
                           "purge`, or message.timestamp.type=LogAppendTime",
                           topic, *kept));
}

}  // namespace

void LintBrokers(OnlineLint& lint) {
  const consumer::KafkaOptions& kafka = lint.options().kafka;
  const auto made = TopicReader::Make(kafka);
  if (!made) return lint.Error("kafka", made.error().Line());
  TopicReader& reader = **made;
  if (const auto id = reader.ClusterId(lint.limit); !id) {
    return lint.Error("kafka.brokers", id.error().Line());
  }
  std::optional<consumer::TopicPartition> any;
  for (const std::string& topic : kafka.topics) {
    const auto ranges = LintTopic(lint, reader, topic);
    if (ranges && !ranges->empty()) any = ranges->front().where;
  }
  if (any) {
    const auto committed = reader.Committed(kafka.group, *any, lint.limit);
    if (!committed) {
      lint.Error("kafka.group", Text(fmt::format("group '{}'", kafka.group), committed.error()));
    }
  }
  if (lint.options().dead_letter) {
    LintTarget(lint, reader, "dead_letter.topic", lint.options().dead_letter->topic);
    LintRetention(lint, lint.options().dead_letter->topic);
  }
  if (const auto* to = std::get_if<consumer::KafkaOutputOptions>(&lint.options().output)) {
    LintTarget(lint, reader, "output.kafka.topic", to->topic);
  }
}

}  // namespace fencepost::cli
