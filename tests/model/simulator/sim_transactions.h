// A worker's transactional producer, as consumer/kafka/output/transactional_output.h: outputs and
// offsets in one transaction. An unknown outcome is asked for again; a producer that was fenced
// ends its worker.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "consumer/flow/flow.h"
#include "tests/model/simulator/broker.h"
#include "tests/model/simulator/timeline.h"

namespace fencepost::simulator {

class SimWorker;
class World;

class SimTransactions {
 public:
  SimTransactions(World& world, SimWorker& worker) : world_(world), worker_(worker) {}
  void Stop() { ++attempt_; }  // nothing more is sent, and nothing answered
  void Write(std::unique_ptr<consumer::WriteBatch> batch);

 private:
  void Attempt();
  void SendOffsets(std::uint64_t attempt);
  void OnOffsets(std::uint64_t attempt, TransactionState state);
  void Commit(std::uint64_t attempt);
  void OnEnded(std::uint64_t attempt, TransactionState state);
  void NotWritten();
  void Fenced();
  void Answer(const std::vector<consumer::WriteOutcome>& outcomes);

  World& world_;
  SimWorker& worker_;
  std::unique_ptr<consumer::WriteBatch> batch_;
  std::vector<Produced> items_;
  std::uint64_t attempt_ = 0;
  Nanos backoff_{0};
};

}  // namespace fencepost::simulator
