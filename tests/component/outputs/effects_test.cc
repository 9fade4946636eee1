// Several effects of a record: rows in several tables of every database, by id and by position.
#include <gmock/gmock.h>

#include "tests/component/outputs/positions.h"

namespace fencepost::consumer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using enum WriteResult;

Effect Into(const char* table, std::initializer_list<std::pair<const char*, const char*>> columns,
            RowRules rules = {}) {
  return {.table = table, .columns = Columns(columns), .rules = std::move(rules)};
}

// Orders of the value's id, their lines, and an audit of those that are dear.
std::vector<Effect> OrderEffects() {
  Effect orders = Into("orders", {{"id", "json:/id"}, {"total", "json:/total"}},
                       {.on_conflict = OnConflict::kUpdate, .key = {"id"}});
  Effect lines =
      Into("order_lines", {{"order_id", "record./id"}, {"no", "index"}, {"sku", "json:/sku"}});
  lines.each = Parsed("json:/lines");
  Effect audit = Into("audit", {{"id", "json:/id"}});
  audit.when.all = {{.selector = *Parsed("json:/dear?"), .text = "true"}};
  return {std::move(orders), std::move(lines), std::move(audit)};
}

std::string Value(const std::string& id, const std::string& lines, bool dear = false) {
  return fmt::format(R"({{"id":"{}","total":{},"dear":{},"lines":[{}]}})", id, id.size(), dear,
                     lines);
}

enum class Ids : std::uint8_t { kOwn, kPositions };

class EffectsTest : public ::testing::WithParamInterface<std::pair<const char*, Ids>>,
                    public ::testing::Test {
 protected:
  EffectsTest() {
    const std::string text =
        IsMysql() ? "varchar(50) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin" : "text";
    for (const char* table :
         {"orders (id {0} PRIMARY KEY, total integer CHECK (total <> 13), version bigint)",
          "order_lines (order_id {0} REFERENCES orders (id), no integer, sku {0} CHECK (sku <> "
          "'bad'))",
          "audit (id {0})", "events_a (id {0})", "events_b (id {0} PRIMARY KEY)"}) {
      store_->Exec("CREATE TABLE " + fmt::format(fmt::runtime(table), text));
    }
  }
  [[nodiscard]] static bool IsMysql() { return std::string_view(GetParam().first) == "mysql"; }
  [[nodiscard]] static bool IsPostgres() {
    return std::string_view(GetParam().first) == "postgres";
  }
  [[nodiscard]] std::unique_ptr<Output> Open(std::vector<Effect> effects) {
    OutputTerms terms;
    terms.by_position = GetParam().second == Ids::kPositions;
    return store_->Open({.terms = std::move(terms), .effects = std::move(effects)});
  }
  // A record with this value, at this offset.
  static Batch::Entry At(Offset offset, std::string value) {
    Batch::Entry entry = Order(offset);
    entry.value = std::move(value);
    entry.key = "k" + std::to_string(offset);
    return entry;
  }
  [[nodiscard]] std::string All(const char* columns, const char* table) {
    return store_->Exec(fmt::format("SELECT {0} FROM {1} ORDER BY {0}", columns, table));
  }
  [[nodiscard]] std::string Orders() { return All("id, total", "orders"); }
  [[nodiscard]] std::string Lines() { return All("order_id, no, sku", "order_lines"); }

  const std::unique_ptr<Store> store_ =
      std::make_unique<Store>(IsPostgres() ? Store::Kind::kPostgres
                              : IsMysql()  ? Store::Kind::kMysql
                                           : Store::Kind::kSqlite);
};
INSTANTIATE_TEST_SUITE_P(
    Stores, EffectsTest,
    ::testing::Values(std::pair("postgres", Ids::kOwn), std::pair("postgres", Ids::kPositions),
                      std::pair("mysql", Ids::kOwn), std::pair("mysql", Ids::kPositions),
                      std::pair("sqlite", Ids::kOwn), std::pair("sqlite", Ids::kPositions)),
    [](const auto& each) {
      return std::string(each.param.first) +
             (each.param.second == Ids::kPositions ? "_by_position" : "_by_id");
    });

