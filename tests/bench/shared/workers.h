// Shipped worker processes on one pipeline, watched by their metrics.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/process.h"

namespace fencepost::bench {

class Workers {
 public:
  // `share`: of the partitions, for each of them.
  Workers(const std::string& pipeline_file, int count, int share);

  // These throw, with what a worker has said, when it takes too long or a worker has ended.
  void WaitUntilReady();             // each with its share of the partitions
  [[nodiscard]] double Processed();  // records in all; asking costs the workers time
  void WaitUntilProcessed(std::int64_t records);
  void Stop();  // SIGTERM; each has to end with exit code 0

  [[nodiscard]] std::vector<pid_t> Pids() const;
  [[noreturn]] void Fail(const std::string& what) const;

 private:
  struct Worker {
    std::unique_ptr<testing::Process> process;
    int port = 0;
  };

  bool Ready(Worker& worker) const;

  const int share_;
  testing::TempDir dir_;
  std::vector<Worker> workers_;
};

}  // namespace fencepost::bench
