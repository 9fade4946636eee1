#include "consumer/kafka/client/topic_reader.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "consumer/kafka/client/admin.h"
#include "consumer/kafka/client/message.h"
#include "consumer/kafka/client/rdkafka_holders.h"
#include "consumer/kafka/client/settings.h"

namespace fencepost::consumer {
namespace {

using Clock = std::chrono::steady_clock;

// A partition has no leader or it has moved, or the group's coordinator has.
bool Passes(rd_kafka_resp_err_t error) {
  switch (error) {
    case RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION:
    case RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_OFFSET_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_FENCED_LEADER_EPOCH:
    case RD_KAFKA_RESP_ERR_UNKNOWN_LEADER_EPOCH:
    case RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR:
    case RD_KAFKA_RESP_ERR_NOT_COORDINATOR:
    case RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS:
      return true;
    default:
      return false;
  }
}

// Of a question, or else of the first partition that has one.
rd_kafka_resp_err_t ErrorOf(rd_kafka_resp_err_t asked,
                            const rd_kafka_topic_partition_list_t& answers) {
  for (int i = 0; i < answers.cnt && asked == RD_KAFKA_RESP_ERR_NO_ERROR; ++i) {
    asked = answers.elems[i].err;
  }
  return asked;
}

// A poll and no more: librdkafka wants a group's name for any consumer. It is never joined, and
// nothing is committed under it.
constexpr const char* kNoGroup = "fencepost-reader";
constexpr int kTurnMs = 100;

// `error`: nullptr, or what becomes the newest trouble with the connections, as it is polled for;
// it outlives the consumer.
tl::expected<rdkafka::SharedConsumer, Error> NewConsumer(const KafkaOptions& options,
                                                         const std::string& group,
                                                         std::string* error) {
  KafkaSettings settings = ConnectionSettings(options);
  SetSafeReading(settings);
  settings["group.id"] = group;
  settings["fetch.wait.max.ms"] = "100";
  settings["log_level"] = "0";
  auto conf = MakeConf(settings);
  if (!conf) return tl::unexpected(conf.error());
  rd_kafka_conf_set_opaque(conf->get(), error);
  rd_kafka_conf_set_error_cb(conf->get(), [](rd_kafka_t*, int code, const char* why, void* to) {
    auto* const newest = static_cast<std::string*>(to);
    // "All brokers are down" also follows a login that was refused, and must not hide it.
    const bool says_why = code != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN;
    if (newest != nullptr && (says_why || newest->empty())) *newest = why;
  });
  auto handle = MakeHandle(RD_KAFKA_CONSUMER, *conf);
  if (!handle) return tl::unexpected(handle.error());
  rd_kafka_poll_set_consumer(handle->get());
  return rdkafka::ShareConsumer(handle->release());
}

}  // namespace

class TopicReader::Until {
 public:
  explicit Until(Millis limit) : end_(Clock::now() + limit) {}
  [[nodiscard]] bool Over() const { return Clock::now() >= end_; }
  [[nodiscard]] int Ms() const {
    const auto left = std::chrono::duration_cast<Millis>(end_ - Clock::now());
    return static_cast<int>(std::max<std::int64_t>(left.count(), 1));
  }

 private:
  Clock::time_point end_;
};

// Where a partition's end was when the reading began, and how far it is read.
struct TopicReader::Reading {
  PartitionRange range;
  bool done = false;
};

Error TopicReader::Failed(rd_kafka_resp_err_t error, const std::string& where) const {
  switch (error) {
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
      return {"unknown_topic", "there is no such topic or partition", where, "check the name"};
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
      return {"kafka_read", "not authorised", where, "grant READ and DESCRIBE on the topic"};
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
      return {"kafka_read", "not authorised", where, "grant DESCRIBE and READ on the group"};
    case RD_KAFKA_RESP_ERR__TIMED_OUT:
    case RD_KAFKA_RESP_ERR__TRANSPORT:
    case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
      return {"kafka_unreachable",
              fmt::format("no broker of {} answers", fmt::join(options_.brokers, ",")), where,
              "check the addresses, and TLS and SASL"};
    default:
      return {"kafka_read", rd_kafka_err2str(error), where, ""};
  }
}

// Asks again while the answer is one that passes.
rd_kafka_resp_err_t TopicReader::Ask(const Until& until,
                                     const std::function<rd_kafka_resp_err_t()>& ask) const {
  for (;;) {
    const auto error = ask();
    if (!Passes(error) || until.Over()) return error;
    rdkafka::Message(rd_kafka_consumer_poll(consumer_.get(), kTurnMs));
  }
}

tl::expected<PartitionRange, Error> TopicReader::RangeOf(const TopicPartition& where,
                                                         const Until& until) const {
  std::int64_t low = 0;
  std::int64_t high = 0;
  const auto error = Ask(until, [&] {
    return rd_kafka_query_watermark_offsets(consumer_.get(), where.topic.c_str(), where.partition,
                                            &low, &high, until.Ms());
  });
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return tl::unexpected(Failed(error, fmt::format("{}/{}", where.topic, where.partition)));
  }
  return PartitionRange{where, low, std::max(low, high)};
}

