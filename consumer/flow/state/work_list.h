// The records that are to be asked what they do next (next.h), in the order in which something
// changed for them. Intrusive: a record is in it at most once, and it needs no memory of its
// own. The engine thread's.
//
// Invariant: between the flow's inputs it is empty, so that no place of the pool is used again
// while a record that has gone is in it.
#pragma once

#include <utility>

#include "consumer/flow/state/in_flight.h"

namespace fencepost::consumer {

class WorkList {
 public:
  // Null, and a record that is in it already, change nothing.
  void Push(InFlight* record) {
    if (record == nullptr || std::exchange(record->to_advance, true)) return;
    (last_ == nullptr ? first_ : last_->advance_after) = record;
    last_ = record;
  }
  [[nodiscard]] bool Empty() const { return first_ == nullptr; }
  // Null: it is empty.
  InFlight* Pop() {
    InFlight* const record = first_;
    if (record == nullptr) return nullptr;
    first_ = std::exchange(record->advance_after, nullptr);
    if (first_ == nullptr) last_ = nullptr;
    record->to_advance = false;
    return record;
  }

 private:
  InFlight* first_ = nullptr;
  InFlight* last_ = nullptr;
};

}  // namespace fencepost::consumer
