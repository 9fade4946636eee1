// The ledger by position in MySQL: its transaction, and what may come in between. Against MariaDB.
#include <future>

#include <gmock/gmock.h>

#include "consumer/outputs/mysql/mysql_connection.h"
#include "tests/component/outputs/positions.h"
#include "tests/support/paths.h"
#include "tests/support/tcp_proxy.h"

namespace fencepost::consumer {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TcpProxy;
using testing::WaitUntil;
using enum WriteResult;
using Written = tl::expected<std::vector<WriteOutcome>, OutputError>;

// Another session, in a transaction of its own until it goes.
class Session {
 public:
  explicit Session(const MysqlOptions& options, const std::string& sql = "SELECT 1")
      : connection_(options) {
    EXPECT_TRUE(connection_.Connect());
    Exec("START TRANSACTION");
    Exec(sql);
  }
  void Exec(const std::string& sql) {
    const auto done = connection_.Query(sql);
    EXPECT_TRUE(done) << sql << ": " << done.error().text;
  }

 private:
  MysqlConnection connection_;
};

class MysqlPositionsTest : public ::testing::Test {
 protected:
  MysqlPositionsTest() {
    store_.Exec("CREATE TABLE effects (id varchar(100) PRIMARY KEY, amount int)");
  }
  [[nodiscard]] static std::unique_ptr<Output> Open(MysqlOptions options,
                                                    const std::string& worker = "worker-1") {
    options.columns = Columns({{"id", "key"}, {"amount", "json:/amount?"}});
    return MakeMysqlOutput(options, "orders", worker, {.by_position = true});
  }
  [[nodiscard]] std::unique_ptr<Output> Open(const std::string& worker = "worker-1") const {
    return Open(store_.Options(), worker);
  }
  [[nodiscard]] std::string Value(const std::string& sql) { return store_.Exec(sql); }
  [[nodiscard]] std::string Done() { return Value("SELECT done FROM fencepost_positions"); }
  // Until another session runs a statement like this pattern (a session of which BACKUP STAGE
  // BLOCK_COMMIT was answered may still be shown with it).
  [[nodiscard]] bool Runs(const std::string& statement) {
    return WaitUntil(20s, [&] {
      return Value(fmt::format("SELECT count(*) FROM information_schema.processlist"
                               " WHERE id <> connection_id() AND db = database()"
                               " AND info LIKE '{}'",
                               statement)) != "0";
    });
  }
  // Until another session waits for a row.
  [[nodiscard]] bool Waits() {
    return WaitUntil(20s, [&] {
      return Value(
                 "SELECT variable_value FROM information_schema.global_status"
                 " WHERE variable_name = 'innodb_row_lock_current_waits'") != "0";
    });
  }
  static void Block(Session& session) {
    session.Exec("COMMIT");
    session.Exec("BACKUP STAGE START");
    session.Exec("BACKUP STAGE BLOCK_COMMIT");
  }

  MysqlStore store_;
};

TEST_F(MysqlPositionsTest, AnAnswerLostAfterCommitIsFoundByWritingAgain) {
  MysqlOptions options = store_.Options();
  TcpProxy proxy(options.port);
  options.port = proxy.port();
  const auto output = Open(options);
  ASSERT_THAT(Results(*output, Orders(0, 1)), ElementsAre(kCommitted));
  const Orders batch(1, 101);
  Session backup(store_.Options());
  Block(backup);
  auto first = std::async(std::launch::async, [&]() -> Written {
    return output->Write({.items = batch.items(), .offsets = {}});
  });
  EXPECT_TRUE(Runs("COMMIT"));
  proxy.BlackHole(TcpProxy::Way::kToClient);
  backup.Exec("BACKUP STAGE END");
  EXPECT_TRUE(WaitUntil(20s, [&] { return Value("SELECT count(*) FROM effects") == "101"; }));
  proxy.Cut();
  const Written written = first.get();
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().error.code, "output_unavailable");
  proxy.Restore();
  EXPECT_EQ(Results(*output, batch), All(100, kOwnEarlier));
  EXPECT_EQ(Value("SELECT count(*) FROM effects"), "101");
}

