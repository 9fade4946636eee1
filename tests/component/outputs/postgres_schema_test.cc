// What Prepare finds, creates and refuses.
#include <gmock/gmock.h>

#include "tests/component/outputs/postgres_fixture.h"
#include "tests/support/paths.h"

namespace fencepost::consumer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using enum WriteResult;

std::string DeployedLedger() {
  return testing::ReadFile(testing::SourcePath("deploy/postgres/ledger.sql"));
}

class PostgresSchemaTest : public PostgresTest {
 protected:
  using PostgresTest::Refusal;
  std::string Refusal() { return Refusal(Options()); }
  // All that the catalog knows of the ledger.
  std::string Shape(const std::string& table = "fencepost_ledger") {
    return Value(fmt::format(
        "SELECT string_agg(concat_ws(' ', attname, format_type(atttypid, atttypmod), attnotnull,"
        " (SELECT collname FROM pg_collation WHERE oid = attcollation),"
        " (SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = attrelid"
        "  AND adnum = attnum)), E'\n' ORDER BY attnum)"
        " || (SELECT string_agg(indexdef, E'\n' ORDER BY indexname) FROM pg_indexes"
        "     WHERE tablename = '{0}')"
        " || coalesce((SELECT reloptions::text FROM pg_class WHERE oid = '{0}'::regclass), '')"
        " FROM pg_attribute WHERE attrelid = '{0}'::regclass AND attnum > 0",
        table));
  }
};

TEST_F(PostgresSchemaTest, CreatesTheLedgerThatTheDeploymentsSqlCreates) {
  ASSERT_EQ(Refusal(), "");
  const std::string created = Shape();
  EXPECT_THAT(created, HasSubstr("record_id text t C"));
  ASSERT_TRUE(OpenByPosition(Options(), "worker-1")->Prepare());
  const std::string positions = Shape("fencepost_positions");
  EXPECT_THAT(positions, HasSubstr("done int8multirange t"));
  Exec("DROP TABLE fencepost_ledger, fencepost_positions");
  Exec(DeployedLedger());
  EXPECT_EQ(Shape(), created);
  EXPECT_EQ(Shape("fencepost_positions"), positions);
}

TEST_F(PostgresSchemaTest, ARoleWithoutCreateWorksWhereTheLedgerStands) {
  Exec(
      "CREATE ROLE app LOGIN; REVOKE ALL ON SCHEMA public FROM PUBLIC;"
      "GRANT USAGE ON SCHEMA public TO app; GRANT INSERT ON effects TO app");
  PostgresOptions options = Options();
  options.dsn = Dsn("app");
  EXPECT_THAT(Refusal(options), HasSubstr("deploy/postgres/ledger.sql"));
  Exec(DeployedLedger());
  EXPECT_THAT(Refusal(options),
              HasSubstr("GRANT SELECT, INSERT, DELETE ON public.fencepost_ledger"));
  Exec("GRANT SELECT, INSERT, DELETE ON fencepost_ledger TO app");
  const auto output = Open(options);
  const Batch batch{{.id = "a"}};
  EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted));
  EXPECT_THAT(Results(*output, batch), ElementsAre(kOwnEarlier));
  EXPECT_EQ(
      output->Prune({.keep = std::chrono::hours(1), .committed = {}, .topics = {}}, 10).value(),
      0u);
  Exec("REVOKE ALL ON effects FROM app");
  EXPECT_THAT(Refusal(options), HasSubstr("no right to insert into public.effects.order_id"));
  Exec("DROP OWNED BY app; DROP ROLE app");
}

TEST_F(PostgresSchemaTest, MixedCaseAndSchemaQualifiedNamesAreTakenAsWritten) {
  Exec(R"(CREATE SCHEMA "Shop"; CREATE TABLE "Shop"."Effects" ("OrderId" text, "Amount" int))");
  PostgresOptions options = Options();
  options.table = "Shop.Effects";
  options.columns = Columns({{"OrderId", "json:/order_id"}, {"Amount", "json:/amount"}});
  const Batch batch{{.id = "a", .offset = 5}};
  EXPECT_THAT(Results(*Open(options), batch), ElementsAre(kCommitted));
  EXPECT_EQ(Value(R"(SELECT "OrderId" || "Amount" FROM "Shop"."Effects")"), "a5");
  options.table = "Shop.effects";
  EXPECT_THAT(Refusal(options), HasSubstr("there is"));
  EXPECT_THAT(Refusal(options), HasSubstr("Shop.Effects"));
}

