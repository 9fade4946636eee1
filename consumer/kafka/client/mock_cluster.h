// A Kafka cluster inside this process (librdkafka's mock): groups, rebalances, offsets and commits
// work, for other processes too. Not a broker: transactions are not kept, aborted records are
// visible, a commit inside a revoke is refused, and a partition keeps about 5 MiB. For the demo and
// for tests.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "locking/base/error.h"

namespace fencepost::consumer {

class MockCluster {
 public:
  static tl::expected<std::unique_ptr<MockCluster>, Error> Make(int brokers = 1);
  ~MockCluster();
  MockCluster(const MockCluster&) = delete;
  MockCluster& operator=(const MockCluster&) = delete;

  // HOST:PORT of each broker, for other clients and processes.
  [[nodiscard]] std::vector<std::string> brokers() const;
  tl::expected<void, Error> CreateTopic(const std::string& topic, int partitions);
  // The next `count` requests of that kind (Kafka protocol ApiKey) are answered with the error
  // code.
  void FailRequests(std::int16_t api_key, int error_code, int count);
  // The next request of that kind is answered after so long, by the first broker.
  void DelayRequest(std::int16_t api_key, std::chrono::milliseconds by);
  // All brokers vanish, and come back at the same addresses.
  void SetUp(bool up);

 private:
  struct Handles;
  explicit MockCluster(std::unique_ptr<Handles> handles);
  std::unique_ptr<Handles> handles_;
};

}  // namespace fencepost::consumer