// The server has not noticed that its client has gone, and commits for it later.
TEST_F(MysqlPositionsTest, ABatchWrittenAgainWaitsForTheSessionThatStillCommitsIt) {
  MysqlOptions options = store_.Options();
  TcpProxy proxy(options.port);
  options.port = proxy.port();
  const auto output = Open(options);
  ASSERT_THAT(Results(*output, Orders(0, 1)), ElementsAre(kCommitted));
  const Orders batch(1, 101);
  const auto write = [&]() -> Written {
    return output->Write({.items = batch.items(), .offsets = {}});
  };
  Session backup(store_.Options());
  Block(backup);
  auto first = std::async(std::launch::async, write);
  EXPECT_TRUE(Runs("COMMIT"));
  proxy.Cut();
  EXPECT_FALSE(first.get());
  auto second = std::async(std::launch::async, [&] { return Results(*output, batch); });
  EXPECT_TRUE(Runs("%FOR UPDATE%"));
  backup.Exec("BACKUP STAGE END");
  EXPECT_EQ(second.get(), All(100, kOwnEarlier));
  EXPECT_EQ(Value("SELECT count(*) FROM effects"), "101");
}

TEST_F(MysqlPositionsTest, AWriteThatWaitedForItsRowSeesAllThatTheWriterBeforeItCommitted) {
  MysqlOptions options = store_.Options();
  options.rules = {
      .on_conflict = OnConflict::kUpdate, .key = {"id"}, .on_null_value = OnNull::kDelete};
  const auto output = Open(options);
  ASSERT_THAT(Results(*output, Orders(0, 1)), ElementsAre(kCommitted));
  Session before(store_.Options(),
                 "UPDATE fencepost_positions SET done = '{[0,2)}', worker = 'worker-2'");
  before.Exec("INSERT INTO effects VALUES ('7', 1)");
  Batch batch;
  batch.Add(Order(1));
  Batch::Entry tombstone = Order(2);
  tombstone.tombstone = true;
  tombstone.key = "7";
  batch.Add(tombstone);
  auto results = std::async(std::launch::async, [&] { return Results(*output, batch); });
  EXPECT_TRUE(Waits());
  before.Exec("COMMIT");
  EXPECT_THAT(results.get(), ElementsAre(kDuplicate, kCommitted));
  EXPECT_EQ(Value("SELECT group_concat(id) FROM effects"), "0");
  EXPECT_EQ(Done(), "{[0,3)}");
}

TEST_F(MysqlPositionsTest, WaitingForTheRowForTooLongBlamesNoRecord) {
  const auto output = Open();
  ASSERT_THAT(Results(*output, Orders(0, 1)), ElementsAre(kCommitted));
  const Session stuck(store_.Options(), "UPDATE fencepost_positions SET worker = 'worker-2'");
  const Orders batch(1, 3);
  const auto written = output->Write({.items = batch.items(), .offsets = {}});
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().failure, WriteFailure::kLocked);
}

// In a table of few rows the server would rather read all of them, and wait for every lock.
TEST_F(MysqlPositionsTest, PartitionsThatOthersHoldAreNotWaitedFor) {
  const auto output = Open();
  for (const std::int32_t partition : {1, 4, 5, 6, 9}) {
    ASSERT_THAT(Results(*output, Orders(0, 1, {.partition = partition})), ElementsAre(kCommitted));
  }
  Session others(
      store_.Options(),
      "UPDATE fencepost_positions SET worker = 'worker-2' WHERE `partition` IN (1, 5, 9)");
  others.Exec(
      "INSERT INTO fencepost_positions SELECT pipeline, cluster, topic, 7, done, 1, 'w', '', 0,"
      " now() FROM fencepost_positions WHERE `partition` = 6");
  Batch batch;  // some have their row, others not
  for (const std::int32_t partition : {4, 6, 0, 3, 8, 10}) {
    batch.Add(Order(1, {.partition = partition}));
  }
  const auto outcomes = output->Write({.items = batch.items(), .offsets = {}});
  ASSERT_TRUE(outcomes) << outcomes.error().error.Line();
  for (const WriteOutcome& outcome : *outcomes) EXPECT_EQ(outcome.result, kCommitted);
  EXPECT_TRUE(output->Lookup({Id(0, 5), Id(0, 7)}).value().front()) << "nor by questions";
}

