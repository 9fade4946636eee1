// What is MySQL's own: races, lost commits, words. Against MariaDB.
#include <gmock/gmock.h>

#include <csignal>

#include "consumer/outputs/mysql/mysql_connection.h"
#include "tests/component/outputs/store.h"

namespace fencepost::consumer {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using enum WriteResult;

class MysqlTest : public ::testing::Test {
 protected:
  MysqlTest() {
    store_.Exec(
        "CREATE TABLE effects (id varchar(100) PRIMARY KEY, amount int CHECK (amount <> 13))");
  }
  [[nodiscard]] static std::unique_ptr<Output> Made(MysqlOptions options, OutputTerms terms = {}) {
    options.columns = Columns({{"id", "key"}, {"amount", "json:/amount"}});
    return MakeMysqlOutput(options, "orders", "worker-1", std::move(terms));
  }
  [[nodiscard]] std::unique_ptr<Output> Open(OutputTerms terms = {}) const {
    return Made(store_.MysqlTable(), std::move(terms));
  }
  static Batch::Entry Entry(const std::string& id, Offset offset) {
    return {.id = id, .offset = offset, .value = R"({"amount":1})", .key = id};
  }

  Store store_{Store::Kind::kMysql};
};

TEST_F(MysqlTest, ARowThatAnotherTransactionHoldsIsWaitedForAndThenADuplicate) {
  const auto output = Open();
  ASSERT_TRUE(output->Prepare());
  const auto holder = store_.Hold(
      "INSERT INTO fencepost_ledger VALUES ('orders', 'a', 9, 'w2', 'orders/3/1', 1, now(6))");
  const Batch batch{Entry("a", 1)};
  auto results = ResultsAside(*output, batch);
  EXPECT_TRUE(store_.SomeoneWaits());
  holder->Exec("COMMIT");
  EXPECT_THAT(results.get(), ElementsAre(::testing::Ne(kCommitted)));
  EXPECT_EQ(store_.Exec("SELECT count(*) FROM effects"), "0");
}

TEST_F(MysqlTest, AnIdThatAnotherWriterInsertsMeanwhileMakesAllOfItBeDoneAgain) {
  const auto output = Open();
  const Batch first{Entry("b", 1)};
  ASSERT_THAT(Results(*output, first), ElementsAre(kCommitted));
  const auto holder =
      store_.Hold("UPDATE fencepost_ledger SET worker = 'w2' WHERE record_id = 'b'");
  const Batch batch{Entry("a", 2), Entry("b", 1)};
  auto write = WriteAside(*output, batch);
  EXPECT_TRUE(store_.SomeoneWaits()) << "it has seen that a is missing, and waits for b";
  store_.Exec(
      "INSERT INTO fencepost_ledger VALUES ('orders', 'a', 9, 'w2', 'orders/3/7', 1, now(6))");
  holder->Exec("COMMIT");
  EXPECT_TRUE(Failure(write.get()).retry_at_once);
  EXPECT_THAT(Results(*output, batch), ElementsAre(kFenced, kOwnEarlier));
  EXPECT_EQ(store_.Exec("SELECT id FROM effects"), "b");
}

TEST_F(MysqlTest, ARecordThatIsLargerThanAStatementMayBeIsItsOwnFault) {
  testing::MysqlServer server({.arguments = {"--max-allowed-packet=1M"}});
  server.Exec("CREATE DATABASE shop");
  server.Exec("CREATE TABLE effects (id varchar(100) PRIMARY KEY, amount longtext)", "shop");
  MysqlOptions options = server.Options("shop");
  options.host = "localhost";  // by TCP all the same
  options.table = "effects";
  const auto output = Made(options);
  Batch batch;
  batch.Add(Entry("a", 1));
  batch.Add({.id = "b",
             .offset = 2,
             .value = R"({"amount":")" + std::string(2 << 20, 'x') + "\"}",
             .key = "b"});
  batch.Add(Entry("c", 3));
  EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted, kBadRecord, kCommitted));
}

