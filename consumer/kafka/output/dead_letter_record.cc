#include "consumer/kafka/output/dead_letter_record.h"

#include <algorithm>
#include <utility>

#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

constexpr std::size_t kShortError = 200;
constexpr std::chrono::milliseconds kFirstWait{100};
constexpr std::chrono::milliseconds kMaxWait{30'000};

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

// Of a partition one letter is dealt with at a time: those behind it wait anyway.
HeldLetters::Letter& HeldLetters::Of(const WriteItem& item) {
  Letter& letter = letters_[*item.where];
  if (letter.offset != item.record->offset) {
    letter = Letter();
    letter.offset = item.record->offset;
  }
  return letter;
}

const HeldLetters::Letter* HeldLetters::Find(const WriteItem& item) const {
  const auto found = letters_.find(*item.where);
  if (found == letters_.end() || found->second.offset != item.record->offset) return nullptr;
  return &found->second;
}

std::size_t HeldLetters::ErrorBytes(const WriteItem& item) const {
  const Letter* letter = Find(item);
  return letter == nullptr ? kMaxErrorHeader : letter->error_bytes;
}

bool HeldLetters::Shorten(const WriteItem& item) {
  const auto shorter = ShorterError(*item.dead_letter, ErrorBytes(item));
  if (!shorter) return false;
  Of(item).error_bytes = *shorter;
  return true;
}

void HeldLetters::Hold(const WriteItem& item, Clock::time_point now) {
  Letter& letter = Of(item);
  letter.wait = std::clamp(letter.wait * 2, kFirstWait, kMaxWait);
  letter.until = now + letter.wait;
  may_try_ = false;
  letter.error_bytes = kMaxErrorHeader;
}

void HeldLetters::Published(const WriteItem& item) {
  if (Find(item) != nullptr) letters_.erase(*item.where);
}

void HeldLetters::Begin(AssignmentEpoch epoch) {
  if (epoch != 0 && std::exchange(epoch_, epoch) != epoch) letters_.clear();
  tried_.reset();
}

std::optional<Offset> HeldLetters::StopAt(const TopicPartition& where, Clock::time_point now) {
  const auto found = letters_.find(where);
  if (found == letters_.end()) return std::nullopt;
  const Letter& letter = found->second;
  if (letter.wait == std::chrono::milliseconds(0)) return std::nullopt;  // it was never held
  if (letter.until <= now) {
    if (may_try_ && !tried_) tried_ = where;
    if (tried_ == where) return std::nullopt;
  }
  return letter.offset;
}

}  // namespace fencepost::consumer
