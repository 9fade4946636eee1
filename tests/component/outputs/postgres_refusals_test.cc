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
};

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

TEST_F(PostgresRefusalsTest, BadRecordsOfOneKindAreFoundOnTheConnectionThatIsThere) {
  const auto output = Open();
  WriteRetry retry(output->max_records());
  const auto bad = [&](std::uint64_t number) {
    Batch batch;
    for (int n = 0; n < 500; ++n) {
      const std::string id = fmt::format("o{}-{:03}", number, n);
      const std::string amount = n % 100 == 7 ? fmt::format("\"x{}\"", n) : std::to_string(n);
      batch.Add({.id = id,
                 .offset = 100 + n,
                 .value = fmt::format(R"({{"order_id":"{}","amount":{}}})", id, amount)});
    }
    const auto outcomes =
        WriteAtOnce(*output, retry, {.items = batch.items(), .offsets = {}}, number, number - 1);
    std::string all;
    for (std::size_t n = 0; outcomes && n < outcomes->size(); ++n) {
      if ((*outcomes)[n].result == kBadRecord) all += fmt::format("{} ", n);
    }
    return all;
  };
  const auto session = [&] {
    return Value(
        "SELECT string_agg(pid::text, ' ') FROM pg_stat_activity WHERE application_name LIKE"
        " 'fencepost/%' AND datname = current_database()");
  };
  EXPECT_EQ(bad(1), "7 107 207 307 407 ");
  const std::string before = session();
  EXPECT_EQ(bad(2), "7 107 207 307 407 ");
  EXPECT_EQ(session(), before);
  EXPECT_EQ(Value("SELECT count(*) FROM effects"), "990");
  EXPECT_EQ(Value("SELECT count(*) FROM fencepost_ledger"), "990");
}

TEST_F(PostgresRefusalsTest, AConstraintThatIsDeferredRefusesItsRecordAlone) {
  Exec(
      "CREATE TABLE customers (id text PRIMARY KEY); INSERT INTO customers VALUES ('c1');"
      "CREATE TABLE buys (order_id text, customer text REFERENCES customers DEFERRABLE INITIALLY"
      " DEFERRED)");
  PostgresOptions options = Options();
  options.table = "buys";
  options.columns = Columns({{"order_id", "record_id"}, {"customer", "value"}});
  const auto output = Open(options);
  const Batch batch{
      {.id = "a", .value = "c1"}, {.id = "b", .value = "c2"}, {.id = "c", .value = "c1"}};
  EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted, kBadRecord, kCommitted));
  EXPECT_EQ(Value("SELECT string_agg(order_id, ' ' ORDER BY order_id) FROM buys"), "a c");
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

TEST_F(PostgresRefusalsTest, AWorkersNameThatTheDatabaseCannotTakeMakesNoRecordBad) {
  const auto output = MakePostgresOutput(Options(), "orders", "h\xf4te-1");
  Batch batch;
  batch.AddMany("o-", 100);
  EXPECT_EQ(Results(*output, batch), All(100, kNotWritten));
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
