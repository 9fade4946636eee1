#include "consumer/kafka/output/dead_letter_record.h"

#include <algorithm>

#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

constexpr std::size_t kShortError = 200;

// Of a number as record batches hold it: zigzag, seven bits a byte.
std::uint64_t VarintBytes(std::uint64_t number) {
  std::uint64_t bytes = 1;
  for (number = number * 2; number >= 0x80; number >>= 7) ++bytes;
  return bytes;
}

std::uint64_t FieldBytes(const std::optional<std::string_view>& field) {
  return field ? VarintBytes(field->size()) + field->size() : 1;  // a length of -1
}

}  // namespace

DeadLetterRecord::DeadLetterRecord(std::string_view topic, const DeadLetter& letter,
                                   std::string_view pipeline, std::size_t max_error)
    : added_(AddedHeaders(letter, pipeline, max_error)) {
  outgoing_.topic = topic;
  outgoing_.key = letter.record.KafkaKey();
  outgoing_.value = letter.record.KafkaValue();
  outgoing_.timestamp = letter.record.timestamp;
  outgoing_.headers.reserve(letter.record.headers.size() + added_.size());
  for (const HeaderView& header : letter.record.headers) {
    if (IsDeadLetterHeader(header.name) && !Planted("letter_keeps_its_former_headers")) continue;
    outgoing_.headers.push_back(header);
  }
  for (const auto& [name, value] : added_) outgoing_.headers.push_back(HeaderView{name, value});
}

// The format is the second one: a batch's header of 61 bytes, then the record behind its length.
std::uint64_t DeadLetterRecord::BatchBytes() const {
  constexpr std::uint64_t kHeader = 61;
  constexpr std::uint64_t kAttributesAndDeltas = 3;
  std::uint64_t record = kAttributesAndDeltas + FieldBytes(outgoing_.key) +
                         FieldBytes(outgoing_.value) + VarintBytes(outgoing_.headers.size());
  for (const HeaderView& header : outgoing_.headers) {
    record += FieldBytes(header.name) + FieldBytes(header.value);
  }
  return kHeader + VarintBytes(record) + record;
}

std::optional<std::size_t> ShorterError(const DeadLetter& letter, std::size_t kept) {
  const std::size_t now = std::min(letter.error.size(), kept);
  if (now > kShortError) return kShortError;
  if (now > 0) return 0;
  return std::nullopt;
}

}  // namespace fencepost::consumer
