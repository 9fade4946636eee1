// A worker's output thread, as consumer/outputs/writer.h: one transaction at a time; one whose
// answer is lost is written again, and the first may still happen after all.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "consumer/flow/flow.h"
#include "tests/model/simulator/ledger.h"
#include "tests/model/simulator/timeline.h"

namespace fencepost::simulator {

class SimWorker;
class World;

class SimWriter {
 public:
  SimWriter(World& world, SimWorker& worker) : world_(world), worker_(worker) {}
  void Write(std::unique_ptr<consumer::WriteBatch> batch);

 private:
  void Next();
  void Attempt();
  void OnAnswer(int attempt, const std::vector<consumer::WriteOutcome>& outcomes);
  void OnUnavailable(int attempt);

  World& world_;
  SimWorker& worker_;
  std::deque<std::unique_ptr<consumer::WriteBatch>> queue_;
  std::unique_ptr<consumer::WriteBatch> batch_;
  std::vector<LedgerItem> items_;
  int attempt_ = 0;
  Nanos backoff_{0};
};

}  // namespace fencepost::simulator
