// Dead letters as they go to Kafka, and those that their topic refuses as they are. One thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "consumer/kafka/client/producer.h"
#include "consumer/outputs/output.h"
#include "consumer/record/dead_letter.h"

namespace fencepost::consumer {

// Key, value and timestamp as they were, its own headers without those of an earlier dead letter,
// then the added ones.
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

// Dead letters of the Kafka output that are refused. A letter that is too large goes again with
// less of its error's text. One that is refused even in its shortest form is held back: what is
// behind it in its partition waits with it, other partitions do not.
class HeldLetters {
 public:
  using Clock = std::chrono::steady_clock;

  // How much of the error's text this item's letter is sent with.
  [[nodiscard]] std::size_t ErrorBytes(const WriteItem& item) const;
  // It was refused as too large, alone. True: it has a shorter form, which is sent from now on.
  bool Shorten(const WriteItem& item);
  // No form of it is taken: it is held for a while (100 ms, doubling up to 30 s), then sent again.
  void Hold(const WriteItem& item, Clock::time_point now);
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
    Offset offset = 0;
    std::size_t error_bytes = kMaxErrorHeader;
    std::chrono::milliseconds wait{0};
    Clock::time_point until;  // held back
  };
  Letter& Of(const WriteItem& item);
  [[nodiscard]] const Letter* Find(const WriteItem& item) const;

  std::map<TopicPartition, Letter> letters_;  // the first one of each partition that was refused
  AssignmentEpoch epoch_ = 0;
  bool may_try_ = true;
  std::optional<TopicPartition> tried_;  // by this request
};

}  // namespace fencepost::consumer
