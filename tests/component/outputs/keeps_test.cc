// Tables that forget, or whose rows are of another transaction than the ledger's.
#include <gmock/gmock.h>

#include "tests/component/outputs/postgres_fixture.h"

namespace fencepost::consumer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class KeepsTest : public PostgresTest {
 protected:
  // Why the table is refused; "": it is taken.
  [[nodiscard]] std::string Refusal(const std::string& table, bool exactly_once = true) const {
    PostgresOptions options = Options();
    options.table = table;
    const auto output = MakePostgresOutput(
        options, "orders", "w", {.exactly_once = exactly_once, .group = "", .clock = {}});
    const auto prepared = output->Prepare();
    if (prepared) return "";
    EXPECT_FALSE(prepared.error().fatal) << "the operator fixes it, and the worker goes on";
    return prepared.error().error.Line();
  }
};

TEST_F(KeepsTest, AnUnloggedTableCannotKeepExactlyOnce) {
  Exec("CREATE UNLOGGED TABLE u (order_id text, amount numeric)");
  EXPECT_THAT(Refusal("u"), AllOf(HasSubstr("public.u is unlogged"), HasSubstr("SET LOGGED")));
  EXPECT_EQ(Refusal("u", /*exactly_once=*/false), "");
  Exec("ALTER TABLE u SET LOGGED");
  EXPECT_EQ(Refusal("u"), "");
}

TEST_F(KeepsTest, AForeignTableAndAViewCannotKeepExactlyOnce) {
  Exec(
      "CREATE FOREIGN DATA WRAPPER nowhere; CREATE SERVER s FOREIGN DATA WRAPPER nowhere;"
      "CREATE FOREIGN TABLE f (order_id text, amount numeric) SERVER s;"
      "CREATE VIEW v AS SELECT order_id, amount FROM effects");
  EXPECT_THAT(Refusal("f"), HasSubstr("public.f is a foreign table"));
  EXPECT_THAT(Refusal("v"), HasSubstr("public.v is a view"));
  for (const char* table : {"f", "v"}) EXPECT_EQ(Refusal(table, /*exactly_once=*/false), "");
}

TEST_F(KeepsTest, APartitionThatForgetsIsNamed) {
  Exec(
      "CREATE TABLE p (order_id text, amount numeric) PARTITION BY LIST (order_id);"
      "CREATE TABLE p_kept PARTITION OF p FOR VALUES IN ('a');"
      "CREATE UNLOGGED TABLE p_lost PARTITION OF p DEFAULT");
  EXPECT_THAT(Refusal("p"), AllOf(HasSubstr("p_lost"), Not(HasSubstr("p_kept"))));
  EXPECT_EQ(Refusal("p", /*exactly_once=*/false), "");
  Exec("ALTER TABLE p_lost SET LOGGED");
  EXPECT_EQ(Refusal("p"), "");
}

}  // namespace
}  // namespace fencepost::consumer
