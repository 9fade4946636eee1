// Races, lost answers, frozen sessions, servers that go away.
#include <array>
#include <latch>
#include <numeric>
#include <thread>

#include <gmock/gmock.h>
#include <libpq-fe.h>

#include "tests/component/outputs/postgres_fixture.h"
#include "tests/support/tcp_proxy.h"

namespace fencepost::consumer {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using testing::TcpProxy;
using testing::WaitUntil;
using enum WriteResult;
using Written = tl::expected<std::vector<WriteOutcome>, OutputError>;

class PostgresTroubleTest : public PostgresTest {
 protected:
  // Another session, in a transaction of its own until it goes.
  class Session {
   public:
    Session(const std::string& dsn, const std::string& sql)
        : connection_(PQconnectdb(dsn.c_str())) {
      PQclear(PQexec(connection_, "BEGIN"));
      PGresult* result = PQexec(connection_, sql.c_str());
      EXPECT_EQ(PQresultStatus(result), PGRES_COMMAND_OK) << PQerrorMessage(connection_);
      PQclear(result);
    }
    ~Session() { PQfinish(connection_); }
    void Commit() { PQclear(PQexec(connection_, "COMMIT")); }
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

   private:
    PGconn* connection_;
  };
  [[nodiscard]] bool SomeoneWaits() const {
    return Value(
               "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
               " AND wait_event_type = 'Lock'") != "0";
  }
};

TEST_F(PostgresTroubleTest, WritersThatRaceForTheSameIdsCommitEachOnce) {
  constexpr int kWriters = 4;
  constexpr int kRounds = 8;
  constexpr int kIds = 200;
  std::latch start(kWriters);
  std::array<int, kWriters> committed{};
  std::array<int, kWriters> standing{};
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      const auto output = Open(Options(), fmt::format("worker-{}", w));
      ASSERT_TRUE(output->Prepare());
      start.arrive_and_wait();
      for (int round = 0; round < kRounds; ++round) {
        Batch batch;
        for (int i = 0; i < kIds; ++i) {
          // Each writer in an order of its own, and each record at a place of its own.
          const int id = (i * 7 + w * 53) % kIds;
          batch.Add({.id = fmt::format("{}-{}", round, id),
                     .offset = w * 10000 + round * kIds + id,
                     .token = static_cast<std::uint64_t>(w + 1)});
        }
        const auto outcomes = output->Write({.items = batch.items(), .offsets = {}});
        ASSERT_TRUE(outcomes) << outcomes.error().error.Line();
        for (const WriteOutcome& outcome : *outcomes) {
          committed[w] += outcome.result == kCommitted;
          standing[w] += EffectIsWritten(outcome.result);
          EXPECT_NE(outcome.result, kOwnEarlier);
        }
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(std::accumulate(committed.begin(), committed.end(), 0), kRounds * kIds);
  EXPECT_THAT(standing, ::testing::Each(kRounds * kIds));
  EXPECT_EQ(Value("SELECT count(*) FROM effects"), std::to_string(kRounds * kIds));
}

TEST_F(PostgresTroubleTest, AnAnswerLostAfterCommitIsFoundByWritingAgain) {
  TcpProxy proxy(Server().port());
  PostgresOptions options = Options();
  options.dsn = DsnAt(proxy.port());
  const auto output = Open(options);
  ASSERT_TRUE(output->Prepare());
  Batch batch;
  batch.AddMany("o-", 100);
  proxy.BlackHole(TcpProxy::Way::kToClient);
  Written first;
  std::thread writer([&] { first = output->Write({.items = batch.items(), .offsets = {}}); });
  EXPECT_TRUE(WaitUntil(20s, [&] { return Value("SELECT count(*) FROM effects") == "100"; }));
  proxy.Cut();
  writer.join();
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().error.code, "output_unavailable");
  EXPECT_FALSE(first.error().retry_at_once);
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
  Written first;
  Written again;
  {
    auto gate = std::make_unique<Session>(Dsn(), "LOCK TABLE gate IN ACCESS EXCLUSIVE MODE");
    std::thread loser([&] { first = lost->Write({.items = batch.items(), .offsets = {}}); });
    EXPECT_TRUE(WaitUntil(20s, "the old backend waits", [&] { return SomeoneWaits(); }));
    // The client gives up; the server does not hear of it.
    proxy.BlackHole();
    lost->Interrupt();
    loser.join();
    std::thread second([&] { again = Open()->Write({.items = batch.items(), .offsets = {}}); });
    const auto two_wait = [&] {
      return Value(
                 "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                 " AND wait_event_type = 'Lock'") == "2";
    };
    EXPECT_TRUE(WaitUntil(20s, "the new writer waits for the old backend", two_wait));
    EXPECT_EQ(Value("SELECT count(*) FROM fencepost_ledger"), "0") << "a look proves nothing";
    gate.reset();
    second.join();
  }
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().error.code, "interrupted");
  ASSERT_TRUE(again) << again.error().error.Line();
  for (const WriteOutcome& outcome : *again) EXPECT_EQ(outcome.result, kOwnEarlier);
  EXPECT_EQ(Value("SELECT count(*) FROM effects"), "2");
}

TEST_F(PostgresTroubleTest, ATransactionThatLostItsClientBeforeCommitLeavesNothing) {
  const auto output = Open();
  ASSERT_TRUE(output->Prepare());
  const Batch batch{{.id = "a"}};
  const Session table(Dsn(), "LOCK TABLE effects IN ACCESS EXCLUSIVE MODE");
  Written written;
  std::thread writer([&] { written = output->Write({.items = batch.items(), .offsets = {}}); });
  EXPECT_TRUE(WaitUntil(20s, [&] { return SomeoneWaits(); }));
  output->Interrupt();
  writer.join();
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().error.code, "interrupted");
  EXPECT_FALSE(output->Write({.items = batch.items(), .offsets = {}})) << "it is for shutdown";
  if (std::stoi(Value("SHOW server_version_num")) >= 140000) {
    EXPECT_TRUE(
        WaitUntil(8s, "the server noticed, before lock_timeout", [&] { return !SomeoneWaits(); }));
  }
}

