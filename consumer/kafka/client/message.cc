#include "consumer/kafka/client/message.h"

#include <cstring>
#include <memory>

#include "locking/base/check.h"

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

// The bytes that the views of one record point at, one after the other in one block.
class Block {
 public:
  explicit Block(std::size_t size) : bytes_(std::make_shared_for_overwrite<char[]>(size + 1)) {}
  std::string_view Add(std::string_view bytes) {
    char* to = bytes_.get() + used_;  // never null: no bytes are something else than no value
    if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
    used_ += bytes.size();
    return {to, bytes.size()};
  }
  void Move(std::optional<std::string_view>& view) {
    if (view) view = Add(*view);
  }
  [[nodiscard]] std::size_t used() const { return used_; }
  [[nodiscard]] std::shared_ptr<const void> bytes() const { return bytes_; }

 private:
  std::shared_ptr<char[]> bytes_;
  std::size_t used_ = 0;
};

void CopyViews(Record& record) {
  std::size_t size =
      (record.key ? record.key->size() : 0) + (record.value ? record.value->size() : 0);
  for (const HeaderView& header : record.headers) {
    size += header.name.size() + (header.value ? header.value->size() : 0);
  }
  Block block(size);
  block.Move(record.key);
  block.Move(record.value);
  for (HeaderView& header : record.headers) {
    header.name = block.Add(header.name);
    block.Move(header.value);
  }
  FENCEPOST_CHECK(block.used() == size, "a record's copy has another size");
  record.owner = block.bytes();
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
  CopyViews(record);
}

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
    case RD_KAFKA_RESP_ERR_INCONSISTENT_GROUP_PROTOCOL:
    case RD_KAFKA_RESP_ERR_INVALID_GROUP_ID:
    case RD_KAFKA_RESP_ERR_INVALID_SESSION_TIMEOUT:
    case RD_KAFKA_RESP_ERR_GROUP_MAX_SIZE_REACHED:
      return Meaning::kNotJoined;
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
      return Meaning::kTransient;
  }
}

}  // namespace fencepost::consumer
