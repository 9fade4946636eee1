// KafkaSource with a pattern among its topics, against the mock cluster: what a broker cannot be
// made to answer.
#include <atomic>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer/kafka/client/admin.h"
#include "consumer/kafka/client/producer.h"
#include "tests/component/kafka/mock_faults.h"
#include "tests/component/kafka/reader.h"

namespace fencepost::consumer::testing {
namespace {

using ::testing::ElementsAre;

constexpr std::int16_t kOffsetCommitRequest = 8;
constexpr int kTopicAuthorizationFailed = 29;

class TopicsByPattern : public ::testing::Test {
 protected:
  KafkaOptions Matching(StartFrom start) const {
    KafkaOptions options;
    options.brokers = cluster->brokers();
    options.topics = {"^[abc]"};
    options.group = "g";
    options.start_from = start;
    options.librdkafka = {{"topic.metadata.refresh.interval.ms", "500"},
                          {"session.timeout.ms", "6000"},
                          {"heartbeat.interval.ms", "200"}};
    return options;
  }
  // A topic of one partition.
  void Make(const std::string& topic, int records) const {
    ASSERT_TRUE(cluster->CreateTopic(topic, 1));
    auto producer = Producer::Make(Matching(StartFrom::kEarliest));
    ASSERT_TRUE(producer);
    for (int i = 0; i < records; ++i) {
      OutgoingRecord record;
      record.topic = topic;
      record.partition = 0;
      record.key = "k";
      record.value = "v";
      ASSERT_TRUE((*producer)->Send(record));
    }
    ASSERT_TRUE((*producer)->Flush(10s));
  }
  std::vector<Offset> Committed(const std::string& topic) const {
    auto admin = KafkaAdmin::Make(Matching(StartFrom::kEarliest));
    const auto offsets = (*admin)->CommittedOffsets(topic, 5s);
    return offsets ? *offsets : std::vector<Offset>{};
  }

  const std::unique_ptr<MockCluster> cluster = MockCluster::Make().value();
};

TEST_F(TopicsByPattern, ThatCameBeforeTheGroupCouldBeginLeaveTheOthersTheirEnds) {
  Make("b", 5);
  Make("c", 6);
  std::atomic<bool> asked = false;
  std::atomic<bool> another_came = false;
  SourceExtras extras;
  extras.knows_earlier_work = [&](const std::string&) -> tl::expected<bool, Error> {
    asked = true;
    if (!another_came) return tl::unexpected(Error{"away", "the database is away", "", ""});
    return false;
  };
  Reader sink(Matching(StartFrom::kLatest), "w", extras);
  sink.on_note = [&](const std::string& note) {
    if (note == "topics_found: read: a") another_came = true;
  };
  ASSERT_TRUE(sink.Until([&] { return asked.load(); }));
  Make("a", 4);  // sorts before them
  ASSERT_TRUE(sink.Reads(4));
  EXPECT_TRUE(sink.Owns(3));
  EXPECT_EQ(sink.Offsets({"a", 0}), (std::vector<Offset>{0, 1, 2, 3}));
  EXPECT_THAT(Committed("a"), ElementsAre(0));
  EXPECT_THAT(Committed("b"), ElementsAre(5));
  EXPECT_THAT(Committed("c"), ElementsAre(6));
  EXPECT_NE(sink.Trace().find("of new topics the earliest"), std::string::npos) << sink.Trace();
}

}  // namespace
}  // namespace fencepost::consumer::testing