TEST_P(EffectsTest, OfARecordAreRowsInEveryTableAndHappenOnce) {
  const auto output = Open(OrderEffects());
  const Batch first{At(0, Value("a", R"({"sku":"x"},{"sku":"y,]\""})", true)),
                    At(1, Value("bb", "")), At(2, Value("ccc", R"({"sku":"z"})"))};
  ASSERT_THAT(Results(*output, first), ElementsAre(kCommitted, kCommitted, kCommitted));
  EXPECT_EQ(Orders(), "a|1 bb|2 ccc|3");
  EXPECT_EQ(Lines(), "a|0|x a|1|y,]\" ccc|0|z");
  EXPECT_EQ(All("id", "audit"), "a");
  const Batch again{At(2, Value("ccc", R"({"sku":"z"})")), At(3, Value("d", R"({"sku":"w"})"))};
  const auto results = Results(*output, again);
  EXPECT_NE(results[0], kBadRecord);
  EXPECT_EQ(results[1], kCommitted);
  EXPECT_EQ(Orders(), "a|1 bb|2 ccc|3 d|1");
  EXPECT_EQ(Lines(), "a|0|x a|1|y,]\" ccc|0|z d|0|w") << "what is done has no rows once more";
}

TEST_P(EffectsTest, OfARecordThatOneTableRefusesAreInNone) {
  const auto output = Open(OrderEffects());
  const Batch batch{At(0, Value("a", R"({"sku":"x"})")),
                    At(1, Value("bb", R"({"sku":"x"},{"sku":"bad"})", true)),
                    At(2, Value("ccc", R"({"sku":"y"})", true))};
  const auto written = WriteAll(*output, batch);
  ASSERT_TRUE(written) << written.error().error.Line();
  EXPECT_EQ((*written)[0].result, kCommitted);
  EXPECT_EQ((*written)[1].result, kBadRecord);
  EXPECT_THAT((*written)[1].detail, StartsWith("effect 2 (order_lines): "));
  EXPECT_THAT((*written)[1].shown, StartsWith("effect 2 (order_lines): "));
  EXPECT_EQ((*written)[2].result, kCommitted);
  EXPECT_EQ(Orders(), "a|1 ccc|3");
  EXPECT_EQ(Lines(), "a|0|x ccc|0|y");
  EXPECT_EQ(All("id", "audit"), "ccc");
}

TEST_P(EffectsTest, AreWrittenInTheOrderOfTheFile) {
  std::vector<Effect> effects = OrderEffects();
  std::swap(effects[0], effects[1]);  // SQLite does not check foreign keys here
  if (std::string_view(GetParam().first) == "sqlite") return;
  const auto output = Open(std::move(effects));
  const Batch batch{At(0, Value("a", R"({"sku":"x"})"))};
  EXPECT_THAT(Results(*output, batch), ElementsAre(kBadRecord)) << "its order is not there yet";
  EXPECT_EQ(Orders(), "");
}

TEST_P(EffectsTest, GoIntoTheTableThatTheRecordChooses) {
  struct Row {
    Route::Otherwise otherwise;
    WriteResult other;
    const char* a;
    const char* b;
  };
  for (const Row& row : {Row{Route::Otherwise::kBad, kBadRecord, "0", "1"},
                         Row{Route::Otherwise::kSkip, kCommitted, "0", "1"},
                         Row{Route::Otherwise::kName, kCommitted, "0", "1 2"}}) {
    store_->Exec("DELETE FROM events_a");
    store_->Exec("DELETE FROM events_b");
    Effect orders = Into("orders", {{"id", "offset"}}, {.on_conflict = OnConflict::kIgnore});
    Effect events = Into("", {{"id", "offset"}});
    events.route = Route{.by = *Parsed("json:/kind?"),
                         .of = {{"a", "events_a"}, {"b", "events_b"}},
                         .otherwise = row.otherwise,
                         .name = "events_b"};
    const auto output = Open({orders, events});
    const Offset first = 10 * static_cast<Offset>(row.otherwise);
    Batch batch;
    const char* kinds[] = {R"({"kind":"a"})", R"({"kind":"b"})", R"({"kind":"c"})"};
    for (Offset i = 0; i < 3; ++i) {
      batch.Add(At(first + i, kinds[i]));
    }
    const auto results = Results(*output, batch);
    EXPECT_EQ(results[2], row.other);
    const std::string shift = fmt::format("id - {}", first);
    const std::string as_number = IsPostgres() ? "id::int" : "id";
    const auto seen = [&](const char* table) {
      return store_->Exec(
          fmt::format("SELECT {0} - {1} FROM {2} ORDER BY 1", as_number, first, table));
    };
    EXPECT_EQ(seen("events_a"), row.a);
    EXPECT_EQ(seen("events_b"), row.b);
  }
}

