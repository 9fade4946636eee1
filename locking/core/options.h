// What a user of the lock sets. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "locking/base/types.h"

namespace fencepost::locking {

// The wait between two rounds for one name: uniform in [0, d] with jitter, exactly d without; d
// begins at `first` and grows by `multiplier` a round up to `most`. A plain interval of 50 ms is
// {.first = 50 ms, .most = 50 ms, .jitter = false}; without jitter, contenders may meet again and
// again.
struct DelayPolicy {
  Millis first{0};  // 0: ten round trips as measured
  Millis most{1000};
  double multiplier = 2.0;  // at least 1
  bool jitter = true;
};

// Which nodes an acquire asks at first (PROTOCOL.md, The client, step by step).
enum class Contact : std::uint8_t {
  kQuorum,  // while more than `few_locks` are at work: a quorum of those that answer fast, the
            // same for all clients of a name; the others only where it cannot decide, or is late.
            // A lease is on a bare quorum until its first extension, and a mark that only a quorum
            // has may be missed once one of that is wiped
  kAll
};

struct LockOptions {
  Millis ttl{10'000};          // at most the store's max_ttl; the watchdog extends at a third of it
  Millis min_validity{2'000};  // a lease with less left is given back
  Millis max_skew{5'000};      // largest tolerated clock difference between clients and nodes
  Millis node_timeout{200};    // a call to one node
  Millis remember_done{300'000};  // how long a name stays done; at least max_ttl + 2 × max_skew
  Millis max_ttl{30'000};  // only for a store that is created; afterwards the store's own counts
  // false: something else than the lock makes each effect single, as a ledger does. Then a node
  // that may have forgotten leases counts at once, one that may evict them is a warning, and a
  // store of one node need not say its run_id and role: it may be a managed one that fails over.
  bool quarantine = true;

  Contact contact = Contact::kQuorum;
  // Up to so many locks at once (waited for, held, being given back) an acquire goes to all nodes:
  // they have time for it, and the fastest quorum decides.
  std::size_t few_locks = 64;

  // Waiters are told by pub/sub when a lock is given back (channel = the key), on top of polling,
  // which alone is needed for progress. The ACL user needs `&fencepost:* +publish +subscribe
  // +unsubscribe`; a node that refuses is polled.
  bool wake_up = false;
  double drift_factor = 0.01;  // how much a node's clock may run faster than ours, within one ttl

  // Of one acquire, which may ask for another (not below 0).
  [[nodiscard]] Millis MinValidity(Millis asked) const {
    return asked < Millis(0) ? min_validity : asked;
  }
  // Clock drift allowed for within one ttl: drift_factor + 2 ms (Redlock).
  [[nodiscard]] Nanos Drift(Millis span) const {
    return Nanos(static_cast<Nanos::rep>(static_cast<double>(Nanos(span).count()) * drift_factor)) +
           Millis(2);
  }
  // How much of a ttl of `span` may be relied on, from the instant the request was sent.
  [[nodiscard]] Nanos Validity(Millis span) const { return span - Drift(span); }
};

}  // namespace fencepost::locking
