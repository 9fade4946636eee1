// What is known of the columns of tables: by the pipeline file, schemas and samples.
#include "consumer/outputs/tables/wanted_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer/outputs/tables/column_types.h"
#include "consumer/outputs/tables/table_plan.h"
#include "tests/component/outputs/batch.h"

namespace fencepost::consumer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const TableTerms kTerms{
    .output = "output.postgres", .where = "somewhere", .ledger_file = "", .exact_names = true};

std::vector<WantedTable> Wanted(std::vector<Column> columns, RowRules rules = {}) {
  PostgresOptions options;
  options.table = "effects";
  options.columns = std::move(columns);
  options.rules = std::move(rules);
  return WantedTables(OutputOptions(options)).value();
}
TablePlan Plan(const std::vector<WantedTable>& wanted, std::optional<TableFacts> there = {}) {
  FoundTables found;
  found.tables.push_back(std::move(there));
  return PlanTables(wanted, found, Dialect::kPostgres, kTerms, true);
}
RowRules Update(const std::string& fence) {
  RowRules rules{.on_conflict = OnConflict::kUpdate, .key = {"id"}};
  rules.fence_column = fence;
  return rules;
}
void Sample(std::vector<WantedTable>& wanted, const std::vector<const char*>& values) {
  Sampler sampler(
      wanted,
      [](const FilterOptions& options) -> tl::expected<std::unique_ptr<RecordFilter>, Error> {
        return MakeConditionFilter(options.all);
      });
  for (const char* value : values) {
    Record record;
    record.value = value;
    record.headers.push_back({.name = "v", .value = "10"});
    sampler.Add({.record = &record}, true);
  }
  sampler.Finish();
}

TEST(WantedTables, HaveAFenceThatIsNoText) {
  for (const char* by : {"header:v", "json:/v"}) {
    RowRules rules = Update("version");
    rules.fence_by = Selector::Parse(by).value();
    auto wanted = Wanted(Columns({{"id", "key"}}), rules);
    Learn(wanted[0], 1, ValueKind::kText, KnownBy::kSchema);
    Sample(wanted, {R"({"v":"9"})", R"({"v":"10"})"});
    EXPECT_EQ(wanted[0].columns[1].kind, ValueKind::kWhole) << by;
    EXPECT_THAT(Plan(wanted).steps[0].remarks, ElementsAre(HasSubstr("a number, being the fence")))
        << by;
    Learn(wanted[0], 1, ValueKind::kMoment, KnownBy::kSchema);
    EXPECT_EQ(wanted[0].columns[1].kind, ValueKind::kMoment) << by;
  }
}

TEST(WantedTables, KeepNanosecondsAsATextThatIsNoFence) {
  auto columns = Columns({{"id", "key"}, {"at", "json:/at"}});
  columns[1].conversion = Conversion::kNanos;
  EXPECT_EQ(Wanted(columns)[0].columns[1].kind, ValueKind::kText);
  EXPECT_EQ(Wanted(columns, Update("at"))[0].columns[1].kind, ValueKind::kMoment);
}

TEST(Sampler, SaysThatWholeNumbersTakeNoFractionsUnlessTheyAreKeyOrFence) {
  auto columns = Columns({{"id", "json:/id"}, {"n", "json:/n"}, {"v", "json:/v"}});
  auto wanted = Wanted(columns, Update("v"));
  Sample(wanted, {R"({"id":1,"n":1,"v":1})", R"({"id":2,"n":2,"v":2})"});
  EXPECT_THAT(Plan(wanted).steps[0].remarks,
              ElementsAre("n: a bigint takes no fractions, and none is in the values that were "
                          "sampled (2): say it in output.postgres.types if one may come"));
}

TEST(Sampler, LeavesOutWhatStandsForAnUnchangedValue) {
  RowRules rules = Update("");
  rules.keep = {"__unavailable"};
  auto wanted = Wanted(Columns({{"id", "json:/id"}, {"n", "json:/n"}}), rules);
  Sample(wanted, {R"({"id":1,"n":"__unavailable"})", R"({"id":2,"n":2})"});
  EXPECT_EQ(wanted[0].columns[1].kind, ValueKind::kWhole);
}

