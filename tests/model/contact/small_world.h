// A small world, searched to its end: a store of three nodes, one name, and two clients, each of
// which asks any two of the nodes first and the third when it likes, at the latest when the shipped
// AcquireRound says so. The first may extend its lease by the shipped ExtendRound; one node is
// wiped once. Messages arrive in any order, however late, or never; time passes in ticks;
// everything that can happen next, does, in some history.
#pragma once

#include <cstddef>

#include "tests/model/search/search.h"

namespace fencepost::contact_model {

struct Rules {
  int rival_at = 0;  // the tick at which the second client asks
  bool extends = false;
  bool wipes = false;
  // Planted bugs.
  bool late_counts_from_its_sending = false;
  bool late_counts_twice = false;
  bool abort_forgets_late = false;
  bool one_is_enough = false;  // of the asked, instead of a quorum of the configured nodes
};

struct Found : model::Searched {
  std::size_t leases = 0;    // of these: just granted
  std::size_t late = 0;      // by the third node too
  std::size_t extended = 0;  // just extended
};

// Every state that can be reached, until one breaks an invariant.
Found Search(const Rules& rules, std::size_t most_states);

}  // namespace fencepost::contact_model
