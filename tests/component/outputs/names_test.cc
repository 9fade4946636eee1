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
