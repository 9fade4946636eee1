// Bad days of a database: PostgreSQL and MariaDB.
#include "tests/support/mysql_server.h"
#include "tests/support/paths.h"
#include "tests/support/pipeline_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;

class DatabaseBadDay : public PipelineTest, public ::testing::WithParamInterface<const char*> {
 protected:
  DatabaseBadDay() {
    if (!IsPostgres()) table_ = std::make_unique<EffectsTable>(Database(), name_);
  }
  static bool IsPostgres() { return std::string_view(GetParam()) == "postgres"; }
  static SqlServer& Database() {
    if (IsPostgres()) return Postgres();
    static MysqlServer mysql;
    return mysql;
  }
  // Why it is not ready; it is live, and does not end.
  static void ExpectItWaits(WorkerProcess& worker, const std::string& why) {
    ExpectSays(worker, why);
    EXPECT_EQ(worker.Get("/live").status, 200);
  }
};

TEST_P(DatabaseBadDay, AWorkerWaitsForADatabaseThatIsNotThereYet) {
  const PipelineText text = Text(4);
  Orders orders = Produced(200, 4);
  Database().Stop();
  WorkerProcess worker(Worker(text));
  ExpectItWaits(worker, "output: ");
  Database().Start();
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  ExpectReady(worker);
  ExpectAllDone(worker, orders.unique());
}

TEST_P(DatabaseBadDay, ATableThatIsMissingIsWaitedForAndNamed) {
  const PipelineText text = Text(1);
  Orders orders = Produced(20, 1);
  table_->Exec("ALTER TABLE effects RENAME TO elsewhere");
  WorkerProcess worker(Worker(text));
  ExpectItWaits(worker, "effects");
  table_->Exec("ALTER TABLE elsewhere RENAME TO effects");
  ExpectAllDone(worker, 20);
}

INSTANTIATE_TEST_SUITE_P(Databases, DatabaseBadDay, ::testing::Values("postgres", "mysql"),
                         [](const auto& each) { return std::string(each.param); });

class PostgresBadDay : public DatabaseBadDay {};

// deploy/RUNBOOKS.md, FencepostPipelineStalled.
TEST_P(PostgresBadDay, TheQueryOfTheRunbookFindsWhoHoldsTheTableAndEndingThatIsEnough) {
  const PipelineText text = Text(1);
  Orders orders(Kafka().bootstrap(), name_, 1);
  const TableLock lock(*table_);
  WorkerProcess worker(Worker(text));
  orders.Produce(20);
  ExpectItWaits(worker, "another session holds a lock");
  const std::string runbooks = ReadFile(testing::SourcePath("deploy/RUNBOOKS.md"));
  const std::size_t query = runbooks.find("\n```sql\n") + 8;
  const auto holders = table_->Exec(runbooks.substr(query, runbooks.find("```", query) - query));
  ASSERT_EQ(holders.size(), 1U);
  EXPECT_EQ(holders[0][2], "idle in transaction");
  EXPECT_EQ(table_->Count(), 0);
  table_->Exec("SELECT pg_terminate_backend(" + holders[0][0].value() + ")");
  ExpectAllDone(worker, orders.unique());
}

INSTANTIATE_TEST_SUITE_P(Database, PostgresBadDay, ::testing::Values("postgres"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace fencepost::testing
