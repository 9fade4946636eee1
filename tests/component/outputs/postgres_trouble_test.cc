// Races, lost answers, frozen sessions, servers that go away.
#include <gmock/gmock.h>

#include "tests/component/outputs/postgres_fixture.h"
#include "tests/support/tcp_proxy.h"

namespace fencepost::consumer {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using testing::TcpProxy;
using testing::WaitUntil;
using enum WriteResult;
using PostgresTroubleTest = PostgresTest;

TEST_F(PostgresTroubleTest, AnAnswerLostAfterCommitIsFoundByWritingAgain) {
  TcpProxy proxy(Server().port());
  PostgresOptions options = Options();
  options.dsn = DsnAt(proxy.port());
  const auto output = Open(options);
  ASSERT_TRUE(output->Prepare());
  Batch batch;
  batch.AddMany("o-", 100);
  proxy.BlackHole(TcpProxy::Way::kToClient);
  auto first = WriteAside(*output, batch);
  EXPECT_TRUE(WaitUntil(20s, [&] { return Value("SELECT count(*) FROM effects") == "100"; }));
  proxy.Cut();
  const OutputError lost = Failure(first.get());
  EXPECT_EQ(lost.error.code, "output_unavailable");
  EXPECT_FALSE(lost.retry_at_once);
  proxy.Restore();
  EXPECT_EQ(Results(*output, batch), All(100, kOwnEarlier));
  EXPECT_EQ(Value("SELECT count(*) FROM effects"), "100");
}

TEST_F(PostgresTroubleTest, WritingAgainWaitsForTheBackendThatStillWorksOnTheLostTransaction) {
  TcpProxy proxy(Server().port());
  PostgresOptions options = Options();
  options.dsn = DsnAt(proxy.port());
  const auto lost = Open(options);
  ASSERT_TRUE(lost->Prepare());
  const Batch batch{{.id = "a"}, {.id = "b"}};
  // A deferred trigger, so that the old backend is held up after its ledger and effects.
  Exec(
      "CREATE TABLE gate (); CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
      " LOCK TABLE gate IN SHARE MODE; RETURN NEW; END $$;"
      "CREATE CONSTRAINT TRIGGER t AFTER INSERT ON effects DEFERRABLE INITIALLY DEFERRED"
      " FOR EACH ROW EXECUTE FUNCTION wait()");
  auto gate = store_.Hold("LOCK TABLE gate IN ACCESS EXCLUSIVE MODE");
  auto first = WriteAside(*lost, batch);
  EXPECT_TRUE(store_.SomeoneWaits()) << "the old backend";
  // The client gives up; the server does not notice.
  proxy.BlackHole();
  lost->Interrupt();
  EXPECT_EQ(Failure(first.get()).error.code, "interrupted");
  const auto other = Open();
  auto again = ResultsAside(*other, batch);
  EXPECT_TRUE(store_.SomeoneWaits(2)) << "the new writer waits for the old backend";
  EXPECT_EQ(Value("SELECT count(*) FROM fencepost_ledger"), "0") << "a look proves nothing";
  gate.reset();
  EXPECT_EQ(again.get(), All(2, kOwnEarlier));
  EXPECT_EQ(Value("SELECT count(*) FROM effects"), "2");
}

TEST_F(PostgresTroubleTest, ATransactionThatLostItsClientBeforeCommitLeavesNothing) {
  const auto output = Open();
  ASSERT_TRUE(output->Prepare());
  const Batch batch{{.id = "a"}};
  const auto table = store_.Hold("LOCK TABLE effects IN ACCESS EXCLUSIVE MODE");
  auto written = WriteAside(*output, batch);
  EXPECT_TRUE(store_.SomeoneWaits());
  output->Interrupt();
  EXPECT_EQ(Failure(written.get()).error.code, "interrupted");
  EXPECT_FALSE(WriteOnce(*output, batch)) << "it is for shutdown";
  if (std::stoi(Value("SHOW server_version_num")) >= 140000) {
    EXPECT_TRUE(store_.SomeoneWaits(0, 8s)) << "the server noticed, before lock_timeout";
  }
}

TEST_F(PostgresTroubleTest, ASessionThatSitsOnTheRowsIsReportedAfterTheLockTimeout) {
  const auto output = Open();
  ASSERT_TRUE(output->Prepare());
  const Batch batch{{.id = "a"}};
  {
    const auto frozen =
        store_.Hold("INSERT INTO fencepost_ledger VALUES ('orders', 'a', 9, 'w', 'orders/3/9', 1)");
    const OutputError written = Failure(*output, batch);
    EXPECT_EQ(written.error.code, "output_locked");
    EXPECT_FALSE(written.error.hint.empty());
  }
  EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted));
}

