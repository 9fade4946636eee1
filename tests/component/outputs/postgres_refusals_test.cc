// Errors that one record causes, whatever PostgreSQL calls them, and errors that all of them share.
#include <gmock/gmock.h>

#include "tests/component/outputs/postgres_fixture.h"

namespace fencepost::consumer {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using enum WriteResult;

// A table whose trigger raises `code` for the amount 13.
class PostgresRefusalsTest : public PostgresTest {
 protected:
  void RaiseFor13(const std::string& code) const {
    Exec("DROP TRIGGER IF EXISTS t ON effects");
    Exec(
        "CREATE OR REPLACE FUNCTION no_thirteen() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " IF NEW.amount = 13 THEN RAISE EXCEPTION 'not thirteen' USING ERRCODE = '" +
        code +
        "'; END IF; RETURN NEW; END $$;"
        "CREATE TRIGGER t BEFORE INSERT ON effects FOR EACH ROW EXECUTE FUNCTION no_thirteen()");
  }
  // A record with `bad` between two with `good`, into a column of this type.
  std::vector<WriteOutcome> IntoColumn(const std::string& type, const std::string& good,
                                       const std::string& bad) {
    const std::string table = fmt::format("t{}", ++tables_);
    Exec(fmt::format("CREATE TABLE {} (id text, v {})", table, type));
    PostgresOptions options = Options();
    options.table = table;
    options.columns = Columns({{"id", "record_id"}, {"v", "value"}});
    const std::string p = fmt::format("{}-", tables_);
    const Batch batch{{.id = p + "a", .offset = 1, .value = good},
                      {.id = p + "b", .offset = 2, .value = bad},
                      {.id = p + "c", .offset = 3, .value = good}};
    const auto outcomes = WriteAll(*Open(options), batch);
    if (outcomes) return *outcomes;
    ADD_FAILURE() << type << ": " << outcomes.error().error.Line();
    return std::vector<WriteOutcome>(3);
  }

 private:
  int tables_ = 0;
};

TEST_F(PostgresRefusalsTest, AValueThatItsTypeRefusesIsABadRecordWhateverTheErrorIsCalled) {
  struct Case {
    const char *type, *good, *bad;
  };
  const Case cases[] = {
      {"integer", "1", "x"},
      {"tsquery", "a & b", "a & & b"},
      {"tsvector", "a b", "a 'b"},
      {"jsonpath", "$.a", "$.("},
      {"jsonb", "{}", "{"},
      {"regclass", "pg_class", "no_such_table"},
      {"regtype", "integer", "nix"},
      {"regprocedure", "now()", "nix()"},
      {"int4range", "[1,2)", "[2,1)"},
      {"inet", "10.0.0.1", "x"},
      {"bit(3)", "101", "1011"},
      {"uuid", "00000000-0000-0000-0000-000000000001", "1"},
      {"timestamptz", "2026-01-01", "2026-13-01"},
      {"point", "(1,2)", "(1"},
      {"varchar(3)", "abc", "abcd"},
      {"text CHECK (v <> 'no')", "yes", "no"},
  };
  for (const Case& one : cases) {
    const auto outcomes = IntoColumn(one.type, one.good, one.bad);
    EXPECT_EQ(outcomes[0].result, kCommitted) << one.type;
    EXPECT_EQ(outcomes[1].result, kBadRecord) << one.type;
    EXPECT_EQ(outcomes[1].reason, DeadLetterReason::kOutput) << one.type;
    EXPECT_THAT(outcomes[1].detail, Not(::testing::IsEmpty())) << one.type;
    EXPECT_EQ(outcomes[2].result, kCommitted) << one.type;
  }
}

TEST_F(PostgresRefusalsTest, AForeignTenantsRowIsABadRecordAndStopsNobodyElse) {
  Exec(
      "CREATE TABLE tenants (id text, tenant text); ALTER TABLE tenants ENABLE ROW LEVEL SECURITY;"
      "CREATE POLICY p ON tenants FOR INSERT WITH CHECK (tenant = 'acme')");
  ASSERT_TRUE(Open()->Prepare()) << "makes the ledger";
  Exec(
      "DROP ROLE IF EXISTS tenant_app; CREATE ROLE tenant_app LOGIN;"
      "GRANT INSERT, SELECT ON tenants TO tenant_app;"
      "GRANT SELECT, INSERT, DELETE ON fencepost_ledger TO tenant_app");
  PostgresOptions options = Options();
  options.dsn = Dsn("tenant_app");
  options.table = "tenants";
  options.columns = Columns({{"id", "record_id"}, {"tenant", "value"}});
  const auto output = Open(options);
  const Batch batch{
      {.id = "a", .value = "acme"}, {.id = "b", .value = "evil"}, {.id = "c", .value = "acme"}};
  EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted, kBadRecord, kCommitted));
  Exec("DROP OWNED BY tenant_app; DROP ROLE tenant_app");
}

