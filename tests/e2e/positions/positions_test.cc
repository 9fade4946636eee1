// A pipeline by position into PostgreSQL or MySQL: a ledger row a partition.
#include <gmock/gmock.h>

#include "tests/support/mysql_server.h"
#include "tests/support/pipeline_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

class Positions : public PipelineTest, public ::testing::WithParamInterface<const char*> {
 protected:
  Positions() {
    static MysqlServer mysql;
    if (!IsPostgres()) table_ = std::make_unique<EffectsTable>(mysql, name_);
  }
  static bool IsPostgres() { return std::string_view(GetParam()) == "postgres"; }
  PipelineText ByPosition(int partitions) {
    PipelineText text = Text(partitions);
    text.record_id = "position";
    return text;
  }
  // Each order was sent once.
  [[nodiscard]] std::string Doubled() const {
    return table_->Value(
        "SELECT count(*) FROM (SELECT order_id FROM effects GROUP BY order_id HAVING count(*) > 1)"
        " d");
  }
  // How many partitions have one range, from the beginning, and the sum of their ends.
  [[nodiscard]] std::string OneRangeEach() const {
    const bool postgres = IsPostgres();
    return table_->Value(fmt::format(
        "SELECT concat(count(*), ' ', sum({})) FROM fencepost_positions WHERE {} NOT LIKE '%),[%'"
        " AND {} LIKE '{{[0,%'",
        postgres ? "upper(done)" : "CAST(substring_index(done, ',', -1) AS int)",
        postgres ? "done::text" : "done", postgres ? "done::text" : "done"));
  }
};

INSTANTIATE_TEST_SUITE_P(Databases, Positions, ::testing::Values("postgres", "mysql"),
                         [](const auto& each) { return std::string(each.param); });

TEST_P(Positions, TakeEffectOnceThroughKillsAndLeaveOneRangeAPartition) {
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
  EXPECT_EQ(OneRangeEach(), "4 3000");
}

// The frozen one still holds its leases when the group gives its partitions to the other; when it
// wakes, with a transaction or a batch in hand, both have them for a moment.
TEST_P(Positions, TakeEffectOnceWhereAWorkerWakesAfterItsPartitionsWereGivenAway) {
  WorkerTeam team(Worker(ByPosition(4)));
  team.Start(2);
  Orders orders(Kafka().bootstrap(), name_, 4);
  orders.Produce(6'000);
  ASSERT_TRUE(Effects(500)) << team.Tails();
  team[0].Pause();
  orders.Produce(1'000);
  ASSERT_TRUE(Effects(7'000, seconds(180))) << team.Tails();
  team[0].Resume();
  orders.Produce(1'000);
  EXPECT_TRUE(AllCommitted(seconds(180))) << team.Tails();
  EXPECT_EQ(team.StopAll(), "");
  EXPECT_EQ(table_->Count(), 8'000);
  EXPECT_EQ(Doubled(), "0");
  EXPECT_EQ(OneRangeEach(), "4 8000");
}

TEST_P(Positions, AreSkippedWhereTheGroupGoesBackInTheSameTopic) {
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

TEST_P(Positions, OfATopicThatWasRecreatedAreNotSkippedInSilence) {
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
