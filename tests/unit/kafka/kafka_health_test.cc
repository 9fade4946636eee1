#include "consumer/kafka/source/kafka_health.h"

#include <gtest/gtest.h>

#include "tests/unit/kafka/recording_sink.h"

namespace fencepost::consumer::testing {
namespace {

class KafkaCondition : public ::testing::Test {
 protected:
  void SetUp() override { condition.SetGroup({PartPhase::kUp, ""}); }
  // What the sink was told last; empty: up.
  std::string Told() const { return sink.reasons.empty() ? "nothing" : sink.reasons.back(); }

  RecordingSink sink;
  KafkaHealth condition{&sink, &sink};
};

TEST_F(KafkaCondition, TellsTheNewestReasonAndAgainTheOneBeforeItWhenItEnds) {
  EXPECT_EQ(Told(), "");
  condition.SetTrouble(Meaning::kForbidden, "orders", "not authorised: orders");
  condition.SetTrouble(Meaning::kTopicMissing, "refunds", "refunds is missing");
  EXPECT_EQ(Told(), "refunds is missing");
  condition.SetTrouble(Meaning::kTopicMissing, "refunds", "refunds is missing still");
  EXPECT_EQ(Told(), "refunds is missing still");
  condition.Seen({"refunds", 4});
  EXPECT_EQ(Told(), "not authorised: orders");
  condition.Seen({"orders", 0});
  EXPECT_EQ(Told(), "");
  EXPECT_TRUE(sink.up);
}

TEST_F(KafkaCondition, IsUpAndTellsWhatIsWaitedForWhereItHasJoined) {
  condition.SetGroup({PartPhase::kUp, "waiting for a transaction on orders/3"});
  EXPECT_TRUE(sink.up);
  EXPECT_EQ(Told(), "waiting for a transaction on orders/3");
  condition.SetGroup({PartPhase::kUp, ""});
  EXPECT_EQ(Told(), "");
  condition.SetGroup({PartPhase::kRebalancing, ""});
  EXPECT_FALSE(sink.up);
}

TEST_F(KafkaCondition, TellsFirstThatBrokersAreAway) {
  condition.SetTrouble(Meaning::kBrokersAway, "", "no broker");
  condition.SetTrouble(Meaning::kForbidden, "orders", "not authorised");
  EXPECT_EQ(Told(), "no broker");
  condition.Seen({"orders", 0});
  EXPECT_EQ(Told(), "no broker");
  condition.SetTrouble(Meaning::kBrokersAway, "", "login refused");
  EXPECT_EQ(Told(), "login refused");
  condition.ClearTrouble(Meaning::kBrokersAway);
  EXPECT_EQ(Told(), "");
}

TEST_F(KafkaCondition, EndsTheTroubleOfAPartitionByItsOwnRecordsOnly) {
  condition.SetTrouble(Meaning::kTopicMissing, "orders/3", "orders/3 is missing");
  condition.Seen({"orders", 2});
  EXPECT_EQ(Told(), "orders/3 is missing");
  EXPECT_TRUE(condition.TroubleWith({"orders", 3}));
  condition.Seen({"orders", 3});
  EXPECT_EQ(Told(), "");
  EXPECT_FALSE(condition.TopicTrouble());
}

TEST(EventNames, AreInLowerCase) {
  EXPECT_EQ(EventName("kafka_", "_TRANSPORT"), "kafka_transport");
  EXPECT_EQ(EventName("kafka_", "UNKNOWN_MEMBER_ID"), "kafka_unknown_member_id");
  EXPECT_EQ(EventName("librdkafka_", "SESSTMOUT"), "librdkafka_sesstmout");
  EXPECT_EQ(EventName("kafka_", "_"), "kafka_");
}

}  // namespace
}  // namespace fencepost::consumer::testing