TEST_P(EffectsTest, OfANewerRowAreLostInTheTableWithAFenceAlone) {
  Effect orders = Into("orders", {{"id", "json:/id"}},
                       {.on_conflict = OnConflict::kUpdate,
                        .key = {"id"},
                        .fence_column = "version",
                        .fence_by = Parsed("json:/v")});
  const auto output = Open({orders, Into("audit", {{"id", "json:/v"}})});
  const Batch newer{At(0, R"({"id":"a","v":7})")};
  ASSERT_THAT(Results(*output, newer), ElementsAre(kCommitted));
  const Batch older{At(1, R"({"id":"a","v":5})"), At(2, R"({"id":"b","v":6})")};
  const auto written = WriteAll(*output, older);
  ASSERT_TRUE(written) << written.error().error.Line();
  EXPECT_TRUE((*written)[0].lost_to_newer);
  EXPECT_FALSE((*written)[1].lost_to_newer);
  EXPECT_EQ(All("id, version", "orders"), "a|7 b|6");
  EXPECT_EQ(All("id", "audit"), "5 6 7");
}

TEST_P(EffectsTest, OfATombstoneDeleteWhereTheyAreToldTo) {
  Effect orders =
      Into("orders", {{"id", "key"}, {"total", "json:/total"}},
           {.on_conflict = OnConflict::kUpdate, .key = {"id"}, .on_null_value = OnNull::kDelete});
  Effect audit = Into("audit", {{"id", "json:/total"}}, {.on_null_value = OnNull::kSkip});
  const auto output = Open({orders, audit});
  Batch batch{At(0, R"({"total":1})"), At(1, R"({"total":2})")};
  batch.Add({.id = Id(2), .offset = 2, .key = "k0", .tombstone = true});
  ASSERT_THAT(Results(*output, batch), ElementsAre(kCommitted, kCommitted, kCommitted));
  EXPECT_EQ(Orders(), "k1|2");
  EXPECT_EQ(All("id", "audit"), "1 2");
}

TEST_P(EffectsTest, NameTheColumnAndTheElementThatTheTableDoesNotTake) {
  std::vector<Effect> effects = OrderEffects();
  effects[1].columns = Columns({{"order_id", "record./id"}, {"no", "json:/no"}});
  const auto output = Open(std::move(effects));
  const Batch batch{At(0, Value("a", R"({"no":1},{"no":"x"})")), At(1, Value("bb", ""))};
  const auto written = WriteAll(*output, batch);
  ASSERT_TRUE(written) << written.error().error.Line();
  EXPECT_EQ((*written)[0].result, kBadRecord);
  EXPECT_THAT((*written)[0].shown, StartsWith("effect 2 (order_lines): element 2: column no ("));
  EXPECT_THAT((*written)[0].shown, HasSubstr("from json:/no"));
  EXPECT_EQ(Orders(), "bb|2");
}

TEST_P(EffectsTest, ThatBreakAUniqueKeyNameTheElement) {
  store_->Exec("CREATE UNIQUE INDEX skus ON order_lines (order_id, sku)");
  const auto output = Open(OrderEffects());
  const Batch first{At(0, Value("a", R"({"sku":"x"})"))};
  ASSERT_THAT(Results(*output, first), ElementsAre(kCommitted));
  struct Row {
    const char* lines;
    const char* in_postgres;
    const char* in_others;
  };
  const Row rows[] = {
      {R"({"sku":"w"},{"sku":"x"},{"sku":"y"})", "element 2: ", "element 2: "},
      {R"({"sku":"x"})", "element 1: ", "element 1: "},
      // PostgreSQL says of which key, and two have it.
      {R"({"sku":"w"},{"sku":"v"},{"sku":"w"})", "one of its 3 rows: ", "element 3: "},
  };
  Offset offset = 1;
  for (const auto& [lines, in_postgres, in_others] : rows) {
    const std::string said =
        std::string("effect 2 (order_lines): ") + (IsPostgres() ? in_postgres : in_others);
    for (const bool alone : {true, false}) {
      Batch batch{At(offset++, Value("a", lines))};
      const std::string other = "o" + std::to_string(offset);
      if (!alone) batch.Add(At(offset++, Value(other, R"({"sku":"x"},{"sku":"y"})")));
      const auto written = WriteAll(*output, batch);
      ASSERT_TRUE(written) << written.error().error.Line();
      EXPECT_EQ((*written)[0].result, kBadRecord);
      EXPECT_TRUE((*written)[0].may_pass);
      EXPECT_THAT((*written)[0].shown, StartsWith(said)) << lines;
      EXPECT_THAT((*written)[0].detail, StartsWith(said)) << lines;
    }
  }
  EXPECT_EQ(store_->Exec("SELECT no, sku FROM order_lines WHERE order_id = 'a'"), "0|x")
      << "what was tried row by row is gone";
}

