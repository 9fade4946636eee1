// A lock that its owner may take again: counted by owner id, given back when the last hold ends.
//
//   ReentrantLock accounts(*lock);                       // one for the process, over a QuorumLock
//   auto outer = accounts.Acquire("account-7", "job-1"); // asks the nodes
//   auto inner = accounts.Acquire("account-7", "job-1"); // at once: the same lease, counted
//   auto other = accounts.Acquire("account-7", "job-2"); // contended, as from another process
//
// The count lives in this process: an owner id in another process is another owner (as with
// Redisson, whose owners are a client and a thread). All holds of an owner share one lease: one
// fencing token, one stop_token, one watchdog. When the lease is lost, all holds are, whatever
// their count; the next Acquire asks the nodes for a new lease (a higher token) as soon as the lost
// holds of that owner have ended, and is refused with the error "lost" before that: an owner that
// still works under the old token must not be handed the new one unawares.
//
// Threads: all members may be called from any thread. Not from callbacks of the library.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include <tl/expected.hpp>

#include "locking/quorum_lock/quorum_lock.h"

namespace fencepost::locking {

// One hold. Ends by Release or the destructor; the last one of its owner gives the lease back.
class ReentrantHold {
 public:
  ReentrantHold() = default;  // empty: token 0, not valid
  ~ReentrantHold();
  ReentrantHold(ReentrantHold&& other) noexcept = default;
  ReentrantHold& operator=(ReentrantHold&& other) noexcept;
  ReentrantHold(const ReentrantHold&) = delete;
  ReentrantHold& operator=(const ReentrantHold&) = delete;

  [[nodiscard]] Token token() const;  // the same for all holds of one lease
  [[nodiscard]] bool valid() const;   // this hold has not ended, and the lease is valid
  [[nodiscard]] Instant valid_until() const;
  [[nodiscard]] std::stop_token stop_token() const;  // stops when the lease is lost
  [[nodiscard]] int count() const;                   // holds of this owner now, this one included

  // To a full ttl from now, for all holds. Errors as Lease::Extend; ended: this hold has ended.
  tl::expected<void, Error> Extend();
  // Ends this hold. While others of the owner remain, at once: kReleased (this one is over), or
  // kExpired when the lease was lost. The last one waits for the nodes and says what they said
  // (Lease::Release); while it does, an Acquire of the owner waits. Once more: what it was then.
  ReleaseOutcome Release();

 private:
  friend class ReentrantLock;
  struct Shared;  // all holds of one owner
  explicit ReentrantHold(std::shared_ptr<Shared> shared);
  std::shared_ptr<Shared> shared_;
  bool ended_ = false;
  ReleaseOutcome outcome_ = ReleaseOutcome::kUnknown;
};

class ReentrantLock {
 public:
  using Result = tl::expected<ReentrantHold, Error>;

  explicit ReentrantLock(QuorumLock& lock);  // must outlive this and all holds
  ~ReentrantLock();
  ReentrantLock(const ReentrantLock&) = delete;
  ReentrantLock& operator=(const ReentrantLock&) = delete;

  // `owner`: any text; callers with the same text are one owner. Two threads of one owner that ask
  // at the same time share the one lease: the second waits for the first one's answer, within its
  // own `wait` (contended when that is over, or when it does not wait and the first one does), and
  // asks by itself when the first one came away with nothing. `options` count for the call that
  // asks the nodes, wait and cancel for every call. Errors as QuorumLock::Acquire; lost: see above.
  Result Acquire(const std::string& name, const std::string& owner,
                 const AcquireOptions& options = {});

 private:
  friend class ReentrantHold;
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace fencepost::locking
