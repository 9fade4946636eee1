// SQLite as the output of one host: others hold its one write lock, or write to the same file.
#include <sqlite3.h>

#include "tests/support/pipeline_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;

// A program of its own that uses the file.
class Sqlite {
 public:
  explicit Sqlite(const std::string& path) {
    sqlite3_open(path.c_str(), &db_);
    sqlite3_busy_timeout(db_, 10'000);
  }
  ~Sqlite() { sqlite3_close(db_); }
  Sqlite(const Sqlite&) = delete;
  Sqlite& operator=(const Sqlite&) = delete;

  // The first cell of the last row.
  std::string Ask(const std::string& sql) {
    std::string cell;
    char* why = nullptr;
    const auto keep = [](void* to, int, char** cells, char**) {
      *static_cast<std::string*>(to) = cells[0] == nullptr ? "" : cells[0];
      return 0;
    };
    if (sqlite3_exec(db_, sql.c_str(), keep, &cell, &why) == SQLITE_OK) return cell;
    cell = std::string("error: ") + why;
    sqlite3_free(why);
    return cell;
  }

 private:
  sqlite3* db_ = nullptr;
};

class SqliteBadDay : public PipelineTest {
 protected:
  SqliteBadDay() : path_(folder_.File("effects.db")), db_(path_) {
    EXPECT_EQ(db_.Ask("PRAGMA journal_mode=WAL"), "wal");
    EXPECT_EQ(db_.Ask("CREATE TABLE effects (order_id text, amount integer, fence integer)"), "");
  }
  PipelineText SqliteText() {
    PipelineText text = Text(4);
    text.dsn = "";
    text.sqlite_path = path_;
    return text;
  }
  void ExpectTheTruth(int unique) {
    const std::string wanted = fmt::format(
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {}),"
        " wanted AS (SELECT 'o-' || i AS id, i * 7 % 1000 AS amount FROM n) ",
        unique - 1);
    EXPECT_EQ(db_.Ask("SELECT count(*) FROM effects"), std::to_string(unique));
    EXPECT_EQ(db_.Ask(wanted + "SELECT count(*) FROM (SELECT id, amount FROM wanted EXCEPT"
                               " SELECT order_id, amount FROM effects)"),
              "0");
    EXPECT_EQ(db_.Ask(wanted + "SELECT count(*) FROM (SELECT id FROM wanted EXCEPT"
                               " SELECT record_id FROM fencepost_ledger)"),
              "0");
    EXPECT_EQ(db_.Ask("SELECT count(*) FROM fencepost_ledger"), std::to_string(unique));
  }

  std::string path_;
  Sqlite db_;
};

TEST_F(SqliteBadDay, AnotherWriterThatHoldsTheLockForThreeSecondsIsWaitedFor) {
  WorkerProcess worker(Worker(SqliteText()));
  Orders orders(Kafka().bootstrap(), name_, 4);
  orders.Produce(100);
  ASSERT_TRUE(AllCommitted()) << worker.Log();
  ASSERT_EQ(db_.Ask("BEGIN IMMEDIATE"), "");
  orders.Produce(400);
  EXPECT_FALSE(WaitUntil(seconds(3), [&] {
    return !worker.Running() || worker.Now("fencepost_records_processed_total") > 100;
  })) << "nothing is written while another holds the lock";
  ASSERT_EQ(db_.Ask("COMMIT"), "");
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  ExpectTheTruth(500);
}

TEST_F(SqliteBadDay, TwoWorkersShareOneFile) {
  Orders orders(Kafka().bootstrap(), name_, 4, 7, 0.05);
  WorkerTeam team(Worker(SqliteText()));
  team.Start(2);
  ASSERT_TRUE(WaitUntil(
      seconds(30),
      [&] {
        return team[0].Now("fencepost_partitions_assigned") == 2 &&
               team[1].Now("fencepost_partitions_assigned") == 2;
      },
      "both workers to have two partitions each"))
      << team.Tails();
  orders.Produce(10'000);
  EXPECT_TRUE(AllCommitted()) << team.Tails();
  team.Look();
  for (std::size_t worker : {0U, 1U}) {
    EXPECT_GT(team[worker].Last("fencepost_records_processed_total", {{"result", "done"}}), 1000);
  }
  EXPECT_EQ(team.StopAll(), "");
  ExpectTheTruth(orders.unique());
}

TEST_F(SqliteBadDay, AWorkerKilledInItsWorkLeavesTheFileToTheOther) {
  Orders orders(Kafka().bootstrap(), name_, 4, 8, 0.05);
  WorkerTeam team(Worker(SqliteText()));
  team.Start(2);
  orders.Produce(10'000);
  ASSERT_TRUE(WaitUntil(
      seconds(60), [&] { return std::stoi("0" + db_.Ask("SELECT count(*) FROM effects")) > 1000; },
      "the first effects"))
      << team.Tails();
  team[0].Kill();
  EXPECT_TRUE(AllCommitted()) << team.Tails();
  EXPECT_EQ(team.StopAll(), "");
  ExpectTheTruth(orders.unique());
}

}  // namespace
}  // namespace fencepost::testing
