// An unfinished record whose handler failed, as the owner of its partition hands it on to the next
// one: in the metadata of the group's offset (consumer/kafka/log_identity/log_sample.h). A value.
#pragma once

#include <cstddef>
#include <string>

#include "consumer/record/record.h"

namespace fencepost::consumer {

struct FailedRecord {
  Offset offset = 0;
  int attempts = 0;  // handler calls that reached the receiver, by all owners
  Millis alone{0};   // how long it has failed by itself (HandlerCircuit::Failing)
  Millis last{0};    // its last failure, since the Unix epoch, by the clock of the owner of then
  // For people (explain): the class of that failure, where it is short and plain; and whether the
  // service counted as unavailable then.
  std::string why{};
  bool unavailable = false;
  bool operator==(const FailedRecord&) const = default;
};

inline constexpr std::size_t kMostFailed = 32;  // of a partition: the oldest with attempts first

}  // namespace fencepost::consumer
