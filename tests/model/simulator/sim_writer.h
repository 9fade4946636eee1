// A worker's output thread, as consumer/outputs/writer.h: one thing at a time, lookups first. A
// transaction whose answer is lost is written again, and the first may still happen after all. An
// output without a ledger has no such doubts: a line is there, or the file was away.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "consumer/flow/flow.h"
#include "tests/model/simulator/effects.h"
#include "tests/model/simulator/ledger.h"
#include "tests/model/simulator/timeline.h"

namespace fencepost::simulator {

class SimWorker;
class World;

class SimWriter {
 public:
  SimWriter(World& world, SimWorker& worker) : world_(world), worker_(worker) {}
  void Write(std::unique_ptr<consumer::WriteBatch> batch);
  void LookUp(std::unique_ptr<consumer::LookupBatch> lookup);

 private:
  struct Item {
    LedgerItem row;
    consumer::AssignmentEpoch epoch = 0;
  };

  void Next();
  void Attempt();
  void Ask();
  static std::vector<consumer::WriteOutcome> Happen(World& world, const std::vector<Item>& items,
                                                    By by);
  void OnFound(int attempt, const std::vector<std::optional<consumer::LedgerEntry>>& entries);
  void OnAnswer(int attempt, const std::vector<consumer::WriteOutcome>& outcomes);
  void OnUnavailable(int attempt);

  World& world_;
  SimWorker& worker_;
  std::deque<std::unique_ptr<consumer::WriteBatch>> queue_;
  std::unique_ptr<consumer::WriteBatch> batch_;
  std::deque<std::unique_ptr<consumer::LookupBatch>> lookups_;
  std::unique_ptr<consumer::LookupBatch> lookup_;
  std::vector<Item> items_;
  int attempt_ = 0;
  Nanos backoff_{0};
};

}  // namespace fencepost::simulator
