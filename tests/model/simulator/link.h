// The connection of one worker to one node, as locking/redis/node/connection.h keeps it: one thing
// out at a time, ten timeouts until it is given up, reconnects with a back-off.
#pragma once

#include <memory>
#include <vector>

#include "tests/model/simulator/exchange.h"

namespace fencepost::simulator {

class SimWorker;

class Link {
 public:
  Link(World& world, SimWorker& worker, locking::NodeIndex index, SimNode& node);

  void Connect();
  // Sends the next thing if nothing is out.
  void Pump();
  void OnAnswer(const std::shared_ptr<Exchange>& exchange, std::size_t call);
  void OnBroken(int connection);

  [[nodiscard]] bool Busy() const { return batch_ != nullptr; }
  [[nodiscard]] int connection() const { return connection_; }
  [[nodiscard]] const SimNode& node() const { return node_; }
  // When a connection last ended, and with it what was to be freed.
  [[nodiscard]] Nanos broke_at() const { return broke_at_; }
  [[nodiscard]] Process::Channel channel() const {
    return static_cast<Process::Channel>(Process::kLink + index_);
  }

 private:
  enum class Stage : std::uint8_t { kDown, kHello, kIdle, kOut };

  void Send(const std::shared_ptr<Exchange>& exchange, Nanos limit);
  void SendBatch();
  void OnInfo(Exchange& exchange);
  void OnCall(Exchange& exchange, std::size_t call);
  void BecomeIdle();
  void ArmTimeout(Nanos after);
  void OnTimeout(int turn);
  void Fail(const char* why);
  void HandBack(locking::ReplyCode rest);

  World& world_;
  SimWorker& worker_;
  Process& process_;
  const locking::NodeIndex index_;
  SimNode& node_;
  Stage stage_ = Stage::kDown;
  bool up_ = false;
  bool stalled_ = false;
  bool wiped_ = false;
  int connection_ = 0;
  int node_incarnation_ = 0;
  int turn_ = 0;
  int attempts_ = 0;
  Nanos broke_at_{-1};
  std::shared_ptr<Exchange> batch_;  // out, and its operations are not answered
  std::size_t called_ = 0;           // of its calls, those answered
  std::vector<locking::Op> ops_;
  std::vector<locking::Reply> replies_;
};

}  // namespace fencepost::simulator
