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

}  // namespace
}  // namespace fencepost::testing
