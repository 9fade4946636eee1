// What a user of the lock sets. Plain values.
#pragma once

#include "locking/core/types.h"

namespace fencepost::locking {

struct LockOptions {
  Millis ttl{10'000};          // at most the store's max_ttl; the watchdog extends at a third of it
  Millis min_validity{2'000};  // a lease with less left is given back
  Millis max_skew{5'000};      // largest clock error between clients and nodes that is lived with
  Millis node_timeout{200};    // a call to one node
  Millis remember_done{300'000};
  Millis max_ttl{30'000};  // only for a store that is created; afterwards the store's own counts

  // Clock drift allowed for within one ttl: 1% + 2 ms (Redlock).
  [[nodiscard]] static constexpr Nanos Drift(Millis ttl) { return Nanos(ttl) / 100 + Millis(2); }
};

}  // namespace fencepost::locking
