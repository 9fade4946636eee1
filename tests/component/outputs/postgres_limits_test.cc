// Transactions that take too long, rows that somebody locks, commits that no standby has yet.
#include <gmock/gmock.h>

#include "consumer/outputs/ledger/ledger.h"
#include "tests/component/outputs/postgres_fixture.h"

namespace fencepost::consumer {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::WaitUntil;
using enum WriteResult;

class PostgresLimitsTest : public PostgresTest {
 protected:
  // Stricter limits of the dsn stay.
  [[nodiscard]] std::unique_ptr<Output> OpenWith(const std::string& limit) const {
    PostgresOptions options = Options();
    options.dsn += "?options=-c%20" + limit;
    return Open(options);
  }
  void SlowRows(const std::string& when, const std::string& seconds) const {
    Exec(fmt::format(
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " IF {} THEN PERFORM pg_sleep({}); END IF; RETURN NEW; END $$;"
        "CREATE TRIGGER s BEFORE INSERT ON effects FOR EACH ROW EXECUTE FUNCTION slow()",
        when, seconds));
  }
};

TEST_F(PostgresLimitsTest, ABatchThatIsTooSlowIsWrittenInSmallerParts) {
  SlowRows("true", "0.05");
  const auto output = OpenWith("statement_timeout%3D1000");
  ASSERT_TRUE(output->Prepare());
  Batch batch;
  batch.AddMany("o-", 60);
  EXPECT_EQ(Results(*output, batch), All(60, kCommitted));
  EXPECT_EQ(Value("SELECT count(*) FROM effects"), "60");
}

TEST_F(PostgresLimitsTest, OneRecordThatIsTooSlowByItselfIsBadAndTheOthersAreWritten) {
  SlowRows("NEW.amount = 13", "60");
  const auto output = OpenWith("statement_timeout%3D1000");
  const Batch batch{{.id = "a", .offset = 1}, {.id = "b", .offset = 13}, {.id = "c", .offset = 3}};
  const auto outcomes = WriteAll(*output, batch);
  ASSERT_TRUE(outcomes) << outcomes.error().error.Line();
  EXPECT_EQ((*outcomes)[0].result, kCommitted);
  EXPECT_EQ((*outcomes)[1].result, kBadRecord);
  EXPECT_EQ((*outcomes)[1].reason, DeadLetterReason::kTimeout);
  EXPECT_THAT((*outcomes)[1].detail, HasSubstr("statement timeout"));
  EXPECT_EQ((*outcomes)[2].result, kCommitted);
}

TEST_F(PostgresLimitsTest, ARowThatAnotherSessionHoldsDoesNotHoldUpTheOthers) {
  const auto output = OpenWith("lock_timeout%3D500");
  ASSERT_TRUE(output->Prepare());
  Batch batch;
  batch.AddMany("o-", 20);
  {
    const auto other = store_.Hold(
        "INSERT INTO fencepost_ledger VALUES ('orders', 'o-0007', 9, 'w', 'orders/3/9', 1)");
    const auto results = Results(*output, batch);
    for (std::size_t i = 0; i < 20; ++i) {
      EXPECT_EQ(results[i], i == 7 ? kNotWritten : kCommitted) << i;
    }
  }
  EXPECT_EQ(Results(*output, batch)[7], kCommitted);
}

TEST_F(PostgresLimitsTest, LimitsOfTheSessionAreOursWhereTheDsnHasNoStricterOnes) {
  ASSERT_TRUE(OpenWith("statement_timeout%3D0")->Prepare());
  Exec(
      "CREATE TABLE seen (name text, setting text); CREATE FUNCTION look() RETURNS trigger"
      " LANGUAGE plpgsql AS $$ BEGIN INSERT INTO seen SELECT name, setting FROM pg_settings"
      " WHERE name IN ('statement_timeout', 'lock_timeout'); RETURN NEW; END $$;"
      "CREATE TRIGGER l BEFORE INSERT ON effects FOR EACH ROW EXECUTE FUNCTION look()");
  const auto seen = [&](const std::string& id, const std::string& limit) {
    const auto output = OpenWith(limit);
    const Batch batch{{.id = id, .offset = 1}};
    EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted));
    const std::string settings = Value("SELECT string_agg(setting, ' ' ORDER BY name) FROM seen");
    Exec("DELETE FROM seen");
    return settings;
  };
  EXPECT_EQ(seen("a", "statement_timeout%3D0"), "10000 25000");
  EXPECT_EQ(seen("b", "statement_timeout%3D60000"), "10000 25000");
  EXPECT_EQ(seen("c", "statement_timeout%3D3000"), "10000 3000");
}

TEST(PostgresStandby, AnEarlierCommitStandsOnlyOnceTheStandbyHasIt) {
  testing::PostgresServer server;
  server.Exec(std::string("CREATE TABLE effects (order_id text, amount numeric);") +
              TableOfLedger(false).postgres);
  server.Exec("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
  server.Restart();
  const auto output = MakePostgresOutput(
      {.dsn = server.dsn(), .table = "effects", .columns = OrderColumns()}, "orders", "w");
  ASSERT_TRUE(output->Prepare());
  const Batch batch{{.id = "a", .offset = 1}};
  const auto waiting = [&] {
    return server.Value("SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
  };
  auto first = WriteAside(*output, batch);
  EXPECT_TRUE(WaitUntil(20s, [&] { return !waiting().empty(); }));
  // As RUNBOOKS has it for a session that hangs. Committed here, and nowhere else.
  server.Exec("SELECT pg_terminate_backend(" + waiting() + ")");
  EXPECT_FALSE(first.get());
  EXPECT_TRUE(WaitUntil(20s, [&] { return server.Value("SELECT count(*) FROM effects") == "1"; }));
  auto second = WriteAside(*output, batch);
  const auto answered = [&] { return second.wait_for(0s) == std::future_status::ready; };
  EXPECT_TRUE(WaitUntil(20s, [&] { return answered() || !waiting().empty(); }));
  EXPECT_FALSE(answered()) << "no standby has confirmed anything";
  server.Exec("ALTER SYSTEM SET synchronous_standby_names = ''");
  server.Exec("SELECT pg_reload_conf()");
  EXPECT_EQ(second.get().value().at(0).result, kOwnEarlier);
}

TEST(PostgresStandby, AnOrdinaryRoleMayFindItsEarlierRows) {
  testing::PostgresServer server;
  server.Exec(std::string("CREATE TABLE effects (order_id text, amount numeric);") +
              TableOfLedger(false).postgres +
              "CREATE ROLE app LOGIN; GRANT INSERT ON effects TO app;"
              "GRANT SELECT, INSERT, DELETE ON fencepost_ledger TO app");
  const auto output = MakePostgresOutput(
      {.dsn = server.dsn("postgres", "app"), .table = "effects", .columns = OrderColumns()},
      "orders", "w");
  const Batch batch{{.id = "a", .offset = 1}};
  EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted));
  EXPECT_THAT(Results(*output, batch), ElementsAre(kOwnEarlier));
}

}  // namespace
}  // namespace fencepost::consumer
