#include "consumer/kafka/output/dead_letter_record.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "consumer/trace/trace_context.h"
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
                                   std::string_view pipeline, LetterForm form) {
  // librdkafka takes a time of 0 for none.
  form.timed = form.timed && letter.record.timestamp != std::chrono::milliseconds(0);
  added_ = AddedHeaders(letter, pipeline, form);
  outgoing_.topic = topic;
  outgoing_.key = letter.record.KafkaKey();
  outgoing_.value = letter.record.KafkaValue();
  if (form.timed) outgoing_.timestamp = letter.record.timestamp;
  outgoing_.headers.reserve(letter.record.headers.size() + added_.size());
  for (const HeaderView& header : letter.record.headers) {
    if (IsDeadLetterHeader(header.name) && !Planted("letter_keeps_its_former_headers")) continue;
    outgoing_.headers.push_back(header);
  }
  traceparent_ = letter.traceparent;
  if (!traceparent_.empty()) SetTraceparent(traceparent_, outgoing_.headers);
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

std::optional<LetterForm> NextForm(const DeadLetter& letter, LetterForm refused, Blame blame) {
  if (blame == Blame::kItsTime && std::exchange(refused.timed, false)) return refused;
  const std::size_t kept = std::min(letter.error.size(), refused.max_error);
  if (blame != Blame::kItsSize || kept == 0) return std::nullopt;
  refused.max_error = kept > kShortError ? kShortError : 0;
  return refused;
}

std::string NeedOf(const DeadLetterRecord& letter, Blame blame, std::string_view why) {
  const std::string_view topic = letter.outgoing().topic;
  if (blame == Blame::kItsSize) {
    return fmt::format("raise max.message.bytes of {} to at least {}", topic, letter.BatchBytes());
  }
  return fmt::format("let {} take it ({})", topic, why);
}

void RefusedTimes::Add(std::chrono::milliseconds time, std::chrono::milliseconds now) {
  if (time <= now) newest_old_ = std::max(newest_old_, time);
  if (time > now) first_ahead_ = std::min(first_ahead_, time);
}

LetterForm HeldLetters::FormOf(const WriteItem& item) const {
  const auto letter = letters_.find(PlaceOf(item));
  LetterForm form = letter == letters_.end() ? LetterForm() : letter->second.form;
  form.timed = form.timed && !times_.Cover(item.dead_letter->record.timestamp,
                                           locking::ReadClocks().wall.time_since_epoch());
  return form;
}

bool HeldLetters::TryNextForm(const WriteItem& item, Blame blame) {
  const auto next = NextForm(*item.dead_letter, FormOf(item), blame);
  if (!next) return false;
  letters_[PlaceOf(item)].form = *next;
  const auto& time = item.dead_letter->record.timestamp;
  if (blame == Blame::kItsTime && time) {
    times_.Add(*time, locking::ReadClocks().wall.time_since_epoch());
  }
  return true;
}

void HeldLetters::Hold(const WriteItem& item, Clock::time_point now, std::string need) {
  Letter& letter = letters_[PlaceOf(item)];
  letter.wait = std::clamp(letter.wait * 2, kFirstWait, kMaxWait);
  letter.until = now + letter.wait;
  may_try_ = false;
  letter.form = {};
  letter.need = std::move(need);
}

std::string HeldLetters::Reason() const {
  for (const auto& [place, letter] : letters_) {
    if (letter.need.empty()) continue;
    return fmt::format("{} waits: {}", SourceText(place.first, place.second), letter.need);
  }
  return "";
}

void HeldLetters::Published(const WriteItem& item) { letters_.erase(PlaceOf(item)); }

void HeldLetters::Begin(AssignmentEpoch epoch) {
  if (epoch != 0 && std::exchange(epoch_, epoch) != epoch) letters_.clear();
  tried_.reset();
}

std::optional<Offset> HeldLetters::StopAt(const TopicPartition& where, Clock::time_point now) {
  if (letters_.empty()) return std::nullopt;
  for (auto at = letters_.lower_bound({where, 0}); at != letters_.end(); ++at) {
    const auto& [place, letter] = *at;
    if (place.first != where) break;
    if (letter.wait == std::chrono::milliseconds(0)) continue;  // it was never held
    if (letter.until <= now && may_try_ && !tried_) tried_ = where;
    if (letter.until <= now && tried_ == where) continue;
    return place.second;
  }
  return std::nullopt;
}

}  // namespace fencepost::consumer
