// The demo's workers: real `fencepost run` processes, watched through their /metrics.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "consumer/cli/demo/picture.h"
#include "consumer/cli/local/child.h"

namespace fencepost::cli {

class Team {
 public:
  Team(const std::filesystem::path& folder, const std::string& pipeline_file, int workers);

  // Asks every running worker; a dead or frozen one keeps its last answer.
  void Look();
  [[nodiscard]] std::vector<WorkerView> View() const;
  [[nodiscard]] Totals Sum() const;  // of all, the dead ones' last answers included
  [[nodiscard]] Totals SumRunning() const;
  // The running worker with the most leases, or -1 when none holds any.
  [[nodiscard]] int BusiestHolder() const;

  void Kill(int worker);
  void Freeze(int worker);
  void Thaw(int worker);
  void Stop();  // SIGTERM to all that were not killed
  [[nodiscard]] bool Ended();
  // What a worker said last that ended without being told to, or with another code than 0. Empty
  // while all is well.
  [[nodiscard]] std::string UnexpectedEnd();

 private:
  struct Member {
    WorkerView view;
    std::unique_ptr<Child> child;
    std::string url;
  };
  std::vector<Member> members_;
};

}  // namespace fencepost::cli
