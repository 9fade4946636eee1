#include "consumer/kafka/client/producer.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "consumer/kafka/client/admin.h"

namespace fencepost::consumer {
namespace {

Error NotDelivered(std::string_view topic, rd_kafka_resp_err_t error, std::string_view why) {
  constexpr std::array kCodes{Producer::kFailed, Producer::kTooLarge, Producer::kTimeRefused,
                              Producer::kRefused};
  return Error{kCodes.at(static_cast<std::size_t>(BlameOf(error))),
               fmt::format("a record for {}: {}", topic, why), "",
               std::string(WhatToDoAbout(error))};
}

// nullptr where there are none. They go to librdkafka as RD_KAFKA_VTYPE_HEADERS, never one by one:
// 2.0.2 frees the latter twice when it refuses a record for its topic or partition.
rdkafka::Headers MakeHeaders(const std::vector<HeaderView>& headers) {
  if (headers.empty()) return nullptr;
  rdkafka::Headers made(rd_kafka_headers_new(headers.size()));
  for (const HeaderView& header : headers) {
    const char* value = header.value ? header.value->data() : nullptr;
    if (header.value && value == nullptr) value = "";
    rd_kafka_header_add(made.get(), header.name.data(), static_cast<ssize_t>(header.name.size()),
                        value, header.value ? static_cast<ssize_t>(header.value->size()) : 0);
  }
  return made;
}

}  // namespace

Blame BlameOf(rd_kafka_resp_err_t code) {
  switch (code) {
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
      return Blame::kItsSize;
    case RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP:
      return Blame::kItsTime;
    case RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE:
    case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_INVALID_RECORD:
      return Blame::kItsContent;
    default:
      break;
  }
  // Of librdkafka 2.6 and later: another record of its batch was refused.
  const std::string_view name = rd_kafka_err2name(code);
  return name == "_INVALID_DIFFERENT_RECORD" ? Blame::kItsContent : Blame::kNoRecord;
}

std::string_view WhatToDoAbout(rd_kafka_resp_err_t error) {
  switch (error) {
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
      return "create the topic, workers do not";
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
      return "grant WRITE on the topic";
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
      return "grant READ on the group";
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
      return "grant IDEMPOTENT_WRITE on the cluster";
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
      return "raise the topic's max.message.bytes";
    case RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS:
    case RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND:
      return "start brokers, until as many replicas are in sync as the topic's min.insync.replicas";
    case RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT:
      return "raise the topic's message.format.version";
    case RD_KAFKA_RESP_ERR_UNSUPPORTED_COMPRESSION_TYPE:
      return "choose another compression.type in kafka.librdkafka";
    case RD_KAFKA_RESP_ERR__MSG_TIMED_OUT:
      return "check that the brokers are up, and that the topic exists";
    default:
      return "";
  }
}

std::string WhyRefused(const rd_kafka_message_t* message) {
  const std::string why = rd_kafka_err2str(message->err);
  const char* const topic = rd_kafka_topic_name(message->rkt);
  switch (message->err) {
    case RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP:
      return fmt::format(
          "{}: see message.timestamp.before.max.ms and message.timestamp.after.max.ms of {}", why,
          topic);
    case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
      return fmt::format("{}: see segment.bytes of {}", why, topic);
    case RD_KAFKA_RESP_ERR_INVALID_RECORD:
      // Where brokers check no schemas, this is what it means.
      if (message->key != nullptr) return why;
      return fmt::format(
          "{}: it has no key, and where cleanup.policy of {} is compact, it takes none without",
          why, topic);
    default:
      return why;
  }
}

Error ErrorOfLoop(std::string_view section) {
  return {"bad_config",
          fmt::format("{}.brokers are of the same cluster as kafka.brokers, and its topic is read: "
                      "records would come back for ever",
                      section),
          fmt::format("{}.topic", section), "take a topic of its own"};
}

Error ErrorOfTopic(const std::string& topic, const char* where, rd_kafka_resp_err_t code) {
  if (code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART) {
    return {"unknown_topic", fmt::format("topic '{}' does not exist (yet)", topic), where,
            "create it, workers do not"};
  }
  return {"kafka_output", fmt::format("topic '{}': {}", topic, rd_kafka_err2str(code)), where,
          std::string(WhatToDoAbout(code))};
}

rdkafka::Failure Enqueue(rd_kafka_t* handle, const OutgoingRecord& record, void* opaque,
                         rd_kafka_topic_t* topic) {
  std::array<rd_kafka_vu_t, 8> parts{};
  std::size_t count = 0;
  const auto part = [&](rd_kafka_vtype_t type) -> auto& {
    parts.at(count).vtype = type;
    return parts.at(count++).u;
  };
  const auto bytes = [&](rd_kafka_vtype_t type, const std::optional<std::string_view>& some) {
    auto& memory = part(type).mem;
    if (!some) return;
    // No bytes and no value are different things.
    memory.ptr = const_cast<char*>(some->data() == nullptr ? "" : some->data());
    memory.size = some->size();
  };
  std::string name;
  if (topic != nullptr) {
    part(RD_KAFKA_VTYPE_RKT).rkt = topic;
  } else {
    name = record.topic;
    part(RD_KAFKA_VTYPE_TOPIC).cstr = name.c_str();
  }
  part(RD_KAFKA_VTYPE_MSGFLAGS).i = RD_KAFKA_MSG_F_COPY;
  part(RD_KAFKA_VTYPE_OPAQUE).ptr = opaque;
  if (record.partition) part(RD_KAFKA_VTYPE_PARTITION).i32 = *record.partition;
  if (record.timestamp) part(RD_KAFKA_VTYPE_TIMESTAMP).i64 = record.timestamp->count();
  bytes(RD_KAFKA_VTYPE_KEY, record.key);
  bytes(RD_KAFKA_VTYPE_VALUE, record.value);
  rdkafka::Headers headers = MakeHeaders(record.headers);
  if (headers) part(RD_KAFKA_VTYPE_HEADERS).headers = headers.get();
  rdkafka::Failure error(rd_kafka_produceva(handle, parts.data(), count));
  if (!error) (void)headers.release();
  return error;
}

tl::expected<std::unique_ptr<Producer>, Error> Producer::Make(const KafkaOptions& options,
                                                              const KafkaSettings& settings) {
  KafkaSettings all = ConnectionSettings(options);
  all["enable.idempotence"] = "true";
  all["linger.ms"] = "5";
  all["log_level"] = "3";
  for (const auto& [name, value] : settings) all[name] = value;
  auto conf = MakeConf(all);
  if (!conf) return tl::unexpected(conf.error());
  auto producer = std::unique_ptr<Producer>(new Producer());
  rd_kafka_conf_set_opaque(conf->get(), producer.get());
  rd_kafka_conf_set_dr_msg_cb(conf->get(),
                              [](rd_kafka_t*, const rd_kafka_message_t* message, void* opaque) {
                                static_cast<Producer*>(opaque)->OnReport(message);
                              });
  auto handle = MakeHandle(RD_KAFKA_PRODUCER, *conf);
  if (!handle) return tl::unexpected(handle.error());
  producer->handle_ = std::move(*handle);
  return producer;
}

Producer::~Producer() {
  if (!handle_) return;
  rd_kafka_purge(handle_.get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
  rd_kafka_flush(handle_.get(), 1000);
}

void Producer::OnReport(const rd_kafka_message_t* message) {
  const std::unique_ptr<OnDelivery> done(static_cast<OnDelivery*>(message->_private));
  if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
    if (done) (*done)(message->offset);
    return;
  }
  const Error error =
      NotDelivered(rd_kafka_topic_name(message->rkt), message->err, WhyRefused(message));
  {
    const std::lock_guard lock(mutex_);
    if (!first_failure_) first_failure_ = error;
  }
  if (done) (*done)(tl::unexpected(error));
}

tl::expected<void, Error> Producer::Send(const OutgoingRecord& record, OnDelivery done,
                                         Millis limit) {
  auto held = done ? std::make_unique<OnDelivery>(std::move(done)) : nullptr;
  const auto end = std::chrono::steady_clock::now() + limit;
  while (const rdkafka::Failure error = Enqueue(handle_.get(), record, held.get())) {
    const auto code = rd_kafka_error_code(error.get());
    if (code != RD_KAFKA_RESP_ERR__QUEUE_FULL) {
      return tl::unexpected(NotDelivered(record.topic, code, rd_kafka_error_string(error.get())));
    }
    if (std::chrono::steady_clock::now() >= end) {
      return tl::unexpected(Error{"kafka_queue_full", "the brokers do not take records",
                                  std::string(record.topic), ""});
    }
    rd_kafka_poll(handle_.get(), 10);
  }
  (void)held.release();  // the delivery report owns it
  rd_kafka_poll(handle_.get(), 0);
  return {};
}

rd_kafka_resp_err_t Producer::LookFor(const std::string& topic, Millis limit) {
  const auto count = AskPartitionCount(handle_.get(), topic, limit);
  return count ? RD_KAFKA_RESP_ERR_NO_ERROR : count.error();
}

bool Producer::failed_for_good() const {
  return rd_kafka_fatal_error(handle_.get(), nullptr, 0) != RD_KAFKA_RESP_ERR_NO_ERROR;
}

void Producer::Poll(Millis wait) { rd_kafka_poll(handle_.get(), Ms(wait)); }

tl::expected<void, Error> Producer::Flush(Millis limit) {
  const auto error = rd_kafka_flush(handle_.get(), Ms(limit));
  const std::lock_guard lock(mutex_);
  const auto failure = std::exchange(first_failure_, std::nullopt);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return tl::unexpected(
        Error{kFailed, fmt::format("flush: {}", rd_kafka_err2str(error)), "", ""});
  }
  if (failure) return tl::unexpected(*failure);
  return {};
}

}  // namespace fencepost::consumer