// Between the look for the row and its insert; no lock keeps the gap.
TEST_F(MysqlPositionsTest, ARowThatAnotherWriterInsertsMeanwhileMakesAllOfItBeDoneAgain) {
  const auto output = Open();
  ASSERT_THAT(Results(*output, Orders(0, 1, {.partition = 7})), ElementsAre(kCommitted));
  Session holder(store_.Options(), "UPDATE fencepost_positions SET worker = 'worker-2'");
  Batch batch;
  batch.Add(Order(0, {.partition = 5}));
  batch.Add(Order(1, {.partition = 7}));
  const auto write = [&]() -> Written {
    return output->Write({.items = batch.items(), .offsets = {}});
  };
  auto first = std::async(std::launch::async, write);
  EXPECT_TRUE(Runs("%FOR UPDATE%")) << "it has seen that 5 is missing, and waits for 7";
  store_.Exec(
      "INSERT INTO fencepost_positions VALUES ('orders', 'C', 'orders', 5, '{[0,1)}', 1,"
      " 'worker-2', '', 0, now())");
  holder.Exec("COMMIT");
  const Written failed = first.get();
  ASSERT_FALSE(failed);
  EXPECT_TRUE(failed.error().retry_at_once) << failed.error().error.Line();
  EXPECT_THAT(Results(*output, batch), ElementsAre(kDuplicate, kCommitted));
  EXPECT_EQ(Value("SELECT group_concat(id ORDER BY id) FROM effects"), "7-0,7-1");
}

// It held its row, had written its effects and was frozen; another worker has its partition by
// then.
TEST_F(MysqlPositionsTest, AWorkerThatWakesInItsTransactionFindsItEndedAndItsRecordsDone) {
  const auto other = Open("worker-2");
  ASSERT_THAT(Results(*other, Orders(0, 1)), ElementsAre(kCommitted));
  Session frozen(store_.Options(), "SELECT * FROM fencepost_positions FOR UPDATE");
  frozen.Exec("INSERT INTO effects VALUES ('1', 1)");
  const Orders batch(1, 3, {.token = 2});
  EXPECT_TRUE(WaitUntil(60s, [&] {
    const auto outcomes = other->Write({.items = batch.items(), .offsets = {}});
    return outcomes && outcomes->at(0).result == kCommitted;
  }));
  EXPECT_THAT(Results(*Open("worker-1"), Orders(1, 3)), All(2, kFenced));
  EXPECT_EQ(Value("SELECT group_concat(id ORDER BY id) FROM effects"), "0,1,2");
}

TEST_F(MysqlPositionsTest, RangesThatWereChangedByHandAreNotTakenForNone) {
  const auto output = Open();
  ASSERT_THAT(Results(*output, Orders(0, 1)), ElementsAre(kCommitted));
  store_.Exec("UPDATE fencepost_positions SET done = '0-1'");
  const auto written = output->Write({.items = Orders(0, 1).items(), .offsets = {}});
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().error.Line(), HasSubstr("changed by hand"));
  EXPECT_EQ(written.error().failure, WriteFailure::kUnavailable);
}

TEST_F(MysqlPositionsTest, AnAccountNeedsToReadInsertAndUpdate) {
  ASSERT_TRUE(Open()->Prepare());
  const std::string database = Value("SELECT database()");
  store_.Exec(
      fmt::format("CREATE USER {0}@'%'; GRANT INSERT ON effects TO {0}@'%';"
                  "GRANT SELECT, INSERT, UPDATE ON fencepost_positions TO {0}@'%'",
                  database));
  MysqlOptions options = store_.Options();
  options.user = database;
  const auto output = Open(options);
  EXPECT_THAT(Results(*output, Orders(0, 2)), All(2, kCommitted));
  EXPECT_EQ(output->Forget({Id(1)}).value(), 1u);
  store_.Exec(fmt::format("DROP USER {}@'%'", database));
}

TEST_F(MysqlPositionsTest, TheTableOfTheFileIsTheOneThatAWorkerMakes) {
  const auto made = [&] { return store_.Exec("SHOW CREATE TABLE fencepost_positions"); };
  ASSERT_TRUE(Open()->Prepare());
  const std::string by_worker = made();
  store_.Exec("DROP TABLE fencepost_positions");
  store_.Exec(testing::ReadFile(testing::SourcePath("deploy/mysql/ledger.sql")));
  EXPECT_EQ(made(), by_worker);
}

}  // namespace
}  // namespace fencepost::consumer
