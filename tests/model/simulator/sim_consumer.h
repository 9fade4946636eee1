// A worker's Kafka thread: reads what it was assigned, hands it to the flow, commits what the flow
// says. What it promises the flow stands in consumer/kafka/source/source.h.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "consumer/kafka/source/source.h"
#include "tests/model/simulator/broker.h"
#include "tests/model/simulator/coverage.h"
#include "tests/model/simulator/sim_log_samples.h"
#include "tests/model/simulator/timeline.h"

namespace fencepost::simulator {

class SimWorker;
class World;

class SimConsumer {
 public:
  SimConsumer(World& world, SimWorker& worker);

  void Start();
  // Drains, commits and leaves the group; `left` follows.
  void Leave(std::function<void()> left);

  // --- from the flow ---------------------------------------------------------------------------
  void Pause(const std::vector<consumer::PartitionIndex>& partitions);
  void Resume(const std::vector<consumer::PartitionIndex>& partitions);
  void Commit(std::vector<consumer::PartitionOffset> offsets);
  void OnDrained(std::vector<consumer::PartitionOffset> offsets);

  // --- from the coordinator --------------------------------------------------------------------
  void OnRevoke(int join);
  // Of one of its joins.
  void OnAssigned(int join, int generation, const std::vector<StartAt>& starts);
  void OnKicked(int join);  // which of its joins is over

  // When records may have become readable.
  void Nudge();
  // Its fetches are answered; `others`: the logs are others, which it may have noticed.
  void OnLogChanged(bool others);

  // --- from the comparison of logs ---------------------------------------------------------------
  [[nodiscard]] bool InRange(consumer::PartitionIndex index);  // false: that ends the worker
  void Fail(fencepost::Error error);
  void OnCompared();

  // Whether it reads this partition, once it has compared the log that there is now.
  [[nodiscard]] bool Reads(consumer::PartitionIndex partition) const;

  // --- for Coverage ------------------------------------------------------------------------------
  // kStarting, kRebalancing or kDraining.
  [[nodiscard]] std::optional<Phase> PhaseNow() const;
  // How far it has read in this assignment, or the last one.
  [[nodiscard]] consumer::Offset PositionOf(consumer::PartitionIndex partition) const {
    const auto found = read_to_.find(partition);
    return found == read_to_.end() ? 0 : found->second;
  }
  [[nodiscard]] bool Committing() const { return commit_out_ != 0; }

 private:
  enum class State : std::uint8_t { kOut, kMember, kDraining, kLeft };
  struct Assigned {
    std::size_t next = 0;  // record of the log
    consumer::Offset position = 0;
    int version = 0;  // of the log
    consumer::Offset told_end = -1;
    bool paused = false;
  };

  void Join();
  void Drain(bool lost);
  void Poll();
  bool CheckPosition(consumer::PartitionIndex index, Assigned& assigned);
  [[nodiscard]] ToCommit WithMetadata(std::vector<consumer::PartitionOffset> offsets);
  void PollIn(Nanos wait);
  std::size_t Read(consumer::PartitionIndex index, Assigned& assigned, std::size_t most,
                   std::vector<consumer::Record>& out);
  void TellEnd(consumer::PartitionIndex index, Assigned& assigned);
  void SendCommit();
  void OnCommitAnswer(int commit, std::vector<consumer::PartitionOffset> offsets,
                      std::optional<locking::Instant> sent);
  // To the engine's thread, in order.
  void Post(std::function<void()> step);
  // To the coordinator, in order.
  void ToBroker(std::function<void()> message);

  World& world_;
  SimWorker& worker_;
  State state_ = State::kOut;
  int generation_ = 0;
  int joins_ = 0;
  bool lost_ = false;    // this drain is of a lost assignment
  bool kicked_ = false;  // while draining
  bool failed_ = false;  // nothing more is read
  std::function<void()> leaving_;
  std::map<consumer::PartitionIndex, Assigned> assigned_;
  std::map<consumer::PartitionIndex, consumer::Offset> read_to_;
  std::map<consumer::PartitionIndex, consumer::PartitionOffset> to_commit_;
  int commit_out_ = 0;  // its number; 0: none
  int commits_ = 0;
  Nanos posted_at_{0};
  Nanos told_at_{0};
  Nanos poll_at_ = Nanos::max();  // the next one
  std::optional<SimLogSamples> samples_;
};

}  // namespace fencepost::simulator
