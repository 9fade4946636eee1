// A dead letter as it goes to Kafka: key, value and timestamp as they were, its own headers without
// those of an earlier dead letter, then the added ones. A value for one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "consumer/kafka/client/producer.h"
#include "consumer/record/dead_letter.h"

namespace fencepost::consumer {

class DeadLetterRecord {
 public:
  // The topic and the letter must outlive it. `max_error`: bytes of the error's text.
  DeadLetterRecord(std::string_view topic, const DeadLetter& letter, std::string_view pipeline,
                   std::size_t max_error = kMaxErrorHeader);
  DeadLetterRecord(const DeadLetterRecord&) = delete;
  DeadLetterRecord& operator=(const DeadLetterRecord&) = delete;

  [[nodiscard]] const OutgoingRecord& outgoing() const { return outgoing_; }
  // What a topic's max.message.bytes must allow for this record, where it cannot be compressed: a
  // batch of this one alone.
  [[nodiscard]] std::uint64_t BatchBytes() const;

 private:
  std::vector<OwnedHeader> added_;
  OutgoingRecord outgoing_;
};

// How much of the error's text the next try keeps, where a letter was refused as too large with
// `kept` bytes of it: 200, then nothing. nullopt: there is nothing left to shorten.
std::optional<std::size_t> ShorterError(const DeadLetter& letter, std::size_t kept);

}  // namespace fencepost::consumer
