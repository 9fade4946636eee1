// A mock cluster with the topic "orders" of two partitions, and options to read it.
#pragma once

#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "consumer/kafka/client/mock_cluster.h"
#include "consumer/pipeline/options.h"

namespace fencepost::consumer {

class OrdersOnMock : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = MockCluster::Make();
    ASSERT_TRUE(made);
    cluster = std::move(*made);
    ASSERT_TRUE(cluster->CreateTopic("orders", 2));
    options.brokers = cluster->brokers();
    options.topics = {"orders"};
    options.group = "g";
    options.start_from = StartFrom::kEarliest;
    options.librdkafka = {{"session.timeout.ms", "3000"}, {"heartbeat.interval.ms", "200"}};
  }

  std::unique_ptr<MockCluster> cluster;
  KafkaOptions options;
};

}  // namespace fencepost::consumer
