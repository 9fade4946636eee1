// One assignment of one partition: its delivered records in order, and how far they are finished.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <optional>

#include "consumer/flow/flow.h"

namespace fencepost::consumer {

struct Flow::Partition {
  PartitionIndex index = 0;
  TopicPartition where;
  AssignmentEpoch epoch = 0;
  bool revoking = false;
  bool gone = false;  // no longer ours; only what the output has in its hands is still here
  std::map<Offset, Error> blocked;  // what the pipeline cannot go past, and why
  // Delivered, from the watermark on. A finished record leaves its offset here and nothing else.
  struct Slot {
    Offset offset = 0;
    InFlight* record = nullptr;  // nullptr: finished
  };
  std::deque<Slot> slots;        // the first one is unfinished
  std::uint64_t first_slot = 0;  // InFlight::slot of the first one
  std::size_t unfinished = 0;    // of `slots`
  std::uint64_t bytes = 0;       // held by the unfinished ones
  Chain chain;                   // order: partition
  std::size_t fallen = 0;        // records that were secured, and are not any more
  Offset position = 0;           // everything before it was delivered, or is not there
  Offset watermark = 0;          // everything before it is finished
  Offset committing = 0;         // the highest offset handed to Kafka
  Offset committed = 0;          // the highest offset that Kafka took
  Offset end = 0;                // as last heard from the broker
  std::optional<Offset> goal;    // the end as first heard in this assignment
  std::size_t writing = 0;
  Instant oldest_since;  // since when the oldest unfinished record has been that
  Instant stall_told;
  std::optional<Instant> greedy_since;  // since when it has held more than its share (Regulate)
  bool crowded = false;                 // too many finished records wait for the oldest one
  bool paused = false;                  // as Kafka was told

  [[nodiscard]] const InFlight* Oldest() const {
    return slots.empty() ? nullptr : slots.front().record;
  }
  [[nodiscard]] std::size_t finished_behind() const { return slots.size() - unfinished; }
  // The group has committed all that was there when the partition was assigned.
  [[nodiscard]] bool CaughtUp() const { return goal && committed >= *goal; }

  // What holds a lease (or a hint) and may still be finished before the partition goes.
  [[nodiscard]] bool Busy() const {
    return std::any_of(slots.begin(), slots.end(), [](const Slot& slot) {
      const InFlight* r = slot.record;
      return r != nullptr && r->stage != Stage::kRetrying && Secured(r->stage) &&
             !(r->stage == Stage::kDying && r->letter_refused);
    });
  }
};

}  // namespace fencepost::consumer
