// Leader election: of all candidates for a name, one leads at a time; the others wait and one
// of them takes over when the leader ends, dies or is cut off.
//
//   Election election(*lock, "billing-cron", {
//       .on_elected = [&](const Term& term) { scheduler.Start(term.token); },
//       .on_deposed = [&](const Term& term, const Error& why) { scheduler.Stop(); }});
//   election.Start();
//
// What is promised: on_deposed of a term is due `depose_before` ahead of the instant at which the
// lease could be another's by this process's own clock, or as soon as the lease is lost; and the
// calls come in pairs and in order: elected, deposed, elected, … So a leader whose on_deposed has
// returned within depose_before of being due has stopped before the next one starts: let it have
// room for the callback and for a busy machine. A process that is paused (SIGSTOP, a
// suspended machine) cannot be called in time by anybody: hand term.token to the place of the
// effect and let it refuse a smaller one than it has seen (lease.h).
//
// Threads: the callbacks run on the election's own thread, one at a time; they may block, must not
// throw, and may call Resign, IsLeader and Current, but not Start, Stop or the destructor (a failed
// CHECK). While on_elected runs, a loss cannot be told by on_deposed: watch term.deposed, or return
// soon. A second thread watches the lease, at least ten times a second while it leads. The other
// members may be called from any thread; stop callbacks of term.deposed run on the second thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "locking/quorum_lock/quorum_lock.h"

namespace fencepost::locking {

struct Term {
  Token token;              // the fencing token: higher than that of every earlier term of the name
  std::stop_token deposed;  // stops when on_deposed is due, however busy the callbacks are
};

struct ElectionOptions {
  // The lease's ttl, between polls the delay, …; wait, tries, watchdog, cancel are not used.
  AcquireOptions acquire{};
  // Less than two thirds of the ttl (bad_options otherwise): the lease is extended at a third.
  Millis depose_before{500};
  std::function<void(const Term&)> on_elected{};
  // `why`: lost (could not be extended in time, too), done, closed, resigned, stopped.
  std::function<void(const Term&, const Error& why)> on_deposed{};
  // Told when the reason changes for which a candidate cannot be elected by waiting for the leader
  // to end: no_quorum, done, refused, closed (its last), and back to none (empty code).
  std::function<void(const Error&)> on_waiting{};
};

class Election {
 public:
  // Does nothing yet. `lock` must outlive it.
  Election(QuorumLock& lock, std::string name, ElectionOptions options);
  ~Election();  // Stop
  Election(const Election&) = delete;
  Election& operator=(const Election&) = delete;

  // Becomes a candidate. Errors: bad_options, no_thread. A second Start is bad_options.
  tl::expected<void, Error> Start();
  // Gives the term up, if there is one: on_deposed, then the lease is released, then waits
  // again after `pause`, so that another can be elected. Does not wait.
  void Resign(Millis pause = Millis(1000));
  // Deposed if it leads, the lease released, the threads joined. For good: no second Start.
  void Stop();

  [[nodiscard]] bool IsLeader() const;  // between on_elected and on_deposed, and the lease is valid
  [[nodiscard]] std::optional<Term> Current() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fencepost::locking
