// The demo's workers: real `fencepost run` processes, watched through their /metrics.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "consumer/cli/demo/child.h"

namespace fencepost::cli {

// What a worker's /metrics says, as far as the demo shows it.
struct Totals {
  std::int64_t processed = 0, skipped = 0, in_flight = 0, held = 0, lag = 0, commit_gap = 0,
               partitions = 0, contended = 0, expired = 0, fenced = 0, takeovers = 0,
               violations = 0;
  Totals& operator+=(const Totals& other);
};

enum class WorkerState { kRunning, kKilled, kFrozen };

class Team {
 public:
  Team(const std::filesystem::path& folder, const std::string& pipeline_file, int workers);

  // Asks every running worker; a dead or frozen one keeps its last answer.
  void Look();
  [[nodiscard]] Totals Sum() const;  // of all, the dead ones' last answers included
  [[nodiscard]] Totals SumRunning() const;
  // The running worker with the most leases, or -1 when none holds any.
  [[nodiscard]] int BusiestHolder() const;

  void Kill(int worker);
  void Freeze(int worker);
  void Thaw(int worker);
  // A worker that ended without being told to: what it said last. Empty while all is well.
  [[nodiscard]] std::string UnexpectedEnd();
  // SIGTERM to all, and waits. Empty when each exits with 0 in time, else what went wrong.
  [[nodiscard]] std::string StopAll(std::chrono::milliseconds limit);

 private:
  struct Member {
    std::string name;
    std::unique_ptr<Child> child;
    WorkerState state = WorkerState::kRunning;
    std::string url;
    Totals last;
  };
  std::vector<Member> members_;
};

}  // namespace fencepost::cli
