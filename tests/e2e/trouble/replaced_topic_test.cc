// A topic that is deleted and created again under a worker, and is longer at once than what the
// worker has read.
#include <gmock/gmock.h>
#include <librdkafka/rdkafka.h>

#include "tests/support/pipeline_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

class ReplacedTopic : public PipelineTest {
 protected:
  void Produce(int from, int to) const {
    TestProducer producer(Kafka().bootstrap());
    for (int i = from; i < to; ++i) {
      producer.Send(name_, 0, "k", fmt::format(R"({{"order_id":"o-{}","amount":5}})", i));
    }
    producer.Flush();
  }
};

TEST_F(ReplacedTopic, EndsTheWorkerAndEachAfterItUntilTheOffsetsAreSet) {
  PipelineText text = Text(1);
  WorkerProcess worker(Worker(text));
  Produce(0, 20);
  ASSERT_TRUE(Effects(20)) << worker.Log();
  ASSERT_TRUE(AllCommitted()) << worker.Log();
  worker.Pause();  // so that it sees neither that the topic is missing nor that it is short
  Kafka().admin().DeleteTopic(name_);
  Kafka().CreateTopic(name_, 1);
  Produce(100, 150);
  worker.Resume();
  ASSERT_TRUE(Effects(50)) << "it reads on at 20:\n" << worker.Log();
  ASSERT_TRUE(AllCommitted()) << worker.Log();
  int next = 150;
  ASSERT_TRUE(WaitUntil(seconds(60), "the worker to end", [&] {
    if (table_->Count() == next - 100) Produce(next, next + 1), ++next;
    return !worker.Running();
  })) << worker.Log();
  const auto says = Contains(
      AllOf(HasSubstr("the topic was recreated or truncated"),
            HasSubstr(fmt::format("kafka-consumer-groups --group {} --topic {}:0 --reset-offsets "
                                  "--to-earliest --execute",
                                  name_, name_))));
  // librdkafka 2.4 to 2.9 may write to freed memory when the topic comes back with another id
  // (confluentinc/librdkafka#4964), and end the process. The next worker tells all the same.
  const bool fragile = rd_kafka_version() >= 0x02040000 && rd_kafka_version() < 0x020a0000;
  const auto code = worker.Wait(seconds(15));
  if (!fragile || code == 1) {
    EXPECT_EQ(code, 1) << worker.Log();
    EXPECT_THAT(worker.ErrorLines(), says);
    EXPECT_THAT(worker.Log(), HasSubstr("topic_replaced"));
  }

  const auto effects = table_->Count();
  WorkerProcess second(Worker(text));
  EXPECT_EQ(second.Wait(seconds(30)), 1) << second.Log();
  EXPECT_THAT(second.ErrorLines(), says);
  EXPECT_EQ(table_->Count(), effects) << "nothing more is processed";

  Kafka().admin().CommitOffsets(name_, name_, {0});  // as --to-earliest does
  WorkerProcess third(Worker(text));
  ASSERT_TRUE(Effects(20 + next - 100)) << third.Log();
  ASSERT_TRUE(AllCommitted()) << third.Log();
  EXPECT_EQ(third.Stop(), 0) << third.Log();
  EXPECT_EQ(table_->Count(), 20 + next - 100) << "nothing is doubled";
}

}  // namespace
}  // namespace fencepost::testing
