// Tables that a pipeline asks for, held against those that are there.
#include "consumer/outputs/tables/table_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer/outputs/tables/column_types.h"
#include "consumer/record/text.h"
#include "tests/component/outputs/batch.h"

namespace fencepost::consumer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const TableTerms kTerms{.output = "output.postgres",
                        .where = "somewhere",
                        .ledger_file = "ledger.sql",
                        .exact_names = true,
                        .schema = "public",
                        .collation = "utf8mb4_nopad_bin"};

OutputOptions Options(Dialect dialect, std::vector<Column> columns, RowRules rules = {},
                      std::string table = "effects") {
  const auto fill = [&](auto options) -> OutputOptions {
    options.table = std::move(table);
    options.columns = std::move(columns);
    options.rules = std::move(rules);
    return options;
  };
  if (dialect == Dialect::kPostgres) return fill(PostgresOptions());
  return dialect == Dialect::kMysql ? fill(MysqlOptions()) : fill(SqliteOptions());
}

TablePlan Plan(const OutputOptions& output, std::optional<TableFacts> there = {},
               std::map<std::string, std::string> types = {}) {
  const auto wanted = WantedTables(output);
  EXPECT_TRUE(wanted.has_value());
  return PlanTables(*wanted,
                    {.tables = {std::move(there)}, .ledgers = {}, .types = std::move(types)},
                    *DialectOf(output), kTerms, true);
}

std::vector<std::string> Statements(const TablePlan& plan) {
  std::vector<std::string> statements;
  for (const TablePlan::Step& step : plan.steps) statements.push_back(step.sql);
  return statements;
}

// Every way in which a column's type comes to be known.
OutputOptions OfAllKinds(Dialect dialect) {
  auto columns = Columns({{"id", "record_id"},
                          {"at", "timestamp"},
                          {"offset", "offset"},
                          {"born", "json:/born"},
                          {"paid", "json:/paid"},
                          {"raw", "json:/raw"},
                          {"total", "json:/total"},
                          {"note", "json:/note?"}});
  columns[3].conversion = Conversion::kDays;
  columns[4].conversion = Conversion::kDecimal;
  columns[4].scale = 2;
  columns[5].conversion = Conversion::kBase64;
  RowRules rules{.on_conflict = OnConflict::kUpdate,
                 .key = {"id"},
                 .fence_column = "version",
                 .fence_by = Selector::Parse("json:/version").value(),
                 .types = {{"total", "numeric(12,2)"}}};
  return Options(dialect, std::move(columns), std::move(rules));
}

TEST(TablePlan, MakesATableOfTypesThatTheFileAndTheSelectorsTell) {
  const TablePlan plan = Plan(OfAllKinds(Dialect::kPostgres));
  EXPECT_THAT(Statements(plan), ElementsAre(R"(CREATE TABLE "effects" (
  "id" text,
  "at" timestamptz,
  "offset" bigint,
  "born" date,
  "paid" numeric,
  "raw" bytea,
  "total" numeric(12,2),
  "note" text,
  "version" bigint,
  PRIMARY KEY ("id")
))"));
  EXPECT_THAT(plan.steps[0].remarks,
              ElementsAre("note: nothing tells what json:/note? is, so it is a text: say it in "
                          "output.postgres.types, or read records with --sample",
                          "version: nothing tells what json:/version is, so it is a number, being "
                          "the fence: say it in output.postgres.types, or read records with "
                          "--sample"));
  EXPECT_THAT(plan.differences, IsEmpty());
}

TEST(TablePlan, TellsWhatSamplesDidNotTell) {
  const OutputOptions output =
      Options(Dialect::kSqlite, Columns({{"a", "json:/a"}, {"b", "json:/b"}, {"c", "json:/c"}}));
  auto wanted = WantedTables(output).value();
  wanted[0].sampled = true;
  wanted[0].columns[0] = {.kind = ValueKind::kDecimal, .by = KnownBy::kSamples};
  wanted[0].columns[1] = {.type = "numeric", .kind = ValueKind::kDecimal, .by = KnownBy::kTypes};
  const auto plan = PlanTables(wanted, {.tables = {std::nullopt}, .ledgers = {}, .types = {}},
                               Dialect::kSqlite, kTerms, false);
  ASSERT_THAT(plan.steps, SizeIs(1));
  EXPECT_THAT(plan.steps[0].remarks,
              ElementsAre("a: a text, since SQLite would round decimals: say numeric in "
                          "output.sqlite.types to compare by value",
                          "c: nothing tells what json:/c is, nor do the samples, so it "
                          "is a text: say it in output.sqlite.types"));
}

