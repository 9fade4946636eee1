#include "consumer/record/record.h"

#include <fmt/format.h>

namespace fencepost::consumer {

std::size_t Record::Bytes() const {
  constexpr std::size_t kItself = 64;
  std::size_t bytes = kItself + (key ? key->size() : 0) + (value ? value->size() : 0);
  if (encoded != nullptr) {
    bytes +=
        (encoded->key ? encoded->key->size() : 0) + (encoded->value ? encoded->value->size() : 0);
  }
  for (const HeaderView& header : headers) {
    bytes += sizeof(HeaderView) + header.name.size() + (header.value ? header.value->size() : 0);
  }
  return bytes;
}

std::string SourceText(const TopicPartition& where, Offset offset) {
  return fmt::format("{}/{}/{}", where.topic, where.partition, offset);
}

}  // namespace fencepost::consumer