tl::expected<void, Error> TopicReader::Assign(const std::vector<Reading>& readings) {
  const rdkafka::PartitionList list = rdkafka::MakeList(readings.size());
  for (const Reading& one : readings) {
    if (one.done) continue;
    rd_kafka_topic_partition_list_add(list.get(), one.range.where.topic.c_str(),
                                      one.range.where.partition)
        ->offset = one.range.first;
  }
  const auto error = rd_kafka_assign(consumer_.get(), list.get());
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return tl::unexpected(Failed(error, "assign"));
  return {};
}

tl::expected<rdkafka::Message, Error> TopicReader::Poll() {
  rdkafka::Message message(rd_kafka_consumer_poll(consumer_.get(), kTurnMs));
  if (message == nullptr) return nullptr;
  const auto error = message->err;
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR || error == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
    return message;
  }
  const bool ours = message->rkt != nullptr;
  const std::string where =
      ours ? fmt::format("{}/{}", rd_kafka_topic_name(message->rkt), message->partition) : "";
  const bool passes = error == RD_KAFKA_RESP_ERR__TRANSPORT ||
                      error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN ||
                      error == RD_KAFKA_RESP_ERR__RESOLVE || !ours;
  if (!passes) return tl::unexpected(Failed(error, where));
  last_connection_error_ = rd_kafka_message_errstr(message.get());
  return nullptr;
}

tl::expected<std::unique_ptr<TopicReader>, Error> TopicReader::Make(const KafkaOptions& kafka) {
  auto made = std::unique_ptr<TopicReader>(new TopicReader(kafka));
  auto consumer = NewConsumer(kafka, kNoGroup, &made->last_connection_error_);
  if (!consumer) return tl::unexpected(consumer.error());
  made->consumer_ = std::move(*consumer);
  return made;
}

tl::expected<std::vector<PartitionRange>, Error> TopicReader::Ranges(const std::string& topic,
                                                                     Millis limit) {
  const Until until(limit);
  int count = 0;
  const auto error = Ask(until, [&] {
    const auto asked = AskPartitionCount(consumer_.get(), topic, Millis(until.Ms()));
    count = asked.value_or(0);
    return asked ? RD_KAFKA_RESP_ERR_NO_ERROR : asked.error();
  });
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return tl::unexpected(Failed(error, topic));
  std::vector<PartitionRange> ranges;
  for (int p = 0; p < count; ++p) {
    auto range = RangeOf({topic, p}, until);
    if (!range) return tl::unexpected(range.error());
    ranges.push_back(std::move(*range));
  }
  return ranges;
}

tl::expected<std::vector<PartitionRange>, Error> TopicReader::Since(
    std::vector<PartitionRange> ranges, Millis unix_time, Millis limit) {
  rdkafka::PartitionList list;
  const Until until(limit);
  const auto error = Ask(until, [&] {
    list = rdkafka::MakeList(ranges.size());
    for (const PartitionRange& range : ranges) {
      rd_kafka_topic_partition_list_add(list.get(), range.where.topic.c_str(),
                                        range.where.partition)
          ->offset = unix_time.count();
    }
    return ErrorOf(rd_kafka_offsets_for_times(consumer_.get(), list.get(), until.Ms()), *list);
  });
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return tl::unexpected(Failed(error, "offsets by time"));
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const auto& found = list->elems[i];
    // None is so young: RD_KAFKA_OFFSET_END.
    ranges[i].first = found.offset < 0 ? ranges[i].end : std::max(ranges[i].first, found.offset);
  }
  return ranges;
}