TEST(Sampler, ReadsTheRecordsAndElementsThatTheTableGets) {
  struct Row {
    const char* name;
    void (*change)(Effect& effect);
    const char* value;
    std::optional<ValueKind> kind;
  };
  const auto each = [](Effect& e) { e.each = Selector::Parse("json:/lines").value(); };
  const auto when = [](Effect& e) {
    e.when.all = {{.selector = Selector::Parse("json:/kind").value(), .text = "a"}};
  };
  const auto route = [](Effect& e) {
    e.table = "";
    e.route.emplace();
    e.route->by = Selector::Parse("json:/kind").value();
    e.route->of = {{"a", "lines"}, {"b", "others"}};
    e.route->otherwise = Route::Otherwise::kSkip;
  };
  const Row rows[] = {{"each", each, R"({"lines":[{"n":1},{"n":0.5}]})", ValueKind::kDecimal},
                      {"each of no array", each, R"({"n":1,"lines":{"n":1}})", std::nullopt},
                      {"when", when, R"({"kind":"a","n":true})", ValueKind::kBoolean},
                      {"when not", when, R"({"kind":"b","n":true})", std::nullopt},
                      {"chosen", route, R"({"kind":"a","n":true})", ValueKind::kBoolean},
                      {"another chosen", route, R"({"kind":"b","n":true})", std::nullopt},
                      {"none chosen", route, R"({"kind":"c","n":true})", std::nullopt}};
  for (const Row& row : rows) {
    Effect effect;
    effect.table = "lines";
    effect.columns = Columns({{"n", "json:/n"}});
    row.change(effect);
    PostgresOptions options;
    options.effects = {effect};
    auto wanted = WantedTables(OutputOptions(options)).value();
    ASSERT_EQ(wanted[0].name, "lines") << row.name;
    Sample(wanted, {row.value});
    EXPECT_EQ(wanted[0].columns[0].sampled.Kind(), row.kind) << row.name;
  }
}

TEST(TablePlan, TellsOfAColumnThatDoesNotTakeWhatWasSampled) {
  using enum JsonType;
  struct Row {
    CellKind column;
    std::optional<JsonType> type;
    const char* text;
    bool told;
  };
  const Row rows[] = {{CellKind::kDecimal, kString, "12.50", false},
                      {CellKind::kDecimal, kString, "a", true},
                      {CellKind::kDateTime, kString, "2026-11-22", false},
                      {CellKind::kDateTime, kString, "yesterday", true},
                      {CellKind::kBoolean, kNumber, "1", false},
                      {CellKind::kBoolean, kNumber, "2", true},
                      {CellKind::kBoolean, kString, "true", false},
                      {CellKind::kWhole, kNumber, "1.0", false},
                      {CellKind::kWhole, kNumber, "1e3", false},
                      {CellKind::kWhole, kNumber, "0.5", true},
                      {CellKind::kWhole, std::nullopt, "12", false},
                      {CellKind::kText, kNumber, "0.5", false}};
  for (const Row& row : rows) {
    auto wanted = Wanted(Columns({{"n", "json:/n"}}));
    wanted[0].columns[0].sampled.Add(row.type, row.text);
    TableFacts facts{.name = "t", .columns = {{.name = "n", .type = "some"}}};
    facts.columns[0].cell.kind = row.column;
    EXPECT_EQ(!Plan(wanted, facts).differences.empty(), row.told)
        << row.text << " " << static_cast<int>(row.column);
  }
}

TEST(SampledValues, HaveTheNarrowestTypeThatHoldsAll) {
  using enum JsonType;
  struct Row {
    std::vector<std::pair<std::optional<JsonType>, const char*>> values;
    std::optional<ValueKind> kind;
  };
  const Row rows[] = {
      {{}, std::nullopt},
      {{{kNumber, "1"}, {kNumber, "-9223372036854775808"}}, ValueKind::kWhole},
      {{{kNumber, "1"}, {kNumber, "9223372036854775808"}}, ValueKind::kLongWhole},
      {{{kNumber, "1"}, {kNumber, "9223372036854775808"}, {kNumber, "0.5"}}, ValueKind::kDecimal},
      {{{kNumber, "1e3"}}, ValueKind::kDecimal},
      {{{kBoolean, "true"}, {kBoolean, "false"}}, ValueKind::kBoolean},
      {{{kBoolean, "true"}, {kNumber, "1"}}, ValueKind::kText},
      {{{kString, "12"}}, ValueKind::kText},
      {{{kString, "2026-11-22"}}, ValueKind::kDate},
      {{{kString, "2026-11-22T10:00:00Z"}, {kString, "2026-11-22 10:00:00.123456+01"}},
       ValueKind::kMoment},
      {{{kString, "2026-11-22"}, {kString, "2026-11-22T10:00:00Z"}}, ValueKind::kText},
      {{{kString, "2026-11-22T10:00:00.1234567Z"}}, ValueKind::kText},
      {{{kString, "10:00"}}, ValueKind::kText},
      {{{kObject, "{}"}, {kArray, "[]"}}, ValueKind::kJson},
      {{{kObject, "{}"}, {kString, "a"}}, ValueKind::kText},
      {{{std::nullopt, "12"}}, ValueKind::kText}};
  for (const Row& row : rows) {
    SampledValues values;
    for (const auto& [type, text] : row.values) values.Add(type, text);
    EXPECT_EQ(values.Kind(), row.kind) << (row.values.empty() ? "" : row.values.back().second);
  }
}

