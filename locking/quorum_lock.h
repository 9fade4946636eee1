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
//   cancelled    `cancel` was stopped
//   refused      this name, ttl or clock is not accepted; the hint says what to do
//   lost, ended  of a lease: it was lost; it was released or done before
//   closed       the QuorumLock is being destroyed, or is gone
//   bad_options  Connect: the options are wrong. no_thread: the system gives no thread or file
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "locking/core/observer.h"
#include "locking/core/options.h"
#include "locking/core/store.h"
#include "locking/error.h"
#include "locking/lease.h"
#include "locking/redis/options.h"

namespace fencepost::locking {

struct AcquireOptions {
  Millis wait{0};        // how long to try: 0 is one round of questions, Millis::max() is for ever
  Millis ttl{0};         // 0: LockOptions::ttl; at most the store's max_ttl, above min_validity
  bool watchdog = true;  // extend at a third of the ttl until the lease ends
  std::stop_token cancel{};  // gives up the attempt; a lease that was granted is not touched
};

class QuorumLock {
 public:
  struct Options {
    RedisOptions redis;
    LockOptions lock;
    std::string name_space = "default";  // [a-z0-9-]{1,63}
    // What to do where there is no lock store yet: by default one is made that counts after a
    // quarantine of max_ttl + 2 × max_skew. `fencepost locks init` makes one that counts at once.
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
  // eviction_policy, no_store, …), or no_quorum with what is wrong with each node.
  tl::expected<void, Error> WaitReady(Millis timeout);

  // `name`: 1 to 512 bytes of any kind. Waits for the outcome, at most about `wait` and a node
  // timeout. A failed or cancelled attempt is taken back on every node it may have reached.
  Result Acquire(const std::string& name, const AcquireOptions& options = {});
  // Like it, without waiting. `callback` runs once, on the lock's thread (in this call when the
  // lock is being destroyed); it must not block and must not throw.
  void AcquireAsync(const std::string& name, const AcquireOptions& options,
                    std::function<void(Result)> callback);
  // Each name for itself: result i belongs to names[i], and comes when all are decided. One call a
  // node takes 512 names. A name that is listed twice is refused the second time. Two batches whose
  // names cross can wait for each other until `wait` is over.
  std::vector<Result> AcquireAll(const std::vector<std::string>& names,
                                 const AcquireOptions& options = {});

 private:
  struct Impl;
  explicit QuorumLock(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fencepost::locking
