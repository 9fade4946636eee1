// The topic is deleted and made again: by position, its new records have the places of the old
// ones.
#include <limits>
#include <stdexcept>

#include <fmt/format.h>

#include "tests/fault/matrix/faults.h"

namespace fencepost::matrix {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::WorkerProcess;

namespace {

constexpr seconds kLong{240};  // however slow the machine is

// No worker passes over a record of the new log: each ends, and says why.
void ExpectExplained(Scene& scene) {
  testing::WorkerTeam& team = scene.trial.team();
  testing::RequireWithin(kLong, "the workers to end where the topic is another one",
                         [&] { return team.Running().empty(); });
  bool explained = false;
  for (std::size_t i = 0; i < team.size(); ++i) {
    WorkerProcess& worker = team[i];
    scene.trial.Forgive(worker);
    const std::string log = worker.Log();
    explained = explained || log.find("topic_replaced") != std::string::npos ||
                log.find("offset_out_of_range") != std::string::npos;
    if (worker.Wait(seconds(1)) == 1) ++scene.counts["workers that ended and said why"];
  }
  if (!explained) throw std::runtime_error("no worker says why it ended");
  for (const std::int64_t offset :
       scene.system.kafka().admin().CommittedOffsets(scene.trial.group(), scene.trial.topic())) {
    if (offset > 0) throw std::runtime_error("an offset has moved in the topic made again");
  }
}

// As the message says: another name, or the old ranges are forgotten.
void Remedy(Scene& scene) {
  const bool other_name = scene.Draw(2) == 0;
  scene.trial.BeginAgain(other_name);
  ++scene.counts[other_name ? "other names" : "forgets"];
  for (int partition = 0; !other_name && partition < scene.trial.partitions(); ++partition) {
    // It is refused while leases are held; those that were left behind expire.
    testing::Finished done;
    const bool forgotten = testing::WaitUntil(seconds(60), [&] {
      done = testing::RunFencepost(
          {"forget", scene.trial.file(), "--topic", scene.trial.topic(), "--partition",
           std::to_string(partition), "--from", "0", "--to",
           std::to_string(std::numeric_limits<std::int64_t>::max()), "--execute"},
          {{"LIFE", "0"}}, seconds(90));
      return done.error_output.find("is held by a worker") == std::string::npos;
    });
    if (!forgotten || done.exit_code != 0) {
      throw std::runtime_error("forget: " + done.output + done.error_output);
    }
  }
  scene.trial.team().Start(scene.trial.options().workers);
  scene.trial.Hush(false);
}

void MakeAgainWhileStopped(Scene& scene) {
  scene.trial.Hush(true);
  scene.undo.Add([&scene] {
    ExpectExplained(scene);
    Remedy(scene);
  });
  scene.WhileStopped([&scene] {
    const bool longer = scene.Draw(2) == 0;
    scene.trial.MakeTopicAgain(longer ? scene.trial.produced() + 100
                                      : 20 * scene.trial.partitions());
    const std::vector<std::int64_t> zeros(static_cast<std::size_t>(scene.trial.partitions()), 0);
    scene.system.kafka().admin().CommitOffsets(scene.trial.group(), scene.trial.topic(), zeros);
  });
}

// It stays shorter: one that is longer at once is read on from where the old one was.
void MakeAgainUnderWorkers(Scene& scene) {
  scene.trial.Hush(true);
  scene.undo.Add([&scene] {
    ++scene.counts["stops"];  // of all of them
    ExpectExplained(scene);
    Remedy(scene);
  });
  scene.trial.MakeTopicAgain(5 * scene.trial.partitions());
}

}  // namespace

void AddTopicFaults(std::vector<Fault>& faults) {
  faults.push_back({.name = "kafka-topic-made-again",
                    .lasts = milliseconds(0),
                    .begin = MakeAgainWhileStopped,
                    .pipelines = {Pipeline::kPosition}});
  faults.push_back({.name = "kafka-topic-made-again-under-workers",
                    .lasts = milliseconds(0),
                    .begin = MakeAgainUnderWorkers,
                    .pipelines = {Pipeline::kPosition}});
}

}  // namespace fencepost::matrix
