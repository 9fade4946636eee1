// One assignment of one partition: which of its records are delivered and not finished, how far it
// is finished (the watermark) and committed, and whether it may go when it is revoked. A value of
// the flow; the engine thread's.
//
// Invariants: committed <= committing and watermark <= position; the watermark passes no delivered
// record that is not finished (PROTOCOL.md, 16); slots.front() is unfinished, in offset order;
// `failed` has unfinished records from the watermark on: those that failed here, and those that an
// earlier owner told of, delivered or not.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "consumer/flow/ports/ports.h"
#include "consumer/flow/state/in_flight.h"
#include "consumer/flow/state/order_chain.h"
#include "consumer/record/record.h"
#include "consumer/trace/trace_context.h"
#include "locking/base/error.h"
#include "locking/base/types.h"

namespace fencepost::consumer {

struct Assignment {
  // A delivered record, from the watermark on. A finished one leaves its offset and nothing else.
  struct Slot {
    Offset offset = 0;
    InFlight* record = nullptr;  // nullptr: finished
  };

  // The block of offsets whose lock unit a record joined last (lock.block).
  struct Block {
    Offset first = 0;
    LockUnit* unit = nullptr;
    std::uint64_t life = 0;  // LockUnit::life
  };

  explicit Assignment(const AssignedPartition& assigned);

  // The record is delivered: it takes the next slot.
  void Deliver(InFlight& record, Instant now);
  // The record is finished: its slot keeps the offset. Not once the assignment is `gone`.
  void Finish(const InFlight& record);
  // Moves the watermark to the first unfinished record, or to `position` where there is none.
  void AdvanceWatermark(Instant now);
  // Everything up to here was delivered, or is not there: the watermark may pass the holes.
  void PassHoles(Offset to);
  // The record is filtered: finished, without a slot.
  void PassFiltered(const Record& record);
  // The handler failed for this record, or the pipeline ends at it and it begins anew (OnGivenUp).
  void OnFailed(const FailedRecord& record);
  void OnGivenUp(Offset offset);
  // Of `failed`, to be committed with the offset `next`: they are not due any more.
  std::vector<FailedRecord> TakeFailed(Offset next, Instant now);
  // Their commit alone is due: they have changed, and the last one was long enough ago.
  void UpdateFailedDue(Instant now);
  // Kafka took the commit of everything before `next` that was sent then; or not, and it is due
  // again.
  void OnCommitted(Offset next, std::optional<Instant> sent);
  void UpdateEnd(Offset high);  // the partition's end, as the broker tells it

  // The offset to go on from once all that is being written is committed with it (Kafka output).
  [[nodiscard]] Offset NextAfterWrites() const;
  [[nodiscard]] const InFlight* Oldest() const;
  [[nodiscard]] std::size_t finished_behind() const { return slots.size() - unfinished; }
  // The watermark is past a record that is not finished: never, but for a defect.
  [[nodiscard]] bool WatermarkPastHole() const;
  [[nodiscard]] bool CommitDue() const { return watermark > committing || confirm || failed_due; }
  // The group has committed all that was there when the partition was assigned.
  [[nodiscard]] bool CaughtUp() const { return goal && committed >= *goal; }
  // What it had committed so long ago, or up to twice as long.
  Offset CommittedBefore(Nanos ago, Instant now);
  // Some record holds a lease (or a hint), and may be finished before the partition goes.
  [[nodiscard]] bool Busy() const;

  PartitionIndex index = 0;
  TopicPartition where;
  AssignmentEpoch epoch = 0;
  bool revoking = false;
  bool gone = false;  // no longer ours; only what the output has in its hands is still here
  // Spans of records that are kept, whose commit is awaited; of more there is no such span.
  static constexpr std::size_t kMostTraced = 256;
  std::vector<std::pair<Offset, TraceContext>> traced;
  std::map<Offset, Error> blocked;  // what the pipeline cannot go past, and why
  std::map<Offset, FailedRecord> failed;
  bool failed_changed = false;  // since it was handed to Kafka
  bool failed_due = false;      // a commit is wanted for it alone
  Instant failed_again;         // not before
  std::deque<Slot> slots;
  std::uint64_t first_slot = 0;  // InFlight::slot of the first one
  std::size_t unfinished = 0;    // of `slots`
  std::uint64_t bytes = 0;       // held by the unfinished ones
  OrderChain chain;              // order: partition
  Block block;
  const Offset start = 0;  // the group's, when it was assigned
  Offset position = 0;     // everything before it was delivered, or is not there
  Offset filtered = 0;     // so many offsets directly before it were, or are gaps (Record::gap)
  Offset watermark = 0;    // everything before it is finished
  Offset committing = 0;   // the highest offset handed to Kafka
  Offset committed = 0;    // the highest offset that Kafka took
  // The partition was surely this worker's then: the group took a commit that was sent no sooner.
  std::optional<Instant> confirmed;
  Offset committed_before = 0;  // CommittedBefore's
  Offset committed_then = 0;    // at …
  Instant then;
  bool confirm = false;        // a commit is wanted for that alone
  bool confirming = false;     // it is out
  Offset end = 0;              // as last heard from the broker
  std::optional<Offset> goal;  // the end as first heard in this assignment
  std::size_t writing = 0;     // records that the output has in its hands
  Instant oldest_since;        // since when the oldest unfinished record has been that
  Instant stall_told;
  // Backpressure's:
  std::optional<Instant> over_share_since;
  bool too_many_behind = false;  // finished records wait for the oldest one
  bool paused = false;           // as Kafka was told
};

}  // namespace fencepost::consumer
