// The ledger by position in PostgreSQL: its transaction, and what may come in between.
#include <thread>

#include <gmock/gmock.h>
#include <libpq-fe.h>

#include "tests/component/outputs/positions.h"
#include "tests/component/outputs/postgres_fixture.h"
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

class PostgresPositionsTest : public PostgresTest {
 protected:
  [[nodiscard]] PostgresOptions ByKey() const {
    PostgresOptions options = Options();
    options.columns = Columns({{"order_id", "key"}, {"amount", "json:/amount"}});
    return options;
  }
  [[nodiscard]] std::unique_ptr<Output> Open(const std::string& worker = "worker-1") const {
    return OpenByPosition(ByKey(), worker);
  }
  [[nodiscard]] std::string Done() const { return Value("SELECT done FROM fencepost_positions"); }
  void Disconnect() const {
    Exec(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = "
        "current_database() AND pid <> pg_backend_pid()");
  }
};

// Another session, in a transaction of its own until it goes.
class Session {
 public:
  Session(const std::string& dsn, const std::string& sql) : connection_(PQconnectdb(dsn.c_str())) {
    Exec("BEGIN");
    Exec(sql);
  }
  ~Session() { PQfinish(connection_); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  void Exec(const std::string& sql) {
    PGresult* result = PQexec(connection_, sql.c_str());
    EXPECT_LE(PQresultStatus(result), PGRES_TUPLES_OK) << PQerrorMessage(connection_);
    PQclear(result);
  }

 private:
  PGconn* connection_;
};

TEST_F(PostgresPositionsTest, AnAnswerLostAfterCommitIsFoundByWritingAgain) {
  TcpProxy proxy(Server().port());
  PostgresOptions options = ByKey();
  options.dsn = DsnAt(proxy.port());
  const auto output = OpenByPosition(options, "worker-1");
  ASSERT_THAT(Results(*output, Orders(0, 1)), ElementsAre(kCommitted));
  const Orders batch(1, 101);
  proxy.BlackHole(TcpProxy::Way::kToClient);
  Written first;
  std::thread writer([&] { first = output->Write({.items = batch.items(), .offsets = {}}); });
  EXPECT_TRUE(WaitUntil(20s, [&] { return Value("SELECT count(*) FROM effects") == "101"; }));
  proxy.Cut();
  writer.join();
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().error.code, "output_unavailable");
  proxy.Restore();
  EXPECT_EQ(Results(*output, batch), All(100, kOwnEarlier));
  EXPECT_EQ(Value("SELECT count(*) FROM effects"), "101");
}

// What the lock was waited for must be seen by the write: its snapshot is younger than the lock.
TEST_F(PostgresPositionsTest, AWriteThatWaitedForItsRowSeesAllThatTheWriterBeforeItCommitted) {
  PostgresOptions options = ByKey();
  options.rules = {
      .on_conflict = OnConflict::kUpdate, .key = {"order_id"}, .on_null_value = OnNull::kDelete};
  options.columns = Columns({{"order_id", "key"}, {"amount", "json:/amount?"}});
  const auto output = OpenByPosition(options, "worker-1");
  ASSERT_THAT(Results(*output, Orders(0, 1)), ElementsAre(kCommitted));
  Session before(Dsn(),
                 "UPDATE fencepost_positions SET done = done + '{[1,2)}', worker = 'worker-2'");
  before.Exec("INSERT INTO effects VALUES ('7', 1)");
  Batch batch;
  batch.Add(Order(1));
  Batch::Entry tombstone = Order(2);
  tombstone.tombstone = true;
  tombstone.key = "7";
  batch.Add(tombstone);
  std::vector<WriteResult> results;
  std::thread writer([&] { results = Results(*output, batch); });
  EXPECT_TRUE(WaitUntil(20s, [&] {
    return Value("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") != "0";
  }));
  before.Exec("COMMIT");
  writer.join();
  EXPECT_THAT(results, ElementsAre(kDuplicate, kCommitted));
  EXPECT_EQ(Value("SELECT string_agg(order_id, ' ') FROM effects"), "0")
      << "the row that the tombstone deletes was committed while it waited";
}

TEST_F(PostgresPositionsTest, WaitingForTheRowForLongerThanAStatementMayTakeBlamesNoRecord) {
  PostgresOptions options = ByKey();
  options.dsn += "?options=-c%20statement_timeout%3D300";
  const auto output = OpenByPosition(options, "worker-1");
  ASSERT_THAT(Results(*output, Orders(0, 1)), ElementsAre(kCommitted));
  const Session stuck(Dsn(), "UPDATE fencepost_positions SET worker = 'worker-2'");
  const Orders batch(1, 3);
  const auto written = output->Write({.items = batch.items(), .offsets = {}});
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().failure, WriteFailure::kLocked);
}