TEST_F(PostgresRefusalsTest, WhatATriggerRaisesForOneRecordRefusesItAloneWhateverTheCode) {
  const auto output = Open();
  int number = 0;
  for (const char* code : {"P0001", "P0004", "SH001", "99001", "I0000", "XX000", "42501", "42P01",
                           "42601", "0A000", "HV000", "54001", "44000", "21000", "2F000"}) {
    RaiseFor13(code);
    const std::string prefix = fmt::format("r{}-", ++number);
    const Batch batch{{.id = prefix + "a", .offset = 1},
                      {.id = prefix + "b", .offset = 13},
                      {.id = prefix + "c", .offset = 3}};
    EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted, kBadRecord, kCommitted)) << code;
  }
}

TEST_F(PostgresRefusalsTest, WhatSpeaksOfTheServerMakesTheRecordsWait) {
  const auto output = Open();
  for (const char* code : {"55000", "53100", "57P01", "58030", "08006", "28000", "25006"}) {
    RaiseFor13(code);
    const Batch batch{{.id = "a", .offset = 1}, {.id = "b", .offset = 13}};
    EXPECT_FALSE(WriteAll(*output, batch)) << code;
  }
  EXPECT_EQ(Value("SELECT count(*) FROM effects"), "0");
}

TEST_F(PostgresRefusalsTest, AnErrorThatAllRecordsShareMakesNoneOfThemBad) {
  const auto output = Open();
  ASSERT_TRUE(output->Prepare());
  Exec("ALTER TABLE effects ADD tenant text NOT NULL DEFAULT 'x'");
  Exec(
      "CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
      " PERFORM no_such_function(); RETURN NEW; END $$;"
      "CREATE TRIGGER t BEFORE INSERT ON effects FOR EACH ROW EXECUTE FUNCTION broken()");
  Batch batch;
  batch.AddMany("o-", 500);
  EXPECT_EQ(Results(*output, batch), All(500, kNotWritten));
  Exec("DROP TRIGGER t ON effects");
  EXPECT_EQ(Results(*output, batch), All(500, kCommitted));
}

TEST_F(PostgresRefusalsTest, AWorkersNameThatTheDatabaseCannotTakeMakesNoRecordBad) {
  const auto output = MakePostgresOutput(Options(), "orders", "h\xf4te-1");
  Batch batch;
  batch.AddMany("o-", 100);
  EXPECT_EQ(Results(*output, batch), All(100, kNotWritten));
}

TEST_F(PostgresRefusalsTest, ATableThatWasFixedTakesTheRecordWithoutARestart) {
  Exec("CREATE TABLE numbers (v integer)");
  PostgresOptions options = Options();
  options.table = "numbers";
  options.columns = Columns({{"v", "value"}});
  const auto output = Open(options);
  const Batch first{{.id = "a", .value = "1"}};
  ASSERT_THAT(Results(*output, first), ElementsAre(kCommitted));
  Exec("ALTER TABLE numbers ALTER v TYPE text");
  const Batch second{{.id = "b", .value = "two"}};
  EXPECT_THAT(Results(*output, second), ElementsAre(kCommitted)) << "read from the catalog again";
}

TEST_F(PostgresRefusalsTest, AnIdThatTheDatabasesEncodingLacksIsBadAndInNoLedger) {
  const std::string name = database_ + "_latin";
  Server().Exec("CREATE DATABASE " + name +
                " ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'");
  Server().Exec("CREATE TABLE effects (order_id text PRIMARY KEY, amount numeric(12,2))", name);
  PostgresOptions options = Options();
  options.dsn = Server().dsn(name, "postgres");
  const auto output = Open(options);
  const Batch batch{{.id = "заказ-1", .offset = 1}, {.id = "ok", .offset = 2}};
  EXPECT_THAT(Results(*output, batch), ElementsAre(kBadRecord, kCommitted));
  const auto entries = output->Lookup({"x", "заказ-1", "ok", "заказ-2"});
  ASSERT_TRUE(entries) << entries.error().error.Line();
  EXPECT_FALSE((*entries)[0] || (*entries)[1] || (*entries)[3]);
  ASSERT_TRUE((*entries)[2]);
  EXPECT_EQ((*entries)[2]->source, "orders/3/2");
}

}  // namespace
}  // namespace fencepost::consumer
