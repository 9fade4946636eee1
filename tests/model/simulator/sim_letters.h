// A worker's publisher of dead letters, as consumer/kafka/output/dead_letter_publisher.h: each
// until it is acknowledged; one whose acknowledgement is lost is published again.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "consumer/record/dead_letter.h"
#include "tests/model/simulator/broker.h"
#include "tests/model/simulator/timeline.h"

namespace fencepost::simulator {

class SimWorker;
class World;

class SimLetters {
 public:
  SimLetters(World& world, SimWorker& worker) : world_(world), worker_(worker) {}
  void Publish(const std::vector<consumer::DeadLetter>& letters);
  void Drop(const std::vector<std::uint64_t>& ids);

 private:
  struct Letter {
    std::uint64_t id = 0;
    std::string source;
    std::optional<LogRecord> replay;  // what may come of it
    consumer::AssignmentEpoch epoch = 0;
    Nanos backoff{0};
  };
  void Attempt(const Letter& letter);
  void OnAcknowledged(std::uint64_t id);
  void OnFailed(Letter letter, bool refused);

  World& world_;
  SimWorker& worker_;
  std::set<std::uint64_t> failing_;
  std::set<std::uint64_t> dropped_;
};

}  // namespace fencepost::simulator
