#include "consumer/kafka/dead_letter_record.h"

namespace fencepost::consumer {

DeadLetterRecord::DeadLetterRecord(std::string_view topic, const DeadLetter& letter,
                                   std::string_view pipeline)
    : added_(AddedHeaders(letter, pipeline)) {
  outgoing_.topic = topic;
  outgoing_.key = letter.record.key;
  outgoing_.value = letter.record.value;
  outgoing_.timestamp = letter.record.timestamp;
  outgoing_.headers.reserve(letter.record.headers.size() + added_.size());
  for (const HeaderView& header : letter.record.headers) {
    if (!IsDeadLetterHeader(header.name)) outgoing_.headers.push_back(header);
  }
  for (const auto& [name, value] : added_) outgoing_.headers.push_back(HeaderView{name, value});
}

}  // namespace fencepost::consumer
