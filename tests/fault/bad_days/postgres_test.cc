// Bad days of PostgreSQL.
#include "tests/support/paths.h"
#include "tests/support/pipeline_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;

class PostgresBadDay : public PipelineTest {
 protected:
  // The worker says why it is not ready, is live, and does not end.
  static void ExpectItSays(WorkerProcess& worker, const std::string& part) {
    EXPECT_TRUE(WaitUntil(
        seconds(20), [&] { return worker.Readiness().find(part) != std::string::npos; },
        "the worker to say '" + part + "'"))
        << worker.Readiness() << worker.Log();
    EXPECT_EQ(worker.Get("/live").status, 200);
  }
};

TEST_F(PostgresBadDay, AWorkerWaitsForADatabaseThatIsNotThereYet) {
  const PipelineText text = Text(4);
  Orders orders(Kafka().bootstrap(), name_, 4);
  orders.Produce(200);
  Postgres().Stop();
  WorkerProcess worker(Worker(text));
  ExpectItSays(worker, "output: ");
  Postgres().Start();
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_TRUE(WaitUntil(
      seconds(20), [&] { return worker.Ready(); }, "the worker to be ready"));
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  EXPECT_EQ(table_->Audit(name_, orders.unique()), "");
}

TEST_F(PostgresBadDay, ADatabaseThatIsRestartedOrKilledCostsNothing) {
  const PipelineText text = Text(4);
  WorkerTeam team(Worker(text));
  team.Start(2);
  Orders orders(Kafka().bootstrap(), name_, 4, 3, 0.05);
  for (const bool kill : {false, true, true}) {
    const int before = std::max(0, table_->Count());
    orders.Produce(10'000);
    ASSERT_TRUE(Effects(before + 500)) << team.Tails();
    kill ? Postgres().Kill() : Postgres().Stop();
    Postgres().Start();
    EXPECT_TRUE(AllCommitted()) << team.Tails();
  }
  EXPECT_EQ(team.StopAll(), "");
  EXPECT_EQ(table_->Audit(name_, orders.unique()), "");
}

// deploy/RUNBOOKS.md, FencepostPipelineStalled.
TEST_F(PostgresBadDay, TheQueryOfTheRunbookFindsWhoHoldsTheTableAndEndingThatIsEnough) {
  const PipelineText text = Text(1);
  Orders orders(Kafka().bootstrap(), name_, 1);
  const TableLock lock(*table_);
  WorkerProcess worker(Worker(text));
  orders.Produce(20);
  ExpectItSays(worker, "another session holds a lock");
  const std::string runbooks = ReadFile(testing::SourcePath("deploy/RUNBOOKS.md"));
  const std::size_t query = runbooks.find("\n```sql\n") + 8;
  const auto holders = table_->Exec(runbooks.substr(query, runbooks.find("```", query) - query));
  ASSERT_EQ(holders.size(), 1U);
  EXPECT_EQ(holders[0][2], "idle in transaction");
  EXPECT_EQ(table_->Count(), 0);
  table_->Exec("SELECT pg_terminate_backend(" + holders[0][0].value() + ")");
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  EXPECT_EQ(table_->Audit(name_, orders.unique()), "");
}

TEST_F(PostgresBadDay, ATableThatIsMissingIsWaitedForAndNamed) {
  const PipelineText text = Text(1);
  Orders orders(Kafka().bootstrap(), name_, 1);
  orders.Produce(20);
  table_->Exec("ALTER TABLE effects RENAME TO elsewhere");
  WorkerProcess worker(Worker(text));
  ExpectItSays(worker, "effects");
  table_->Exec("ALTER TABLE elsewhere RENAME TO effects");
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  EXPECT_EQ(table_->Audit(name_, 20), "");
}

}  // namespace
}  // namespace fencepost::testing