// Written effect by effect, each of these would leave another table than record by record.
TEST_P(EffectsTest, KeepTheOrderOfAKeyAcrossTables) {
  Effect orders =
      Into("orders", {{"id", "key"}, {"total", "json:/total"}},
           {.on_conflict = OnConflict::kUpdate, .key = {"id"}, .on_null_value = OnNull::kDelete});
  Effect events =
      Into("events_b", {{"id", "key"}},
           {.on_conflict = OnConflict::kUpdate, .key = {"id"}, .on_null_value = OnNull::kDelete});
  // The second of one table: what it writes stands where its record is the last.
  Effect again =
      Into("orders", {{"id", "key"}, {"total", "json:/again"}},
           {.on_conflict = OnConflict::kUpdate, .key = {"id"}, .on_null_value = OnNull::kSkip});
  again.when.all = {{.selector = *Parsed("json:/again?"), .text = std::nullopt}};
  const auto output = Open({orders, events, again});
  Batch batch;
  const auto add = [&](Offset offset, const char* value) {
    Batch::Entry entry = At(offset, value == nullptr ? "" : value);
    entry.tombstone = value == nullptr;
    entry.key = "k";
    entry.chain = 7;
    batch.Add(std::move(entry));
  };
  add(0, R"({"total":1,"again":5})");
  add(1, nullptr);
  add(2, R"({"total":2})");
  ASSERT_THAT(Results(*output, batch), ElementsAre(kCommitted, kCommitted, kCommitted));
  EXPECT_EQ(Orders(), "k|2");
  EXPECT_EQ(All("id", "events_b"), "k");
}

TEST_P(EffectsTest, MayHaveTheSameTableTwice) {
  const auto output =
      Open({Into("audit", {{"id", "json:/from"}}), Into("audit", {{"id", "json:/to"}})});
  const Batch batch{At(0, R"({"from":"a","to":"b"})"), At(1, R"({"from":"b","to":"c"})")};
  ASSERT_THAT(Results(*output, batch), ElementsAre(kCommitted, kCommitted));
  EXPECT_EQ(All("id", "audit"), "a b b c");
}

TEST_P(EffectsTest, CallStatementsBesideTables) {
  if (!IsPostgres()) return;
  store_->Exec("CREATE TABLE counts (id text PRIMARY KEY, n integer)");
  Effect bump;
  bump.statement =
      "INSERT INTO counts VALUES ($1, 1) ON CONFLICT (id) DO UPDATE SET n = counts.n + 1";
  bump.args = {*Parsed("json:/id")};
  Effect once_more = bump;
  once_more.args = {*Parsed("topic")};
  Effect third = bump;
  third.statement = "UPDATE counts SET n = n + 10 WHERE id = $1";
  std::vector<Effect> effects = OrderEffects();
  effects.insert(effects.begin() + 1, {bump, once_more, third});
  const auto output = Open(std::move(effects));
  const Batch batch{At(0, Value("a", R"({"sku":"x"})")), At(1, Value("a", R"({"sku":"y"})"))};
  ASSERT_THAT(Results(*output, batch), ElementsAre(kCommitted, kCommitted));
  EXPECT_EQ(All("id, n", "counts"), "a|22 orders|2");
  EXPECT_EQ(Lines(), "a|0|x a|0|y");
}

}  // namespace
}  // namespace fencepost::consumer
