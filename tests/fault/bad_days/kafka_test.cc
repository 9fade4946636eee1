// Bad days of Kafka.
#include <gmock/gmock.h>

#include "tests/support/pipeline_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

class KafkaBadDay : public PipelineTest {};

TEST_F(KafkaBadDay, AWorkerWaitsForABrokerThatIsNotThereYet) {
  const PipelineText text = Text(4);
  Orders orders(Kafka().bootstrap(), name_, 4);
  orders.Produce(200);
  Kafka().Stop();
  WorkerProcess worker(Worker(text));
  EXPECT_TRUE(WaitUntil(
      seconds(20), [&] { return worker.Readiness().find("no broker") != std::string::npos; },
      "the worker to say that there is no broker"))
      << worker.Readiness();
  EXPECT_EQ(worker.Get("/live").status, 200);
  Kafka().Start();
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_TRUE(WaitUntil(
      seconds(20), [&] { return worker.Ready(); }, "the worker to be ready"));
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  EXPECT_EQ(table_->Audit(name_, orders.unique()), "");
}

TEST_F(KafkaBadDay, ABrokerThatIsRestartedOrKilledCostsNothing) {
  const PipelineText text = Text(4);
  WorkerTeam team(Worker(text));
  team.Start(2);
  Orders orders(Kafka().bootstrap(), name_, 4, 2, 0.05);
  for (const bool kill : {false, true}) {
    const int before = std::max(0, table_->Count());
    orders.Produce(10'000);
    ASSERT_TRUE(Effects(before + 500)) << team.Tails();
    kill ? Kafka().Kill() : Kafka().Stop();
    Kafka().Start();
    EXPECT_TRUE(AllCommitted()) << team.Tails();
  }
  EXPECT_EQ(team.StopAll(), "");
  EXPECT_EQ(table_->Audit(name_, orders.unique()), "");
}

TEST_F(KafkaBadDay, ATopicThatIsCreatedLaterIsFound) {
  PipelineText text = Text(1);
  Kafka().admin().DeleteTopic(name_);
  text.more = "";
  WorkerProcess worker(Worker(text));
  EXPECT_TRUE(WaitUntil(
      seconds(20), [&] { return worker.Readiness().find("does not exist") != std::string::npos; },
      "the worker to say that the topic is missing"));
  EXPECT_THAT(worker.Readiness(), HasSubstr(name_));
  Kafka().CreateTopic(name_, 1);
  Orders orders(Kafka().bootstrap(), name_, 1);
  orders.Produce(20);
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  EXPECT_EQ(table_->Audit(name_, 20), "");
}

// With start_from: latest: those that came before the workers saw the partition count, too.
TEST_F(KafkaBadDay, PartitionsAddedUnderRunningWorkersAreReadFromTheirBeginning) {
  PipelineText text = Text(2);
  text.start_from = "latest";
  text.order = "key";
  text.librdkafka = ", topic.metadata.refresh.interval.ms: 500";
  WorkerTeam team(Worker(text));
  team.Start(2);
  // Nothing is in the topic: the group has committed where it starts.
  ASSERT_TRUE(AllCommitted()) << team.Tails();
  int sent = 0;
  const auto produce = [&](int records, int partitions) {
    TestProducer producer(Kafka().bootstrap());
    for (const int end = sent + records; sent < end; ++sent) {
      producer.Send(name_, sent % partitions, fmt::format("customer-{}", sent % 97),
                    Orders::Value(sent));
    }
    producer.Flush();
  };
  produce(4000, 2);
  Kafka().admin().AddPartitions(name_, 4);
  produce(4000, 4);
  EXPECT_TRUE(AllCommitted()) << team.Tails();
  EXPECT_TRUE(WaitUntil(
      seconds(20),
      [&] {
        return team[0].Now("fencepost_partitions_assigned") == 2 &&
               team[1].Now("fencepost_partitions_assigned") == 2;
      },
      "both workers to have two partitions each"))
      << team.Tails();
  produce(1000, 4);
  EXPECT_TRUE(AllCommitted()) << team.Tails();
  EXPECT_EQ(team.StopAll(), "");
  EXPECT_EQ(table_->Audit(name_, sent), "");
}

}  // namespace
}  // namespace fencepost::testing
