// What a record does next: one table, by the record's own state, by what is before it in its
// order chain, and by what the pipeline consists of. Pure; any thread. Flow::Advance asks it for
// each record on the work list, and does it.
#pragma once

#include <cstdint>

#include "consumer/flow/state/in_flight.h"
#include "consumer/pipeline/options.h"

namespace fencepost::consumer {

// In the order of a record's life.
enum class Move : std::uint8_t {
  kStay,             // an answer, a timer or the record before it moves it, or the flow's end
  kLock,             // its lock is to be asked for
  kAwaitPrefix,      // it has its lease, and the record before it may have one soon
  kGiveBack,         // it has its lease, and the record before it will not have one soon
  kAwaitFormerCall,  // a handler call of it that was called off is still out
  kSkipDone,         // its name is DONE, and the write does not decide
  kStartDeadLetter,  // it cannot be processed
  kLookUp,           // the ledger is asked for it before anything else happens
  kAwaitTurn,        // it is to be handled
  kTakeTurn,         // its handler call may go out: everything before it is handled
  kAwaitOrder,       // there is nothing to handle (any more)
  kJoinWrites,       // it may be written: everything before it is handled
};

// The records before one in its chain, as far as its lease is concerned.
enum class Before : std::uint8_t {
  kInPrefix,  // they are in the leased prefix, or there are none
  kMaySoon,   // the one that is not may be leased within a round trip
  kNotSoon,
};

struct ChainPosition {
  Before before = Before::kInPrefix;  // looked at where WaitsForPrefix(stage)
  bool before_handled = true;
  bool may_lock = true;  // the worker takes new work, and the partition stays
};

struct PipelineTraits {
  Finality finality = Finality::kLedger;
  bool handler = false;
  bool outside = false;  // the handler may have effects of its own
  // WriteDecides: a DONE mark is only a hint, and none is made.
  bool write_decides = true;
  [[nodiscard]] bool HasLedger() const { return finality == Finality::kLedger; }
};

Move Next(const InFlight& record, const ChainPosition& position, const PipelineTraits& traits);

}  // namespace fencepost::consumer
