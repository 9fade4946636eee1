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
constexpr std::int16_t kOffsetFetch = 9;

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
        RD_KAFKA_RESP_ERR_OFFSET_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE,
        RD_KAFKA_RESP_ERR_FENCED_LEADER_EPOCH, RD_KAFKA_RESP_ERR_UNKNOWN_LEADER_EPOCH,
        RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR}) {
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

TEST_F(TopicReaderOnMock, GivesUpAtOnceWhereTheAnswerDoesNotPass) {
  for (const auto error :
       {RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT, RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION,
        RD_KAFKA_RESP_ERR_INVALID_REQUEST, RD_KAFKA_RESP_ERR_UNKNOWN}) {
    // One of the two requests of the turn before may still come: more than it and these ask.
    FailRequests(*cluster, kListOffsets, error, 20);
    const auto ranges = reader->Ranges("orders", 30s);
    ASSERT_FALSE(ranges) << rd_kafka_err2name(error);
    EXPECT_EQ(ranges.error().what, rd_kafka_err2str(error));
    rd_kafka_mock_clear_request_errors(cluster->cluster(), kListOffsets);
  }
}

TEST_F(TopicReaderOnMock, AsksAgainWhereTheGroupsCoordinatorMoves) {
  for (const auto error :
       {RD_KAFKA_RESP_ERR_NOT_COORDINATOR, RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE,
        RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS}) {
    FailRequests(*cluster, kOffsetFetch, error, 2);
    const auto committed = reader->Committed("g", {{"orders", 0}}, 30s);
    ASSERT_TRUE(committed) << committed.error().Line();
    EXPECT_EQ(committed->at(0).next, std::nullopt);
  }
}

}  // namespace
}  // namespace fencepost::consumer::testing
