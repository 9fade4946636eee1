// Dead letters as they go to Kafka, and those that their topic refuses as they are. One thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "consumer/kafka/client/producer.h"
#include "consumer/outputs/output.h"
#include "consumer/record/dead_letter.h"

namespace fencepost::consumer {

// Key, value and timestamp as they were, its own headers without those of an earlier dead letter,
// then the added ones.
class DeadLetterRecord {
 public:
  // The topic and the letter must outlive it.
  DeadLetterRecord(std::string_view topic, const DeadLetter& letter, std::string_view pipeline,
                   LetterForm form = {});
  DeadLetterRecord(const DeadLetterRecord&) = delete;
  DeadLetterRecord& operator=(const DeadLetterRecord&) = delete;

  [[nodiscard]] const OutgoingRecord& outgoing() const { return outgoing_; }
  // What a topic's max.message.bytes must allow for this record, where it cannot be compressed: a
  // batch of this one alone.
  [[nodiscard]] std::uint64_t BatchBytes() const;

 private:
  std::vector<OwnedHeader> added_;
  std::string traceparent_;
  OutgoingRecord outgoing_;
};

// The form that is tried next, where a letter was refused in this one, alone: with less of its
// error's text (200 bytes, then none) where it is too large, without its time where that is
// refused. nullopt: there is none.
std::optional<LetterForm> NextForm(const DeadLetter& letter, LetterForm refused, Blame blame);
// What its topic needs to take it, where there is none.
std::string NeedOf(const DeadLetterRecord& letter, Blame blame, std::string_view why);

// Times that the topic has refused: letters of those, and of what is further away, go without
// theirs at once. What has come meanwhile is not ahead any more.
class RefusedTimes {
 public:
  void Add(std::chrono::milliseconds time, std::chrono::milliseconds now);
  [[nodiscard]] bool Cover(const std::optional<std::chrono::milliseconds>& time,
                           std::chrono::milliseconds now) const {
    return time && (*time <= newest_old_ || (*time >= first_ahead_ && *time > now));
  }

 private:
  std::chrono::milliseconds newest_old_ = std::chrono::milliseconds::min();
  std::chrono::milliseconds first_ahead_ = std::chrono::milliseconds::max();
};

// Dead letters of the Kafka output that are refused. One that is refused in each of its forms is
// held back: what is behind it in its partition waits with it, other partitions do not.
class HeldLetters {
 public:
  using Clock = std::chrono::steady_clock;

  // The form in which this item's letter is sent.
  [[nodiscard]] LetterForm FormOf(const WriteItem& item) const;
  // It was refused, alone. True: it has another form, which is sent from now on.
  bool TryNextForm(const WriteItem& item, Blame blame);
  // No form of it is taken: it is held for a while (100 ms, doubling up to 30 s), then sent again.
  void Hold(const WriteItem& item, Clock::time_point now, std::string need);
  // One that is held and what its topic needs; empty: none is.
  [[nodiscard]] std::string Reason() const;
  // It is in a transaction that was committed.
  void Published(const WriteItem& item);

  // A transaction was committed.
  void Committed() { may_try_ = true; }

  // A request is begun, on behalf of this assignment (0: without offsets). What was held under one
  // that is over says nothing of the next one.
  void Begin(AssignmentEpoch epoch);
  // The first offset of this partition that must not be written by this request. A try of a held
  // letter costs some transactions, so a request tries one, and none before others were committed.
  [[nodiscard]] std::optional<Offset> StopAt(const TopicPartition& where, Clock::time_point now);

 private:
  struct Letter {
    LetterForm form;
    std::string need;
    std::chrono::milliseconds wait{0};
    Clock::time_point until;  // held back
  };
  using Place = std::pair<TopicPartition, Offset>;
  static Place PlaceOf(const WriteItem& item) { return {*item.where, item.record->offset}; }

  std::map<Place, Letter> letters_;
  RefusedTimes times_;
  AssignmentEpoch epoch_ = 0;
  bool may_try_ = true;
  std::optional<TopicPartition> tried_;  // by this request
};

}  // namespace fencepost::consumer
