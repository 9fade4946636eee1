// One layer against a real broker, which is started once a program. Each test has a topic of its
// own name, and makes it.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "consumer/pipeline/options.h"
#include "tests/support/kafka_broker.h"
#include "tests/support/kafka_client.h"

namespace fencepost::consumer::testing {

using fencepost::testing::KafkaBroker;

class OnBroker : public ::testing::Test {
 protected:
  KafkaOptions Options(StartFrom start = StartFrom::kEarliest) const {
    KafkaOptions options;
    options.brokers = {broker->bootstrap()};
    options.topics = {topic};
    options.group = topic + "-group";
    options.start_from = start;
    options.librdkafka = {{"topic.metadata.refresh.interval.ms", "500"},
                          {"session.timeout.ms", "6000"},
                          {"heartbeat.interval.ms", "200"}};
    return options;
  }

  KafkaBroker* const broker = [] {
    static KafkaBroker one;
    return &one;
  }();
  const std::string topic = ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

}  // namespace fencepost::consumer::testing
