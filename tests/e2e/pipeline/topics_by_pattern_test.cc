// Topics that a pattern matches come and go under the workers: each record takes effect once.
#include <gmock/gmock.h>

#include "tests/support/pipeline_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;

class TopicsByPattern : public PipelineTest {
 protected:
  static constexpr int kRecords = 20;  // of a topic at a time

  std::string Topic(int number) const { return fmt::format("{}-t{:02}", name_, number); }
  void Send(int from, int to) {
    TestProducer producer(Kafka().bootstrap());
    for (int i = 0; i < kRecords; ++i) {
      for (int t = from; t < to; ++t) {
        const std::string id = fmt::format("o-{}", sent_++);
        producer.Send(Topic(t), i % 2, id, fmt::format(R"({{"order_id":"{}","amount":1}})", id));
      }
    }
    producer.Flush();
  }
  void Make(int from, int to) {
    for (int t = from; t < to; ++t) Kafka().CreateTopic(Topic(t), 2);
    Send(from, to);
  }
  ::testing::AssertionResult AllDone(int from, int to) const {
    return WaitUntil(
        seconds(60),
        [&] {
          for (int t = from; t < to; ++t) {
            if (!CommittedToTheEnd(Kafka(), name_, Topic(t))) return false;
          }
          return table_->Count() == sent_ - passed_over_;
        },
        fmt::format("{} effects, there are {}", sent_ - passed_over_, table_->Count()));
  }

  int sent_ = 0;
  int passed_over_ = 0;  // of these
};

TEST_F(TopicsByPattern, ThatComeAndGoUnderThreeWorkersLoseNoRecordAndDoubleNone) {
  PipelineText text = Text(1);
  text.topic = fmt::format("\"^{}-t[0-9]+\"", name_);
  text.start_from = "latest";
  Make(0, 1);
  WorkerTeam team(Worker(text));
  team.Start(1);
  ASSERT_TRUE(WaitUntil(seconds(60), "the group to begin", [&] {
    return CommittedToTheEnd(Kafka(), name_, Topic(0));
  })) << team.Tails();
  passed_over_ = sent_;  // they lie before the group's first start
  team.Start(2);
  Make(1, 20);
  ASSERT_TRUE(AllDone(0, 20)) << team.Tails();
  Make(20, 30);
  ASSERT_TRUE(AllDone(0, 30)) << team.Tails();
  for (int t = 0; t < 3; ++t) Kafka().admin().DeleteTopic(Topic(t));
  Send(3, 30);
  ASSERT_TRUE(AllDone(3, 30)) << team.Tails();
  ASSERT_TRUE(WaitUntil(seconds(60), "ready", [&] { return team.AllReady(); })) << team.Tails();
  EXPECT_EQ(table_->Value("SELECT count(DISTINCT order_id) FROM effects"),
            std::to_string(sent_ - passed_over_));
  EXPECT_TRUE(WaitUntil(seconds(60), "the partitions of 27 topics", [&] {
    team.Look();
    return team.Sum("fencepost_partitions_assigned") == 27 * 2;
  })) << team.Sum("fencepost_partitions_assigned");
  EXPECT_THAT(team[0].Log(), ::testing::HasSubstr("topics_gone"));
  EXPECT_EQ(team.StopAll(), "");
}

}  // namespace
}  // namespace fencepost::testing
