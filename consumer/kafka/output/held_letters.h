// Dead letters of the Kafka output that the topic for them refuses as they are. A letter that is
// too large goes again with less of its error's text. One that is refused even in its shortest form
// is held back: what is behind it in its partition waits with it, other partitions do not. One
// thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "consumer/outputs/output.h"

namespace fencepost::consumer {

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
