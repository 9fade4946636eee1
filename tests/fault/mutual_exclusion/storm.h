// Workers, lock nodes and what befalls them: SIGKILL, SIGSTOP past the ttl, nodes that are
// restarted with and without their data, frozen, and whose clocks jump. All by a seed; what the
// schedule hits depends on the machine, of course.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/fault/mutual_exclusion/judge.h"
#include "tests/fault/mutual_exclusion/resource.h"
#include "tests/support/redis_server.h"

namespace fencepost::torture {

struct StormOptions {
  int nodes = 5;
  int workers = 8;
  int names = 3;
  std::chrono::milliseconds length{10'000};
  std::uint64_t seed = 1;
  bool calm = false;      // nothing befalls anybody
  bool lawless = false;   // workers without a lock
  std::string history{};  // a file that the run's history is written to (history.h), or none
};

struct StormReport {
  Tally tally;
  std::int64_t kills = 0;
  std::int64_t stops = 0;
  std::int64_t restarts = 0;  // with data
  std::int64_t wipes = 0;
  std::int64_t jumps = 0;
  std::int64_t pauses = 0;  // of nodes
  std::int64_t increments = 0;
  std::int64_t fenced_refusals = 0;
  std::int64_t unfenced_violations = 0;
  std::vector<std::string> overlaps;
  std::vector<std::string> disorders;  // tokens against the order of the leases
  std::vector<std::string> troubles;   // wrong counters, workers that died by themselves, …

  // One line: leases, contended, losses, kills, stops, restarts, …
  [[nodiscard]] std::string Line(const StormOptions& options) const;
};

class Storm {
 public:
  // `program`: answers `worker …` with WorkerMain.
  Storm(StormOptions options, std::string program);
  ~Storm();
  // Throws std::runtime_error when the set-up fails. Once.
  StormReport Run();

 private:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;
  enum class Fault { kRestart, kWipe, kThinWipe, kJump, kPause };
  enum class NodePhase { kWell, kJumped, kPaused, kThinned, kRepair };

  struct Worker {
    std::unique_ptr<testing::Process> process;
    Time thaw_at = Time::max();  // while it is frozen
  };

  void CreateStore();
  [[nodiscard]] bool HasShownSomething() const;
  void StartWorker(Worker& worker);
  void Tick(Time now);
  void FreezeOne(Time now);
  void ThawThose(Time now);
  void KillOne();
  void LookAfterWorkers();
  void TickNode(Time now);
  void BeginFault(Time now);
  void PauseMinority();
  void WipeSick();
  void ResumeAll();
  void ShiftClock(std::chrono::milliseconds shift);
  [[nodiscard]] bool NodeIsRepaired() const;
  void EndAll();
  void TakeEachName();
  void Judge();
  std::chrono::milliseconds Draw(std::mt19937_64& random, int from, int to);
  testing::RedisServer& Sick() { return *nodes_.at(sick_); }
  [[nodiscard]] const testing::RedisServer& Sick() const { return *nodes_.at(sick_); }
  [[nodiscard]] std::vector<std::string> Addresses() const;

  const StormOptions options_;
  const std::string program_;
  testing::TempDir journals_;
  std::vector<std::string> journal_paths_;
  Resource resource_;
  std::vector<std::unique_ptr<testing::RedisServer>> nodes_;
  std::vector<Worker> workers_;

  // One source of chance a kind, so that one does not shift the others.
  std::mt19937_64 freezes_;
  std::mt19937_64 kills_;
  std::mt19937_64 faults_;
  Time freeze_at_;
  Time kill_at_;
  Time node_at_;
  NodePhase node_phase_ = NodePhase::kWell;
  std::vector<Fault> deck_;  // the next faults, so that each kind comes
  std::size_t sick_ = 0;     // the one node with a fault
  std::string sentinel_before_;
  bool must_be_noticed_ = false;  // its sentinel must change before it is repaired
  StormReport report_;
};

}  // namespace fencepost::torture
