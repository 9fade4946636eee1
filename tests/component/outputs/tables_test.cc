// Tables planned and made on real databases: `fencepost tables`, `create: true`.
#include <filesystem>
#include <future>

#include <gmock/gmock.h>

#include "consumer/outputs/tables/table_store.h"
#include "tests/component/outputs/store.h"

namespace fencepost::consumer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class TablesTest : public ::testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] static bool Is(std::string_view store) { return GetParam() == store; }
  [[nodiscard]] OutputOptions Output(std::vector<Column> columns, RowRules rules = {},
                                     bool create = false) const {
    const auto fill = [&](auto options) -> OutputOptions {
      options.table = "effects";
      options.columns = std::move(columns);
      options.rules = std::move(rules);
      options.create = create;
      return options;
    };
    if (Is("postgres")) {
      return fill(PostgresOptions{.dsn = Store::Postgres().dsn(store_.database(), "postgres")});
    }
    if (Is("mysql")) return fill(store_.MysqlTable());
    return fill(SqliteOptions{.path = store_.sqlite_path()});
  }
  [[nodiscard]] static std::unique_ptr<consumer::Output> Open(const OutputOptions& options,
                                                              OutputTerms terms = {},
                                                              const std::string& worker = "w") {
    if (const auto* postgres = std::get_if<PostgresOptions>(&options)) {
      return MakePostgresOutput(*postgres, "orders", worker, std::move(terms));
    }
    if (const auto* mysql = std::get_if<MysqlOptions>(&options)) {
      return MakeMysqlOutput(*mysql, "orders", worker, std::move(terms));
    }
    return MakeSqliteOutput(std::get<SqliteOptions>(options), "orders", worker, std::move(terms));
  }
  struct Planned {
    std::unique_ptr<TableStore> store;
    TablePlan plan;
  };
  [[nodiscard]] static Planned Plan(const OutputOptions& output,
                                    const std::vector<WantedTable>& wanted,
                                    bool by_position = false) {
    Planned planned{.store = MakeTableStore(output), .plan = {}};
    const auto connected = planned.store->Connect();
    EXPECT_TRUE(connected.has_value()) << connected.error().error.Line();
    const Dialect dialect = *DialectOf(output);
    const auto found = FindTables(planned.store->catalogue(), wanted, by_position, dialect);
    EXPECT_TRUE(found.has_value()) << found.error().error.Line();
    planned.plan = PlanTables(wanted, *found, dialect, planned.store->terms(), true);
    return planned;
  }
  [[nodiscard]] static Planned Plan(const OutputOptions& output, bool by_position = false) {
    return Plan(output, *WantedTables(output), by_position);
  }
  // What the database refuses; "": nothing.
  static std::string Apply(const Planned& planned) {
    std::vector<std::string> statements;
    for (const TablePlan::Step& step : planned.plan.steps) statements.push_back(step.sql);
    const auto done = planned.store->Run(statements);
    return done ? "" : done.error().error.Line();
  }
  std::string Exec(const std::string& sql) { return store_.Exec(sql); }
  [[nodiscard]] static RowRules Update(std::vector<std::string> key) {
    return {.on_conflict = OnConflict::kUpdate, .key = std::move(key)};
  }

  Store store_{Is("postgres") ? Store::Kind::kPostgres
               : Is("mysql")  ? Store::Kind::kMysql
                              : Store::Kind::kSqlite};
};
INSTANTIATE_TEST_SUITE_P(Stores, TablesTest, kStores, StoreName);

TEST_P(TablesTest, FromAnEmptyDatabaseAreMadeAndThenNothingIsMissing) {
  RowRules rules = Update({"id", "part"});
  rules.fence_column = "version";
  rules.fence_by = *Parsed("json:/version");
  auto columns = Columns({{"id", "key"},
                          {"part", "header:part"},
                          {"at", "timestamp"},
                          {"born", "json:/born"},
                          {"note", "json:/note?"}});
  columns[3].conversion = Conversion::kDays;
  const OutputOptions output = Output(columns, rules);
  const Planned planned = Plan(output);
  EXPECT_THAT(planned.plan.steps, SizeIs(2));
  EXPECT_EQ(Apply(planned), "");
  EXPECT_TRUE(Plan(output).plan.empty());

  const auto written = Open(output, {.look_only = true});
  EXPECT_EQ(consumer::Refusal(*written), "");
  EXPECT_THAT(written->Advice(), IsEmpty());
  const auto worker = Open(output);
  Batch batch;
  batch.Add({.id = "1",
             .value = R"({"born":19700,"note":"n","version":9007199254740993})",
             .key = "a",
             .headers = {{"part", "p"}}});
  batch.Add({.id = "2",
             .value = R"({"born":19701,"version":9007199254740992})",
             .key = "a",
             .headers = {{"part", "p"}}});
  EXPECT_THAT(Results(*worker, batch), SizeIs(2));
  EXPECT_EQ(Exec("SELECT id, part, born, note, version FROM effects"),
            "a|p|2023-12-09|n|9007199254740993");
}