TEST(TablePlan, NotesOtherValuesThatATextTakesAndDiffersInNothing) {
  const OutputOptions output = Options(Dialect::kPostgres, Columns({{"a", "json:/a"}}));
  const TableFacts there{
      .name = "effects",
      .columns = {{.name = "a", .type = "text", .cell = {.kind = CellKind::kText}}}};
  const auto notes = [&](std::initializer_list<std::string_view> numbers) {
    auto wanted = WantedTables(output).value();
    for (const std::string_view text : numbers) {
      wanted[0].columns[0].sampled.Add(JsonType::kNumber, text);
    }
    if (const auto kind = wanted[0].columns[0].sampled.Kind()) {
      Learn(wanted[0], 0, *kind, KnownBy::kSamples);
    }
    const auto plan = PlanTables(wanted, {.tables = {there}, .ledgers = {}, .types = {}},
                                 Dialect::kPostgres, kTerms, false);
    EXPECT_TRUE(plan.empty());
    return plan.notes;
  };
  EXPECT_THAT(notes({"1", "2"}),
              ElementsAre("effects.a is text, and the 2 sampled values are whole numbers: they are "
                          "kept as texts"));
  EXPECT_THAT(notes({}), IsEmpty());
}

TEST(TablePlan, HasTheTypesOfEachDatabase) {
  EXPECT_THAT(Statements(Plan(OfAllKinds(Dialect::kMysql))),
              ElementsAre("CREATE TABLE `effects` (\n"
                          "  `id` varchar(768) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin,\n"
                          "  `at` datetime(6),\n"
                          "  `offset` bigint,\n"
                          "  `born` date,\n"
                          "  `paid` decimal(65,2),\n"
                          "  `raw` longblob,\n"
                          "  `total` numeric(12,2),\n"
                          "  `note` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin,\n"
                          "  `version` bigint,\n"
                          "  PRIMARY KEY (`id`)\n"
                          ") ENGINE=InnoDB"));
  EXPECT_THAT(Statements(Plan(OfAllKinds(Dialect::kSqlite))),
              ElementsAre(R"(CREATE TABLE "effects" (
  "id" text,
  "at" datetime,
  "offset" bigint,
  "born" date,
  "paid" text,
  "raw" blob,
  "total" numeric(12,2),
  "note" text,
  "version" bigint,
  PRIMARY KEY ("id")
))"));
}

TEST(TablePlan, QuotesWhatTheFileNamesSoThatItStaysAName) {
  const std::string evil = "a\"`; DROP TABLE users; --";
  auto columns = Columns({{"id", "key"}});
  columns[0].name = evil;
  EXPECT_THAT(Statements(Plan(Options(Dialect::kPostgres, columns, {}, "shop.\"x\"\"y\""))),
              ElementsAre("CREATE TABLE \"shop\".\"x\"\"y\" (\n"
                          "  \"a\"\"`; DROP TABLE users; --\" text\n)"));
  EXPECT_THAT(Statements(Plan(Options(Dialect::kMysql, columns))),
              ElementsAre(HasSubstr("`a\"``; DROP TABLE users; --` longtext")));
}

// The table that OfAllKinds asks for, as it would be found.
TableFacts Whole() {
  TableFacts facts{.name = "public.effects", .columns = {}, .unique = {{{"id"}}}};
  const std::vector<std::tuple<const char*, const char*, CellKind>> columns = {
      {"id", "text", CellKind::kText},
      {"at", "timestamp with time zone", CellKind::kDateTime},
      {"offset", "bigint", CellKind::kWhole},
      {"born", "date", CellKind::kDate},
      {"paid", "numeric", CellKind::kDecimal},
      {"raw", "bytea", CellKind::kBytes},
      {"total", "numeric", CellKind::kDecimal},
      {"note", "text", CellKind::kText},
      {"version", "bigint", CellKind::kWhole}};
  for (const auto& [name, type, kind] : columns) {
    facts.columns.push_back({.name = name, .type = type, .cell = {.kind = kind}});
  }
  facts.columns[6].declared = "numeric(12,2)";
  return facts;
}

struct Case {
  const char* name;
  void (*change)(TableFacts& facts);
  const char* statement;   // "": none
  const char* difference;  // a part of it; "": none
};

