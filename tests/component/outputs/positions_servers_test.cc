// The ledger by position in a server's database: its transaction, and what may come in between.
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

class ServerPositionsTest : public PositionsTest {
 protected:
  [[nodiscard]] std::unique_ptr<Output> OpenWith(Opening with) {
    if (with.columns.empty()) with.columns = ByKey();
    with.terms.by_position = true;
    return store_->Open(std::move(with));
  }
  [[nodiscard]] std::string Ids() { return Exec("SELECT id FROM effects ORDER BY id"); }
};
INSTANTIATE_TEST_SUITE_P(Servers, ServerPositionsTest, kServers, StoreName);

class MysqlPositionsTest : public ServerPositionsTest {};
INSTANTIATE_TEST_SUITE_P(Mysql, MysqlPositionsTest, ::testing::Values("mysql"), StoreName);
class PostgresPositionsTest : public ServerPositionsTest {};
INSTANTIATE_TEST_SUITE_P(Postgres, PostgresPositionsTest, ::testing::Values("postgres"), StoreName);

// Until it goes, MySQL commits nothing.
class CommitsHeld {
 public:
  explicit CommitsHeld(Store& store) : store_(store), session_(store.Hold("COMMIT")) {
    session_->Exec("BACKUP STAGE START");
    session_->Exec("BACKUP STAGE BLOCK_COMMIT");
  }
  void End() { session_->Exec("BACKUP STAGE END"); }
  // Until another session runs a statement like this pattern (one of which BACKUP STAGE
  // BLOCK_COMMIT was answered may still be shown with it).
  [[nodiscard]] ::testing::AssertionResult Runs(const std::string& statement) {
    return WaitUntil(20s, statement, [&] {
      return store_.Exec(fmt::format("SELECT count(*) FROM information_schema.processlist"
                                     " WHERE id <> connection_id() AND db = database()"
                                     " AND info LIKE '{}'",
                                     statement)) != "0";
    });
  }

 private:
  Store& store_;
  const std::unique_ptr<testing::SqlSession> session_;
};

TEST_P(ServerPositionsTest, AnAnswerLostAfterCommitIsFoundByWritingAgain) {
  TcpProxy proxy(store_->server().port());
  const auto output = OpenWith({.columns = {}, .port = proxy.port()});
  ASSERT_THAT(Results(*output, Orders(0, 1)), ElementsAre(kCommitted));
  const Orders batch(20, 120);  // the table refuses 13
  std::optional<CommitsHeld> held;
  if (IsMysql()) held.emplace(*store_);  // in PostgreSQL all is one round trip
  if (!held) proxy.BlackHole(TcpProxy::Way::kToClient);
  auto first = WriteAside(*output, batch);
  if (held) {
    EXPECT_TRUE(held->Runs("COMMIT"));
    proxy.BlackHole(TcpProxy::Way::kToClient);
    held->End();
  }
  EXPECT_TRUE(WaitUntil(20s, [&] { return Exec("SELECT count(*) FROM effects") == "101"; }));
  proxy.Cut();
  EXPECT_EQ(Failure(first.get()).error.code, "output_unavailable");
  proxy.Restore();
  EXPECT_EQ(Results(*output, batch), All(100, kOwnEarlier));
  EXPECT_EQ(Exec("SELECT count(*) FROM effects"), "101");
}

// The server has not noticed that its client has gone, and commits for it later.
TEST_P(MysqlPositionsTest, ABatchWrittenAgainWaitsForTheSessionThatStillCommitsIt) {
  TcpProxy proxy(store_->server().port());
  const auto output = OpenWith({.columns = {}, .port = proxy.port()});
  ASSERT_THAT(Results(*output, Orders(0, 1)), ElementsAre(kCommitted));
  const Orders batch(20, 120);  // the table refuses 13
  CommitsHeld held(*store_);
  auto first = WriteAside(*output, batch);
  EXPECT_TRUE(held.Runs("COMMIT"));
  proxy.Cut();
  EXPECT_FALSE(first.get());
  auto second = ResultsAside(*output, batch);
  EXPECT_TRUE(held.Runs("%FOR UPDATE%"));
  held.End();
  EXPECT_EQ(second.get(), All(100, kOwnEarlier));
  EXPECT_EQ(Exec("SELECT count(*) FROM effects"), "101");
}

