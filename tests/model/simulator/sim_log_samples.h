// Whether the logs are still those that the group has read: the shipped LogSamples, pumped as
// consumer/kafka/source/recreated_topic.cc pumps it, over the simulated logs. Of one worker; only
// where a log may become another one.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "consumer/kafka/log_identity/log_samples.h"
#include "consumer/record/record.h"
#include "tests/model/simulator/broker.h"

namespace fencepost::simulator {

class SimConsumer;
class SimWorker;
class World;

class SimLogSamples {
 public:
  SimLogSamples(World& world, SimWorker& worker, SimConsumer& consumer)
      : world_(world), worker_(worker), consumer_(consumer) {}

  void Begin(const std::vector<StartAt>& starts);  // an assignment
  void End();
  // Its records are kept apart until its log was compared.
  [[nodiscard]] bool Waits(consumer::PartitionIndex partition) const {
    return waiting_.contains(partition);
  }
  void OnRead(const consumer::Record& record);
  void Hurry() { known_.Hurry(); }
  // To be committed with these offsets.
  std::vector<std::string> MetadataFor(const std::vector<consumer::PartitionOffset>& offsets);

 private:
  using Clock = consumer::LogSamples::Clock;

  [[nodiscard]] Clock::time_point Now() const;
  void Ask(consumer::PartitionIndex partition, consumer::Offset asked);
  void Answer(consumer::PartitionIndex partition, consumer::Offset asked);

  World& world_;
  SimWorker& worker_;
  SimConsumer& consumer_;
  consumer::LogSamples known_;
  std::set<consumer::PartitionIndex> waiting_;
  int assignment_ = 0;
};

}  // namespace fencepost::simulator
