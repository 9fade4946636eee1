// A worker's output thread, as consumer/outputs/writer.h: one thing at a time, lookups first, and
// each batch by the shipped WriteRetry. A transaction whose answer is lost is written again, and
// the first may still happen after all. An output without a ledger has no such doubts: a line is
// there, or the file was away.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "consumer/flow/flow.h"
#include "consumer/outputs/write_retry.h"
#include "tests/model/simulator/effects.h"
#include "tests/model/simulator/ledger.h"
#include "tests/model/simulator/timeline.h"

namespace fencepost::simulator {

class SimWorker;
class World;

class SimWriter {
 public:
  SimWriter(World& world, SimWorker& worker);
  void Write(std::unique_ptr<consumer::WriteBatch> batch);
  void LookUp(std::unique_ptr<consumer::LookupBatch> lookup);
  [[nodiscard]] bool refuses_all() const { return refuses_all_; }  // as retry_ told last

 private:
  struct Item {
    LedgerItem row;
    consumer::AssignmentEpoch epoch = 0;
  };

  static constexpr std::size_t kMostRecords = 500;

  void Next();
  void Begin();
  void Go();
  void Attempt(const std::vector<std::size_t>& places);
  void Ask();
  static Ledger::Mood Mood(World& world);
  static Ledger::Outcomes Happen(World& world, const std::vector<Item>& items, By by);
  static std::vector<consumer::WriteOutcome> Append(const std::vector<Item>& items);
  void OnFound(int attempt, const std::vector<std::optional<consumer::LedgerEntry>>& entries);
  void OnAnswer(int attempt, const Ledger::Outcomes& outcomes);
  void OnNoAnswer(int attempt);
  void OnUnavailable(int attempt);
  void Fail(consumer::WriteFailure failure);

  World& world_;
  SimWorker& worker_;
  consumer::WriteRetry retry_;
  std::deque<std::unique_ptr<consumer::WriteBatch>> queue_;
  std::unique_ptr<consumer::WriteBatch> batch_;
  std::deque<std::unique_ptr<consumer::LookupBatch>> lookups_;
  std::unique_ptr<consumer::LookupBatch> lookup_;
  std::vector<Item> items_;
  int attempt_ = 0;
  bool refuses_all_ = false;
  Nanos backoff_{0};
};

}  // namespace fencepost::simulator
