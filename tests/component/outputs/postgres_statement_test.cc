// The user's own statement instead of table and columns.
#include <gmock/gmock.h>

#include "tests/component/outputs/postgres_fixture.h"

namespace fencepost::consumer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using enum WriteResult;

class PostgresStatementTest : public PostgresTest {
 protected:
  PostgresStatementTest() {
    Exec("CREATE TABLE accounts (name text PRIMARY KEY, balance numeric CHECK (balance < 1000))");
    Exec("INSERT INTO accounts VALUES ('a', 0), ('b', 0)");
  }
  [[nodiscard]] PostgresOptions With(std::string statement,
                                     std::initializer_list<const char*> args) const {
    PostgresOptions options{.dsn = Dsn(), .statement = std::move(statement)};
    for (const char* arg : args) options.args.push_back(Selector::Parse(arg).value());
    return options;
  }
  [[nodiscard]] PostgresOptions Credit() const {
    return With("UPDATE accounts SET balance = balance + $2 WHERE name = $1",
                {"key", "json:/amount"});
  }
  [[nodiscard]] std::string Balances() const {
    return Value("SELECT string_agg(name || '=' || balance, ' ' ORDER BY name) FROM accounts");
  }
};

std::string Amount(const std::string& amount) { return fmt::format(R"({{"amount":{}}})", amount); }

TEST_F(PostgresStatementTest, RunsOnceForEachNewRecordAndNeverForOneTheLedgerKnows) {
  const auto output = Open(Credit());
  const Batch first{{.id = "1", .offset = 1, .value = Amount("5"), .key = "a"}};
  ASSERT_THAT(Results(*output, first), ElementsAre(kCommitted));
  const Batch second{{.id = "2", .offset = 2, .value = Amount("0.25"), .key = "b"},
                     {.id = "1", .offset = 1, .value = Amount("5"), .key = "a"},
                     {.id = "3", .offset = 3, .value = Amount("1"), .key = "b"},
                     {.id = "4", .offset = 4, .value = Amount("2"), .key = "a"}};
  EXPECT_THAT(Results(*output, second),
              ElementsAre(kCommitted, kOwnEarlier, kCommitted, kCommitted));
  EXPECT_EQ(Balances(), "a=7 b=1.25");
  EXPECT_EQ(Results(*output, second), All(4, kOwnEarlier));
  EXPECT_EQ(Balances(), "a=7 b=1.25");
  const Batch conflict{{.id = "4", .offset = 9, .crc = 99, .value = Amount("3"), .key = "a"}};
  EXPECT_THAT(Results(*output, conflict), ElementsAre(kIdConflict));
  EXPECT_EQ(Balances(), "a=7 b=1.25");
}

TEST_F(PostgresStatementTest, ARefusedRowMakesItsRecordBadAndNothingOfItIsWritten) {
  const auto output = Open(Credit());
  Batch batch;
  for (int i = 0; i < 100; ++i) {
    batch.Add({.id = fmt::format("{:03}", i),
               .offset = i,
               .value = Amount(i == 17   ? "\"much\""
                               : i == 60 ? "5000"
                                         : "1"),
               .key = "a"});
  }
  batch.Add({.id = "x", .value = "{}", .key = "a"});
  batch.Add({.id = "y", .key = "b", .values = {{Amount("1"), Amount("5000")}}});
  const auto outcomes = WriteAll(*output, batch);
  ASSERT_TRUE(outcomes) << outcomes.error().error.Line();
  for (std::size_t i = 0; i < 102; ++i) {
    const bool bad = i == 17 || i == 60 || i >= 100;
    EXPECT_EQ((*outcomes)[i].result, bad ? kBadRecord : kCommitted) << i;
  }
  EXPECT_THAT((*outcomes)[17].detail, HasSubstr("is not a number"));
  EXPECT_THAT((*outcomes)[60].detail, HasSubstr("accounts_balance_check"));
  EXPECT_THAT((*outcomes)[100].detail, HasSubstr("argument $2 from json:/amount"));
  EXPECT_EQ(Balances(), "a=98 b=0");
  EXPECT_EQ(Value("SELECT count(*) FROM fencepost_ledger"), "98");
}

