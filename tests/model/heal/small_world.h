// A small world, searched to its end: a store of N nodes, one name, two clients, one node that is
// wiped once, and the shipped Healing. Messages arrive in any order, however late; time passes in
// ticks; everything that can happen next, does, in some history.
#pragma once

#include <cstddef>

#include "tests/model/search/search.h"

namespace fencepost::heal_model {

struct Rules {
  int nodes = 3;
  int rival_at = 0;      // the tick at which the second client asks, if it does
  bool extends = false;  // the first client may extend its lease once, whenever it has it
  // Planted bugs.
  bool reads_at_once = false;    // does not wait until what was under way is refused
  bool gives_no_leases = false;  // copies floors only
  bool lifts_first = false;      // the quarantine, before anything is copied
};

struct Found : model::Searched {
  std::size_t healed = 0;  // of these: just lifted
  std::size_t kept_for_anyone = 0;
};

// Every state that can be reached, until one breaks an invariant.
Found Search(const Rules& rules, std::size_t most_states);

}  // namespace fencepost::heal_model
