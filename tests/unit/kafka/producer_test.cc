#include "consumer/kafka/client/producer.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "consumer/kafka/client/admin.h"
#include "consumer/kafka/client/mock_cluster.h"
#include "tests/unit/kafka/mock_faults.h"

namespace fencepost::consumer {
namespace {

using namespace std::chrono_literals;

class ProducerOnMock : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = MockCluster::Make();
    ASSERT_TRUE(made);
    cluster = std::move(*made);
    ASSERT_TRUE(cluster->CreateTopic("t", 3));
    options.brokers = cluster->brokers();
  }
  std::unique_ptr<MockCluster> cluster;
  KafkaOptions options;
};

OutgoingRecord To(std::int32_t partition) {
  OutgoingRecord record;
  record.topic = "t";
  record.partition = partition;
  record.value = "v";
  return record;
}

TEST_F(ProducerOnMock, WaitsWhileItsQueueIsFullAndDeliversEverything) {
  auto producer = Producer::Make(options, {{"queue.buffering.max.messages", "10"}});
  ASSERT_TRUE(producer);
  for (int i = 0; i < 500; ++i) ASSERT_TRUE((*producer)->Send(To(i % 3)));
  ASSERT_TRUE((*producer)->Flush(10s));
  EXPECT_EQ((*producer)->delivered(), 500u);
  EXPECT_EQ((*producer)->failed(), 0u);
  auto admin = KafkaAdmin::Make(options);
  ASSERT_TRUE(admin);
  EXPECT_EQ((*admin)->EndOffsets("t", 5s), (std::vector<Offset>{167, 167, 166}));
}

TEST_F(ProducerOnMock, TellsWhereEachRecordWent) {
  auto producer = Producer::Make(options);
  ASSERT_TRUE(producer);
  std::vector<Offset> offsets;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE((*producer)->Send(To(2), [&](tl::expected<Offset, Error> done) {
      ASSERT_TRUE(done);
      offsets.push_back(*done);
    }));
  }
  ASSERT_TRUE((*producer)->Flush(10s));
  EXPECT_EQ(offsets, (std::vector<Offset>{0, 1, 2, 3, 4}));
}

TEST_F(ProducerOnMock, GivesUpOnAFullQueueAfterItsLimit) {
  SetBrokerUp(*cluster, false);
  auto producer = Producer::Make(options, {{"queue.buffering.max.messages", "2"}});
  ASSERT_TRUE(producer);
  tl::expected<void, Error> sent;
  for (int i = 0; i < 3 && sent; ++i) sent = (*producer)->Send(To(0), nullptr, 50ms);
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, "kafka_queue_full");
  EXPECT_FALSE((*producer)->Flush(50ms));
}

TEST_F(ProducerOnMock, TellsTheReasonOfARefusal) {
  auto producer = Producer::Make(options, {{"message.timeout.ms", "300"}});
  ASSERT_TRUE(producer);
  ASSERT_TRUE((*producer)->Send(To(17)));  // no such partition
  const auto flushed = (*producer)->Flush(10s);
  ASSERT_FALSE(flushed);
  EXPECT_EQ((*producer)->failed(), 1u);
  EXPECT_TRUE((*producer)->Flush(1s));  // told once
}

}  // namespace
}  // namespace fencepost::consumer