const Case kThere[] = {
    {"all is there", [](TableFacts&) {}, "", ""},
    {"a column is missing", [](TableFacts& f) { f.columns.erase(f.columns.begin() + 1); },
     R"(ALTER TABLE "effects" ADD COLUMN "at" timestamptz)", ""},
    {"a column of types is missing", [](TableFacts& f) { f.columns.erase(f.columns.begin() + 6); },
     R"(ALTER TABLE "effects" ADD COLUMN "total" numeric(12,2))", ""},
    {"the key has no index", [](TableFacts& f) { f.unique->clear(); },
     R"(CREATE UNIQUE INDEX "fencepost_effects_id" ON "effects" ("id"))", ""},
    {"the key is part of an index",
     [](TableFacts& f) {
       f.unique = {{{"id", "at"}}};
     },
     R"(CREATE UNIQUE INDEX "fencepost_effects_id" ON "effects" ("id"))", ""},
    {"another type than in types", [](TableFacts& f) { f.columns[6].declared = "numeric(10,2)"; },
     "",
     "public.effects.total is numeric(10,2), and output.postgres.types says numeric(12,2); it "
     "stays as it is"},
    {"a column that nothing fills",
     [](TableFacts& f) {
       f.columns.push_back({.name = "owner", .type = "text", .must_fill = true});
     },
     "", "public.effects.owner is NOT NULL without default"},
    {"a type that convert cannot fill",
     [](TableFacts& f) { f.columns[3].cell.kind = CellKind::kWhole; }, "",
     "which output.postgres.convert: d cannot fill"},
    {"a view",
     [](TableFacts& f) {
       f.is_table = false;
       f.unique.reset();
       f.columns.erase(f.columns.begin());
     },
     "", "public.effects has no column id, and is a view"},
    {"a table that a crash empties",
     [](TableFacts& f) {
       f.unsafe = RowProblem{"is unlogged", "log it"};
     },
     "", "public.effects is unlogged"},
};

TEST(TablePlan, AddsWhatIsMissingAndTellsWhatDiffers) {
  for (const Case& one : kThere) {
    TableFacts facts = Whole();
    one.change(facts);
    const TablePlan plan = Plan(OfAllKinds(Dialect::kPostgres), std::move(facts));
    const std::string_view statement = one.statement;
    const std::string_view difference = one.difference;
    EXPECT_EQ(plan.steps.size(), statement.empty() ? 0 : 1) << one.name;
    if (!plan.steps.empty()) {
      EXPECT_EQ(plan.steps[0].sql, statement) << one.name;
    }
    EXPECT_EQ(plan.differences.size(), difference.empty() ? 0 : 1) << one.name;
    if (!plan.differences.empty()) {
      EXPECT_THAT(plan.differences[0], HasSubstr(difference)) << one.name;
    }
    EXPECT_EQ(plan.empty(), statement.empty() && difference.empty()) << one.name;
  }
}

TEST(TablePlan, MakesATableOnceForAllThatIsWrittenIntoIt) {
  auto wanted = WantedTables(Options(Dialect::kPostgres, Columns({{"id", "key"}}))).value();
  wanted.push_back(
      WantedTables(Options(Dialect::kPostgres, Columns({{"id", "key"}, {"at", "offset"}}),
                           {.on_conflict = OnConflict::kUpdate, .key = {"id"}}))
          .value()
          .front());
  FoundTables found;
  found.tables.resize(2);
  const TablePlan plan = PlanTables(wanted, found, Dialect::kPostgres, kTerms, true);
  EXPECT_THAT(Statements(plan), ElementsAre("CREATE TABLE \"effects\" (\n  \"id\" text\n)",
                                            "ALTER TABLE \"effects\" ADD COLUMN \"at\" bigint",
                                            "CREATE UNIQUE INDEX \"fencepost_effects_id\" ON "
                                            "\"effects\" (\"id\")"));
  EXPECT_THAT(plan.differences, IsEmpty());
}

TEST(TablePlan, MakesAUniqueIndexInTheWordsOfEachDatabase) {
  TableFacts facts = Whole();
  facts.unique->clear();
  EXPECT_THAT(Statements(Plan(OfAllKinds(Dialect::kMysql), facts)),
              ElementsAre("ALTER TABLE `effects` ADD UNIQUE `fencepost_effects_id` (`id`)"));
  EXPECT_THAT(Statements(Plan(OfAllKinds(Dialect::kSqlite), facts)),
              ElementsAre(R"(CREATE UNIQUE INDEX "fencepost_effects_id" ON "effects" ("id"))"));
}

