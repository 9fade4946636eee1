// A pipeline by position into PostgreSQL: a ledger row a partition.
#include <gmock/gmock.h>

#include "tests/support/pipeline_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

class Positions : public PipelineTest {
 protected:
  PipelineText ByPosition(int partitions) {
    PipelineText text = Text(partitions);
    text.record_id = "position";
    return text;
  }
  // Each order was sent once.
  [[nodiscard]] std::string Doubled() const {
    return table_->Value(
        "SELECT count(*) FROM (SELECT FROM effects GROUP BY order_id HAVING count(*) > 1) d");
  }
  [[nodiscard]] std::string Done() const {
    return table_->Value(
        "SELECT string_agg(done::text, ' ' ORDER BY partition) FROM fencepost_positions");
  }
};

TEST_F(Positions, TakeEffectOnceThroughKillsAndLeaveOneRangeAPartition) {
  const WorkerOptions options = Worker(ByPosition(4));
  Orders orders(Kafka().bootstrap(), name_, 4);
  int sent = 0;
  for (int life = 0; life < 3; ++life) {
    WorkerProcess worker(options);
    orders.Produce(1000);
    EXPECT_TRUE(Effects(sent + 300)) << worker.Readiness() << worker.Log();
    sent += 1000;
    worker.Kill();
  }
  WorkerProcess worker(options);
  EXPECT_TRUE(AllCommitted()) << worker.Readiness() << worker.Log();
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  EXPECT_EQ(table_->Count(), 3000);
  EXPECT_EQ(Doubled(), "0");
  EXPECT_EQ(table_->Value("SELECT count(*) FROM fencepost_positions"
                          " WHERE (SELECT count(*) FROM unnest(done)) = 1"),
            "4")
      << Done();
  EXPECT_EQ(table_->Value("SELECT sum(upper(done)) FROM fencepost_positions"), "3000");
}

TEST_F(Positions, AreSkippedWhereTheGroupGoesBackInTheSameTopic) {
  const WorkerOptions options = Worker(ByPosition(1));
  Orders orders(Kafka().bootstrap(), name_, 1);
  orders.Produce(200);
  {
    WorkerProcess worker(options);
    ASSERT_TRUE(AllCommitted()) << worker.Log();
    EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  }
  Kafka().admin().CommitOffsets(name_, name_, {0});
  WorkerProcess worker(options);
  orders.Produce(50);
  EXPECT_TRUE(AllCommitted()) << worker.Readiness() << worker.Log();
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  EXPECT_EQ(table_->Count(), 250);
  EXPECT_EQ(Doubled(), "0");
}

TEST_F(Positions, OfATopicThatWasRecreatedAreNotSkippedInSilence) {
  const WorkerOptions options = Worker(ByPosition(1));
  Orders orders(Kafka().bootstrap(), name_, 1);
  orders.Produce(100);
  {
    WorkerProcess worker(options);
    ASSERT_TRUE(AllCommitted()) << worker.Log();
    EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  }
  Kafka().admin().DeleteTopic(name_);
  Kafka().CreateTopic(name_, 1);
  orders.Produce(150);
  Kafka().admin().CommitOffsets(name_, name_, {0});  // as somebody who knows would
  WorkerProcess worker(options);
  EXPECT_EQ(worker.Wait(seconds(60)), 1) << worker.Log();
  EXPECT_THAT(worker.ErrorLines(),
              Contains(AllOf(HasSubstr("recreated or truncated"), HasSubstr("another name"))));
  EXPECT_THAT(worker.Log(), HasSubstr("topic_replaced"));
  EXPECT_LE(Committed().at(0), 0) << "the offset did not move";
}

}  // namespace
}  // namespace fencepost::testing
