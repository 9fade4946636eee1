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
