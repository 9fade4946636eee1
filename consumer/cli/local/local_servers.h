// The servers that a command brings along: a Kafka cluster in this process, and lock nodes as its
// children. For this machine alone; they end with this object, and however the process ends. From
// the main thread (child.h).
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/cli/local/child.h"
#include "consumer/kafka/client/mock_cluster.h"
#include "locking/base/error.h"

namespace fencepost::cli {

class LocalServers {
 public:
  // For sockets and logs; outlives this.
  explicit LocalServers(std::filesystem::path folder) : folder_(std::move(folder)) {}

  struct Topic {
    std::string name;
    int partitions = 1;
  };
  tl::expected<void, Error> StartKafka(const std::vector<Topic>& topics);
  // redis-server or valkey-server, as PATH has them; nullopt: neither.
  static std::optional<std::string> LockNodeProgram();
  // Fresh ones. Error: "no_lock_nodes".
  tl::expected<void, Error> StartLockNodes(int count);
  // A lock store over them that counts for any pipeline. `max_ttl`: of its locks, as --max-ttl has
  // it. Error: "no_lock_nodes".
  tl::expected<void, Error> InitStore(const std::string& max_ttl);
  // The last words of a lock node that has ended; nullopt: all run.
  [[nodiscard]] std::optional<std::string> EndedLockNode() const;

  // HOST:PORT, for this process and others.
  [[nodiscard]] const std::vector<std::string>& brokers() const { return brokers_; }
  [[nodiscard]] const std::vector<std::string>& lock_nodes() const { return lock_nodes_; }

 private:
  const std::filesystem::path folder_;
  std::unique_ptr<consumer::MockCluster> kafka_;
  std::vector<std::unique_ptr<Child>> redis_;
  std::vector<std::string> brokers_, lock_nodes_;
};

}  // namespace fencepost::cli