TEST_F(MysqlTest, AClientThatIsFrozenInATransactionHoldsItsRowsForSecondsOnly) {
  const auto output = Open();
  ASSERT_TRUE(output->Prepare());
  MysqlConnection frozen(store_.MysqlTable());
  ASSERT_TRUE(frozen.Connect() && frozen.Query("START TRANSACTION"));
  ASSERT_TRUE(frozen.Query(
      "INSERT INTO fencepost_ledger VALUES ('orders', 'a', 9, 'w2', 'orders/3/1', 1, now(6))"));
  const Batch batch{Entry("a", 1)};
  EXPECT_TRUE(testing::WaitUntil(std::chrono::seconds(60), "the row", [&] {
    const auto outcomes = WriteAll(*output, batch);
    return outcomes && outcomes->at(0).result == kCommitted;
  }));
  EXPECT_EQ(store_.Exec("SELECT worker FROM fencepost_ledger"), "worker-1");
}

TEST_F(MysqlTest, IdsAreBytes) {
  const auto output = Open();
  const Batch batch{Entry("a", 1), Entry("A", 2), Entry("a ", 3)};
  store_.Exec("ALTER TABLE effects DROP PRIMARY KEY, MODIFY id text");
  EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted, kCommitted, kCommitted));
}

TEST_F(MysqlTest, TablesWithoutTransactionsAreRefusedForExactlyOnce) {
  store_.Exec("ALTER TABLE effects ENGINE=MyISAM");
  EXPECT_THAT(Refusal(*Open({.exactly_once = true})), HasSubstr("effects is MyISAM, which has no"));
  EXPECT_EQ(Refusal(*Open()), "");
}

TEST_F(MysqlTest, AServerThatForgetsInACrashWhatItAcknowledgedIsRefusedForExactlyOnce) {
  EXPECT_EQ(Refusal(*Open({.exactly_once = true})), "");
  for (const int value : {0, 2}) {
    store_.Exec(fmt::format("SET GLOBAL innodb_flush_log_at_trx_commit = {}", value));
    EXPECT_THAT(Refusal(*Open({.exactly_once = true})),
                HasSubstr(fmt::format("innodb_flush_log_at_trx_commit is {}", value)));
    EXPECT_EQ(Refusal(*Open()), "");
  }
  store_.Exec("SET GLOBAL innodb_flush_log_at_trx_commit = 1");
}

TEST_F(MysqlTest, ALedgerWhoseKeyHoldsAPartOfAColumnIsRefused) {
  ASSERT_TRUE(Open()->Prepare());
  store_.Exec(
      "ALTER TABLE fencepost_ledger DROP PRIMARY KEY,"
      " ADD UNIQUE (pipeline, record_id, source(20))");
  EXPECT_FALSE(Open()->Prepare());
}

TEST_F(MysqlTest, ALoginThatIsRefusedIsNoRecordsDoing) {
  MysqlOptions options = store_.MysqlTable();
  options.user = "locked";
  options.password = "";
  store_.Exec("CREATE USER IF NOT EXISTS locked ACCOUNT LOCK");
  store_.Exec("GRANT ALL ON *.* TO locked");
  const auto output = Made(options);
  const auto written = WriteAll(*output, Batch{Entry("a", 1)});
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().failure, WriteFailure::kUnavailable) << written.error().error.Line();
}

TEST_F(MysqlTest, AWrongPasswordAndAMissingDatabaseAreNamed) {
  MysqlOptions options = store_.MysqlTable();
  options.user = "nobody";
  EXPECT_THAT(Refusal(*Made(options)),
              AllOf(HasSubstr("Access denied"), HasSubstr("check user, password")));
  options = store_.MysqlTable();
  options.database = "none";
  EXPECT_THAT(Refusal(*Made(options)), HasSubstr("Unknown database"));
}

TEST_F(MysqlTest, AFrozenServerIsLeftAtAnInterrupt) {
  testing::MysqlServer server;
  server.Exec("CREATE DATABASE shop");
  server.Exec("CREATE TABLE effects (id varchar(100) PRIMARY KEY, amount int)", "shop");
  MysqlOptions options = server.Options("shop");
  options.table = "effects";
  const auto output = Made(options);
  ASSERT_TRUE(output->Prepare());
  kill(server.pid(), SIGSTOP);
  const Batch batch{Entry("a", 1)};
  auto write = WriteAside(*output, batch);
  output->Interrupt();
  EXPECT_EQ(Failure(write.get()).error.code, "interrupted");
  kill(server.pid(), SIGCONT);
}

}  // namespace
}  // namespace fencepost::consumer