// What the lock was waited for must be seen by the write: its snapshot is younger than the lock.
TEST_P(ServerPositionsTest, AWriteThatWaitedForItsRowSeesAllThatWasCommittedBeforeIt) {
  const auto output = OpenWith(
      {.columns = Columns({{"id", "key"}, {"amount", "json:/amount?"}}),
       .rules = {
           .on_conflict = OnConflict::kUpdate, .key = {"id"}, .on_null_value = OnNull::kDelete}});
  ASSERT_THAT(Results(*output, Orders(0, 1)), ElementsAre(kCommitted));
  const auto before =
      store_->Hold("UPDATE fencepost_positions SET done = '{[0,2)}', worker = 'worker-2'");
  before->Exec("INSERT INTO effects (id, amount) VALUES ('7', 1)");
  Batch batch;
  batch.Add(Order(1));
  Batch::Entry tombstone = Order(2);
  tombstone.tombstone = true;
  tombstone.key = "7";
  batch.Add(tombstone);
  auto results = ResultsAside(*output, batch);
  EXPECT_TRUE(store_->SomeoneWaits());
  before->Exec("COMMIT");
  EXPECT_THAT(results.get(), ElementsAre(kDuplicate, kCommitted));
  EXPECT_EQ(Ids(), "0") << "the row that the tombstone deletes was committed while it waited";
  EXPECT_EQ(Done(), "{[0,3)}");
}

TEST_P(ServerPositionsTest, WaitingForTheRowForTooLongBlamesNoRecord) {
  const auto output = OpenWith(
      {.columns = {}, .options = IsPostgres() ? "?options=-c%20statement_timeout%3D300" : ""});
  ASSERT_THAT(Results(*output, Orders(0, 1)), ElementsAre(kCommitted));
  const auto stuck = store_->Hold("UPDATE fencepost_positions SET worker = 'worker-2'");
  EXPECT_EQ(Failure(*output, Orders(1, 3)).failure, WriteFailure::kLocked);
}

// In a table of few rows MySQL would rather read all of them, and wait for every lock.
TEST_P(ServerPositionsTest, PartitionsThatOthersHoldAreNotWaitedFor) {
  const auto output = OpenWith({});
  for (const std::int32_t partition : {1, 4, 5, 6, 9}) {
    ASSERT_THAT(Results(*output, Orders(0, 1, {.partition = partition})), ElementsAre(kCommitted));
  }
  const auto others = store_->Hold("UPDATE fencepost_positions SET worker = 'worker-2' WHERE " +
                                   Name("partition") + " IN (1, 5, 9)");
  others->Exec(
      "INSERT INTO fencepost_positions SELECT pipeline, cluster, topic, 7, done, 1, 'w', '', 0,"
      " now() FROM fencepost_positions WHERE " +
      Name("partition") + " = 6");
  Batch batch;  // some have their row, others not
  for (const std::int32_t partition : {4, 6, 0, 3, 8, 10}) {
    batch.Add(Order(1, {.partition = partition}));
  }
  const auto outcomes = WriteOnce(*output, batch);
  ASSERT_TRUE(outcomes) << outcomes.error().error.Line();
  for (const WriteOutcome& outcome : *outcomes) EXPECT_EQ(outcome.result, kCommitted);
  EXPECT_TRUE(output->Lookup({Id(0, 5), Id(0, 7)}).value().front()) << "nor by questions";
}

