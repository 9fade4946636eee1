// The servers that every run from Kafka uses, started once a measurement, and the state in which a
// run finds them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/bench/shared/measure.h"
#include "tests/support/servers.h"

namespace fencepost::bench {

// Empties the nodes and creates the store on the first `nodes` of them. Nobody may be connected.
void ResetStore(testing::RedisServers& servers, std::size_t nodes);
std::vector<pid_t> Pids(testing::RedisServers& servers);

class Servers {
 public:
  explicit Servers(bool fsync = true, int nodes = 5);

  testing::KafkaBroker kafka;
  testing::RedisServers redis;
  testing::PostgresServer postgres;

  // The table `effects(order_id, amount)`, the ledger, and the lock store: each of them new.
  void Reset(std::size_t nodes = 5);
  void NewEffects();  // that table alone
  // Throws unless no id has two effects, and there are `least` to `most` of them.
  void CheckEffects(std::int64_t least, std::int64_t most, int tables = 1) const;
  // When the last effect was committed (before its fsync, as PostgreSQL notes it), in epoch
  // seconds. At least one must be there.
  [[nodiscard]] double LastCommit() const;
  std::string NewTopic();                    // a name that no run before had
  CpuMeter Meter(CpuMeter::Seconds client);  // of client, nodes, PostgreSQL and Kafka

 private:
  int topics_ = 0;
};

}  // namespace fencepost::bench
