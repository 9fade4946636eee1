// The connection of one worker to one node: the shipped NodeSession, driven as
// locking/redis/node/connection.h and session_pump.h drive it, over a network that loses, cuts and
// delays. Instead of sockets there are exchanges.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "locking/core/lock/lock_core.h"
#include "locking/redis/node/plain_acquire.h"
#include "locking/redis/session/node_session.h"
#include "tests/model/simulator/exchange.h"

namespace fencepost::simulator {

class SimWorker;

class Link {
 public:
  // `index`: of the node in the worker's list.
  Link(World& world, SimWorker& worker, locking::NodeIndex index, SimNode& node);

  void Start();
  // Sends the next thing if nothing is out.
  void Pump();

  // --- from the network; what belongs to an older connection is ignored -------------------------
  void OnOpen(int connection);
  void OnBytes(int connection, std::string_view bytes);
  void OnBroken(int connection, const char* why);

  void OnClockStepped();

  [[nodiscard]] bool Busy() const { return batch_ != nullptr; }
  [[nodiscard]] bool Releasing() const;
  [[nodiscard]] SimNode& node() const { return node_; }
  // When a connection last ended, and with it what was to be freed.
  [[nodiscard]] Nanos broke_at() const { return broke_at_; }
  [[nodiscard]] Process::Channel channel() const {
    return static_cast<Process::Channel>(Process::kLink + index_);
  }
  [[nodiscard]] const locking::Store& store() const { return core_.store(); }
  [[nodiscard]] locking::NodeStatus Status() const;
  [[nodiscard]] bool Idle() const { return !Busy() && !core_.HasOps(index_); }
  void OnFreed(std::string_view name) { core_.OnFreed(index_, name, process_.now()); }

 private:
  using Shared = std::shared_ptr<Exchange>;

  [[nodiscard]] locking::Instant Boot() const { return process_.now().boot; }
  [[nodiscard]] bool IsCurrent(int connection) const;
  void Do(locking::NodeSession::Step step);
  void Connect();
  void Ask(const Shared& exchange);
  void Send(const Shared& exchange);
  Shared TakeBatch();
  void OnReply();
  void OnCall(std::size_t call);
  void OnAllReplies();
  void OnInfo();
  void ArmTimer();
  void Stall();
  void Close();
  void HandBack(locking::ReplyCode rest);

  World& world_;
  SimWorker& worker_;
  Process& process_;
  const locking::NodeIndex index_;
  locking::LockCore& core_;
  SimNode& node_;
  locking::NodeSession session_;
  locking::PlainAcquire plain_;  // says which acquires suit
  std::string sent_;             // what the session writes: the exchange stands for it
  locking::Instant armed_for_ = locking::Instant::max();
  bool wiped_ = false;
  int connection_ = 0;
  int node_incarnation_ = 0;
  std::size_t requests_ = 0;
  bool open_ = false;           // its store lets operations through
  Nanos broke_at_{-1};          // when the way to the node was last lost
  Shared out_;                  // the request that was announced last
  std::size_t next_reply_ = 0;  // to it
  Shared batch_;                // out, and its operations are not answered
  std::size_t called_ = 0;      // of its calls, those answered
  std::vector<locking::Op> ops_;
  std::vector<locking::Reply> replies_;
};

}  // namespace fencepost::simulator
