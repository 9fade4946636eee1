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

// A call as its receiver logged it, also one that it refused.
struct Call {
  int order = 0;
  std::int64_t token = 0;
  bool accepted = false;
  int life = -1;
  bool unusable = false;  // it was accepted, and answered with what no worker can take
};

struct History {
  int orders = 0;  // numbers 0 … orders-1 were sent
  std::vector<Sent> sent;
  std::vector<Effect> effects;  // in the order in which they happened
  std::vector<Call> calls;      // likewise
  std::map<Place, int> dead;    // dead letters: where the record was, its order
  std::vector<std::int64_t> ends;
  std::vector<std::int64_t> committed;
  // Partitions were given to others meanwhile. Of each, what was committed just before the handler
  // gave good answers again: from there on, who has it now may find a record again whose dead
  // letter was published, and the handler well. A record before that is found by nobody any more.
  // Empty: no partition was given away, or no answer was unusable.
  std::vector<std::int64_t> moved_from;
};

// How many of each kind of trouble, and a line for each with the first example.
struct Verdict {
  int lost = 0;          // neither effect nor dead letter
  int doubled = 0;       // more than one effect
  int out_of_order = 0;  // an effect before that of an earlier record of its key and partition
  // Calls with a lower token than one that was accepted before. Somebody was late, which is no
  // trouble where he was refused and made no effect with it.
  int token_back = 0;
  int both = 0;   // effect and dead letter of one record
  int moved = 0;  // the same, where its partition was given away: no trouble
  int wrong = 0;  // effects of no record, with a wrong amount, or that no call explains
  int unexpected_dead = 0;
  int uncommitted = 0;  // partitions
  std::string text;     // "": all is well
};

// What the handler makes of an order.
std::int64_t AmountOf(int order);

Verdict Judge(const History& history);

}  // namespace fencepost::matrix