TEST_P(TablesTest, OfEachTypeAreWhatTheyWerePlannedAs) {
  const auto wanted = [&] {
    const OutputOptions output = Output(Columns({{"t", "json:/t"},
                                                 {"w", "json:/w"},
                                                 {"l", "json:/l"},
                                                 {"d", "json:/d"},
                                                 {"b", "json:/b"},
                                                 {"day", "json:/day"},
                                                 {"m", "json:/m"},
                                                 {"j", "json:/j"}}));
    auto tables = WantedTables(output).value();
    for (std::size_t i = 0; i < tables[0].columns.size(); ++i) {
      tables[0].columns[i] = {.kind = static_cast<ValueKind>(i), .by = KnownBy::kSamples};
    }
    return std::pair(output, tables);
  }();
  EXPECT_EQ(Apply(Plan(wanted.first, wanted.second)), "");
  const TablePlan again = Plan(wanted.first, wanted.second).plan;
  EXPECT_THAT(again.steps, IsEmpty());
  EXPECT_THAT(again.differences, IsEmpty());
  const auto worker = Open(wanted.first);
  Batch batch;
  batch.Add(
      {.id = "1", .value = R"({"t":"a","w":-1,"l":18446744073709551616,"d":52.520006599999,"b":true,
                          "day":"2026-11-22","m":"2026-11-22T10:00:00.5+02:00","j":{"a":[1]}})"});
  EXPECT_THAT(Results(*worker, batch), ElementsAre(WriteResult::kCommitted));
  EXPECT_THAT(Exec("SELECT t, w, l, day FROM effects"), "a|-1|18446744073709551616|2026-11-22");
  EXPECT_THAT(Exec("SELECT d FROM effects"), HasSubstr("52.520006599999"));
  EXPECT_THAT(Exec("SELECT m FROM effects"), HasSubstr("08:00:00.5"));
}

TEST_P(TablesTest, HaveTheTypesOfTheFile) {
  std::map<std::string, std::string> types = {{"a", "Numeric( 12 , 2 )"}, {"b", "varchar(10)"}};
  if (Is("postgres")) {
    types.insert({{"c", "timestamptz(3)"},
                  {"d", "int[]"},
                  {"e", "float"},
                  {"f", "\"my money\""},
                  {"g", "text COLLATE \"C\""},
                  {"h", "decimal"},
                  {"i", "bigserial"},
                  {"j", "char"},
                  {"k", "bit varying(3)"},
                  {"l", "time with time zone"},
                  {"m", "interval"},
                  {"n", "int8"},
                  {"o", "float(24)"},
                  {"p", "uuid"},
                  {"q", "numeric(5,-2)[]"},
                  {"r", "timestamp (3) without time zone"},
                  {"s", "character varying"},
                  {"t", "int4range"}});
    Exec("CREATE DOMAIN \"my money\" AS numeric(10,2)");
  } else if (Is("mysql")) {
    types.insert({{"c", "datetime(3)"},
                  {"d", "INTEGER unsigned"},
                  {"e", "double precision"},
                  {"f", "json"},
                  {"g", "varchar(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"},
                  {"h", "enum('A','b')"},
                  {"i", "char"},
                  {"j", "bit"},
                  {"k", "year"},
                  {"l", "binary"},
                  {"m", "character(10)"},
                  {"n", "int8"},
                  {"o", "fixed(10,2)"},
                  {"p", "decimal unsigned"},
                  {"q", "datetime(0)"},
                  {"r", "float(53)"},
                  {"s", "text(100)"},
                  {"t", "blob(70000)"},
                  {"u", "tinyint(1)"},
                  {"v", "boolean"},
                  {"w", "set('a','B')"},
                  {"x", "varbinary(16)"},
                  {"y", "time(3)"},
                  {"z", "timestamp(6)"},
                  {"za", "mediumtext"},
                  {"zb", "real"},
                  {"zc", "int4 unsigned"}});
  } else {
    types.insert({{"c", "DateTime"},
                  {"d", "unsigned big int"},
                  {"e", "Double  Precision"},
                  {"f", "text COLLATE NOCASE"},
                  {"g", "decimal(10, 5)"},
                  {"h", "NVARCHAR(9)"},
                  {"i", "blob"}});
  }
  std::vector<Column> columns;
  for (const auto& [name, type] : types) {
    columns.push_back({.name = name, .selector = *Parsed("json:/x?")});
  }
  RowRules rules;
  rules.types = types;
  const OutputOptions output = Output(columns, rules);
  EXPECT_EQ(Apply(Plan(output)), "");
  const TablePlan again = Plan(output).plan;
  EXPECT_THAT(again.differences, IsEmpty());
  EXPECT_TRUE(again.empty());
}