// Between the look for the row and its insert; no lock keeps the gap.
TEST_P(MysqlPositionsTest, ARowThatAnotherWriterInsertsMeanwhileMakesAllOfItBeDoneAgain) {
  const auto output = OpenWith({});
  ASSERT_THAT(Results(*output, Orders(0, 1, {.partition = 7})), ElementsAre(kCommitted));
  const auto holder = store_->Hold("UPDATE fencepost_positions SET worker = 'worker-2'");
  Batch batch;
  batch.Add(Order(0, {.partition = 5}));
  batch.Add(Order(1, {.partition = 7}));
  auto first = WriteAside(*output, batch);
  EXPECT_TRUE(store_->SomeoneWaits()) << "it has seen that 5 is missing, and waits for 7";
  Exec(
      "INSERT INTO fencepost_positions VALUES ('orders', 'C', 'orders', 5, '{[0,1)}', 1,"
      " 'worker-2', '', 0, now())");
  holder->Exec("COMMIT");
  EXPECT_TRUE(Failure(first.get()).retry_at_once);
  EXPECT_THAT(Results(*output, batch), ElementsAre(kDuplicate, kCommitted));
  EXPECT_EQ(Ids(), "7-0 7-1");
}

// It held its row, had written its effects and was frozen; another worker has its partition by
// then.
TEST_P(MysqlPositionsTest, AWorkerThatWakesInItsTransactionFindsItEndedAndItsRecordsDone) {
  const auto other = Open("worker-2");
  ASSERT_THAT(Results(*other, Orders(0, 1)), ElementsAre(kCommitted));
  MysqlConnection frozen(store_->MysqlTable());
  ASSERT_TRUE(frozen.Connect() && frozen.Query("START TRANSACTION"));
  ASSERT_TRUE(frozen.Query("SELECT * FROM fencepost_positions FOR UPDATE"));
  ASSERT_TRUE(frozen.Query("INSERT INTO effects (id, amount) VALUES ('1', 1)"));
  const Orders batch(1, 3, {.token = 2});
  EXPECT_TRUE(WaitUntil(60s, [&] {
    const auto outcomes = WriteOnce(*other, batch);
    return outcomes && outcomes->at(0).result == kCommitted;
  }));
  EXPECT_THAT(Results(*Open("worker-1"), Orders(1, 3)), All(2, kFenced));
  EXPECT_EQ(Ids(), "0 1 2");
}

TEST_P(MysqlPositionsTest, RangesThatWereChangedByHandAreNotTakenForNone) {
  const auto output = OpenWith({});
  ASSERT_THAT(Results(*output, Orders(0, 1)), ElementsAre(kCommitted));
  Exec("UPDATE fencepost_positions SET done = '0-1'");
  const OutputError refused = Failure(*output, Orders(0, 1));
  EXPECT_THAT(refused.error.Line(), HasSubstr("changed by hand"));
  EXPECT_EQ(refused.failure, WriteFailure::kUnavailable);
}

TEST_P(ServerPositionsTest, AUserNeedsToReadInsertAndUpdateAndIsToldSo) {
  const std::string user = store_->database();
  const std::string at = IsMysql() ? user + "@'%'" : user;
  Exec(IsMysql()
           ? fmt::format("CREATE USER {0}; GRANT INSERT ON effects TO {0}", at)
           : fmt::format("CREATE ROLE {0} LOGIN; REVOKE ALL ON SCHEMA public FROM PUBLIC;"
                         "GRANT USAGE ON SCHEMA public TO {0}; GRANT INSERT ON effects TO {0}",
                         at));
  const auto open = [&] { return OpenWith({.columns = {}, .user = user}); };
  if (IsPostgres()) {
    EXPECT_THAT(consumer::Refusal(*open()), HasSubstr("deploy/postgres/ledger.sql"));
  }
  ASSERT_TRUE(OpenWith({})->Prepare());
  Exec("GRANT SELECT, INSERT ON fencepost_positions TO " + at);
  if (IsPostgres()) {
    EXPECT_THAT(consumer::Refusal(*open()),
                HasSubstr("GRANT SELECT, INSERT, UPDATE ON public.fencepost_positions"));
  }
  Exec("GRANT UPDATE ON fencepost_positions TO " + at);
  if (IsPostgres()) {
    EXPECT_THAT(consumer::Refusal(*open()),
                HasSubstr("GRANT SELECT, INSERT, DELETE ON public.fencepost_ledger"));
  }
  Exec("GRANT SELECT, INSERT, UPDATE, DELETE ON fencepost_ledger TO " + at);
  const auto output = open();
  EXPECT_THAT(Results(*output, Orders(0, 2)), All(2, kCommitted));
  EXPECT_EQ(output->Forget({Id(1)}).value(), 1u);
  Exec(IsMysql() ? "DROP USER " + at : fmt::format("DROP OWNED BY {0}; DROP ROLE {0}", at));
}

