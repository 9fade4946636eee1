// A mock cluster with the topic "orders", and options to read it.
#pragma once

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "consumer/kafka/client/mock_cluster.h"
#include "consumer/pipeline/options.h"

namespace fencepost::consumer {

// The offsets without the last.
inline std::vector<Offset> UpTo(Offset end) {
  std::vector<Offset> all;
  for (Offset o = 0; o < end; ++o) all.push_back(o);
  return all;
}

// A mock cluster with the topic "orders", and options to read it.
class OrdersOnMock : public ::testing::Test {
 protected:
  explicit OrdersOnMock(int partitions = 2) {
    EXPECT_TRUE(cluster->CreateTopic("orders", partitions));
    options.brokers = cluster->brokers();
    options.topics = {"orders"};
    options.group = "g";
    options.start_from = StartFrom::kEarliest;
    options.librdkafka = {{"session.timeout.ms", "3000"}, {"heartbeat.interval.ms", "200"}};
  }

  const std::unique_ptr<MockCluster> cluster = MockCluster::Make().value();
  KafkaOptions options;
};

}  // namespace fencepost::consumer