TEST_P(TablesTest, GetTheColumnsAndTheKeyThatTheyLack) {
  Exec("CREATE TABLE effects (id bigint)");
  Exec("INSERT INTO effects VALUES (7)");
  RowRules rules = Update({"id"});
  rules.types = {{"id", "bigint"}};
  const OutputOptions output =
      Output(Columns({{"id", "json:/id"}, {"amount", "offset"}, {"note", "json:/note?"}}), rules);
  const Planned planned = Plan(output);
  EXPECT_THAT(planned.plan.steps, SizeIs(4));  // two columns, the key, the ledger
  EXPECT_EQ(Apply(planned), "");
  EXPECT_TRUE(Plan(output).plan.empty());
  EXPECT_EQ(Exec("SELECT id, amount, note FROM effects"), "7|NULL|NULL");
}

TEST_P(TablesTest, GetOneKeyFromTwoThatPlanItAtOnce) {
  Exec("CREATE TABLE effects (id bigint NOT NULL, amount bigint)");
  const OutputOptions output =
      Output(Columns({{"id", "offset"}, {"amount", "offset"}}), Update({"id"}));
  const Planned one = Plan(output);
  const Planned other = Plan(output);
  EXPECT_EQ(Apply(one), "");
  EXPECT_NE(Apply(other), "");
  EXPECT_TRUE(Plan(output).plan.empty());
}

TEST_P(TablesTest, HaveARowForEachKey) {
  const OutputOptions output =
      Output(Columns({{"id", "key"}, {"n", "offset"}}), Update({"id"}), true);
  const auto worker = Open(output);
  Batch batch;
  for (const std::string& key :
       {std::string("a"), std::string("a "), std::string("A"), std::string(700, 'k')}) {
    batch.Add({.id = key.substr(0, 9), .key = key});
  }
  EXPECT_EQ(Results(*worker, batch), All(4, WriteResult::kCommitted));
  EXPECT_EQ(Exec("SELECT count(*) FROM effects"), "4");
}

TEST_P(TablesTest, AreMadeInASchemaThatIsMissing) {
  if (Is("sqlite")) return;  // it has the schemas of its files
  const std::string schema = store_.database() + "_shop";
  OutputOptions output = Output(Columns({{"id", "offset"}}));
  if (auto* postgres = std::get_if<PostgresOptions>(&output)) postgres->table = schema + ".orders";
  if (auto* mysql = std::get_if<MysqlOptions>(&output)) mysql->table = schema + ".orders";
  const Planned planned = Plan(output);
  EXPECT_THAT(planned.plan.steps, SizeIs(3));  // the schema, the table, the ledger
  EXPECT_EQ(Apply(planned), "");
  EXPECT_TRUE(Plan(output).plan.empty());
  EXPECT_EQ(Exec("SELECT count(*) FROM " + schema + ".orders"), "0");
}

// A large table takes longer than the statements of a worker may.
TEST_P(TablesTest, AreChangedWithoutALimitOfTime) {
  const Planned planned = Plan(Output(Columns({{"id", "offset"}})));
  const std::string limited =
      Is("postgres") ? "DO $$ BEGIN IF current_setting('statement_timeout') <> '0' THEN"
                       " RAISE 'limited'; END IF; END $$"
      : Is("mysql")  ? "BEGIN NOT ATOMIC IF @@max_statement_time <> 0 THEN"
                       " SIGNAL SQLSTATE '45000'; END IF; END"
                     : "SELECT 1";
  const auto done = planned.store->Run({limited});
  EXPECT_TRUE(done.has_value()) << done.error().error.Line();
}

TEST_P(TablesTest, AreLookedAtWithoutRunningWhatStandsBehindAType) {
  if (!Is("postgres")) return;  // which asks the database
  Exec("CREATE SEQUENCE counter");
  const Planned planned = Plan(Output(Columns({{"id", "offset"}})));
  for (const std::string type :
       {"bigint; SELECT nextval('counter'); --", "bigint IS DISTINCT FROM nextval('counter')"}) {
    EXPECT_EQ(planned.store->catalogue().TypeInFull(type).value_or(""), type);
    EXPECT_EQ(Exec("SELECT is_called FROM counter"), "f") << type;
  }
}

