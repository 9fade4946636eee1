// One delivered record on its way, as the flow keeps it. Plain data; the engine thread's, but for
// what the output reads while it is being written.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "consumer/flow/ports/ports.h"
#include "consumer/flow/state/letter_gate.h"
#include "consumer/record/dead_letter.h"
#include "consumer/record/identity.h"
#include "consumer/record/record.h"
#include "locking/base/types.h"

namespace fencepost::consumer {

enum class Stage : std::uint8_t {
  kUnused,
  kQueued,            // waits for its place in the chain (or for Acquire to be worth it)
  kWithheld,          // bad, and its dead letter waits for any record to take effect (LetterGate)
  kWaitingForSameId,  // waits for another record here with the same id
  kLocking,           // the lock is being acquired
  kGranted,           // leased, but a record before it in its chain is not yet
  // From here on it is in the leased prefix: leased or hinted, and so is all before it in its
  // chain.
  kLookup,    // the ledger is asked for its id
  kWaiting,   // waits for its turn at the handler
  kHandling,  // a handler call is out
  kRetrying,  // the handler failed; waits for the next attempt
  kHandled,   // handled, but a record before it is not
  kReady,     // may be written
  kWriting,   // handed to the output
  kMarking,   // no ledger: written, or heard to be DONE; a majority of DONE marks is awaited
  kPublishingDeadLetter,  // handed to the dead letter publisher
  kBlocked,               // the pipeline stops: it holds the watermark
  kFinished,
};
std::string_view StageName(Stage stage);

// Leased or hinted (LockUnit), and everything before it in its chain too.
constexpr bool InLeasedPrefix(Stage s) {
  return s == Stage::kFinished || (s >= Stage::kLookup && s <= Stage::kPublishingDeadLetter);
}
// What it does next depends on the leases before it in its chain.
constexpr bool WaitsForPrefix(Stage s) {
  return s == Stage::kQueued || s == Stage::kLocking || s == Stage::kGranted;
}
// In others' hands: it goes on from there, whatever becomes of its lease.
constexpr bool Pinned(Stage s) {
  return s == Stage::kWriting || s == Stage::kMarking || s == Stage::kPublishingDeadLetter;
}

struct Assignment;
class LockUnit;
struct OrderChain;

struct InFlight {
  std::uint32_t index = 0;   // in the pool
  std::uint32_t ticket = 0;  // changes when it leaves a queue; what carries another one is stale
  Stage stage = Stage::kUnused;
  bool out_of_prefix = false;   // it was in the leased prefix, and is not any more
  bool nameless = false;        // it has no id: it is not locked, and can only be a dead letter
  bool let_out = false;         // its dead letter has passed the LetterGate
  bool handled = false;         // `values` are what the handler made of it
  bool letter_refused = false;  // kPublishingDeadLetter: its topic did not take it, the last time
  bool to_advance = false;      // it stands in the WorkList
  bool effect_done = false;     // kMarking: after an effect of ours; else a mark that was heard
  int attempts = 0;             // handler calls begun that reached the receiver
  int failures = 0;             // handler calls that failed, for the back-off
  int marks = 0;                // DONE calls without a majority
  std::uint64_t call = 0;       // the handler call that has not been answered yet
  std::uint64_t slot = 0;       // its place in Assignment::slots
  std::uint64_t bytes = 0;      // as counted against max_in_flight_bytes
  Record record;
  Identity identity;
  HandlerValues values;
  std::unique_ptr<DeadLetter> letter;  // it is to be dead-lettered
  std::optional<LetterCause> cause;    // the letter counts in a row (LetterGate)
  LetterGate::Turn turn = 0;           // when it was found bad
  Assignment* assignment = nullptr;    // of its partition
  const TopicPartition* where = nullptr;
  InFlight* chain_before = nullptr;  // the unfinished record before it in its order chain
  InFlight* chain_after = nullptr;
  InFlight* advance_after = nullptr;  // WorkList
  OrderChain* chain = nullptr;        // null: it has no order
  LockUnit* unit = nullptr;           // null: it is neither locked nor to be
  InFlight* unit_before = nullptr;    // the records of the unit, as they joined it
  InFlight* unit_after = nullptr;

  // A reference that goes stale with the ticket.
  [[nodiscard]] std::uint64_t Reference() const {
    return (static_cast<std::uint64_t>(ticket) << 32) | index;
  }
};

// It and everything before it in its chain is handled: those behind it may be handled and written.
// (A mark that was heard says nothing of those before it.)
constexpr bool Handled(const InFlight& in) {
  return in.stage == Stage::kReady || in.stage == Stage::kWriting ||
         (in.stage == Stage::kMarking && in.effect_done) || in.stage == Stage::kFinished;
}

}  // namespace fencepost::consumer