tl::expected<void, Error> TopicReader::Read(const std::vector<PartitionRange>& ranges,
                                            const std::function<bool(const TopicRecord&)>& visit,
                                            Millis limit) {
  std::vector<Reading> readings;
  std::map<TopicPartition, std::size_t> at;
  std::size_t left = 0;
  for (const PartitionRange& range : ranges) {
    at[range.where] = readings.size();
    readings.push_back(Reading{range, range.first >= range.end});
    if (!readings.back().done) ++left;
  }
  if (left == 0) return {};
  if (auto assigned = Assign(readings); !assigned) return assigned;
  tl::expected<void, Error> result;
  Until until(limit);
  while (left > 0) {
    auto polled = Poll();
    if (!polled) {
      result = tl::unexpected(polled.error());
      break;
    }
    if (*polled == nullptr) {
      if (!until.Over()) continue;
      result = tl::unexpected(Failed(RD_KAFKA_RESP_ERR__TIMED_OUT, last_connection_error_));
      break;
    }
    until = Until(limit);
    const rd_kafka_message_t* message = polled->get();
    TopicRecord one{{rd_kafka_topic_name(message->rkt), message->partition}, {}};
    const auto found = at.find(one.where);
    if (found == at.end() || readings[found->second].done) continue;
    Reading& reading = readings[found->second];
    // A partition's end moves it too: what comes last may be a hole, or an aborted record.
    const bool end = message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
    const bool inside = !end && message->offset < reading.range.end;
    reading.done = end || message->offset + 1 >= reading.range.end;
    if (reading.done) --left;
    if (!inside) continue;
    ReadMessage(message, one.record);
    if (!visit(one)) break;
  }
  rd_kafka_assign(consumer_.get(), nullptr);
  return result;
}

tl::expected<std::optional<TopicRecord>, Error> TopicReader::ReadOne(const TopicPartition& where,
                                                                     Offset offset, Millis limit) {
  const auto range = RangeOf(where, Until(limit));
  if (!range) return tl::unexpected(range.error());
  if (offset < range->first || offset >= range->end) return std::nullopt;
  std::optional<TopicRecord> found;
  // A hole shows as a later record that comes first, or as the partition's end.
  const auto read = Read(
      {{where, offset, range->end}},
      [&](const TopicRecord& record) {
        if (record.record.offset == offset) found = record;
        return false;
      },
      limit);
  if (!read) return tl::unexpected(read.error());
  return found;
}

tl::expected<std::vector<CommittedOffset>, Error> TopicReader::Committed(
    const std::string& group, const std::vector<TopicPartition>& partitions, Millis limit) {
  const auto member = NewConsumer(options_, group, nullptr);
  if (!member) return tl::unexpected(member.error());
  rdkafka::PartitionList list;
  const Until until(limit);
  const auto error = Ask(until, [&] {
    list = rdkafka::MakeList(partitions.size());
    for (const TopicPartition& where : partitions) {
      rd_kafka_topic_partition_list_add(list.get(), where.topic.c_str(), where.partition);
    }
    return ErrorOf(rd_kafka_committed(member->get(), list.get(), until.Ms()), *list);
  });
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return tl::unexpected(Failed(error, "group " + group));
  std::vector<CommittedOffset> committed;
  for (std::size_t i = 0; i < partitions.size(); ++i) {
    const rd_kafka_topic_partition_t& one = list->elems[i];
    CommittedOffset& of_it = committed.emplace_back(CommittedOffset{partitions[i], {}, {}});
    if (one.offset >= 0) of_it.next = one.offset;
    if (one.metadata == nullptr) continue;
    of_it.metadata.assign(static_cast<const char*>(one.metadata), one.metadata_size);
  }
  return committed;
}

tl::expected<std::string, Error> TopicReader::ClusterId(Millis limit) {
  char* id = rd_kafka_clusterid(consumer_.get(), Until(limit).Ms());
  if (id == nullptr) {
    // The reason came as an event meanwhile.
    for (int turn = 0; turn < 5 && last_connection_error_.empty(); ++turn) {
      (void)Poll();
    }
    return tl::unexpected(Failed(RD_KAFKA_RESP_ERR__TIMED_OUT, last_connection_error_));
  }
  std::string copy(id);
  rd_kafka_mem_free(consumer_.get(), id);
  return copy;
}

}  // namespace fencepost::consumer
