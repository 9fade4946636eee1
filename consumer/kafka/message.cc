#include "consumer/kafka/message.h"

namespace fencepost::consumer {
namespace {

std::optional<std::string_view> View(const void* data, std::size_t size) {
  if (data == nullptr) return std::nullopt;
  return std::string_view(static_cast<const char*>(data), size);
}

void ReadHeaders(const rd_kafka_message_t* message, std::vector<HeaderView>& out) {
  rd_kafka_headers_t* headers = nullptr;
  if (rd_kafka_message_headers(message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) return;
  out.reserve(rd_kafka_header_cnt(headers));
  const char* name = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  for (std::size_t i = 0;
       rd_kafka_header_get_all(headers, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR;
       ++i) {
    out.push_back(HeaderView{name, View(value, size)});
  }
}

}  // namespace

void ReadMessage(const rd_kafka_message_t* message, Record& record) {
  record.offset = message->offset;
  rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
  const std::int64_t timestamp = rd_kafka_message_timestamp(message, &type);
  if (type != RD_KAFKA_TIMESTAMP_NOT_AVAILABLE) {
    record.timestamp = std::chrono::milliseconds(timestamp);
  }
  record.key = View(message->key, message->key_len);
  record.value = View(message->payload, message->len);
  ReadHeaders(message, record.headers);
}

}  // namespace fencepost::consumer
