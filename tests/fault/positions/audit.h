// What was sent to the partitions of a topic, what became of it, and what the ledger says are
// compared. It knows nothing of servers, nor of what the program has in memory.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fencepost::positions {

struct Place {
  int log = 0;  // a topic that is made again is another log
  int partition = 0;
  std::int64_t offset = 0;
  auto operator<=>(const Place&) const = default;
};

struct Effect {
  int order = 0;
  int partition = 0;  // of the record that it came from, as the table says
  std::int64_t offset = 0;
};

struct Expected {
  std::vector<Place> sent;    // by order
  std::map<int, int> repeats;  // by order: so many effects more than one may be there
};

// One line for each kind of trouble, with how many and the first one; "" when each order has its
// effect once, from its own place.
std::string AuditEffects(const Expected& expected, const std::vector<Effect>& effects);

// The text of a row's ranges, "{[0,5),[7,9)}", against the end of its partition: all that was there
// is done, and nothing else.
std::string AuditLedger(const std::map<int, std::string>& ranges,
                        const std::vector<std::int64_t>& ends);

}  // namespace fencepost::positions
