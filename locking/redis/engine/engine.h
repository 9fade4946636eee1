// The driver of LockCore over real nodes: one connection per node on an Asio io_context, everything
// on the thread that runs it. One pipelined batch is outstanding at a node at a time; meanwhile the
// core gathers the next one. A slow or dead node does not delay the others.
//
// On each (re)connect: AUTH, SCRIPT LOAD of all scripts, INFO, TIME, GET sentinel → Store; lock
// operations follow only when the store says that the node is open. After NOSCRIPT: the same again
// (run_id first) before anything is resent, and only what failed is resent. A call without an
// answer after node_timeout: its ops are answered kTimeout and the node is stalled; the connection
// is kept, so that later commands cannot overtake it, until ten timeouts have passed; then it is
// closed. Reconnects with exponential backoff and jitter, 50 ms to 2 s.
//
// Names that the core wants to watch (LockOptions::wake_up) are subscribed to on a second
// connection per node, made with the first such name (subscriber.h).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "locking/core/lock/lock_core.h"
#include "locking/redis/node_unavailable.h"
#include "locking/redis/options.h"

namespace fencepost::locking {

class RedisEngine {
 public:
  // `on_step` is called soon after each input that the engine hands to the core (several inputs may
  // share a call), and drains the core's events. It may call the core and Kick, but must not
  // destroy the engine. All references must outlive the engine.
  RedisEngine(asio::io_context& io, LockCore& core, const RedisOptions& redis,
              const LockOptions& options, LockObserver* observer, std::function<void()> on_step);
  ~RedisEngine();  // closes the connections; unanswered ops are not answered any more
  RedisEngine(const RedisEngine&) = delete;
  RedisEngine& operator=(const RedisEngine&) = delete;

  void Start();
  // Call after having called the core (Acquire, Done, …): schedules, once, a pass that sends what
  // is queued and re-arms the timer. Cheap to call often.
  void Kick();
  // Nothing is queued or out at any node.
  [[nodiscard]] bool Quiet() const;
  // Why a node cannot be reached or logged in to; kNotYet while it is connected.
  [[nodiscard]] const NodeUnavailable& Away(int node) const;
  // Why a node that is up refuses to acquire locks; empty: it does not.
  [[nodiscard]] std::string Refuses(int node) const;

 private:
  class Node;  // its connections, tied to the core

  void Pass();
  void StoreChanged(Now now);
  void HandedIn();
  void ArmTimer(Instant next);

  asio::io_context& io_;
  LockCore& core_;
  LockObserver* const observer_;
  const std::function<void()> on_step_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();  // handlers look whether it still is
  std::vector<std::unique_ptr<Node>> nodes_;
  asio::steady_timer timer_;
  Instant armed_for_ = Instant::max();
  bool kicked_ = false;     // a pass is posted, or runs and has yet to pump
  bool handed_in_ = false;  // on_step was not called since
};

}  // namespace fencepost::locking
