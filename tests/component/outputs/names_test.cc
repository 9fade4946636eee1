// Tables and columns by the names that the database gives them.
#include <gmock/gmock.h>

#include "consumer/outputs/ledger/ledger.h"
#include "consumer/outputs/rows/row_sql.h"
#include "tests/component/outputs/store.h"

namespace fencepost::consumer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using enum WriteResult;

class NamesTest : public StoreTest {
 protected:
  [[nodiscard]] static std::string Quoted(const std::string& name) {
    return QuoteIdentifier(name, IsMysql() ? '`' : '"');
  }
};
INSTANTIATE_TEST_SUITE_P(Stores, NamesTest, kStores, StoreName);

TEST_P(NamesTest, OfTablesAndColumnsAreTakenAsTheyAreInTheDatabase) {
  struct Case {
    std::string name, as;  // in the pipeline file
  };
  const std::string longest(IsMysql() ? 64 : 63, 'x');
  const std::vector<Case> cases{
      {"order-events", "order-events"}, {"order-lines", R"("order-lines")"},
      {"order-marks", "`order-marks`"}, {"2026_orders", "2026_orders"},
      {"Bestände", "Bestände"},         {"select", "select"},
      {"with blank", "with blank"},     {"it's", "it's"},
      {"a\"b`c", R"("a""b`c")"},        {"{0} %s", "{0} %s"},
      {"back\\slash", "back\\slash"},   {longest, longest}};
  int number = 0;
  for (const Case& c : cases) {
    const std::string fence = "Größe " + std::to_string(number);
    const std::string key = R"(2026 "id'`-)";
    Exec(fmt::format("CREATE TABLE {} ({} {} PRIMARY KEY, {} bigint, {} {} DEFAULT 'd')",
                     Quoted(c.name), Quoted(key), Text(), Quoted(fence), Quoted("no-te"), Text()));
    std::vector<Column> columns{{.name = key, .selector = *Parsed("key")},
                                {.name = fence, .selector = *Parsed("header:v")},
                                {.name = "no-te", .selector = *Parsed("json:/note?default")}};
    RowRules rules{.on_conflict = OnConflict::kUpdate,
                   .key = {key},
                   .fence_column = fence,
                   .on_null_value = OnNull::kDelete};
    const auto output = store_->Open({.columns = columns, .rules = rules, .table = c.as});
    Batch batch;
    batch.Add(
        {.id = fmt::format("{}a", number), .value = "{}", .key = "a", .headers = {{"v", "1"}}});
    batch.Add({.id = fmt::format("{}b", number),
               .value = R"({"note":"n"})",
               .key = "b",
               .headers = {{"v", "1"}}});
    batch.Add(
        {.id = fmt::format("{}c", number), .key = "a", .tombstone = true, .headers = {{"v", "2"}}});
    batch.Add(
        {.id = fmt::format("{}d", number), .value = "{}", .key = "b", .headers = {{"v", "3"}}});
    EXPECT_EQ(Results(*output, batch), All(4, kCommitted)) << c.as;
    EXPECT_EQ(Exec("SELECT * FROM " + Quoted(c.name)), "b|3|n") << c.as;
    ++number;
  }
}

TEST_P(NamesTest, OfASchemaMayBeOddToo) {
  if (Is("sqlite")) GTEST_SKIP() << "it has no schemas of one's own";
  Exec("CREATE SCHEMA " + Quoted("shop-prod " + store_->database()));
  const std::string schema = "shop-prod " + store_->database();
  Exec(fmt::format("CREATE TABLE {}.{} (id {} PRIMARY KEY)", Quoted(schema), Quoted("2.orders"),
                   Text()));
  const auto output = store_->Open(
      {.columns = Columns({{"id", "key"}}), .table = fmt::format("{}.\"2.orders\"", schema)});
  const Batch batch{{.id = "1", .key = "a"}};
  EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted));
  EXPECT_EQ(Exec(fmt::format("SELECT * FROM {}.{}", Quoted(schema), Quoted("2.orders"))), "a");
}

// By its collation, or its type: "a" and "A" are one row then.
TEST_P(NamesTest, OfRowsThatTheDatabaseTakesForEqualAreToldOf) {
  struct Case {
    std::string type, by;  // "": bytes are compared
  };
  std::vector<Case> cases{{"text", ""}, {"blob", ""}, {"text COLLATE NOCASE", "NOCASE"}};
  if (IsMysql()) {
    const std::string text = "varchar(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_";
    cases = {{text + "bin", ""},
             {"varbinary(9)", ""},
             {"bigint", ""},
             {text + "general_ci", "utf8mb4_general_ci"}};
  } else if (IsPostgres()) {
    Exec("CREATE EXTENSION citext");
    Exec(
        "CREATE COLLATION folded (provider = icu, locale = 'und-u-ks-level2',"
        " deterministic = false)");
    cases = {{"text", ""},
             {"text COLLATE \"C\"", ""},
             {"bigint", ""},
             {"text COLLATE folded", "folded"},
             {"citext", "citext"}};
  }
  const RowRules update{.on_conflict = OnConflict::kUpdate, .key = {"id"}};
  int number = 0;
  for (const Case& c : cases) {
    const std::string table = fmt::format("keys_{}", number++);
    Exec(fmt::format("CREATE TABLE {} (id {} PRIMARY KEY)", table, c.type));
    for (const RowRules& rules :
         {update, RowRules{.on_conflict = OnConflict::kIgnore}, RowRules()}) {
      const auto output =
          store_->Open({.columns = Columns({{"id", "key"}}), .rules = rules, .table = table});
      ASSERT_EQ(consumer::Refusal(*output), "");
      std::vector<std::string> told;
      if (!c.by.empty() && rules.on_conflict != OnConflict::kError) {
        told.push_back(table + ".id is of a key and is compared by " + c.by +
                       ", to which keys that differ (a, A) can be equal: their changes meet in one "
                       "row, in no order; declare it to compare bytes");
      }
      const std::vector<std::string> advice = output->Advice();
      ASSERT_EQ(advice.size(), told.size()) << c.type;
      for (const std::string& line : told) EXPECT_TRUE(advice[0].ends_with(line)) << advice[0];
    }
  }
}

TEST_P(NamesTest, AreQuotedInTheSqlOfAHint) {
  Exec(fmt::format("CREATE TABLE {} ({} {})", Quoted("order-events"), Quoted("order-id"), Text()));
  std::vector<Column> columns{{.name = "order-id", .selector = *Parsed("key")}};
  const auto output =
      store_->Open({.columns = columns,
                    .rules = {.on_conflict = OnConflict::kUpdate, .key = {"order-id"}},
                    .table = "order-events"});
  EXPECT_THAT(consumer::Refusal(*output),
              HasSubstr(fmt::format("{} ({})", Quoted("order-events"), Quoted("order-id"))));
}

}  // namespace
}  // namespace fencepost::consumer