TEST_F(PostgresStatementTest, RunsInTheOrderOfTheRecordsAndSeesWhatTheOnesBeforeItDid) {
  Exec("CREATE TABLE log (n serial, id text, seen bigint)");
  const auto output = Open(
      With("INSERT INTO log (id, seen) VALUES ($1, (SELECT count(*) FROM log)); -- and no more",
           {"record_id"}));
  const Batch batch{{.id = "9"},
                    {.id = "1"},
                    {.id = "5", .values = {{"x", "y"}}},
                    {.id = "3", .tombstone = true}};
  EXPECT_EQ(Results(*output, batch), All(4, kCommitted));
  EXPECT_EQ(Value("SELECT string_agg(id || ':' || seen, ' ' ORDER BY n) FROM log"),
            "9:0 1:1 5:2 5:3 3:4");
}

TEST_F(PostgresStatementTest, AcceptsAnyOneStatementWithOrWithoutAnswer) {
  Exec(
      "CREATE FUNCTION credit(who text, much numeric) RETURNS numeric LANGUAGE plpgsql AS $$ BEGIN"
      " UPDATE accounts SET balance = balance + much WHERE name = who RETURNING balance INTO much;"
      " IF NOT FOUND THEN RAISE EXCEPTION 'no account %', who; END IF; RETURN much; END $$;"
      "CREATE PROCEDURE credit_all(much numeric) LANGUAGE sql AS"
      " 'UPDATE accounts SET balance = balance + much'");
  const auto writes = [&](const PostgresOptions& options, const std::string& id,
                          const std::string& key) {
    const Batch batch{{.id = id, .value = Amount("1"), .key = key}};
    return WhyBad(*Open(options), batch);
  };
  EXPECT_EQ(writes(With("SELECT credit($1, $2)", {"key", "json:/amount"}), "1", "a"), "result 0");
  EXPECT_THAT(writes(With("SELECT credit($1, $2)", {"key", "json:/amount"}), "2", "z"),
              HasSubstr("no account z"));
  EXPECT_EQ(writes(With("CALL credit_all($1)", {"json:/amount"}), "3", "z"), "result 0");
  EXPECT_EQ(
      writes(With("INSERT INTO accounts VALUES ($1, $2) RETURNING *", {"key", "offset"}), "4", "c"),
      "result 0");
  EXPECT_EQ(writes(With("WITH d AS (DELETE FROM accounts WHERE name = $1 RETURNING balance)"
                        " UPDATE accounts SET balance = balance + (SELECT balance FROM d)",
                        {"key"}),
                   "5", "a"),
            "result 0");
  EXPECT_EQ(
      writes(With("UPDATE accounts SET name = name || '$fencepost$' WHERE name = $1", {"key"}), "6",
             "b"),
      "result 0");
  EXPECT_EQ(Balances(), "b$fencepost$=3 c=2") << "what the deletion saw was 2 of a, and c had 0";
  EXPECT_EQ(writes(With("DELETE FROM accounts", {}), "7", ""), "result 0");
}

TEST_F(PostgresStatementTest, ArgumentsTakeTheTypesThatTheStatementGivesThem) {
  Exec("CREATE TABLE wide (raw bytea, doc jsonb, at timestamptz, n bigint, u uuid, t text)");
  const auto output =
      Open(With("INSERT INTO wide VALUES ($1, $2, $3, $4, $5, $6)",
                {"key", "json:/doc", "timestamp", "json:/n", "json:/u?", "json:/t"}));
  const Batch batch{{.id = "1",
                     .value = R"({"doc":{"a":[1]},"n":9007199254740993,"t":"it's $1"})",
                     .key = std::string("\x00\xff", 2)}};
  EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted));
  EXPECT_EQ(Value("SELECT concat_ws('|', encode(raw, 'hex'), doc, at AT TIME ZONE 'UTC', n,"
                  " coalesce(u::text, 'null'), t) FROM wide"),
            "00ff|{\"a\": [1]}|2023-11-14 22:13:20.123|9007199254740993|null|it's $1");
}