TEST_P(MysqlPositionsTest, TheLedgersOfItsFileAreThoseThatAWorkerMakes) {
  for (const bool by_position : {false, true}) {
    const std::string table = by_position ? "fencepost_positions" : "fencepost_ledger";
    const auto made = [&] { return Exec("SHOW CREATE TABLE " + table); };
    ASSERT_TRUE(store_->Open(ByKey(), {}, {.by_position = by_position})->Prepare());
    const std::string by_worker = made();
    Exec("DROP TABLE " + table);
    Exec(testing::ReadFile(testing::SourcePath("deploy/mysql/ledger.sql")));
    EXPECT_EQ(made(), by_worker);
    Exec("DROP TABLE fencepost_ledger, fencepost_positions");
  }
}

TEST_P(PostgresPositionsTest, ADefaultOfSerializableCostsNothing) {
  Exec("ALTER DATABASE " + store_->database() +
       " SET default_transaction_isolation = 'serializable'");
  const auto output = OpenWith({});
  ASSERT_THAT(Results(*output, Orders(0, 1)), ElementsAre(kCommitted));
  const auto before = store_->Hold("UPDATE fencepost_positions SET done = done + '{[1,2)}'");
  const Orders batch(0, 3);
  auto results = ResultsAside(*output, batch);
  EXPECT_TRUE(store_->SomeoneWaits());
  before->Exec("COMMIT");
  EXPECT_THAT(results.get(), ElementsAre(kOwnEarlier, kOwnEarlier, kCommitted));
}

TEST_P(PostgresPositionsTest, TheUsersOwnStatementRunsOnceForEachNewRecord) {
  Exec("CREATE TABLE log (at bigint)");
  const auto output = MakePostgresOutput({.dsn = Store::Postgres().dsn(store_->database()),
                                          .statement = "INSERT INTO log VALUES ($1::bigint)",
                                          .args = {Selector::Parse("json:/amount").value()}},
                                         "orders", "worker-1", {.by_position = true});
  EXPECT_EQ(Results(*output, Orders(0, 3)), All(3, kCommitted));
  EXPECT_THAT(Results(*output, Orders(1, 5)),
              ElementsAre(kOwnEarlier, kOwnEarlier, kCommitted, kCommitted));
  EXPECT_EQ(Exec("SELECT at FROM log ORDER BY at"), "0 1 2 3 4");
}

// Rows of many other partitions, and a long history of this one: the plans that were made while the
// table was empty do.
TEST_P(PostgresPositionsTest, RowsAreFoundByTheirKeyInALargeTableThatWasEmptyAtFirst) {
  const auto output = OpenWith({});
  const auto write = [&](Offset from) {
    for (Offset at = from; at < from + 12; ++at) {  // beyond the plans for one time
      ASSERT_EQ(Results(*output, Orders(at, at + 1)), All(1, kCommitted));
    }
  };
  write(20);
  Exec(
      "INSERT INTO fencepost_positions SELECT 'other', 'C', 'orders', n, '{[0,9)}', 1, 'w', '', 0,"
      " now() FROM generate_series(1, 20000) n;"
      "ANALYZE fencepost_positions; SELECT pg_stat_reset()");
  write(32);
  ASSERT_TRUE(output->Lookup({Id(25)}).value().front());
  ASSERT_EQ(output->Forget({Id(25)}).value(), 1u);
  store_->Disconnect();  // so that the statistics are told
  const auto told = [&](const std::string& column) {
    return std::stoi(Exec("SELECT " + column + " FROM pg_stat_user_tables" +
                          " WHERE relname = 'fencepost_positions'"));
  };
  EXPECT_TRUE(WaitUntil(20s, [&] { return told("idx_scan") > 24; }));
  EXPECT_LT(told("seq_tup_read"), 20000) << "never all of it";
}

}  // namespace
}  // namespace fencepost::consumer
