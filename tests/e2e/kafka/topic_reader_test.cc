// TopicReader against a real broker: transactional topics have holes.
#include "consumer/kafka/client/topic_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "tests/e2e/kafka/broker_fixture.h"
#include "tests/support/process.h"

namespace fencepost::consumer::testing {
namespace {

using namespace std::chrono_literals;
using fencepost::testing::TestProducer;
using fencepost::testing::WaitUntil;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TopicReaderOnBroker : public OnBroker {
 protected:
  void SetUp() override {
    kafka.brokers = {broker->bootstrap()};
    auto made = TopicReader::Make(kafka);
    ASSERT_TRUE(made);
    reader = std::move(*made);
  }
  // Partition 0: 0-2, a marker at 3, aborted 4-5 and its marker 6, 7, its marker 8, aborted 9, its
  // marker 10; partition 1 is empty.
  void MakeHoles() {
    broker->CreateTopic(topic, 2);
    TestProducer producer(broker->bootstrap(), topic + "-tx");
    const auto transaction = [&](int count, const char* value, bool commit) {
      producer.Begin();
      for (int i = 0; i < count; ++i) producer.Send(topic, 0, "k", value);
      commit ? producer.Commit() : producer.Abort();
    };
    transaction(3, "good", true);
    transaction(2, "bad", false);
    transaction(1, "good", true);
    transaction(1, "bad", false);
    // The broker answers for the end of a transaction before it has written the marker.
    const auto written = [&] { return (*reader->Ranges(topic, 10s))[0].end == 11; };
    ASSERT_TRUE(WaitUntil(10s, "the last marker", written));
  }
  std::vector<Offset> ReadAll() {
    std::vector<Offset> offsets;
    const auto ranges = reader->Ranges(topic, 10s);
    EXPECT_TRUE(ranges) << ranges.error().Line();
    const auto read = reader->Read(
        *ranges,
        [&](const TopicRecord& one) {
          EXPECT_EQ(one.where, (TopicPartition{topic, 0}));
          EXPECT_EQ(one.record.value, "good");
          offsets.push_back(one.record.offset);
          return true;
        },
        10s);
    EXPECT_TRUE(read) << read.error().Line();
    return offsets;
  }

  KafkaOptions kafka;
  std::unique_ptr<TopicReader> reader;
};

TEST_F(TopicReaderOnBroker, ReadsWhatIsCommittedToAnEndThatIsAHole) {
  MakeHoles();
  const auto ranges = reader->Ranges(topic, 10s);
  ASSERT_TRUE(ranges);
  ASSERT_EQ(ranges->size(), 2u);
  EXPECT_EQ((*ranges)[0].end, 11);
  EXPECT_EQ((*ranges)[1].end, 0);
  EXPECT_THAT(ReadAll(), ElementsAre(0, 1, 2, 7));
  EXPECT_THAT(ReadAll(), ElementsAre(0, 1, 2, 7));  // and again
}

TEST_F(TopicReaderOnBroker, EndsBeforeATransactionThatIsOpen) {
  MakeHoles();
  TestProducer producer(broker->bootstrap(), topic + "-open");
  producer.Begin();
  producer.Send(topic, 0, "k", "bad");
  producer.Flush();
  EXPECT_EQ((*reader->Ranges(topic, 10s))[0].end, 11);
  EXPECT_THAT(ReadAll(), ElementsAre(0, 1, 2, 7));
  producer.Abort();
}

TEST_F(TopicReaderOnBroker, FindsOneRecordOrNothingWhereThereIsAHole) {
  MakeHoles();
  broker->admin().DeleteRecordsBefore(topic, 0, 2);
  const auto there = [&](Offset offset) {
    const auto found = reader->ReadOne({topic, 0}, offset, 10s);
    EXPECT_TRUE(found) << found.error().Line();
    EXPECT_TRUE(!*found || (*found)->record.offset == offset);
    return found->has_value();
  };
  std::vector<Offset> found;
  for (Offset offset = 0; offset <= 12; ++offset) {
    if (there(offset)) found.push_back(offset);
  }
  EXPECT_THAT(found, ElementsAre(2, 7));
}

TEST_F(TopicReaderOnBroker, StopsWhenItsVisitorHasSeenEnough) {
  MakeHoles();
  int seen = 0;
  ASSERT_TRUE(reader->Read(
      *reader->Ranges(topic, 10s), [&](const TopicRecord&) { return ++seen < 2; }, 10s));
  EXPECT_EQ(seen, 2);
}

TEST_F(TopicReaderOnBroker, KnowsWhatAGroupHasCommitted) {
  broker->CreateTopic(topic, 2);
  broker->admin().CommitOffsets("g", topic, {3, 0});
  const std::vector<TopicPartition> partitions{{topic, 1}, {topic, 0}};
  const auto committed = reader->Committed("g", partitions, 10s);
  ASSERT_TRUE(committed) << committed.error().Line();
  EXPECT_EQ(committed->at(0).next, 0);
  EXPECT_EQ(committed->at(1).next, 3);
  EXPECT_EQ(reader->Committed("another", partitions, 10s)->at(1).next, std::nullopt);
  EXPECT_EQ(*reader->ClusterId(10s), broker->admin().ClusterId());
}

TEST_F(TopicReaderOnBroker, SaysThatATopicIsUnknown) {
  const auto ranges = reader->Ranges(topic, 10s);
  ASSERT_FALSE(ranges);
  EXPECT_EQ(ranges.error().code, "unknown_topic");
  EXPECT_THAT(ranges.error().Line(), HasSubstr(topic + ": there is no such topic"));
}

TEST(TopicReader, SaysThatNoBrokerAnswers) {
  KafkaOptions kafka;
  kafka.brokers = {fmt::format("127.0.0.1:{}", fencepost::testing::FreePort())};
  auto reader = TopicReader::Make(kafka);
  ASSERT_TRUE(reader);
  for (const auto& error :
       {(*reader)->Ranges("t", 300ms).error(), (*reader)->ReadOne({"t", 0}, 0, 300ms).error(),
        (*reader)->ClusterId(300ms).error()}) {
    EXPECT_EQ(error.code, "kafka_unreachable") << error.Line();
    EXPECT_THAT(error.Line(), HasSubstr("no broker of 127.0.0.1:"));
  }
}

}  // namespace
}  // namespace fencepost::consumer::testing
