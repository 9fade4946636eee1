#include "consumer/kafka/client/producer.h"

#include <utility>

#include <fmt/format.h>

#include "consumer/kafka/client/admin.h"

namespace fencepost::consumer {
namespace {

Error Failed(std::string_view doing, std::string_view why) {
  return Error{Producer::kFailed, fmt::format("{}: {}", doing, why), "", ""};
}

Error NotDelivered(std::string_view topic, rd_kafka_resp_err_t error, std::string_view why) {
  const bool large = error == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE;
  return Error{large              ? Producer::kTooLarge
               : OfARecord(error) ? Producer::kRefused
                                  : Producer::kFailed,
               fmt::format("a record for {}: {}", topic, why), "",
               std::string(WhatToDoAbout(error))};
}

int Ms(Millis limit) { return static_cast<int>(limit.count()); }

rd_kafka_vu_t Bytes(rd_kafka_vtype_t type, const std::optional<std::string_view>& bytes) {
  rd_kafka_vu_t part{};
  part.vtype = type;
  part.u.mem.ptr = bytes ? const_cast<char*>(bytes->data()) : nullptr;
  part.u.mem.size = bytes ? bytes->size() : 0;
  return part;
}

}  // namespace

bool OfARecord(rd_kafka_resp_err_t code) {
  return code == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE ||
         code == RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE || code == RD_KAFKA_RESP_ERR_INVALID_RECORD ||
         code == RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP;
}

std::string_view WhatToDoAbout(rd_kafka_resp_err_t error) {
  switch (error) {
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
      return "create the topic, it is looked for again by itself";
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
      return "grant WRITE on the topic";
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
      return "grant READ on the group";
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
      return "raise the topic's max.message.bytes";
    case RD_KAFKA_RESP_ERR__MSG_TIMED_OUT:
      return "check that the brokers are up, and that the topic exists";
    default:
      return "";
  }
}

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
    ++delivered_;
    if (done) (*done)(message->offset);
    return;
  }
  ++failed_;
  const Error error =
      NotDelivered(rd_kafka_topic_name(message->rkt), message->err, rd_kafka_err2str(message->err));
  {
    const std::lock_guard lock(mutex_);
    if (!first_failure_) first_failure_ = error;
  }
  if (done) (*done)(tl::unexpected(error));
}

tl::expected<void, Error> Producer::Send(const OutgoingRecord& record, OnDelivery done,
                                         Millis limit) {
  const std::string topic(record.topic);
  auto held = done ? std::make_unique<OnDelivery>(std::move(done)) : nullptr;
  std::vector<rd_kafka_vu_t> parts;
  const auto part = [&parts](rd_kafka_vtype_t type) -> rd_kafka_vu_t& {
    rd_kafka_vu_t one{};
    one.vtype = type;
    return parts.emplace_back(one);
  };
  part(RD_KAFKA_VTYPE_TOPIC).u.cstr = topic.c_str();
  part(RD_KAFKA_VTYPE_MSGFLAGS).u.i = RD_KAFKA_MSG_F_COPY;
  part(RD_KAFKA_VTYPE_OPAQUE).u.ptr = held.get();
  if (record.partition) part(RD_KAFKA_VTYPE_PARTITION).u.i32 = *record.partition;
  if (record.timestamp) part(RD_KAFKA_VTYPE_TIMESTAMP).u.i64 = record.timestamp->count();
  parts.push_back(Bytes(RD_KAFKA_VTYPE_KEY, record.key));
  parts.push_back(Bytes(RD_KAFKA_VTYPE_VALUE, record.value));
  rdkafka::Headers headers = MakeHeaders(record.headers);
  if (headers) part(RD_KAFKA_VTYPE_HEADERS).u.headers = headers.get();
  const auto end = std::chrono::steady_clock::now() + limit;
  while (true) {
    const rdkafka::Failure error(rd_kafka_produceva(handle_.get(), parts.data(), parts.size()));
    if (!error) break;
    const auto code = rd_kafka_error_code(error.get());
    if (code != RD_KAFKA_RESP_ERR__QUEUE_FULL) {
      return tl::unexpected(NotDelivered(topic, code, rd_kafka_error_string(error.get())));
    }
    if (std::chrono::steady_clock::now() >= end) {
      return tl::unexpected(
          Error{"kafka_queue_full", "the brokers do not take records", topic, ""});
    }
    rd_kafka_poll(handle_.get(), 10);
  }
  (void)held.release();  // the delivery report owns it
  (void)headers.release();
  rd_kafka_poll(handle_.get(), 0);
  return {};
}

void Producer::LookFor(const std::string& topic, Millis limit) {
  (void)AskPartitionCount(handle_.get(), topic, limit);
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
    return tl::unexpected(Failed("flush", rd_kafka_err2str(error)));
  }
  if (failure) return tl::unexpected(*failure);
  return {};
}

}  // namespace fencepost::consumer
