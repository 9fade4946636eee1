// What was sent, what took effect, what the handler was asked and what became a dead letter,
// compared. It knows nothing of servers, nor of what the program has in memory.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fencepost::matrix {

struct Place {
  int partition = 0;
  std::int64_t offset = 0;
  auto operator<=>(const Place&) const = default;
};

// A record of the topic. The same order may be there more than once.
struct Sent {
  int order = 0;
  Place place;
  std::string key;
};

// A row of the table, which has no unique key and takes inserts alone.
struct Effect {
  int order = 0;
  std::int64_t amount = 0;
  Place place;  // of the record that it came from
  std::int64_t token = 0;
};

// A call as its receiver logged it. It accepts no token that is lower than one it accepted before
// for this order.
struct Call {
  int order = 0;
  std::int64_t token = 0;
  bool accepted = false;
  int life = -1;
};

struct History {
  int orders = 0;  // numbers 0 … orders-1 were sent
  std::vector<Sent> sent;
  std::vector<Effect> effects;  // in the order in which they happened
  std::vector<Call> calls;      // likewise
  std::map<Place, int> dead;    // dead letters: where the record was, its order
  std::vector<std::int64_t> ends;
  std::vector<std::int64_t> committed;
  bool may_be_dead = false;  // a fault makes answers that nobody can use
  // Partitions were given to others meanwhile: who has them now may find a dead letter's record
  // again, and the handler well.
  bool reassigned = false;
};

// How many of each kind of trouble, and a line for each with the first example.
struct Verdict {
  int lost = 0;          // neither effect nor dead letter
  int doubled = 0;       // more than one effect
  int out_of_order = 0;  // an effect before that of an earlier record of its key and partition
  int token_back = 0;    // accepted below one that was accepted before
  int both = 0;          // effect and dead letter of one record
  int wrong = 0;         // effects of no record, with a wrong amount, or that no call explains
  int unexpected_dead = 0;
  int uncommitted = 0;  // partitions
  std::string text;     // "": all is well
};

// What the handler makes of an order.
std::int64_t AmountOf(int order);

Verdict Judge(const History& history);

}  // namespace fencepost::matrix
