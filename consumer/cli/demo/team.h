// The demo's workers: real `fencepost run` processes, watched through their /metrics.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "consumer/cli/demo/child.h"
#include "consumer/cli/demo/scrape.h"

namespace fencepost::cli {

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

  // One line a worker: its numbers for people.
  [[nodiscard]] std::vector<std::string> Table() const;

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