TEST_F(PostgresSchemaTest, SaysWhatIsWrongWithTheLedger) {
  const std::string good = DeployedLedger();
  const auto with = [&](const std::string& change) {
    Exec("DROP TABLE IF EXISTS fencepost_ledger");
    Exec(good);
    Exec(change);
    return Refusal();
  };
  EXPECT_EQ(with("ALTER TABLE fencepost_ledger ADD remark text"), "");
  EXPECT_THAT(with("ALTER TABLE fencepost_ledger ALTER token TYPE int"),
              HasSubstr("has token as integer, not bigint"));
  EXPECT_THAT(with("ALTER TABLE fencepost_ledger SET UNLOGGED"), HasSubstr("is unlogged"));
  EXPECT_THAT(with("ALTER TABLE fencepost_ledger ADD remark text NOT NULL"),
              HasSubstr("has remark as NOT NULL"));
  EXPECT_THAT(
      with("ALTER TABLE fencepost_ledger RENAME TO l; CREATE VIEW fencepost_ledger AS TABLE l"),
      HasSubstr("is not a table"));
}

TEST_F(PostgresSchemaTest, NoticesThatTheTableWasFixedOrChanged) {
  const auto output = Open();
  const Batch first{{.id = "a"}};
  ASSERT_THAT(Results(*output, first), ElementsAre(kCommitted));
  Exec("ALTER TABLE effects RENAME TO away");
  const Batch second{{.id = "b"}};
  EXPECT_EQ(Failure(*output, second).error.code, "output_schema");
  Exec("ALTER TABLE away RENAME TO effects; ALTER TABLE effects ALTER amount TYPE text");
  EXPECT_THAT(Results(*output, second), ElementsAre(kCommitted));
}

TEST_F(PostgresSchemaTest, SetsTheSessionUp) {
  Exec("ALTER DATABASE " + database_ + " SET synchronous_commit = off");
  Exec("ALTER DATABASE " + database_ + " SET default_transaction_isolation = 'serializable'");
  Exec(
      "CREATE TABLE settings (name text, value text, id text);"
      "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
      " INSERT INTO settings SELECT name, setting FROM pg_settings; RETURN NEW; END $$;"
      "CREATE TRIGGER t BEFORE INSERT ON effects FOR EACH ROW EXECUTE FUNCTION note()");
  const Batch batch{{.id = "a"}};
  ASSERT_THAT(Results(*Open(), batch), ElementsAre(kCommitted));
  const auto setting = [&](const std::string& name) {
    return Value("SELECT value FROM settings WHERE name = '" + name + "'");
  };
  EXPECT_EQ(setting("synchronous_commit"), "on");
  EXPECT_EQ(setting("idle_in_transaction_session_timeout"), "10000");
  EXPECT_EQ(setting("lock_timeout"), "10000");
  EXPECT_EQ(setting("statement_timeout"), "25000");
  EXPECT_EQ(setting("application_name"), "fencepost/orders/worker-1");
  EXPECT_EQ(setting("client_encoding"), "UTF8");
  EXPECT_EQ(setting("transaction_isolation"), "read committed");
}

TEST_F(PostgresSchemaTest, NeverShowsThePassword) {
  PostgresOptions options = Options();
  for (const std::string dsn :
       {"postgresql://postgres:s3cret-pw@127.0.0.1:1/none",
        "postgresql://postgres:s3cret-pw%zz@host/none", "host=127.0.0.1 port=1 password=s3cret-pw",
        "host=127.0.0.1 password 's3cret-pw", "s3cret-pw",
        "postgresql://postgres:s3cret-pw@[::1/x"}) {
    options.dsn = dsn;
    const std::string refusal = Refusal(options);
    EXPECT_NE(refusal, "") << dsn;
    EXPECT_THAT(refusal, Not(HasSubstr("s3cret-pw")));
  }
  options.dsn = fmt::format(
      "host=127.0.0.1 port={} user=postgres dbname=s3cret-pw password=s3cret-pw", Server().port());
  EXPECT_THAT(Refusal(options), HasSubstr("database \"***\" does not exist"));
}

}  // namespace
}  // namespace fencepost::consumer
