// A dead letter as it goes to Kafka: key, value and timestamp as they were, its own headers without
// those of an earlier dead letter, then the added ones (DESIGN 2.4). A value for one thread.
#pragma once

#include <string_view>
#include <vector>

#include "consumer/dead_letter.h"
#include "consumer/kafka/producer.h"

namespace fencepost::consumer {

class DeadLetterRecord {
 public:
  // The topic and the letter must outlive it.
  DeadLetterRecord(std::string_view topic, const DeadLetter& letter, std::string_view pipeline);
  DeadLetterRecord(const DeadLetterRecord&) = delete;
  DeadLetterRecord& operator=(const DeadLetterRecord&) = delete;

  [[nodiscard]] const OutgoingRecord& outgoing() const { return outgoing_; }

 private:
  std::vector<OwnedHeader> added_;
  OutgoingRecord outgoing_;
};

}  // namespace fencepost::consumer
