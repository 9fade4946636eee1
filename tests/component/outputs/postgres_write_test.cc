// What one Write does to the database, and what it says of each record.
#include <gmock/gmock.h>

#include "tests/component/outputs/postgres_fixture.h"

namespace fencepost::consumer {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using enum WriteResult;

TEST_F(PostgresTest, WritesEffectsAndLedgerRowsOfNewRecords) {
  const auto output = Open();
  const Batch batch{{.id = "o-2", .offset = 8, .token = 77, .crc = 0xffffffffu},
                    {.id = "o-1", .offset = 9}};
  EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted, kCommitted));
  EXPECT_EQ(
      Value("SELECT string_agg(order_id || '=' || amount, ' ' ORDER BY order_id) FROM effects"),
      "o-1=9.00 o-2=8.00");
  EXPECT_EQ(Value("SELECT concat_ws('|', pipeline, record_id, token, worker, source, content_crc)"
                  " FROM fencepost_ledger WHERE record_id = 'o-2'"),
            "orders|o-2|77|worker-1|orders/3/8|4294967295");
  EXPECT_EQ(Value("SELECT count(*) FROM fencepost_ledger"
                  " WHERE completed_at BETWEEN now() - interval '1 minute' AND now()"),
            "2");
}

TEST_F(PostgresTest, JudgesRecordsThatTheLedgerKnowsByContentThenSourceThenToken) {
  const auto output = Open();
  const Batch first{{.id = "a", .offset = 1, .token = 50, .crc = 7}};
  ASSERT_THAT(Results(*output, first), ElementsAre(kCommitted));
  const auto again = [&](Offset offset, std::uint64_t token, std::uint32_t crc) {
    const Batch batch{{.id = "a", .offset = offset, .token = token, .crc = crc}};
    return Results(*output, batch).at(0);
  };
  EXPECT_EQ(again(1, 60, 7), kOwnEarlier);
  EXPECT_EQ(again(1, 40, 7), kOwnEarlier);
  EXPECT_EQ(again(2, 49, 7), kFenced);
  EXPECT_EQ(again(2, 50, 7), kDuplicate);
  EXPECT_EQ(again(2, 60, 7), kDuplicate);
  EXPECT_EQ(again(1, 50, 8), kIdConflict);
  EXPECT_EQ(again(2, 40, 8), kIdConflict);
  EXPECT_EQ(Value("SELECT count(*) FROM effects"), "1");
  EXPECT_EQ(Value("SELECT token FROM fencepost_ledger"), "50");
}

TEST_F(PostgresTest, AConflictingRecordDoesNotHoldBackTheOthersOfItsBatch) {
  const auto output = Open();
  const Batch first{{.id = "b", .offset = 1, .token = 5, .crc = 1}};
  ASSERT_THAT(Results(*output, first), ElementsAre(kCommitted));
  const Batch batch{{.id = "c", .offset = 2},
                    {.id = "b", .offset = 3, .crc = 2, .value = R"({"order_id":"b","amount":99})"},
                    {.id = "a", .offset = 4}};
  const auto outcomes = WriteAll(*output, batch);
  ASSERT_TRUE(outcomes) << outcomes.error().error.Line();
  EXPECT_EQ((*outcomes)[0].result, kCommitted);
  EXPECT_EQ((*outcomes)[1].result, kIdConflict);
  EXPECT_EQ((*outcomes)[2].result, kCommitted);
  EXPECT_THAT((*outcomes)[1].detail, AllOf(HasSubstr("orders/3/1"), HasSubstr("orders/3/3")));
  EXPECT_EQ(
      Value("SELECT string_agg(order_id || '=' || amount, ' ' ORDER BY order_id) FROM effects"),
      "a=4.00 b=1.00 c=2.00");
}