TEST_F(PostgresTroubleTest, ADeadlockIsToBeTriedAgainAtOnceOnTheSameConnection) {
  Exec("CREATE TABLE gate (id int); INSERT INTO gate VALUES (1), (2)");
  // Both take what the other has; the output's effects take row 1, then wait for row 2.
  Exec(
      "CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
      " UPDATE gate SET id = id WHERE id = NEW.amount; RETURN NEW; END $$;"
      "CREATE TRIGGER t BEFORE INSERT ON effects FOR EACH ROW EXECUTE FUNCTION touch()");
  const auto output = Open();
  ASSERT_TRUE(output->Prepare());
  const Batch batch{{.id = "a", .offset = 1}, {.id = "b", .offset = 2}};
  auto other = store_.Hold("SET deadlock_timeout = '1min'");  // the output's backend finds it
  other->Exec("UPDATE gate SET id = id WHERE id = 2");
  auto written = WriteAside(*output, batch);
  EXPECT_TRUE(store_.SomeoneWaits());
  other->Exec("UPDATE gate SET id = id WHERE id = 1");
  other.reset();
  EXPECT_TRUE(Failure(written.get()).retry_at_once);
  EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted, kCommitted));
}

// Beside the output's write, which goes on over the same connection.
class PostgresPruneTest : public PostgresTroubleTest {
 protected:
  PostgresPruneTest() {
    EXPECT_TRUE(output_->Prepare());
    Exec(
        "INSERT INTO fencepost_ledger VALUES"
        " ('orders', 'a', 1, 'w', 'orders/3/1', 1, now() - interval '2 hours'),"
        " ('orders', 'b', 1, 'w', 'orders/3/2', 1, now() - interval '2 hours')");
  }
  [[nodiscard]] std::string Backend() const {
    return Value(
        "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'fencepost/%'"
        " AND datname = current_database()");
  }
  tl::expected<std::size_t, OutputError> Prune() const {
    return output_->Prune(
        {.keep = std::chrono::hours(1), .committed = {{{"orders", 3}, 100}}, .topics = {"orders"}},
        10);
  }
  [[nodiscard]] auto PruneAside() const {
    return std::async(std::launch::async, [this] { return Prune(); });
  }

  const std::unique_ptr<Output> output_ = Open();
};

TEST_F(PostgresPruneTest, AStatementThatTheServerCancelsOrRefusesCostsNoConnection) {
  const std::string backend = Backend();
  {
    const auto other = store_.Hold("LOCK TABLE fencepost_ledger IN ACCESS EXCLUSIVE MODE");
    auto pruned = PruneAside();
    EXPECT_TRUE(store_.SomeoneWaits());
    EXPECT_EQ(Value("SELECT pg_cancel_backend(" + backend + ")"), "t");  // as statement_timeout
    EXPECT_EQ(pruned.get().error().error.code, "output_slow");
  }
  Exec("ALTER TABLE fencepost_ledger RENAME COLUMN completed_at TO elsewhere");
  ASSERT_FALSE(Prune());
  Exec("ALTER TABLE fencepost_ledger RENAME COLUMN elsewhere TO completed_at");
  EXPECT_EQ(Prune().value(), 2u);
  const Batch batch{{.id = "c"}};
  EXPECT_THAT(Results(*output_, batch), ElementsAre(kCommitted));
  EXPECT_EQ(Backend(), backend);
}

TEST_F(PostgresPruneTest, ARowThatIsWrittenAnewWhilePruningWaitsForItStays) {
  const auto other =
      store_.Hold("UPDATE fencepost_ledger SET completed_at = now() WHERE record_id = 'a'");
  auto pruned = PruneAside();
  EXPECT_TRUE(store_.SomeoneWaits());
  other->Exec("COMMIT");
  EXPECT_EQ(pruned.get().value(), 1u);
  EXPECT_EQ(Value("SELECT record_id FROM fencepost_ledger"), "a");
}

TEST_F(PostgresTroubleTest, ARestartedServerCostsOneError) {
  testing::PostgresServer server;
  server.Exec("CREATE TABLE effects (order_id text, amount int)");
  PostgresOptions options = Options();
  options.dsn = server.dsn();
  const auto output = Open(options);
  const Batch first{{.id = "a"}};
  const Batch second{{.id = "b"}};
  ASSERT_THAT(Results(*output, first), ElementsAre(kCommitted));
  server.Stop();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Failure(*output, second).error.code, "output_unavailable");
  }
  server.Start();
  EXPECT_THAT(Results(*output, second), ElementsAre(kCommitted));
}

TEST_F(PostgresTroubleTest, AReadOnlyServerIsPatienceNotABadRecord) {
  const auto output = Open();
  ASSERT_TRUE(output->Prepare());
  Exec("ALTER DATABASE " + database_ + " SET default_transaction_read_only = on");
  const Batch batch{{.id = "a"}};
  EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted)) << "BEGIN asks for READ WRITE";
  const auto prepared = Open()->Prepare();
  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().error.code, "output_unavailable");
}

TEST_F(PostgresTroubleTest, InterruptEndsAConnectionAttemptToASilentServer) {
  TcpProxy proxy(Server().port());
  proxy.BlackHole();
  PostgresOptions options = Options();
  options.dsn = DsnAt(proxy.port());
  const auto output = Open(options);
  auto prepared = std::async(std::launch::async, [&] { return output->Prepare(); });
  EXPECT_TRUE(WaitUntil(10s, [&] { return proxy.connections() == 1; }));
  output->Interrupt();
  EXPECT_EQ(prepared.wait_for(5s), std::future_status::ready);
  EXPECT_EQ(prepared.get().error().error.code, "interrupted");
}

}  // namespace
}  // namespace fencepost::consumer
