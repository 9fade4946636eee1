// A lock node in this process in the place of Redis, for a pipeline with one worker, which is how
// `fencepost dev` runs where there is no redis-server. Drives the LockCore as RedisEngine drives it
// over real nodes, on the thread that runs the io_context.
#pragma once

#include <functional>
#include <string_view>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "consumer/worker/memory_node.h"
#include "locking/core/lock/lock_core.h"

namespace fencepost::consumer {

// The only one of LockSection::redis.nodes that is no server's address. No file can say it.
inline constexpr std::string_view kMemoryNode = "in-process";

class MemoryEngine {
 public:
  // As RedisEngine's. All must outlive the io_context's run.
  MemoryEngine(asio::io_context& io, locking::LockCore& core, const locking::LockOptions& options,
               std::function<void()> on_step);

  void Start();
  void Kick();
  [[nodiscard]] bool Quiet() const { return !core_.HasOps(0); }

 private:
  void Connect(const locking::Now& now);
  void Pass();
  void ArmTimer();

  asio::io_context& io_;
  locking::LockCore& core_;
  const std::function<void()> on_step_;
  MemoryNode node_;
  asio::steady_timer timer_;
  bool kicked_ = false;  // a pass is posted
};

}  // namespace fencepost::consumer