TEST_F(PostgresPositionsTest, ADefaultOfSerializableCostsNothing) {
  Exec(fmt::format("ALTER DATABASE {} SET default_transaction_isolation = 'serializable'",
                   database_));
  const auto output = Open();
  ASSERT_THAT(Results(*output, Orders(0, 1)), ElementsAre(kCommitted));
  Session before(Dsn(), "UPDATE fencepost_positions SET done = done + '{[1,2)}'");
  std::vector<WriteResult> results;
  std::thread writer([&] { results = Results(*output, Orders(0, 3)); });
  EXPECT_TRUE(WaitUntil(20s, [&] {
    return Value("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") != "0";
  }));
  before.Exec("COMMIT");
  writer.join();
  EXPECT_THAT(results, ElementsAre(kOwnEarlier, kOwnEarlier, kCommitted));
}

TEST_F(PostgresPositionsTest, ARowThatSomebodyDeletedIsMadeAgainAndNothingIsWrittenWithoutIt) {
  const auto output = Open();
  ASSERT_THAT(Results(*output, Orders(0, 1)), ElementsAre(kCommitted));
  Exec("DELETE FROM fencepost_positions");
  const auto written = output->Write({.items = Orders(1, 3).items(), .offsets = {}});
  ASSERT_FALSE(written);
  EXPECT_TRUE(written.error().retry_at_once);
  EXPECT_EQ(Value("SELECT count(*) FROM effects"), "1");
  EXPECT_EQ(Results(*output, Orders(1, 3)), All(2, kCommitted));
  EXPECT_EQ(Done(), "{[1,3)}");
}

TEST_F(PostgresPositionsTest, ARoleNeedsToReadInsertAndUpdateAndIsToldSo) {
  Exec(
      "CREATE ROLE app LOGIN; REVOKE ALL ON SCHEMA public FROM PUBLIC;"
      "GRANT USAGE ON SCHEMA public TO app; GRANT INSERT ON effects TO app");
  PostgresOptions options = ByKey();
  options.dsn = Dsn("app");
  const auto refusal = [&] {
    const auto prepared = OpenByPosition(options, "worker-1")->Prepare();
    return prepared ? "" : prepared.error().error.Line();
  };
  EXPECT_THAT(refusal(), HasSubstr("deploy/postgres/ledger.sql"));
  ASSERT_TRUE(Open()->Prepare());
  Exec("GRANT SELECT, INSERT ON fencepost_positions TO app");
  EXPECT_THAT(refusal(), HasSubstr("GRANT SELECT, INSERT, UPDATE ON public.fencepost_positions"));
  Exec("GRANT UPDATE ON fencepost_positions TO app");
  const auto output = OpenByPosition(options, "worker-1");
  EXPECT_THAT(Results(*output, Orders(0, 2)), All(2, kCommitted));
  EXPECT_EQ(output->Forget({Id(1)}).value(), 1u);
  Exec("DROP OWNED BY app; DROP ROLE app");
}

TEST_F(PostgresPositionsTest, TheUsersOwnStatementRunsOnceForEachNewRecord) {
  Exec("CREATE TABLE log (at bigint)");
  PostgresOptions options = Options();
  options.table.clear();
  options.columns.clear();
  options.statement = "INSERT INTO log VALUES ($1::bigint)";
  options.args = {Selector::Parse("json:/amount").value()};
  const auto output = OpenByPosition(options, "worker-1");
  EXPECT_EQ(Results(*output, Orders(0, 3)), All(3, kCommitted));
  EXPECT_THAT(Results(*output, Orders(1, 5)),
              ElementsAre(kOwnEarlier, kOwnEarlier, kCommitted, kCommitted));
  EXPECT_EQ(Value("SELECT string_agg(at::text, ' ' ORDER BY at) FROM log"), "0 1 2 3 4");
}

// Rows of many other partitions, and a long history of this one: the plans that were made while the
// table was empty do.
TEST_F(PostgresPositionsTest, RowsAreFoundByTheirKeyInALargeTableThatWasEmptyAtFirst) {
  const auto output = Open();
  for (Offset at = 0; at < 12; ++at) {  // beyond the plans for one time
    ASSERT_EQ(Results(*output, Orders(at, at + 1)), All(1, kCommitted));
  }
  Exec(
      "INSERT INTO fencepost_positions SELECT 'other', 'C', 'orders', n, '{[0,9)}', 1, 'w', '', 0,"
      " now() FROM generate_series(1, 20000) n;"
      "ANALYZE fencepost_positions; SELECT pg_stat_reset()");
  for (Offset at = 12; at < 24; ++at) {
    ASSERT_EQ(Results(*output, Orders(at, at + 1)), All(1, kCommitted));
  }
  ASSERT_TRUE(output->Lookup({Id(5)}).value().front());
  ASSERT_EQ(output->Forget({Id(5)}).value(), 1u);
  Disconnect();  // so that the statistics are told
  EXPECT_TRUE(WaitUntil(20s, [&] {
    return std::stoi(Value("SELECT idx_scan FROM pg_stat_user_tables"
                           " WHERE relname = 'fencepost_positions'")) > 24;
  }));
  EXPECT_LT(std::stoi(Value("SELECT seq_tup_read FROM pg_stat_user_tables"
                            " WHERE relname = 'fencepost_positions'")),
            20000)
      << "never all of it";
}

}  // namespace
}  // namespace fencepost::consumer