TEST(TablePlan, NamesAnIndexWithinWhatDatabasesKeepAndByAllOfItsColumns) {
  const auto name = [](const std::string& table, const char* key) {
    TableFacts facts{.name = table, .columns = {{.name = key, .type = "text"}}};
    const TablePlan plan = Plan(Options(Dialect::kPostgres, Columns({{key, "key"}}),
                                        {.on_conflict = OnConflict::kUpdate, .key = {key}}, table),
                                facts);
    EXPECT_THAT(plan.steps, SizeIs(1));
    const std::string sql = plan.steps.empty() ? "" : plan.steps[0].sql;
    const std::size_t begin = sql.find('"') + 1;
    return sql.substr(begin, sql.find('"', begin) - begin);
  };
  std::string table(39, 't');
  for (int i = 0; i < 9; ++i) {
    table.pop_back();
    const std::string all = table + "üüüüüüüüüüüü";
    EXPECT_LE(name(all, "a").size(), 63) << all;
    EXPECT_TRUE(IsUtf8(name(all, "a"))) << all;
    EXPECT_NE(name(all, "long_name_a"), name(all, "long_name_b"));
  }
}

TEST(TablePlan, MakesATableOnceHoweverItIsNamed) {
  struct Row {
    Dialect dialect;
    const char* one;
    const char* other;
    std::size_t tables;
  };
  const Row rows[] = {{Dialect::kPostgres, "orders", "public.orders", 1},
                      {Dialect::kPostgres, "orders", "\"orders\"", 1},
                      {Dialect::kPostgres, "orders", "Orders", 2},
                      {Dialect::kPostgres, "orders", "shop.orders", 2},
                      {Dialect::kMysql, "orders", "public.orders", 1},
                      {Dialect::kMysql, "orders", "Orders", 2},
                      {Dialect::kSqlite, "Events", "events", 1}};
  for (const Row& row : rows) {
    const auto columns = Columns({{"id", "key"}});
    auto wanted = WantedTables(Options(row.dialect, columns, {}, row.one)).value();
    wanted.push_back(WantedTables(Options(row.dialect, columns, {}, row.other)).value().front());
    FoundTables found;
    found.tables.resize(2);
    EXPECT_THAT(PlanTables(wanted, found, row.dialect, kTerms, true).steps, SizeIs(row.tables))
        << row.one << " " << row.other;
  }
}

TEST(TablePlan, MakesASchemaThatIsMissingOnce) {
  const auto columns = Columns({{"id", "key"}});
  auto wanted = WantedTables(Options(Dialect::kPostgres, columns, {}, "shop.a")).value();
  for (const char* table : {"shop.b", "there.c"}) {
    wanted.push_back(WantedTables(Options(Dialect::kPostgres, columns, {}, table)).value().front());
  }
  FoundTables found;
  found.tables.resize(3);
  found.missing_schemas = {"shop"};
  EXPECT_THAT(Statements(PlanTables(wanted, found, Dialect::kPostgres, kTerms, true)),
              ElementsAre("CREATE SCHEMA IF NOT EXISTS \"shop\"", HasSubstr("TABLE \"shop\".\"a\""),
                          HasSubstr("TABLE \"shop\".\"b\""), HasSubstr("TABLE \"there\".\"c\"")));
}

TEST(TablePlan, HasTheLedgersThatAreMissing) {
  const auto plan = [](bool positions_there) {
    FoundTables found;
    found.ledgers.emplace_back(&TableOfLedger(false), std::nullopt);
    TableFacts wrong{.name = "fencepost_positions", .columns = {}};
    found.ledgers.emplace_back(&TableOfLedger(true),
                               positions_there ? std::optional(wrong) : std::nullopt);
    return PlanTables({}, found, Dialect::kPostgres, kTerms, true);
  };
  EXPECT_THAT(Statements(plan(false)),
              ElementsAre(HasSubstr("CREATE TABLE IF NOT EXISTS fencepost_ledger ("),
                          HasSubstr("CREATE TABLE IF NOT EXISTS fencepost_positions (")));
  EXPECT_THAT(Statements(plan(true)), ElementsAre(HasSubstr("fencepost_ledger")));
  EXPECT_THAT(plan(true).differences,
              ElementsAre(HasSubstr("fencepost_positions has no column pipeline")));
}

TEST(TablePlan, SaysThatIgnoreIgnoresNothingWithoutAKey) {
  const auto columns = Columns({{"id", "key"}});
  const TablePlan plan =
      Plan(Options(Dialect::kSqlite, columns, {.on_conflict = OnConflict::kIgnore}));
  EXPECT_THAT(plan.steps[0].remarks,
              ElementsAre(HasSubstr("ignore has no key, so there is no unique index")));
}

}  // namespace
}  // namespace fencepost::consumer
