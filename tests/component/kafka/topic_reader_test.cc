// TopicReader while the leaders of partitions change, on the mock cluster.
#include "consumer/kafka/client/topic_reader.h"

#include <chrono>

#include <gtest/gtest.h>

#include "tests/component/kafka/mock_faults.h"
#include "tests/component/kafka/orders_on_mock.h"

namespace fencepost::consumer::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::int16_t kListOffsets = 2;

class TopicReaderOnMock : public OrdersOnMock {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(OrdersOnMock::SetUp());
    auto made = TopicReader::Make(options);
    ASSERT_TRUE(made);
    reader = std::move(*made);
  }
  std::unique_ptr<TopicReader> reader;
};

TEST_F(TopicReaderOnMock, AsksAgainWhereAPartitionHasNoLeaderYetOrAnotherOne) {
  for (const auto error :
       {RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE,
        RD_KAFKA_RESP_ERR_OFFSET_NOT_AVAILABLE}) {
    FailRequests(*cluster, kListOffsets, error, 2);
    const auto ranges = reader->Ranges("orders", 30s);
    ASSERT_TRUE(ranges) << ranges.error().Line();
    EXPECT_EQ(ranges->size(), 2u);
    FailRequests(*cluster, kListOffsets, error, 2);
    const auto since = reader->Since(*ranges, 0ms, 30s);
    EXPECT_TRUE(since) << since.error().Line();
  }
}

TEST_F(TopicReaderOnMock, GivesUpAtOnceWhereItMayNotRead) {
  FailRequests(*cluster, kListOffsets, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, 2);
  const auto ranges = reader->Ranges("orders", 30s);
  ASSERT_FALSE(ranges);
  EXPECT_EQ(ranges.error().hint, "grant READ and DESCRIBE on the topic");
}

}  // namespace
}  // namespace fencepost::consumer::testing
