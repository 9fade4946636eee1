// What one Write does to the database, and what it says of each record.
#include <gmock/gmock.h>

#include "tests/component/outputs/postgres_fixture.h"

namespace fencepost::consumer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using enum WriteResult;

TEST_F(PostgresTest, ARecordThatOnlyASelectorRefusesNeedsNoDatabase) {
  PostgresOptions options = Options();
  options.dsn = "postgresql://nobody@127.0.0.1:1/none";
  const Batch batch{{.id = "x", .value = "{}"}};
  EXPECT_THAT(Results(*Open(options), batch), ElementsAre(kBadRecord));
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

TEST_F(PostgresNewIdsTest, WhatIsRefusedForAnotherReasonIsNotTakenForAKnownId) {
  const Batch first{{.id = "a", .offset = 1}};
  EXPECT_EQ(Inserts(first, {kCommitted}), 1);
  Exec("ALTER TABLE effects ADD CHECK (amount < 1000)");
  const Batch bad{{.id = "b", .value = R"({"order_id":"b","amount":5000})"}, {.id = "c"}};
  EXPECT_GT(Inserts(bad, {kBadRecord, kCommitted}), 2);
  const Batch known{{.id = "a", .offset = 2}};
  EXPECT_EQ(Inserts(known, {kDuplicate}), 1) << "as new, and then it is looked up";
}

TEST_F(PostgresNewIdsTest, AnIdThatAnotherWriterIsAboutToCommitIsFoundToBeKnown) {
  ASSERT_EQ(Inserts(Batch{{.id = "a"}}, {kCommitted}), 1);
  // In the place of another writer's transaction, which commits between the two attempts.
  Exec(
      "CREATE FUNCTION rival() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
      " IF (SELECT last_value FROM inserts) = 2 THEN RAISE unique_violation USING TABLE = "
      "'fencepost_ledger'; END IF;"
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
  EXPECT_THAT(outcomes.error().error.Line(), HasSubstr("a ledger row was changed concurrently"));
  EXPECT_EQ(Value("SELECT count(*) FROM effects"), "0");
  EXPECT_EQ(Value("SELECT count(*) FROM fencepost_ledger"), "0");
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
