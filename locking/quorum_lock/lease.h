// A name held on a quorum of the lock nodes, for a time: what QuorumLock::Acquire gives.
//
// A lease ends in one of four ways: Release, Done, the destructor (which releases), or loss. It is
// lost when its time ran out by this process's own CLOCK_BOOTTIME, when others hold the name, when
// somebody marked the name done, or when the QuorumLock is destroyed. A lost lease never comes back
// (PROTOCOL.md, invariants 4 and 6).
//
// A lease is not a guarantee by itself: a process can be paused between valid() and its next
// instruction. Hand token() to the place where the effect is written and let it refuse a smaller
// one than it has seen (M. Kleppmann, "How to do distributed locking", 2016).
//
// Threads: one Lease is used like a std::unique_ptr. Its const members and Extend may be called
// from any number of threads while none of the others runs. Blocking members must not be called
// from callbacks of the library (AcquireAsync, ReleaseAsync, stop callbacks): that is a failed
// CHECK.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "locking/base/error.h"
#include "locking/base/types.h"
#include "locking/core/observer.h"

namespace fencepost::locking {

struct LeaseState;

class Lease {
 public:
  Lease() = default;  // empty: token 0, not valid
  // Releases what is still held, without waiting for any node. Never throws.
  ~Lease();
  Lease(Lease&& other) noexcept = default;
  Lease& operator=(Lease&& other) noexcept;  // releases what this one held
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  // The fencing token: above that of every earlier lease of this name. 0 for an empty lease.
  [[nodiscard]] Token token() const;
  [[nodiscard]] const std::string& name() const;  // as given to Acquire
  // Held, and its time has not run out by CLOCK_BOOTTIME, read in this call. Asks no node.
  [[nodiscard]] bool valid() const;
  // When it ends unless it is extended; Instant::min() when it is not held.
  [[nodiscard]] Instant valid_until() const;
  // Stops as soon as the lease is lost, by its own clock too; not when it is released or done.
  // Stop callbacks run on the lock's thread: they must be quick and must not block. The token of an
  // empty lease is stopped.
  [[nodiscard]] std::stop_token stop_token() const;

  // Extends now, to a full ttl from now (the watchdog does it by itself). Waits for the nodes, at
  // most two node timeouts. Errors: no_quorum (the lease lasts as long as before), lost, done,
  // ended, closed.
  tl::expected<void, Error> Extend();

  // The work is complete: marks the name done on all nodes for `remember` (0: the options'
  // remember_done; at least the store's max_ttl + 2 × max_skew) and ends the lease. `crc` is kept
  // beside the mark. Later acquires of the name get the error "done". Call it only when the effect
  // is known to be written (invariant 10). Where another has marked the name meanwhile, its mark
  // and crc stay, and that is no error. Errors: no_quorum (too few nodes have confirmed the mark;
  // some may have it), lost, done, ended, closed. Whatever comes back, the lease is over.
  tl::expected<void, Error> Done(ContentCrc crc = 0, Millis remember = Millis(0));

  // Gives the lease back, and waits for the nodes to say how that went, at most five node timeouts:
  //   kReleased  a quorum of nodes had it as ours and freed it
  //   kExpired   it had ended before
  //   kStolen    another holds the name, or held it since; left untouched
  //   kUnknown   too few nodes answered in time; the nodes end it after its ttl at the latest
  // Once more, or after loss: what it was then. After Done, and for an empty lease: kUnknown.
  ReleaseOutcome Release();
  // The same without waiting. `callback` runs on the lock's thread, must not block, must not throw;
  // it runs in this call when the QuorumLock is gone.
  void ReleaseAsync(std::function<void(ReleaseOutcome)> callback = {});

  // Extend, Done and Release of several leases, of several QuorumLocks too: all are sent first,
  // then waited for once. Element i belongs to leases[i].
  static std::vector<tl::expected<void, Error>> ExtendAll(std::span<Lease> leases);
  static std::vector<tl::expected<void, Error>> DoneAll(std::span<Lease> leases, ContentCrc crc = 0,
                                                        Millis remember = Millis(0));
  static std::vector<ReleaseOutcome> ReleaseAll(std::span<Lease> leases);

 private:
  friend class LockLoop;
  explicit Lease(std::shared_ptr<LeaseState> state);
  static std::vector<std::shared_ptr<LeaseState>> StatesOf(std::span<Lease> leases);

  std::shared_ptr<LeaseState> state_;
};

}  // namespace fencepost::locking
