#include "consumer/kafka/output/held_letters.h"

#include <algorithm>
#include <utility>

#include "consumer/kafka/output/dead_letter_record.h"

namespace fencepost::consumer {
namespace {

constexpr std::chrono::milliseconds kFirstWait{100};
constexpr std::chrono::milliseconds kMaxWait{30'000};

}  // namespace

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
