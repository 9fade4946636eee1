// Locks by name over N independent Redis primaries: fenced Redlock (antirez, "Distributed Locks
// with Redis"; what is different here, and why: PROTOCOL.md). This and lease.h are the library's
// face.
//
//   auto lock = QuorumLock::Connect({.redis = {.nodes = {"a:6379", "b:6379", "c:6379"}},
//                                    .name_space = "billing"});
//   auto lease = (*lock)->Acquire("invoice-7", {.wait = Millis(5000)});
//   if (lease) Charge(invoice, lease->token(), lease->stop_token());
//
// One QuorumLock serves a whole process: any number of threads, any number of names at once. It
// owns one thread and one connection a node; what many threads ask at the same time travels
// together. All members may be called from any thread, but the blocking ones not from callbacks of
// the library (a failed CHECK). The key of a name on the nodes is `fencepost:{NAMESPACE}:NAME`.
//
// Error codes, stable:
//   contended    another holds the name, and `wait` ran out
//   done         the name is marked done
//   no_quorum    too few nodes can be asked, or answered in time; the text says why
//   too_late     a quorum granted it, but so late that less than min_validity was left
//   foreign      at a quorum of nodes the key holds something that is no lock
//   cancelled    `cancel` was stopped
//   refused      this name or option is not accepted. clock: nodes do not accept this host's clock
//   lost, ended  of a lease: it was lost; it was released or done before
//   closed       the QuorumLock is being destroyed, or is gone
//   bad_options  Connect: the options are wrong. no_thread: the system gives no thread or file
#pragma once

#if __cplusplus < 202002L
#error "fencepost needs C++20: compile with -std=c++20 or later"
#endif

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "locking/base/error.h"
#include "locking/core/observer.h"
#include "locking/core/options.h"
#include "locking/core/store/store.h"
#include "locking/quorum_lock/lease.h"
#include "locking/redis/options.h"

namespace fencepost::locking {

inline constexpr Millis kLongestWait = std::chrono::hours(24 * 365);  // beyond: for ever

// Tries for a lock while `wait` and `tries` allow it, whichever ends first: with neither, one round
// of questions; with only one of them, that one counts. A time in which no quorum can be asked is
// waited out as far as `wait` goes; where `tries` alone counts, it is a round that failed.
struct AcquireOptions {
  Millis wait{0};           // how long to try; Millis::max() is for ever
  int tries = 0;            // how many rounds at most; 0: no limit of its own
  DelayPolicy delay{};      // between rounds
  Millis ttl{0};            // 0: LockOptions::ttl; at most the store's max_ttl, above min_validity
  Millis min_validity{-1};  // give it back if less is left than the work needs; < 0: LockOptions
  bool watchdog = true;     // extend at a third of the ttl until the lease ends
  // Gives up the attempt, until its result is told; a lease that was told is not touched.
  std::stop_token cancel{};
  // Called once if the lease is lost, with why ("lost", "done", "closed"), on the lock's thread,
  // after its stop_token; must not block, must not throw.
  std::function<void(const Error& why)> on_lost{};
};

class QuorumLock {
 public:
  struct Options {
    RedisOptions redis{};
    LockOptions lock{};
    std::string name_space = "default";  // [a-z0-9-]{1,63}
    // What to do where there is no lock store yet: by default one is made that counts after a
    // quarantine of max_ttl + 2 × max_skew, 40 s if nothing else was set. To make one that counts
    // at once: `fencepost locks init`, or kImmediate in a program that is run once (not in workers:
    // where there is a store already, WaitReady says store_exists, and nothing can be locked). It
    // is your word that no lease is out which these nodes have forgotten: `locks init` looks.
    StoreCreation creation = StoreCreation::kQuarantined;
    // Told what happens, on the lock's thread; must outlive the QuorumLock.
    LockObserver* observer = nullptr;
  };
  using Result = tl::expected<Lease, Error>;

  // Checks the options and starts the thread. Does not wait for any node: see WaitReady.
  // Errors: bad_options, no_thread.
  static tl::expected<std::unique_ptr<QuorumLock>, Error> Connect(const Options& options);

  // Ends waiting acquires with the error "closed", stops and gives back all leases, waits at most
  // one node timeout until the nodes have heard it, and joins the thread. Not from callbacks.
  ~QuorumLock();
  QuorumLock(const QuorumLock&) = delete;
  QuorumLock& operator=(const QuorumLock&) = delete;

  // Until a quorum can be asked. The error is the store's problem (foreign_store, same_node_twice,
  // eviction_policy, no_store, store_exists, …), or no_quorum with what is wrong with each node.
  // Either comes when `timeout` is over, not before: a node may come back, and a store be fixed.
  tl::expected<void, Error> WaitReady(Millis timeout);

  // `name`: 1 to 512 bytes of any kind. Waits for the outcome, at most about `wait` and a node
  // timeout. A failed or cancelled attempt is taken back on every node it may have reached.
  Result Acquire(const std::string& name, const AcquireOptions& options = {});
  // The id of the lock store, the same for every client of these nodes; empty before WaitReady was
  // fulfilled once. Asks the lock's thread, no node.
  [[nodiscard]] std::string StoreId() const;
  // A failed CHECK on the lock's own thread, where a blocking call would wait for itself. All
  // blocking calls ask first; so should code that makes one of AcquireAsync.
  void CheckMayBlock() const;
  [[nodiscard]] const std::string& name_space() const;
  [[nodiscard]] const LockOptions& lock_options() const;

  // Like Acquire, without waiting. `callback` (not empty: a failed CHECK) runs once, on the lock's
  // thread (in this call when the lock is being destroyed); it must not block and must not throw.
  void AcquireAsync(const std::string& name, const AcquireOptions& options,
                    std::function<void(Result)> callback);
  // Each name for itself: result i belongs to names[i], and comes when all are decided. One call a
  // node takes 512 names. A name that is listed twice is refused the second time. Two batches whose
  // names cross can wait for each other until `wait` is over.
  std::vector<Result> AcquireAll(const std::vector<std::string>& names,
                                 const AcquireOptions& options = {});
  // The same without waiting; `callback` as that of AcquireAsync.
  void AcquireAllAsync(std::vector<std::string> names, const AcquireOptions& options,
                       std::function<void(std::vector<Result>)> callback);

 private:
  struct Impl;
  explicit QuorumLock(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fencepost::locking
