// Where an assignment begins when the group's offsets are not told at once.
#include <gtest/gtest.h>

#include "consumer/kafka/client/producer.h"
#include "consumer/kafka/source/source.h"
#include "tests/unit/kafka/mock_faults.h"
#include "tests/unit/kafka/recording_sink.h"

namespace fencepost::consumer::testing {
namespace {

constexpr std::int16_t kOffsetFetchRequest = 9;
constexpr int kGroupAuthorizationFailed = 30;

class OffsetFetch : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = MockCluster::Make();
    ASSERT_TRUE(made);
    cluster = std::move(*made);
    ASSERT_TRUE(cluster->CreateTopic("orders", 2));
    options.brokers = cluster->brokers();
    options.topics = {"orders"};
    options.group = "g";
    options.start_from = StartFrom::kLatest;
    options.librdkafka = {{"session.timeout.ms", "3000"}, {"heartbeat.interval.ms", "200"}};
  }
  void Produce(int count) {
    auto producer = Producer::Make(options);
    ASSERT_TRUE(producer);
    OutgoingRecord record;
    record.topic = "orders";
    record.partition = 0;
    record.value = "v";
    for (int i = 0; i < count; ++i) ASSERT_TRUE((*producer)->Send(record));
    ASSERT_TRUE((*producer)->Flush(10s));
  }

  std::unique_ptr<MockCluster> cluster;
  KafkaOptions options;
};

TEST_F(OffsetFetch, ThatFailsIsNotTakenForAGroupWithoutOffsets) {
  Produce(10);
  {
    RecordingSink sink;
    KafkaSource source(options, "w1", &sink, &sink);
    ASSERT_TRUE(source.Start());
    ASSERT_TRUE(WaitUntil(20s, [&] { return sink.AssignedCount() == 2; })) << sink.Trace();
  }
  Produce(5);  // behind what is committed: nobody has read them
  FailRequests(*cluster, kOffsetFetchRequest, kGroupAuthorizationFailed, 1);
  RecordingSink sink;
  KafkaSource source(options, "w2", &sink, &sink);
  ASSERT_TRUE(source.Start());
  ASSERT_TRUE(WaitUntil(20s, [&] { return sink.AssignedCount() == 2; })) << sink.Trace();
  Produce(1);
  ASSERT_TRUE(WaitUntil(20s, [&] { return sink.Count() > 0; })) << sink.Trace();
  EXPECT_EQ(sink.Offsets({"orders", 0}).front(), 10);
}

}  // namespace
}  // namespace fencepost::consumer::testing
