// One delivered record on its way, as the flow keeps it. Its stage changes by named transitions
// alone: each checks the stage before it (stage.h) and the fields that belong to it. The rest is
// plain data. The engine thread's, but for what the output reads while it is being written.
//
// Invariants: `unit` is set from kLocking or kWaitingForSameId on until the record is queued again
// or at its end, but for one without an id; `call` is 0 unless a handler call is out; `letter` is
// set where it is withheld or published.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "consumer/flow/ports/ports.h"
#include "consumer/flow/state/dead_letter_limiter.h"
#include "consumer/flow/state/handler_circuit.h"
#include "consumer/flow/state/record_trace.h"
#include "consumer/flow/state/stage.h"
#include "consumer/record/dead_letter.h"
#include "consumer/record/identity.h"
#include "consumer/record/record.h"
#include "locking/base/types.h"

namespace fencepost::consumer {

struct Assignment;
class LockUnit;
struct OrderChain;

struct InFlight {
  std::uint32_t index = 0;      // in the pool
  std::uint32_t ticket = 0;     // changes when it leaves a queue; what carries another one is stale
  bool out_of_prefix = false;   // it was in the leased prefix, and is not any more
  bool without_id = false;      // it has no id: it is not locked, and can only be a dead letter
  bool passed_limiter = false;  // its dead letter has passed the DeadLetterLimiter
  bool handled = false;         // `values` are what the handler made of it
  bool tried_again = false;     // it was handled before, and those behind it may be since
  bool call_alone = false;      // a request with it failed: its calls go out in one of their own
  bool rejudged = false;    // tried again after others took effect: the verdict after that is final
  bool letter_out = false;  // `letter` is published; its offset is still to be done in the ledger
  bool letter_refused = false;  // kPublishingDeadLetter: its topic did not take it, the last time
  bool to_advance = false;      // it is in the WorkList
  bool same_id_ahead = false;   // in its unit: it waits for the one with the same id before it
  bool write_decides = false;   // its id took effect with other content, and it may make no row
  bool looking = false;         // kLocking: the ledger is asked, since its name is held
  int unjudged = 0;             // further rounds that found it held, while the ledger is asked
  std::uint32_t id_index = 0;   // in its unit: which id of the unit it has
  int attempts = 0;             // handler calls begun that reached the receiver
  HandlerCircuit::Failing failing;  // handler calls that failed
  int refusals = 0;                 // by the output, for WriteOutcome::may_pass
  Instant refused_since;            // the first of them
  std::string refused_why;          // the last one, without anything of the record
  std::uint64_t call = 0;           // the handler call that has not been answered yet
  std::uint64_t slot = 0;           // its place in Assignment::slots
  std::uint64_t bytes = 0;          // as counted against max_in_flight_bytes
  Record record;
  Identity identity;
  HandlerValues values;
  std::unique_ptr<DeadLetter> letter;  // it is to be dead-lettered
  std::optional<LetterCause> cause;    // the letter counts in a row (DeadLetterLimiter)
  DeadLetterLimiter::Turn turn = 0;    // when it was found bad
  Instant in_doubt_until{};  // the ledger cannot tell yet: a write is unanswered, or its log unread
  Assignment* assignment = nullptr;  // of its partition
  const TopicPartition* where = nullptr;
  InFlight* chain_before = nullptr;  // the unfinished record before it in its order chain
  InFlight* chain_after = nullptr;
  InFlight* advance_after = nullptr;  // WorkList
  OrderChain* chain = nullptr;        // null: it has no order
  LockUnit* unit = nullptr;           // null: it is neither locked nor to be
  InFlight* unit_before = nullptr;    // the records of the unit, as they joined it
  InFlight* unit_after = nullptr;
  std::unique_ptr<RecordTrace> trace;  // nullptr: there are no traces

  // A reference that goes stale with the ticket.
  [[nodiscard]] std::uint64_t Reference() const {
    return (static_cast<std::uint64_t>(ticket) << 32) | index;
  }
  [[nodiscard]] Stage stage() const { return stage_; }
  // As RecordTrace::Tell.
  void Tell(std::string_view event, std::string_view text) const {
    if (trace != nullptr) trace->Tell(event, text);
  }

  void BecomeQueued();  // what was on its way is stale
  void BecomeWithheld();
  void BecomeWaitingForSameId();
  void BecomeLocking();
  void BecomeGranted();
  void BecomeLookup() { Become(Stage::kLookup); }
  void BecomeWaiting() { Become(Stage::kWaiting); }
  void BecomeHandling(std::uint64_t new_call);
  void BecomeRetrying();
  void BecomeInDoubt();
  void BecomeHandled() { Become(Stage::kHandled); }
  void BecomeReady() { Become(Stage::kReady); }
  void BecomeWriting();
  void BecomePublishing();
  void BecomeBlocked();
  void BecomeFinished();
  void BecomeUnused();  // its place in the pool may have another record

 protected:
  void Become(Stage stage);
  Stage stage_ = Stage::kUnused;
};

// It and everything before it in its chain is handled: those behind it may be handled and written.
inline bool Handled(const InFlight& in) {
  return in.stage() == Stage::kReady || in.stage() == Stage::kWriting ||
         in.stage() == Stage::kFinished;
}

// A place in a queue or a timer.
struct QueueEntry {
  InFlight* record = nullptr;
  std::uint32_t ticket = 0;
  Instant at;
  // The record has left the queue meanwhile.
  [[nodiscard]] bool Stale() const { return record->ticket != ticket; }
  bool operator>(const QueueEntry& other) const { return at > other.at; }
};
inline QueueEntry EntryOf(InFlight& record, Instant at = {}) {
  return {&record, record.ticket, at};
}

}  // namespace fencepost::consumer
