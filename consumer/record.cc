#include "consumer/record.h"

#include <fmt/format.h>

namespace fencepost::consumer {

std::string SourceText(const TopicPartition& where, Offset offset) {
  return fmt::format("{}/{}/{}", where.topic, where.partition, offset);
}

}  // namespace fencepost::consumer
