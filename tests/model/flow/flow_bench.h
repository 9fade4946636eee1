// Flows with their LockCores over the nodes of one store, in one process and without delay: the
// test delivers records, says when a transaction happens, and lets time pass.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "consumer/flow/flow.h"
#include "tests/model/simulator/ledger.h"
#include "tests/support/node_model.h"

namespace fencepost::consumer {

// What every worker of a test shares.
struct SharedWorld {
  explicit SharedWorld(int nodes = 3);
  locking::Now now{Instant(std::chrono::seconds(1000)),
                   locking::WallTime(Millis(1'800'000'000'000))};
  std::vector<testing::NodeModel> nodes;
  locking::LockOptions lock;
  simulator::Ledger ledger;
  // On every node the name is another's from now on.
  void Steal(const std::string& name);
};

struct Told : ConsumerObserver {
  int conflicts = 0;
  int skips_by_hint = 0;
  int skips_by_ledger = 0;
  std::vector<locking::Invariant> broken;
  void OnIdConflict() override { ++conflicts; }
  void OnDedupeSkip(DedupeSource source) override {
    ++(source == DedupeSource::kLock ? skips_by_hint : skips_by_ledger);
  }
  void OnInvariant(locking::Invariant invariant) override { broken.push_back(invariant); }
};

class FlowBench {
 public:
  explicit FlowBench(SharedWorld& world, FlowOptions options = Options(), std::uint64_t seed = 1);
  static FlowOptions Options() { return Options(Order::kPartition); }
  static FlowOptions Options(Order order);

  void Connect(int node);
  void Assign(PartitionIndex partition, Offset start = 0, AssignmentEpoch epoch = 1);
  // "id", "id@key" or "id=value"; "" has no id. Offsets go on from the last one.
  void Deliver(PartitionIndex partition, const std::vector<std::string>& records);
  void End(PartitionIndex partition, Offset end);
  void Revoke(PartitionIndex partition, bool lost = false);
  // Lock operations go to the nodes and back until there are none.
  void Settle();
  // The oldest transaction happens. False when none waits.
  bool Write();
  void WriteAll();
  void Pass(Millis time);
  // Lets the core's next timers come, without records or transactions, for this long.
  void Wait(Millis time);

  // The ids with a lease, in the order of delivery: "a b".
  [[nodiscard]] std::string Leased() const;
  // The ids of the transactions that wait: "a b | c".
  [[nodiscard]] std::string Writes() const;
  [[nodiscard]] std::string StageOf(const std::string& id) const;
  [[nodiscard]] Offset Watermark(PartitionIndex partition) const;
  std::vector<PartitionOffset> Commits();

  SharedWorld& world;
  Told told;
  std::uint64_t random;  // the state of the core's source
  locking::LockCore core;
  Flow flow;
  std::vector<PartitionIndex> paused, resumed;
  std::optional<std::vector<PartitionOffset>> drained;
  std::optional<Error> stop;
  std::deque<std::unique_ptr<WriteBatch>> writes;

 private:
  struct Source {
    AssignmentEpoch epoch = 0;
    Offset next = 0;
  };
  void Act();
  bool Exchange(int node);

  std::map<PartitionIndex, Source> sources_;
  std::vector<PartitionOffset> commits_;
  std::deque<std::string> texts_;  // behind the records' views
};

}  // namespace fencepost::consumer