TEST_F(PostgresTest, PipelinesDoNotShareIds) {
  const auto orders = MakePostgresOutput(Options(), "orders", "w");
  const auto refunds = MakePostgresOutput(Options(), "refunds", "w");
  const Batch one{{.id = "x", .value = R"({"order_id":"1","amount":1})"}};
  const Batch two{{.id = "x", .value = R"({"order_id":"2","amount":1})"}};
  EXPECT_THAT(Results(*orders, one), ElementsAre(kCommitted));
  EXPECT_THAT(Results(*refunds, two), ElementsAre(kCommitted));
}

TEST_F(PostgresTest, IsolatesTheBadRowsOfALargeBatch) {
  const auto output = Open();
  Batch batch;
  for (int i = 0; i < 500; ++i) {
    Batch::Entry entry{.id = fmt::format("o-{:04}", i), .offset = i};
    if (i == 3) entry.value = R"({"order_id":"o-3","amount":"a lot"})";   // type
    if (i == 250) entry.value = R"({"order_id":"o-0000","amount":1})";    // effects' primary key
    if (i == 251) entry.value = R"({"order_id":"a\u0000b","amount":1})";  // NUL
    if (i == 252) entry.value = R"({"order_id":"o-252","amount":1e20})";  // numeric(12,2)
    if (i == 498) entry.value = R"({"amount":1})";                        // the selector
    if (i == 499) entry.value = "no JSON";
    batch.Add(std::move(entry));
  }
  const auto outcomes = WriteAll(*output, batch);
  ASSERT_TRUE(outcomes) << outcomes.error().error.Line();
  for (int i = 0; i < 500; ++i) {
    const bool bad = i == 3 || (i >= 250 && i <= 252) || i >= 498;
    EXPECT_EQ((*outcomes)[i].result, bad ? kBadRecord : kCommitted) << i << (*outcomes)[i].detail;
    EXPECT_EQ((*outcomes)[i].detail.empty(), !bad) << i;
    EXPECT_EQ((*outcomes)[i].detail.find('\n'), std::string::npos);
  }
  EXPECT_THAT((*outcomes)[3].detail, HasSubstr("numeric"));
  EXPECT_THAT((*outcomes)[250].detail, HasSubstr("effects_pkey"));
  EXPECT_THAT((*outcomes)[498].detail, HasSubstr("column order_id"));
  EXPECT_EQ(Value("SELECT count(*) FROM effects"), "494");
  EXPECT_EQ(Value("SELECT count(*) FROM fencepost_ledger"), "494");
}

TEST_F(PostgresTest, ARecordThatOnlyASelectorRefusesNeedsNoDatabase) {
  PostgresOptions options = Options();
  options.dsn = "postgresql://nobody@127.0.0.1:1/none";
  const Batch batch{{.id = "x", .value = "{}"}};
  EXPECT_THAT(Results(*Open(options), batch), ElementsAre(kBadRecord));
}

TEST_F(PostgresTest, ATriggerAndADeferredConstraintRefuseOneRecordAlone) {
  Exec(
      "CREATE FUNCTION no_thirteen() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
      " IF NEW.amount = 13 THEN RAISE EXCEPTION 'not thirteen'; END IF; RETURN NEW; END $$;"
      "CREATE TRIGGER t BEFORE INSERT ON effects FOR EACH ROW EXECUTE FUNCTION no_thirteen();"
      "CREATE TABLE known (id text PRIMARY KEY); INSERT INTO known VALUES ('a'), ('b'), ('d');"
      "ALTER TABLE effects ADD FOREIGN KEY (order_id) REFERENCES known DEFERRABLE INITIALLY "
      "DEFERRED");
  const Batch batch{
      {.id = "a", .offset = 1}, {.id = "b", .offset = 13}, {.id = "c", .offset = 3}, {.id = "d"}};
  const auto outcomes = WriteAll(*Open(), batch);
  ASSERT_TRUE(outcomes) << outcomes.error().error.Line();
  EXPECT_EQ((*outcomes)[0].result, kCommitted);
  EXPECT_THAT((*outcomes)[1].detail, HasSubstr("not thirteen"));
  EXPECT_THAT((*outcomes)[2].detail, HasSubstr("foreign key"));
  EXPECT_EQ((*outcomes)[3].result, kCommitted);
  EXPECT_EQ(Value("SELECT string_agg(record_id, ' ' ORDER BY 1) FROM fencepost_ledger"), "a d");
}

