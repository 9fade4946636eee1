// Several names at once, all or none, without deadlock; the names may belong to several QuorumLocks
// (stores, namespaces).
//
//   auto both = AcquireMulti({{*lock, "account-7"}, {*lock, "account-9"}}, {.wait = Millis(5000)});
//   if (both) Transfer(both->token(0), both->token(1), both->stop_token());
//
// How (Dijkstra's total order, Havender 1968): the names have one order that is the same in every
// process: by store id, namespace, name. One batch asks for all of them; what was granted behind
// the first that was not is given back, the first one is waited for, then the rest is asked for in
// a batch again. So a waiting client holds only names before the one it waits for, and nobody waits
// in a circle. A name listed twice (same store, namespace and name) is locked once and answers for
// both places.
//
// Threads: as QuorumLock and Lease.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "locking/quorum_lock/quorum_lock.h"

namespace fencepost::locking {

struct LockName {
  std::reference_wrapper<QuorumLock> lock;  // must outlive the lease
  std::string name;
};

// The names held together. Each has a fencing token of its own: hand each to the place it guards.
class MultiLease {
 public:
  MultiLease() = default;
  ~MultiLease();  // releases what is held, without waiting
  MultiLease(MultiLease&&) noexcept;
  MultiLease& operator=(MultiLease&&) noexcept;
  MultiLease(const MultiLease&) = delete;
  MultiLease& operator=(const MultiLease&) = delete;

  [[nodiscard]] std::size_t size() const;          // as many as were asked for
  [[nodiscard]] Token token(std::size_t i) const;  // of the i-th name as given to AcquireMulti
  [[nodiscard]] bool valid() const;                // all of them
  [[nodiscard]] Instant valid_until() const;       // the earliest
  // Stops as soon as one of them is lost. The others are held until they are released.
  [[nodiscard]] std::stop_token stop_token() const;

  tl::expected<void, Error> Extend();  // all; the error is that of the first that failed
  // The outcome of each name, in the order given. Asks for all first and waits then.
  std::vector<ReleaseOutcome> Release();

 private:
  struct Impl;
  friend tl::expected<MultiLease, Error> AcquireMulti(const std::vector<LockName>&,
                                                      const AcquireOptions&);
  explicit MultiLease(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// `options.wait` is for all of them together; `options.tries` counts rounds of the whole: batches,
// and the waits for one name between them, each of at most what is left of `tries`. All leases have
// at least min_validity left when this returns. on_lost is called once, for the first that is lost
// after this has returned a MultiLease (before it returns, at the earliest). Errors: as
// QuorumLock::Acquire, `where` is the name that could not be acquired; then nothing is held.
// `names` must not be empty (bad_options). With several QuorumLocks each must have seen its store
// once (no_quorum when that does not happen within `wait`).
tl::expected<MultiLease, Error> AcquireMulti(const std::vector<LockName>& names,
                                             const AcquireOptions& options = {});

}  // namespace fencepost::locking
