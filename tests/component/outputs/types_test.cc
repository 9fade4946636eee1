// Columns and parameters by their types, beside what a value becomes in one (component/values).
#include <gmock/gmock.h>

#include "tests/component/outputs/postgres_fixture.h"

namespace fencepost::consumer {
namespace {

using ::testing::HasSubstr;
using enum WriteResult;

// A column before it whose cell PostgreSQL would not read as the type's literal either.
TEST_F(PostgresTest, TheColumnThatIsNamedIsTheOneThatWasRefused) {
  Exec("CREATE TABLE t (at timestamptz, u uuid)");
  const auto output = Open("t", {{"at", "timestamp"}, {"u", "json:/u"}});
  const Batch batch{{.id = "a", .offset = 1, .value = R"({"u":"no"})"},
                    {.id = "b", .offset = 2, .value = R"({"u":null})"}};
  EXPECT_THAT(WriteAll(*output, batch).value().at(0).detail,
              HasSubstr("column u (uuid) from json:/u: invalid input syntax for type uuid"));
}

TEST_F(PostgresTest, JsonArraysGoIntoTheArrayParametersOfAStatement) {
  Exec("CREATE TABLE t (id text, v integer[])");
  PostgresOptions options{
      .dsn = Dsn(),
      .statement = "INSERT INTO t VALUES ($1, $2)",
      .args = {Selector::Parse("record_id").value(), Selector::Parse("json:/v").value()}};
  const Batch batch{{.id = "a", .offset = 1, .value = R"({"v":[1,2.0,null]})"}};
  ASSERT_EQ(WriteAll(*Open(options), batch).value().at(0).result, kCommitted);
  EXPECT_EQ(Value("SELECT v FROM t"), "{1,2,NULL}");
}

TEST_F(PostgresTest, AConversionThatTheColumnCannotTakeIsRefusedBeforeTheFirstRecord) {
  Exec("CREATE TABLE t (n bigint, b text)");
  PostgresOptions options = Options();
  options.table = "t";
  options.columns = Columns({{"n", "json:/n"}});
  options.columns[0].conversion = Conversion::kMillis;
  auto prepared = Open(options)->Prepare();
  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().error.what,
            "public.t.n is bigint, which output.postgres.convert: ms cannot fill");
  options.columns = Columns({{"b", "json:/b"}});
  options.columns[0].conversion = Conversion::kHex;
  prepared = Open(options)->Prepare();
  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().error.hint,
            "it is for binary columns, and for bits of a given number");
}

}  // namespace
}  // namespace fencepost::consumer
