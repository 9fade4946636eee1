// What a KafkaSource does with samples of logs, against the mock cluster.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer/kafka/log_identity/log_samples.h"
#include "tests/component/kafka/mock_faults.h"
#include "tests/component/kafka/orders_on_mock.h"
#include "tests/component/kafka/reader.h"
#include "tests/support/kafka_client.h"

namespace fencepost::consumer::testing {
namespace {

using fencepost::testing::KafkaAdmin;
using fencepost::testing::TestProducer;
using ::testing::HasSubstr;

constexpr std::int16_t kFetchRequest = 1;

class RecreatedTopic : public OrdersOnMock {
 protected:
  void SetUp() override {
    options.librdkafka["session.timeout.ms"] = "6000";
    TestProducer producer(options.brokers[0]);
    for (int i = 0; i < 20; ++i) {
      for (int p = 0; p < 2; ++p) producer.Send("orders", p, "k", std::to_string(i));
    }
    producer.Flush();
    admin = std::make_unique<KafkaAdmin>(options.brokers[0]);
  }

  std::unique_ptr<KafkaAdmin> admin;
};

TEST_F(RecreatedTopic, EndTheWorkerBeforeTheFirstRecordOfTheirPartition) {
  admin->CommitOffsets("g", "orders", {10, 10},
                       {"", MetadataText({LogSample{4, 1'700'000'000'000, 1}}, 10)});
  Reader sink(options);
  ASSERT_TRUE(sink.Fails());
  EXPECT_EQ(sink.fatal->code, "topic_replaced");
  EXPECT_THAT(sink.fatal->Line(), HasSubstr("orders/1/4: "));
  EXPECT_THAT(sink.fatal->Line(), HasSubstr("a record of 2023-11-14T22:13:20.000Z was read here"));
  EXPECT_TRUE(sink.Offsets({"orders", 1}).empty());
}

// Both the records and the sample are late: no partition waits for ever, and the answer counts
// nevertheless.
TEST_F(RecreatedTopic, AreWaitedForSomeTimeAndCountWheneverTheyCome) {
  admin->CommitOffsets("g", "orders", {10, 10},
                       {"", MetadataText({LogSample{4, 1'700'000'000'000, 1}}, 10)});
  for (int i = 0; i < 2; ++i) DelayRequest(*cluster, kFetchRequest, 18s);
  Reader sink(options);
  ASSERT_TRUE(sink.Fails());
  EXPECT_THAT(sink.Trace(), HasSubstr("topic_not_compared: orders/1 goes on"));
  EXPECT_EQ(sink.fatal->code, "topic_replaced");
}

}  // namespace
}  // namespace fencepost::consumer::testing