TEST_P(TablesTest, OfAnotherTypeAreToldAndStay) {
  Exec("CREATE TABLE effects (id bigint, amount integer)");
  RowRules rules;
  rules.types = {{"amount", "numeric(12,2)"}};
  const OutputOptions output =
      Output(Columns({{"id", "offset"}, {"amount", "json:/amount"}}), rules);
  EXPECT_EQ(Apply(Plan(output)), "");
  const TablePlan plan = Plan(output).plan;
  EXPECT_THAT(plan.steps, IsEmpty());
  ASSERT_THAT(plan.differences, SizeIs(1));
  EXPECT_THAT(plan.differences[0], HasSubstr("types says numeric(12,2); it stays as it is"));
  EXPECT_THAT(plan.differences[0], HasSubstr("effects.amount is "));
}

TEST_P(TablesTest, AreMadeTogetherOrNotAtAll) {
  Exec("CREATE TABLE effects (id bigint)");
  Exec("INSERT INTO effects VALUES (7), (7)");
  RowRules rules = Update({"id"});
  rules.types = {{"id", "bigint"}};
  const OutputOptions output = Output(Columns({{"id", "json:/id"}, {"amount", "offset"}}), rules);
  const std::string refused = Apply(Plan(output));
  EXPECT_NE(refused, "") << "two rows have one key";
  // MySQL commits each of such statements.
  if (Is("mysql")) {
    EXPECT_THAT(refused, HasSubstr("(done before it: 1)"));
  }
  EXPECT_THAT(Plan(output).plan.steps, SizeIs(Is("mysql") ? 2 : 3));
}

TEST_P(TablesTest, HaveBothLedgersByPosition) {
  const OutputOptions output = Output(Columns({{"id", "offset"}}));
  EXPECT_EQ(Apply(Plan(output)), "");
  EXPECT_TRUE(Plan(output).plan.empty());
  EXPECT_THAT(Plan(output, true).plan.steps, SizeIs(1));
  EXPECT_EQ(Apply(Plan(output, true)), "");
  EXPECT_TRUE(Plan(output, true).plan.empty());
}

TEST_P(TablesTest, AreMadeAtTheStartByAllWorkersAtOnce) {
  const OutputOptions output =
      Output(Columns({{"id", "json:/order_id"}, {"amount", "json:/amount"}}), Update({"id"}), true);
  std::vector<std::future<std::string>> workers;
  for (int i = 0; i < 4; ++i) {
    workers.push_back(std::async(std::launch::async, [&, i] {
      return consumer::Refusal(*Open(output, {}, fmt::format("worker-{}", i)));
    }));
  }
  for (auto& worker : workers) EXPECT_EQ(worker.get(), "");
  EXPECT_TRUE(Plan(output).plan.empty());
}

TEST_P(TablesTest, AreNotMadeByWhoOnlyLooks) {
  const OutputOptions output = Output(Columns({{"id", "offset"}}), {}, true);
  if (Is("sqlite")) Exec("SELECT 1");  // makes the file
  EXPECT_NE(consumer::Refusal(*Open(output, {.look_only = true})), "");
  EXPECT_THAT(Plan(output).plan.steps, SizeIs(2));
}

TEST_P(TablesTest, AreNotMadeAgainForALedgerThatIsGone) {
  const OutputOptions output = Output(Columns({{"id", "json:/order_id"}}), {}, true);
  const auto worker = Open(output);
  const Batch batch{{.id = "1"}};
  EXPECT_THAT(Results(*worker, batch), ElementsAre(WriteResult::kCommitted));
  Exec("DROP TABLE fencepost_ledger");
  EXPECT_FALSE(WriteAll(*worker, batch));
  const auto gone = WriteAll(*worker, batch);
  ASSERT_FALSE(gone);
  EXPECT_TRUE(gone.error().fatal);
  EXPECT_THAT(Plan(output).plan.steps, SizeIs(1));
}

TEST(SqliteTables, AreLookedForWithoutMakingAFile) {
  const testing::TempDir folder;
  const SqliteOptions sqlite{.path = folder.File("new.db"),
                             .table = "effects",
                             .columns = Columns({{"id", "offset"}}),
                             .rules = {}};
  const auto wanted = WantedTables(OutputOptions(sqlite)).value();
  const auto store = MakeTableStore(OutputOptions(sqlite));
  ASSERT_TRUE(store->Connect());
  const auto found = FindTables(store->catalogue(), wanted, false, Dialect::kSqlite);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->tables[0]);
  EXPECT_FALSE(std::filesystem::exists(sqlite.path));
  ASSERT_TRUE(store->Run({"CREATE TABLE effects (id bigint)"}));
  EXPECT_TRUE(std::filesystem::exists(sqlite.path));
  SqliteOptions own = sqlite;
  own.path = folder.File("own.db");
  own.create = true;
  EXPECT_EQ(Refusal(*MakeSqliteOutput(own, "orders", "w", {})), "");
}

}  // namespace
}  // namespace fencepost::consumer