TEST_F(PostgresStatementTest, PrepareSaysWhatIsWrongWithTheStatement) {
  EXPECT_EQ(Refusal(Credit()), "");
  EXPECT_THAT(Refusal(With("UPDATE acounts SET balance = $1", {"offset"})),
              HasSubstr("output.postgres.statement: relation \"acounts\" does not exist"));
  EXPECT_THAT(Refusal(With("UPDATE accounts SET balance = $1", {"offset", "key"})),
              HasSubstr("has 1 parameters, and args has 2 selectors; args are $1, $2"));
  EXPECT_THAT(Refusal(With("UPDATE accounts SET balance = $1; DELETE FROM accounts", {"offset"})),
              HasSubstr("cannot insert multiple commands into a prepared statement"));
  EXPECT_THAT(Refusal(With("SELECT $1 IS NULL", {"offset"})),
              HasSubstr("could not determine data type of parameter $1 (SQLSTATE 42P18); say the "
                        "parameter's type, as in $1::text"));
  EXPECT_THAT(Refusal(With("INSERT INTO", {})), HasSubstr("syntax error"));
}

TEST_F(PostgresStatementTest, ARoleWithoutTemporaryObjectsIsToldWhatToGrant) {
  Exec("CREATE ROLE clerk LOGIN; REVOKE TEMPORARY ON DATABASE " + database_ +
       " FROM PUBLIC;"
       "GRANT CREATE ON SCHEMA public TO clerk; GRANT SELECT, UPDATE ON accounts TO clerk");
  PostgresOptions options = Credit();
  options.dsn = Dsn("clerk");
  EXPECT_THAT(Refusal(options), HasSubstr("GRANT TEMPORARY ON DATABASE"));
  Exec("GRANT TEMPORARY ON DATABASE " + database_ + " TO clerk");
  const auto output = Open(options);
  const Batch batch{{.id = "1", .value = Amount("1"), .key = "a"}};
  EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted));
  Exec("DROP OWNED BY clerk; DROP ROLE clerk");
}

TEST_F(PostgresStatementTest, TwoWorkersThatTakeTheSameRecordsRunItOnce) {
  const auto one = Open(Credit(), "worker-1");
  const auto two = Open(Credit(), "worker-2");
  ASSERT_TRUE(one->Prepare() && two->Prepare());
  for (int round = 0; round < 20; ++round) {
    Batch batch;
    for (int i = 0; i < 20; ++i) {
      batch.Add({.id = fmt::format("{}-{}", round, i), .value = Amount("1"), .key = "a"});
    }
    auto others = ResultsAside(*one, batch);
    ASSERT_EQ(Results(*two, batch).size(), 20u);
    ASSERT_EQ(others.get().size(), 20u);
  }
  EXPECT_EQ(Balances(), "a=400 b=0");
}

// The statement runs on the server within the one go: a client that stops after sending holds up
// nobody.
TEST_F(PostgresStatementTest, NoTurnOfTheClientStandsBetweenBeginAndCommit) {
  Exec(
      "CREATE TABLE gate (); CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
      " LOCK TABLE gate IN SHARE MODE; RETURN NEW; END $$;"
      "CREATE TRIGGER t BEFORE UPDATE ON accounts FOR EACH ROW EXECUTE FUNCTION hold()");
  const auto output = Open(Credit());
  ASSERT_TRUE(output->Prepare());
  const Batch batch{{.id = "1", .value = Amount("1"), .key = "a"}};
  auto gate = store_.Hold("LOCK TABLE gate IN ACCESS EXCLUSIVE MODE");
  auto results = ResultsAside(*output, batch);
  EXPECT_TRUE(store_.SomeoneWaits());
  // What the server has been sent by then is all there is: the session waits for a lock, and never
  // for its client inside the transaction.
  EXPECT_EQ(Value("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                  " AND state LIKE 'idle in transaction%' AND application_name LIKE 'fencepost%'"),
            "0");
  gate.reset();
  EXPECT_THAT(results.get(), ElementsAre(kCommitted));
  EXPECT_EQ(Balances(), "a=1 b=0");
}

}  // namespace
}  // namespace fencepost::consumer