TEST(Sampler, TellsTheTypesOfWhatNothingElseTells) {
  auto columns = Columns({{"id", "key"},
                          {"offset", "offset"},
                          {"paid", "json:/paid"},
                          {"total", "json:/total"},
                          {"note", "json:/note?"},
                          {"version", "json:/version"}});
  columns[2].conversion = Conversion::kDecimal;
  RowRules rules = Update("version");
  rules.types = {{"total", "numeric(12,2)"}};
  auto wanted = Wanted(columns, rules);
  Sample(wanted, {R"({"paid":"x","total":true,"note":[1],"version":2.5})"});
  const auto of = [&](std::size_t column) {
    return std::pair(wanted[0].columns[column].by, wanted[0].columns[column].kind);
  };
  EXPECT_EQ(of(1), std::pair(KnownBy::kSelector, ValueKind::kWhole));
  EXPECT_EQ(of(2), std::pair(KnownBy::kConvert, ValueKind::kDecimal));
  EXPECT_EQ(of(3).first, KnownBy::kTypes);
  EXPECT_EQ(of(4), std::pair(KnownBy::kSamples, ValueKind::kJson));
  EXPECT_EQ(of(5), std::pair(KnownBy::kSamples, ValueKind::kDecimal));
}

TEST(Sampler, LeavesOutWhatReadsAValueThatIsNotKnown) {
  auto wanted = Wanted(Columns({{"made", "json:/n"}, {"own", "record:/n"}}));
  Sampler sampler(wanted, {});
  Record record;
  record.value = R"({"n":1})";
  sampler.Add({.record = &record}, false);
  sampler.Finish();
  EXPECT_EQ(wanted[0].columns[0].by, KnownBy::kNothing);
  EXPECT_EQ(wanted[0].columns[1].by, KnownBy::kSamples);
}

TEST(TablePlan, TellsOfAColumnThatDoesNotHoldWhatTheSchemaSays) {
  struct Row {
    ValueKind kind;
    CellKind column;
    bool told;
  };
  const Row rows[] = {
      {ValueKind::kDecimal, CellKind::kWhole, true}, {ValueKind::kWhole, CellKind::kDecimal, false},
      {ValueKind::kText, CellKind::kWhole, true},    {ValueKind::kText, CellKind::kText, false},
      {ValueKind::kMoment, CellKind::kDate, true},   {ValueKind::kDate, CellKind::kDateTime, false},
      {ValueKind::kJson, CellKind::kBoolean, true},  {ValueKind::kJson, CellKind::kJson, false},
      {ValueKind::kBoolean, CellKind::kWhole, true}, {ValueKind::kWhole, CellKind::kOther, false},
      {ValueKind::kWhole, CellKind::kBoolean, true}, {ValueKind::kBytes, CellKind::kBytes, false}};
  for (const Row& row : rows) {
    auto wanted = Wanted(Columns({{"n", "json:/n"}}));
    Learn(wanted[0], 0, row.kind, KnownBy::kSchema);
    TableFacts facts{.name = "t", .columns = {{.name = "n", .type = "some"}}};
    facts.columns[0].cell.kind = row.column;
    EXPECT_EQ(!Plan(wanted, facts).differences.empty(), row.told)
        << WordsOf(row.kind) << " " << static_cast<int>(row.column);
  }
}

}  // namespace
}  // namespace fencepost::consumer
