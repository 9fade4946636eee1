// Shipped worker processes on one pipeline, watched by their metrics.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/process.h"

namespace fencepost::bench {

struct WorkersOptions {
  std::string bootstrap, topic;
  std::string redis;         // A,B,C
  std::string dsn;           // effects go to PostgreSQL, or
  std::string output_topic;  // to this topic, in transactions, by position
  int partitions = 0;
};

class Workers {
 public:
  Workers(const WorkersOptions& options, int count);

  // All of these throw, with what a worker has said, when it takes too long.
  void WaitUntilReady();  // each with its even share of the partitions
  void WaitUntilProcessed(std::int64_t records);
  void Stop();  // SIGTERM; each has to end with exit code 0

  [[nodiscard]] std::vector<pid_t> Pids() const;

 private:
  struct Worker {
    std::unique_ptr<testing::Process> process;
    int port = 0;
  };

  bool Ready(Worker& worker) const;
  [[noreturn]] void Fail(const std::string& what) const;

  const int share_;
  testing::TempDir dir_;
  std::vector<Worker> workers_;
};

}  // namespace fencepost::bench
