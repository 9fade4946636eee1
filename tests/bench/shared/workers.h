// Shipped worker processes on one pipeline.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/bench/shared/pipeline_file.h"
#include "tests/support/worker_process.h"

namespace fencepost::bench {

// All of it throws, with what the workers have said, when it takes too long or a worker has ended.
class Workers {
 public:
  // Returns when each has its share of the partitions.
  Workers(const PipelineFile& file, int count, int partitions);

  [[nodiscard]] double Processed();  // records in all; asking costs the workers time
  void Await(const std::function<bool()>& condition, const std::string& what);
  void Stop();  // SIGTERM; each has to end with exit code 0
  [[nodiscard]] std::vector<pid_t> Pids();

 private:
  testing::TempDir dir_;
  testing::WorkerTeam team_;
};

}  // namespace fencepost::bench