TEST_F(PostgresTest, TakesEachColumnsTypeFromTheCatalog) {
  Exec(
      "CREATE DOMAIN short AS varchar(4); CREATE TYPE color AS ENUM ('red', 'green');"
      "CREATE TABLE wide (id int8, raw bytea, doc jsonb, n numeric, at timestamptz, local "
      "timestamp,"
      " ok boolean, tags int[], c char(3), s short, shade color, note text, token int8, u uuid)");
  PostgresOptions options = Options();
  options.table = "wide";
  options.columns = Columns({{"id", "json:/id"},
                             {"raw", "key"},
                             {"doc", "json:/doc"},
                             {"n", "json:/n"},
                             {"at", "json:/at"},
                             {"local", "timestamp"},
                             {"ok", "json:/ok"},
                             {"tags", "json:/tags"},
                             {"c", "json:/c"},
                             {"s", "json:/s"},
                             {"shade", "json:/shade"},
                             {"note", "json:/note?"},
                             {"token", "token"},
                             {"u", "=00000000-0000-0000-0000-000000000001"}});
  const std::string value =
      R"({"id":9007199254740993,"doc":{"a":[1,2]},"n":12345678901234567890.123456789,)"
      R"("at":"2026-01-02T03:04:05Z","ok":true,"tags":"{1,2}","c":"abc","s":")";
  const Batch batch{
      {.id = "1",
       .token = 1ull << 62,
       .value = value + R"(four","shade":"red"})",
       .key = std::string("\x00\xff'\\", 4)},
      {.id = "2", .value = value + R"(five!","shade":"red"})", .key = ""},
      {.id = "3", .value = value + R"(four","shade":"blue","note":"it's"})", .key = ""}};
  const auto output = Open(options);
  const auto outcomes = WriteAll(*output, batch);
  ASSERT_TRUE(outcomes) << outcomes.error().error.Line();
  EXPECT_EQ((*outcomes)[0].result, kCommitted) << (*outcomes)[0].detail;
  EXPECT_THAT((*outcomes)[1].detail, HasSubstr("too long")) << "it must not be cut";
  EXPECT_THAT((*outcomes)[2].detail, HasSubstr("blue"));
  EXPECT_EQ(
      Value(
          "SELECT concat_ws('|', id, encode(raw, 'hex'), doc, n, at AT TIME ZONE 'UTC', local, ok,"
          " tags, c, s, shade, coalesce(note, 'null'), token, u) FROM wide"),
      "9007199254740993|00ff275c|{\"a\": [1, 2]}|12345678901234567890.123456789|"
      "2026-01-02 03:04:05|2023-11-14 22:13:20.123|t|{1,2}|abc|four|red|null|"
      "4611686018427387904|00000000-0000-0000-0000-000000000001");
}

TEST_F(PostgresTest, BytesThatAreNoTextAreABadRecordButFitAByteaColumn) {
  Exec("CREATE TABLE bodies (body text); CREATE TABLE raws (body bytea)");
  PostgresOptions options = Options();
  options.columns = Columns({{"body", "value"}});
  options.table = "bodies";
  const auto text = Open(options);
  const Batch batch{{.id = "1", .value = "\xff\xfe"}, {.id = "2", .value = "fine"}};
  EXPECT_THAT(Results(*text, batch), ElementsAre(kBadRecord, kCommitted));
  options.table = "raws";
  const auto bytes = Open(options);
  const Batch other{{.id = "3", .value = "\xff\xfe"}};
  EXPECT_THAT(Results(*bytes, other), ElementsAre(kCommitted));
  EXPECT_EQ(Value("SELECT encode(body, 'hex') FROM raws"), "fffe");
}

