// What happens to Kafka.
#include "tests/fault/matrix/faults.h"
#include "tests/support/kafka_group.h"

namespace fencepost::matrix {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::TcpProxy;

namespace {

// The group begins at the earliest record again.
void DeleteOffsets(Scene& scene) {
  scene.WhileStopped(
      [&scene] { testing::DeleteGroup(scene.system.kafka().bootstrap(), scene.trial.group()); });
}

// Of each partition to somewhere that is still in the topic.
void SetOffsetsBack(Scene& scene) {
  scene.WhileStopped([&scene] {
    testing::KafkaAdmin& admin = scene.system.kafka().admin();
    std::vector<std::int64_t> offsets = admin.StartOffsets(scene.trial.topic());
    const auto ends = admin.EndOffsets(scene.trial.topic());
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      if (ends[i] > offsets[i]) offsets[i] += scene.Draw(static_cast<int>(ends[i] - offsets[i]));
    }
    admin.CommitOffsets(scene.trial.group(), scene.trial.topic(), offsets);
  });
}

// Below what the group has committed.
void Truncate(Scene& scene) {
  testing::KafkaAdmin& admin = scene.system.kafka().admin();
  const std::string& topic = scene.trial.topic();
  scene.trial.NoteSent();
  const auto committed = admin.CommittedOffsets(scene.trial.group(), topic);
  const int partition = scene.Draw(static_cast<int>(committed.size()));
  const std::int64_t done = committed.at(static_cast<std::size_t>(partition));
  if (done <= 1) return;
  admin.DeleteRecordsBefore(topic, partition, 1 + scene.Draw(static_cast<int>(done)));
  ++scene.counts["truncations"];
}

}  // namespace

void AddKafkaFaults(std::vector<Fault>& faults) {
  AddNetworkFaults(faults, "kafka", [](Scene& scene) {
    return std::vector<TcpProxy*>{&scene.system.kafka_proxy()};
  });
  AddServerFaults<testing::KafkaBroker>(
      faults, "kafka", [](Scene & scene) -> auto& { return scene.system.kafka(); },
      kSession + seconds(1));
  faults.push_back(
      {"kafka-partitions-added", seconds(1), [](Scene& scene) { scene.trial.AddPartitions(2); }});
  faults.push_back({"kafka-group-emptied", seconds(1), [](Scene& scene) {
                      testing::RemoveMembers(scene.system.kafka().bootstrap(), scene.trial.group());
                    }});
  const std::vector<Pipeline> with_ledger{Pipeline::kId, Pipeline::kPosition};
  faults.push_back({.name = "kafka-offsets-deleted",
                    .lasts = milliseconds(0),
                    .begin = DeleteOffsets,
                    .pipelines = with_ledger});
  faults.push_back({.name = "kafka-offsets-set-back",
                    .lasts = milliseconds(0),
                    .begin = SetOffsetsBack,
                    .pipelines = with_ledger});
  faults.push_back({"kafka-truncated", seconds(1), Truncate});
}

}  // namespace fencepost::matrix
