// A Kafka cluster inside this process (librdkafka's mock): groups, rebalances, offsets and commits
// work, for other processes too. Not a broker: transactions are not kept, aborted records are
// visible, a commit inside a revoke is refused, and a partition keeps about 5 MiB. For the demo and
// for tests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/kafka/client/rdkafka_holders.h"
#include "locking/base/error.h"
// After rdkafka.h, which it needs.
#include <librdkafka/rdkafka_mock.h>

namespace fencepost::consumer {

class MockCluster {
 public:
  static tl::expected<std::unique_ptr<MockCluster>, Error> Make(int brokers = 1);
  ~MockCluster() = default;
  MockCluster(const MockCluster&) = delete;
  MockCluster& operator=(const MockCluster&) = delete;

  // HOST:PORT of each broker, for other clients and processes.
  [[nodiscard]] std::vector<std::string> brokers() const;
  tl::expected<void, Error> CreateTopic(const std::string& topic, int partitions);
  // For what only tests need (librdkafka/rdkafka_mock.h).
  [[nodiscard]] rd_kafka_mock_cluster_t* cluster() const { return cluster_.get(); }

 private:
  MockCluster() = default;

  rdkafka::Handle owner_;  // only keeps the cluster
  rdkafka::Holder<rd_kafka_mock_cluster_t, &rd_kafka_mock_cluster_destroy> cluster_;
};

}  // namespace fencepost::consumer
