// KafkaSource with a pattern among its topics, against the mock cluster: what a broker cannot be
// made to answer.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
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

  // Under its lock.
  static bool Noted(const Reader& sink, std::string_view beginning) {
    return std::ranges::any_of(
        sink.notes, [&](const std::string& note) { return note.starts_with(beginning); });
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

TEST_F(TopicsByPattern, ThatMayNotBeReadAreToldAndTheOthersGoOn) {
  Make("a", 3);
  Reader sink(Matching(StartFrom::kEarliest));
  ASSERT_TRUE(sink.Reads(3));
  FailRequests(*cluster, kOffsetCommitRequest, kTopicAuthorizationFailed, 1);
  Make("b", 4);
  ASSERT_TRUE(sink.Until([&] { return Noted(sink, "not_authorised: b is not read yet"); }));
  ASSERT_TRUE(sink.Owns(1)) << "not the other one";
  // The next answer is a good one, and the group is joined again for it.
  ASSERT_TRUE(sink.Owns(2));
  ASSERT_TRUE(sink.Until([&] { return sink.seen[{"b", 0}].size() == 4; }));
  EXPECT_TRUE(sink.Until([&] { return sink.up; }));
}

TEST_F(TopicsByPattern, ThatHaveNoLeaderAreToldAndTheOthersGoOn) {
  Make("b", 3);
  ASSERT_TRUE(cluster->CreateTopic("a", 1));
  rd_kafka_mock_partition_set_leader(cluster->cluster(), "a", 0, -1);
  Reader sink(Matching(StartFrom::kEarliest));
  ASSERT_TRUE(sink.Reads(3));
  EXPECT_NE(sink.Trace().find("topic_waits: a is not read yet, the others are: a/0 has no leader"),
            std::string::npos)
      << sink.Trace();
  rd_kafka_mock_partition_set_leader(cluster->cluster(), "a", 0, 1);
  EXPECT_TRUE(sink.Owns(2));
  EXPECT_THAT(Committed("a"), ElementsAre(0));
}

}  // namespace
}  // namespace fencepost::consumer::testing