TEST_F(PostgresTroubleTest, ASessionThatSitsOnTheRowsIsReportedAfterTheLockTimeout) {
  const auto output = Open();
  ASSERT_TRUE(output->Prepare());
  const Batch batch{{.id = "a"}};
  {
    const Session frozen(
        Dsn(), "INSERT INTO fencepost_ledger VALUES ('orders', 'a', 9, 'w', 'orders/3/9', 1)");
    const auto written = output->Write({.items = batch.items(), .offsets = {}});
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().error.code, "output_locked");
    EXPECT_FALSE(written.error().error.hint.empty());
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
  PGconn* other = PQconnectdb(Dsn().c_str());
  // Long, so that the output's backend is the one that finds the deadlock.
  PQclear(
      PQexec(other, "SET deadlock_timeout = '1min'; BEGIN; UPDATE gate SET id = id WHERE id = 2"));
  Written written;
  std::thread writer([&] { written = output->Write({.items = batch.items(), .offsets = {}}); });
  EXPECT_TRUE(WaitUntil(20s, [&] { return SomeoneWaits(); }));
  PQclear(PQexec(other, "UPDATE gate SET id = id WHERE id = 1"));
  writer.join();
  PQfinish(other);
  ASSERT_FALSE(written);
  EXPECT_TRUE(written.error().retry_at_once) << written.error().error.Line();
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
  tl::expected<std::size_t, OutputError> Prune() {
    return output_->Prune(
        {.keep = std::chrono::hours(1), .committed = {{{"orders", 3}, 100}}, .topics = {"orders"}},
        10);
  }

  const std::unique_ptr<Output> output_ = Open();
};

TEST_F(PostgresPruneTest, AStatementThatTheServerCancelsOrRefusesCostsNoConnection) {
  const std::string backend = Backend();
  tl::expected<std::size_t, OutputError> pruned;
  {
    const Session other(Dsn(), "LOCK TABLE fencepost_ledger IN ACCESS EXCLUSIVE MODE");
    std::thread pruner([&] { pruned = Prune(); });
    EXPECT_TRUE(WaitUntil(20s, [&] { return SomeoneWaits(); }));
    EXPECT_EQ(Value("SELECT pg_cancel_backend(" + backend + ")"), "t");  // as statement_timeout
    pruner.join();
  }
  ASSERT_FALSE(pruned);
  EXPECT_EQ(pruned.error().error.code, "output_slow");
  Exec("ALTER TABLE fencepost_ledger RENAME COLUMN completed_at TO elsewhere");
  ASSERT_FALSE(Prune());
  Exec("ALTER TABLE fencepost_ledger RENAME COLUMN elsewhere TO completed_at");
  EXPECT_EQ(Prune().value(), 2u);
  const Batch batch{{.id = "c"}};
  EXPECT_THAT(Results(*output_, batch), ElementsAre(kCommitted));
  EXPECT_EQ(Backend(), backend);
}

TEST_F(PostgresPruneTest, ARowThatIsWrittenAnewWhilePruningWaitsForItStays) {
  Session other(Dsn(), "UPDATE fencepost_ledger SET completed_at = now() WHERE record_id = 'a'");
  tl::expected<std::size_t, OutputError> pruned;
  std::thread pruner([&] { pruned = Prune(); });
  EXPECT_TRUE(WaitUntil(20s, [&] { return SomeoneWaits(); }));
  other.Commit();
  pruner.join();
  ASSERT_TRUE(pruned) << pruned.error().error.Line();
  EXPECT_EQ(*pruned, 1u);
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
    const auto written = output->Write({.items = second.items(), .offsets = {}});
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().error.code, "output_unavailable");
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
  tl::expected<void, OutputError> prepared;
  std::thread preparer([&] { prepared = output->Prepare(); });
  EXPECT_TRUE(WaitUntil(10s, [&] { return proxy.connections() == 1; }));
  const auto begin = std::chrono::steady_clock::now();
  output->Interrupt();
  preparer.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().error.code, "interrupted");
}

}  // namespace
}  // namespace fencepost::consumer
