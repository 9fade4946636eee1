// A small world of records, searched to its end: the shipped Flow and LockCore of two workers over
// the three nodes of one store, one partition with a few records, a ledger, and faults, each so
// often. A lock message goes to all nodes that are asked and back at one moment (`contact/` has
// every order of single ones). Everything that can happen next, does, in some history: what a
// worker has sent may arrive, be answered or wait while the other one works, time passes, the
// partition moves, or a worker dies.
//
// A state is a history: it is lived through again for each step that follows it, since a Flow has
// no copies. Two histories that end in states that print alike are one (world.Print).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "consumer/flow/flow.h"
#include "tests/model/search/search.h"

namespace fencepost::consumer::small_world {

struct Rules {
  int block = 2;                 // offsets; 1: by id
  std::vector<std::string> ids;  // of the records, in order; by position only their number counts
  Order order = Order::kNone;
  bool handler = false;  // one that may have effects of its own
  std::size_t write_batch = 2;
  std::optional<int> refused;  // the offset whose row the table does not take
  bool replay = false;         // of the first record, in a partition of its own of the first worker
  // How often each may happen.
  int half_ttls = 1;   // leases are to be extended, waits are over
  int ttls = 1;        // leases and what the nodes hold are over
  int revokes = 0;     // the partition is taken away in order
  int losses = 0;      // … or goes to the other one before its owner hears of it
  int crashes = 0;     // what is sent by then may happen later, or never
  int unanswered = 0;  // transactions that happen and are sent again
  int aborted = 0;     // … that do not happen, and are answered so
};

struct Found : model::Searched {
  std::size_t ends = 0;       // of the states: nothing is left to happen but time and faults
  std::size_t written = 0;    // steps that wrote an effect
  std::size_t found = 0;      // … that found it in the ledger
  std::size_t contended = 0;  // looks into the ledger for the sake of a name that is held
};

Found Search(const Rules& rules, std::size_t most_states);

}  // namespace fencepost::consumer::small_world
