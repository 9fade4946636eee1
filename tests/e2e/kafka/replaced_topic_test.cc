// A topic that is not the one any more that the group has read, against a real broker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "consumer/kafka/log_identity/log_samples.h"
#include "consumer/kafka/output/transactional_producer.h"
#include "consumer/kafka/source/source.h"
#include "tests/component/kafka/reader.h"
#include "tests/e2e/kafka/broker_fixture.h"

namespace fencepost::consumer::testing {
namespace {

using fencepost::testing::KafkaBrokerOptions;
using fencepost::testing::TestProducer;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ReplacedTopic : public OnBroker {
 protected:
  void Produce(int count, const std::string& value) const {
    TestProducer producer(broker->bootstrap());
    for (int i = 0; i < count; ++i) producer.Send(topic, 0, "k", fmt::format("{}-{}", value, i));
    producer.Flush();
  }
  // A worker that reads `count` records, commits them and ends.
  void Work(int count) const {
    Reader sink(Options());
    sink.on_revoked = [&](const auto&, bool) { return sink.Positions(); };
    ASSERT_TRUE(sink.Reads(static_cast<std::size_t>(count)));
  }
  Offset Committed() const { return broker->admin().CommittedOffsets(group, topic)[0]; }
  std::string Metadata() const { return broker->admin().CommittedMetadata(group, topic)[0]; }
  void Commit(Offset offset, const std::string& metadata) const {
    broker->admin().CommitOffsets(group, topic, {offset}, {metadata});
  }
  void Replace(int count) const {
    broker->admin().DeleteTopic(topic);
    broker->CreateTopic(topic, 1);
    Produce(count, "new");
  }
  // The worker goes on at `from`, without a word, up to `to`.
  void GoesOn(Offset from, Offset to) const {
    Reader sink(Options());
    ASSERT_TRUE(sink.Until([&] { return sink.ends[{topic, 0}] == to || sink.fatal.has_value(); }));
    ASSERT_FALSE(sink.fatal) << sink.fatal->Line();
    EXPECT_EQ(sink.assigned[0].start, from);
    std::vector<Offset> all;
    for (Offset o = from; o < to; ++o) all.push_back(o);
    EXPECT_EQ(sink.Offsets({topic, 0}), all);
    EXPECT_THAT(sink.Trace(), Not(HasSubstr("topic_not_compared")));
  }

  const std::string group = topic + "-group";
};

// Today's brokers delete the offsets with the topic. Not all do, and tools bring offsets back.
TEST_F(ReplacedTopic, StopsAWorkerBeforeItsFirstRecordThoughItIsLongerThanTheOffset) {
  broker->CreateTopic(topic, 1);
  Produce(20, "old");
  Work(20);
  const std::string metadata = Metadata();
  EXPECT_THAT(metadata, StartsWith("fencepost1 20 "));
  Replace(50);
  Commit(20, metadata);
  Reader sink(Options());
  ASSERT_TRUE(sink.Fails());
  EXPECT_EQ(sink.fatal->code, "topic_replaced");
  EXPECT_THAT(sink.fatal->Line(), HasSubstr(topic + "/0/0: the topic was recreated or truncated"));
  EXPECT_THAT(sink.fatal->Line(),
              HasSubstr(fmt::format("kafka-consumer-groups --group {} --topic {}:0 --reset-offsets",
                                    group, topic)));
  EXPECT_EQ(sink.Count(), 0u);
  sink.End();
  EXPECT_EQ(Metadata(), metadata) << "the next worker is stopped as well";
}

// Where the broker answers late, the group has no offset of the new topic yet: it is begun.
TEST_F(ReplacedTopic, StopsAWorkerThatHasReadItToItsEndOrIsReadFromItsBeginning) {
  broker->CreateTopic(topic, 1);
  Reader sink(Options());
  Produce(20, "old");
  ASSERT_TRUE(sink.Reads(20));
  Replace(50);
  ASSERT_TRUE(sink.Until([&] { return sink.fatal || sink.CountNow() == 70; }));
  EXPECT_EQ(sink.fatal ? sink.fatal->code : "topic_replaced", "topic_replaced");
}

TEST_F(ReplacedTopic, IsNotSeenInOneThatHasOnlyGrown) {
  broker->CreateTopic(topic, 1);
  Produce(20, "old");
  Work(20);
  Produce(30, "more");
  GoesOn(20, 50);
}

TEST_F(ReplacedTopic, IsNotSeenWhereRetentionHasDeletedTheSampleAlone) {
  broker->CreateTopic(topic, 1);
  Produce(20, "old");
  Work(20);
  Produce(30, "more");
  broker->admin().DeleteRecordsBefore(topic, 0, 15);
  GoesOn(20, 50);
}

TEST_F(ReplacedTopic, IsNotSeenWhereOtherThanARecordStandsAtTheSample) {
  broker->CreateTopic(topic, 1);
  {
    TestProducer producer(broker->bootstrap(), topic);
    producer.Begin();
    for (int i = 0; i < 5; ++i) producer.Send(topic, 0, "k", "v");
    producer.Commit();  // a marker at 5
  }
  ASSERT_TRUE(WaitUntil(30s, [&] { return broker->admin().EndOffsets(topic)[0] == 6; }));
  Produce(4, "more");
  Commit(6, MetadataText({LogSample{5, 1'700'000'000'000, 1}}, 6));
  GoesOn(6, 10);
}

TEST_F(ReplacedTopic, IsNotSeenInMetadataOfOthersOrOfAnotherOffset) {
  broker->CreateTopic(topic, 1);
  Produce(20, "old");
  for (const std::string& metadata :
       {std::string("anything"), MetadataText({LogSample{3, 1'700'000'000'000, 1}}, 11),
        std::string()}) {
    Commit(10, metadata);
    GoesOn(10, 20);
  }
}

TEST_F(ReplacedTopic, IsSeenWhereItEndsBeforeTheSample) {
  broker->CreateTopic(topic, 1);
  Produce(20, "old");
  Work(20);
  const std::string metadata = Metadata();
  broker->admin().DeleteTopic(topic);
  broker->CreateTopic(topic, 1);
  Commit(20, metadata);
  Reader sink(Options());
  ASSERT_TRUE(sink.Fails());
  EXPECT_EQ(sink.fatal->code, "topic_replaced");
  EXPECT_THAT(sink.fatal->Line(), HasSubstr("it ends at offset 0"));
}

// A sample that lies tells that it is looked at.
TEST_F(ReplacedTopic, IsSeenInAPartitionThatATransactionHeldBack) {
  broker->CreateTopic(topic, 1);
  Produce(20, "old");
  Commit(10, MetadataText({LogSample{3, 1'700'000'000'000, 1}}, 10));
  auto made = TransactionalProducer::Make({{"bootstrap.servers", broker->bootstrap()},
                                           {"transactional.id", topic},
                                           {"transaction.timeout.ms", "60000"}});
  ASSERT_TRUE(made);
  ASSERT_TRUE((*made)->Init(20s).done());
  ASSERT_TRUE((*made)->Begin().done());
  const rdkafka::PartitionList list = rdkafka::MakeList(1);
  rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), 0)->offset = 12;
  GroupMetadata anyone;
  anyone.held.reset(rd_kafka_consumer_group_metadata_new(group.c_str()));
  ASSERT_TRUE((*made)->SendOffsets(list.get(), anyone.held.get(), 20s).done());
  Reader sink(Options());
  ASSERT_TRUE(sink.Start());
  ASSERT_TRUE(WaitUntil(30s, [&] {
    return sink.Trace().find("waiting_for_transaction") != std::string::npos;
  })) << sink.Trace();
  ASSERT_TRUE((*made)->Abort(20s).done());
  ASSERT_TRUE(sink.Fails());
  EXPECT_EQ(sink.fatal->code, "topic_replaced") << sink.fatal->Line();
  EXPECT_EQ(sink.Count(), 0u);
}

TEST_F(ReplacedTopic, IsNotLookedForWhereTheBrokerTakesNoMetadataOfThatLength) {
  KafkaBroker small(KafkaBrokerOptions{.config = {{"offset.metadata.max.bytes", "20"}}});
  KafkaOptions options = Options();
  options.brokers = {small.bootstrap()};
  auto& admin = small.admin();
  admin.CreateTopic(topic, 1);
  TestProducer producer(small.bootstrap());
  for (int i = 0; i < 5; ++i) producer.Send(topic, 0, "k", "v");
  producer.Flush();
  Reader sink(options);
  ASSERT_TRUE(sink.Reads(5));
  sink.source.Commit(sink.Positions());
  ASSERT_TRUE(sink.Until([&] { return !sink.refused.empty(); }));
  sink.source.Commit({{sink.assigned[0].partition, sink.assigned[0].epoch, 5}});
  ASSERT_TRUE(sink.Until([&] { return !sink.committed.empty(); }));
  EXPECT_EQ(admin.CommittedOffsets(group, topic)[0], 5);
}

}  // namespace
}  // namespace fencepost::consumer::testing