TEST_F(PostgresTest, IdsAndValuesAreNeverSql) {
  Exec(R"(CREATE SCHEMA "Sh""op";)"
       R"(CREATE TABLE "Sh""op"."Robert'); DROP TABLE effects;--" ("c""1; x" text))");
  PostgresOptions options = Options();
  options.table = R"("Sh""op"."Robert'); DROP TABLE effects;--")";
  options.columns = {{.name = "c\"1; x", .selector = Selector::Parse("json:/order_id").value()}};
  const std::string id = R"({"a",NULL}\'); DROP TABLE effects;--)";
  const Batch batch{{.id = id, .value = R"({"order_id":"'; DROP TABLE effects;--"})"}};
  const auto output = MakePostgresOutput(options, "orders", "w'); DROP TABLE effects;--");
  EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted));
  EXPECT_THAT(Results(*output, batch), ElementsAre(kOwnEarlier));
  EXPECT_EQ(Value(R"(SELECT * FROM "Sh""op"."Robert'); DROP TABLE effects;--")"),
            "'; DROP TABLE effects;--");
  EXPECT_EQ(Value("SELECT record_id FROM fencepost_ledger"), id);
  EXPECT_EQ(Value("SELECT count(*) FROM effects"), "0");
}

// Counts what is begun, too: a sequence is not rolled back.
class PostgresNewIdsTest : public PostgresTest {
 protected:
  PostgresNewIdsTest() {
    EXPECT_TRUE(output_->Prepare());
    Exec(
        "CREATE SEQUENCE inserts; CREATE FUNCTION count_insert() RETURNS trigger LANGUAGE plpgsql"
        " AS $$ BEGIN PERFORM nextval('inserts'); RETURN NULL; END $$;"
        "CREATE TRIGGER i BEFORE INSERT ON fencepost_ledger EXECUTE FUNCTION count_insert()");
  }
  // How many inserts into the ledger a write begins.
  [[nodiscard]] int Inserts(const Batch& batch, const std::vector<WriteResult>& expected) {
    const int before = Count();
    EXPECT_EQ(Results(*output_, batch), expected);
    return Count() - before;
  }

  const std::unique_ptr<Output> output_ = Open();

 private:
  [[nodiscard]] int Count() const {
    return std::stoi(Value("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM inserts"));
  }
};

TEST_F(PostgresNewIdsTest, AKnownIdRollsBackOneTransactionAndTheNextHundredLookForKnownIds) {
  const Batch first{{.id = "a", .offset = 1}, {.id = "b", .offset = 2}};
  EXPECT_EQ(Inserts(first, All(2, kCommitted)), 1);
  const Batch known{{.id = "a", .offset = 3}, {.id = "c", .offset = 4}};
  EXPECT_EQ(Inserts(known, {kDuplicate, kCommitted}), 2);
  const Batch again{{.id = "b", .offset = 5}, {.id = "d", .offset = 6}};
  EXPECT_EQ(Inserts(again, {kDuplicate, kCommitted}), 1);
  for (int i = 0; i < 99; ++i) {
    const Batch other{{.id = fmt::format("o-{}", i), .offset = 7}};
    ASSERT_EQ(Inserts(other, {kCommitted}), 1) << i;
  }
  const Batch late{{.id = "c", .offset = 8}, {.id = "e", .offset = 9}};
  EXPECT_EQ(Inserts(late, {kDuplicate, kCommitted}), 2);
  EXPECT_EQ(Value("SELECT string_agg(order_id || '=' || amount, ' ' ORDER BY order_id) FROM effects"
                  " WHERE order_id < 'o'"),
            "a=1.00 b=2.00 c=4.00 d=6.00 e=9.00");
}

TEST_F(PostgresNewIdsTest, WhatIsRefusedForAnotherReasonIsNotTriedTwiceEachTime) {
  const Batch first{{.id = "a", .offset = 1}};
  EXPECT_EQ(Inserts(first, {kCommitted}), 1);
  const Batch bad{{.id = "b", .value = R"({"order_id":"b","amount":"a lot"})"}, {.id = "c"}};
  EXPECT_GT(Inserts(bad, {kBadRecord, kCommitted}), 2);
  const Batch known{{.id = "a", .offset = 2}};
  EXPECT_EQ(Inserts(known, {kDuplicate}), 1) << "it is looked for by now";
}

TEST_F(PostgresNewIdsTest, AnIdThatAnotherWriterIsAboutToCommitIsFoundToBeKnown) {
  ASSERT_EQ(Inserts(Batch{{.id = "a"}}, {kCommitted}), 1);
  // In the place of another writer's transaction, which commits between the two attempts.
  Exec(
      "CREATE FUNCTION rival() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
      " IF (SELECT last_value FROM inserts) = 2 THEN RAISE unique_violation; END IF;"
      " RETURN NEW; END $$;"
      "CREATE TRIGGER r BEFORE INSERT ON fencepost_ledger FOR EACH ROW EXECUTE FUNCTION rival()");
  EXPECT_EQ(Inserts(Batch{{.id = "b"}, {.id = "c"}}, All(2, kCommitted)), 2);
}

TEST_F(PostgresNewIdsTest, AnEffectIsNeverWrittenWithoutItsLedgerRow) {
  Exec(
      "CREATE FUNCTION drop_b() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
      " IF NEW.record_id = 'b' THEN RETURN NULL; END IF; RETURN NEW; END $$;"
      "CREATE TRIGGER d BEFORE INSERT ON fencepost_ledger FOR EACH ROW EXECUTE FUNCTION drop_b()");
  const Batch batch{{.id = "a"}, {.id = "b"}, {.id = "c"}};
  const auto outcomes = WriteAll(*output_, batch);
  ASSERT_FALSE(outcomes);
  EXPECT_THAT(outcomes.error().error.Line(), HasSubstr("a ledger row was deleted concurrently"));
  EXPECT_EQ(Value("SELECT string_agg(order_id, ' ' ORDER BY 1) FROM effects"), "a c");
  EXPECT_EQ(Value("SELECT string_agg(record_id, ' ' ORDER BY 1) FROM fencepost_ledger"), "a c");
}

TEST_F(PostgresTest, StaysQuickInALargeLedgerThatWasEmptyWhenTheStatementsWerePrepared) {
  const auto output = Open();
  ASSERT_TRUE(output->Prepare());
  Exec("ALTER TABLE fencepost_ledger SET (autovacuum_enabled = off)");
  Exec("VACUUM ANALYZE fencepost_ledger");
  // After five executions PostgreSQL may keep a plan for good, and this one would be for a single
  // page.
  for (int i = 0; i < 8; ++i) {
    const Batch one{{.id = fmt::format("first-{}", i)}};
    ASSERT_THAT(Results(*output, one), ElementsAre(kCommitted));
    ASSERT_THAT(Results(*output, one), ElementsAre(kOwnEarlier));
  }
  Batch batch;
  batch.AddMany("o-", 500);
  ASSERT_EQ(Results(*output, batch), All(500, kCommitted));
  // Statistics still say "empty".
  Exec(
      "INSERT INTO fencepost_ledger SELECT 'orders', 'x' || i, 1, 'w', 's', 1, now()"
      " FROM generate_series(1, 300000) i");
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(Results(*output, batch), All(500, kOwnEarlier));
  // Half a thousand times the whole ledger takes half a minute; the index a few milliseconds.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
}

}  // namespace
}  // namespace fencepost::consumer
