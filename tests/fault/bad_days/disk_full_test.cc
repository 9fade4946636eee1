// The disk of the database is full: a real one, of a few MiB.
#include <cstdlib>

#include "tests/support/mysql_server.h"
#include "tests/support/pipeline_test.h"
#include "tests/support/small_disk.h"
#include "tests/support/sqlite_file.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;

class FullDisk : public PipelineTest {
 protected:
  void SetUp() override {
    if (disk_.why().empty()) return;
    const char* const ci = std::getenv("CI");
    ASSERT_FALSE(ci != nullptr && std::string(ci) == "true") << disk_.why();
    GTEST_SKIP() << disk_.why();
  }

  // Full in the middle of the work: not ready, with the reason, and nothing is given up. With room
  // again it goes on by itself. A few records at a time come first: of so few, a refusal taken for
  // their own would make bad ones, and end the worker; of many it would only be misnamed.
  void ExpectItWaitsForRoom(const PipelineText& text, const std::string& reason,
                            const std::string& hint) {
    WorkerProcess worker(Worker(text));
    Orders orders = Produced(500, 4);
    ASSERT_TRUE(AllCommitted()) << worker.Log();
    disk_.Fill();
    const auto done = [&] {
      return worker.Now("fencepost_records_processed_total", {{"result", "done"}});
    };
    std::string why;
    const auto says = [&] {
      why = worker.Readiness();
      return why.find(reason) != std::string::npos && why.find(hint) != std::string::npos;
    };
    // What was begun before has room for some.
    for (int step = 0; step < 500 && worker.Running() && !says(); ++step) {
      orders.Produce(3);
      ASSERT_TRUE(WaitUntil(
          seconds(30),
          "three records to be done, or the worker to say '" + reason + "', and what to do",
          [&] { return !worker.Running() || done() == orders.produced() || says(); }))
          << worker.Readiness() << worker.Log();
    }
    ASSERT_TRUE(worker.Running()) << worker.Log();
    orders.Produce(8000);
    EXPECT_TRUE(WaitUntil(seconds(20), "many to wait", [&] {
      return worker.Now("fencepost_records_in_flight") > 1000;
    })) << worker.Log();
    EXPECT_TRUE(WaitUntil(seconds(20), "the worker to say it still", [&] { return says(); }))
        << why;
    EXPECT_EQ(why.find("not ready: "), 0U) << why;
    EXPECT_EQ(why.find("refuses every record"), std::string::npos) << why;
    EXPECT_EQ(worker.Get("/live").status, 200);
    disk_.MakeRoom();
    EXPECT_TRUE(AllCommitted()) << worker.Readiness() << worker.Log();
    ExpectReady(worker);
    EXPECT_EQ(done(), orders.produced());
    EXPECT_EQ(worker.Stop(), 0) << worker.Log();
    unique_ = orders.unique();
  }

  SmallDisk disk_{16};  // in MiB: SQLite has its log beside what it holds
  int unique_ = 0;
};

TEST_F(FullDisk, OfPostgresIsNamedWaitedForAndCostsNothing) {
  PostgresServer server;  // of its own: it must not outlive the disk
  EffectsTable table(server, "shop");
  table.Exec(fmt::format("CREATE TABLESPACE small LOCATION '{}'", disk_.FolderOf("postgres")));
  table.Exec("ALTER TABLE effects SET TABLESPACE small");
  PipelineText text = Text(4);
  text.dsn = table.dsn();
  ExpectItWaitsForRoom(text, "No space left on device", "give the server room");
  EXPECT_EQ(table.Audit(name_, unique_), "");
}

TEST_F(FullDisk, OfMysqlIsNamedWaitedForAndCostsNothing) {
  MysqlServer server;
  EffectsTable table(server, "shop");
  table.Exec(
      fmt::format("DROP TABLE effects; CREATE TABLE effects (order_id varchar(20) NOT NULL,"
                  " amount int NOT NULL, fence bigint) DATA DIRECTORY='{}'",
                  disk_.FolderOf("mysql")));
  PipelineText text = Text(4);
  text.mysql = table.mysql();
  ExpectItWaitsForRoom(text, "is full", "give the server room");
  EXPECT_EQ(table.Audit(name_, unique_), "");
}

TEST_F(FullDisk, OfSqliteIsNamedWaitedForAndCostsNothing) {
  SqliteFiles files(disk_.path());
  EffectsTable table(files, "effects");
  PipelineText text = Text(4);
  text.sqlite_path = table.sqlite_path();
  text.dsn = "";
  ExpectItWaitsForRoom(text, "disk is full", "give the disk room");
  EXPECT_EQ(table.Audit(name_, unique_), "");
}

}  // namespace
}  // namespace fencepost::testing
