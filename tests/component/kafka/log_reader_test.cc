// What a LogReader finds in the logs of the mock cluster.
#include "consumer/kafka/log_identity/log_reader.h"

#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer/kafka/client/topic_reader.h"
#include "tests/component/kafka/mock_faults.h"
#include "tests/component/kafka/orders_on_mock.h"
#include "tests/support/kafka_client.h"
#include "tests/support/process.h"

namespace fencepost::consumer::testing {
namespace {

using namespace std::chrono_literals;
using fencepost::testing::TestProducer;
using fencepost::testing::WaitUntil;
using ::testing::ElementsAre;
using ::testing::Field;

const TopicPartition kFirst{"orders", 0};
const TopicPartition kSecond{"orders", 1};

class LogReaderTest : public OrdersOnMock {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(OrdersOnMock::SetUp());
    TestProducer producer(options.brokers[0]);
    for (int i = 0; i < 20; ++i) {
      for (int p = 0; p < 2; ++p) producer.Send("orders", p, "k", std::to_string(i));
    }
    producer.Flush();
    auto reader = TopicReader::Make(options);
    ASSERT_TRUE(reader);
    const auto id = (*reader)->ClusterId(30s);
    ASSERT_TRUE(id);
    cluster_id = *id;
  }
  void SetLeader(const TopicPartition& where, int broker) {
    rd_kafka_mock_partition_set_leader(cluster->cluster(), where.topic.c_str(), where.partition,
                                       broker);
  }
  // What is found within a minute.
  static std::vector<LogReader::Answer> Answers(LogReader& reader, std::size_t count) {
    std::vector<LogReader::Answer> all;
    WaitUntil(60s, [&] {
      for (LogReader::Answer& one : reader.Poll(10ms)) all.push_back(std::move(one));
      return all.size() >= count;
    });
    return all;
  }

  std::string cluster_id;
};

TEST_F(LogReaderTest, ReadsTheRecordsThatAreThereAndWhereTheLogEnds) {
  struct Case {
    std::vector<Offset> asked;
    std::vector<Offset> found;
    Offset end;  // at least, where all that was asked lies before it
  };
  LogReader reader(options);
  for (const Case& row : std::vector<Case>{{{7}, {7}, 8},
                                           {{19, 3, 4}, {3, 4, 19}, 20},
                                           {{20}, {}, 20},
                                           {{25, 5}, {5}, 20},
                                           {{1000, 25}, {}, 20}}) {
    reader.Ask(kSecond, row.asked);
    const auto answers = Answers(reader, 1);
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0].where, kSecond);
    EXPECT_EQ(answers[0].log.end, row.end);
    std::vector<Offset> found;
    for (const LogSample& one : answers[0].log.records) {
      found.push_back(one.offset);
      EXPECT_TRUE(one.crc && one.content != 0 && one.timestamp > 0);
    }
    EXPECT_EQ(found, row.found);
    EXPECT_FALSE(reader.Asking());
  }
}

TEST_F(LogReaderTest, BelievesALogThatEndsTooEarlyOnceItWasReadAgainForSomeSeconds) {
  LogReader reader(options);
  const std::vector<Offset> offsets{19, 25};
  const auto ask = [&] { return reader.Read({cluster_id, kSecond, offsets, 1}); };
  const auto began = std::chrono::steady_clock::now();
  ASSERT_TRUE(WaitUntil(30s, [&] {
    const auto read = ask();
    return !read && read.error().code == "topic_in_doubt";
  }));
  ASSERT_TRUE(WaitUntil(60s, [&] { return ask().has_value(); }));
  EXPECT_GE(std::chrono::steady_clock::now() - began, ShortEnds::kBelievedAfter);
  const auto again = ask();
  ASSERT_TRUE(again) << "it was believed just now";
  EXPECT_EQ((*again)->end, 20);
}

TEST_F(LogReaderTest, AnswersForOnePartitionWhileAnotherHasNoLeader) {
  SetLeader(kFirst, -1);
  LogReader reader(options);
  reader.Ask(kFirst, {3});
  reader.Ask(kSecond, {3, 9});
  EXPECT_THAT(Answers(reader, 1), ElementsAre(Field(&LogReader::Answer::where, kSecond)));
  EXPECT_TRUE(reader.Asking());
  SetLeader(kFirst, 1);
  EXPECT_THAT(Answers(reader, 1), ElementsAre(Field(&LogReader::Answer::where, kFirst)));
}

TEST_F(LogReaderTest, IsWaitedForOnceAndThenAnswersOfALaterAssignmentAlone) {
  LogReader reader(options);
  const std::vector<Offset> offsets{3, 9};
  const auto ask = [&](const TopicPartition& where, AssignmentEpoch epoch) {
    return reader.Read({cluster_id, where, offsets, epoch});
  };
  SetLeader(kFirst, -1);
  const auto before = std::chrono::steady_clock::now();
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(ask(kFirst, 1));
  EXPECT_LT(std::chrono::steady_clock::now() - before, 12s);
  EXPECT_TRUE(WaitUntil(60s, [&] {
    const auto second = ask(kSecond, 1);
    return second && *second && (*second)->records.size() == 2;
  })) << "while the first has no leader";
  SetLeader(kFirst, 1);
  EXPECT_TRUE(WaitUntil(60s, [&] { return ask(kFirst, 1).has_value(); }));
  EXPECT_TRUE(WaitUntil(60s, [&] { return ask(kFirst, 2).has_value(); }));
}

TEST_F(LogReaderTest, SaysNothingOfOtherClustersNorOfWhatIsGone) {
  LogReader reader(options);
  const std::vector<Offset> offsets{3};
  for (const auto& [id, where] : std::vector<std::pair<std::string, TopicPartition>>{
           {"another", kFirst}, {cluster_id, {"orders", 9}}}) {
    const auto read = reader.Read({id, where, offsets, 1});
    ASSERT_TRUE(read) << read.error().Line();
    EXPECT_EQ(read->has_value(), false) << where.topic;
  }
}

}  // namespace
}  // namespace fencepost::consumer::testing
