// What happens to Kafka.
#include "tests/fault/matrix/faults.h"
#include "tests/support/kafka_group.h"

namespace fencepost::matrix {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::TcpProxy;

namespace {

// All workers stop, and the group is forgotten: it begins at the earliest record again.
void DeleteOffsets(Scene& scene) {
  auto workers = scene.trial.team().Running();
  for (testing::WorkerProcess* worker : workers) scene.Terminate(*worker);
  scene.undo.Add([&scene, workers] {
    for (testing::WorkerProcess* worker : workers) {
      if (worker->Wait(seconds(40)) != 0) throw std::runtime_error("a worker did not end with 0");
      scene.trial.Forgive(*worker);
      ++scene.counts["stops"];
    }
    const std::string broker = scene.system.kafka().bootstrap();
    const std::string& group = scene.trial.options().name;
    testing::RequireWithin(
        seconds(30), [&] { return testing::LookAtGroup(broker, group).members.empty(); },
        "the group to be empty");
    testing::DeleteGroup(broker, group);
    for (testing::WorkerProcess* worker : workers) scene.trial.team().Add(worker->name());
  });
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
                      testing::RemoveMembers(scene.system.kafka().bootstrap(),
                                             scene.trial.options().name);
                    }});
  faults.push_back({"kafka-offsets-deleted", milliseconds(0), DeleteOffsets});
}

}  // namespace fencepost::matrix
