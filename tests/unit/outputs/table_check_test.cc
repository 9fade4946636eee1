#include "consumer/outputs/ledger/table_check.h"

#include <functional>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer/outputs/tables/table_store.h"
#include "tests/component/outputs/batch.h"

namespace fencepost::consumer {
namespace {

using ::testing::HasSubstr;

// A table that can do what the pipeline asks; each row of the test changes one thing.
struct Asked {
  TableFacts facts{.name = "shop.items",
                   .columns = {{.name = "id", .type = "text", .comparison = Comparison::kText},
                               {.name = "amount", .type = "numeric"},
                               {.name = "version", .type = "bigint"}},
                   .unique = {{{"id"}}}};
  std::vector<Column> columns = Columns({{"id", "key"}, {"amount", "json:/amount"}});
  RowRules rules{.on_conflict = OnConflict::kUpdate,
                 .key = {"id"},
                 .fence_column = "version",
                 .fence_by = Selector::Parse("offset").value(),
                 .on_null_value = OnNull::kDelete};
  TableTerms terms{.output = "output.some", .where = "somewhere", .ledger_file = ""};
};

struct Case {
  const char* name;
  void (*change)(Asked& asked);
  const char* refusal;  // a part of its line; "": it is taken
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

constexpr auto kFold = [](Asked& a) { a.columns[1].name = "AMOUNT"; };

const Case kEffects[] = {
    {"Good", [](Asked&) {}, ""},
    {"NamesFoldCase", kFold, ""},
    {"ExactNames",
     [](Asked& a) {
       kFold(a);
       a.terms.exact_names = true;
     },
     "somewhere: shop.items has no column AMOUNT; it has id, amount, version: add the column, or "
     "correct output.some.columns"},
    {"Generated", [](Asked& a) { a.facts.columns[1].generated = true; },
     "shop.items.amount is a generated column; take it out of output.some.columns"},
    {"NoRightToInsert", [](Asked& a) { a.facts.columns[1].may_insert = false; },
     "no right to insert into shop.items.amount; GRANT INSERT ON shop.items to this role"},
    {"TimeIntoNumber",
     [](Asked& a) {
       a.columns[1].conversion = Conversion::kMillis;
       a.facts.columns[1].cell.kind = CellKind::kDecimal;
     },
     "shop.items.amount is numeric, which output.some.convert: ms cannot fill; it is for times, "
     "dates and text"},
    {"BytesIntoNumber",
     [](Asked& a) {
       a.columns[1].conversion = Conversion::kHex;
       a.facts.columns[1].cell.kind = CellKind::kDecimal;
     },
     "which output.some.convert: hex cannot fill; it is for binary columns"},
    {"MustBeFilled",
     [](Asked& a) {
       a.facts.columns.push_back({.name = "must", .type = "text", .must_fill = true});
     },
     "shop.items.must is NOT NULL without default, and no column mapping fills it; add it to "
     "output.some.columns, or give it a default"},
    {"MustBeFilledAndIs", [](Asked& a) { a.facts.columns[1].must_fill = true; }, ""},
    {"FillsItself",
     [](Asked& a) {
       a.facts.columns.push_back(
           {.name = "must", .type = "text", .generated = true, .must_fill = true});
     },
     ""},
    {"KeyWithoutOrder", [](Asked& a) { a.facts.columns[0].comparison = Comparison::kNone; },
     "shop.items.id is text, which cannot be compared; a key needs a type with an order"},
    {"FenceWithoutOrder", [](Asked& a) { a.facts.columns[2].comparison = Comparison::kNone; },
     "shop.items.version is bigint, which cannot be compared; a fence needs a type with an order"},
    {"FenceAsText", [](Asked& a) { a.facts.columns[2].comparison = Comparison::kText; },
     "the fence is offset, a number, and its column shop.items.version is bigint, so '9' compares "
     "greater than '10'; give the column a numeric type, such as bigint"},
    {"TextFenceAsText",
     [](Asked& a) {
       a.facts.columns[2].comparison = Comparison::kText;
       a.rules.fence_by = Selector::Parse("header:etag").value();
     },
     ""},
    {"NoUniqueIndex", [](Asked& a) { a.facts.unique->clear(); },
     "shop.items has no unique index on (\"id\"), so nothing tells which row to update; CREATE "
     "UNIQUE INDEX … ON shop.items (\"id\"), or correct key"},
    {"UniqueOnMore",
     [](Asked& a) {
       a.facts.unique = {{{"id", "amount"}}};
     },
     "no unique index"},
    {"UniqueInAnyOrder",
     [](Asked& a) {
       a.rules.key = {"id", "amount"};
       a.rules.on_null_value = OnNull::kBad;
       a.facts.unique = {{{"version"}, {"AMOUNT", "id"}}};
     },
     ""},
    {"UniqueUnknown", [](Asked& a) { a.facts.unique.reset(); }, ""},
    {"NoRightToDelete", [](Asked& a) { a.facts.may_delete = false; },
     "no right to DELETE shop.items; GRANT DELETE ON shop.items to this role"},
    {"NoRightToReadTheFence", [](Asked& a) { a.facts.columns[2].may_select = false; },
     "no right to SELECT shop.items.version; GRANT SELECT ON shop.items"},
    {"NoRightToUpdate", [](Asked& a) { a.facts.columns[1].may_update = false; },
     "no right to UPDATE shop.items.amount; GRANT UPDATE ON shop.items"},
    {"WithoutRulesNoneOfThem",
     [](Asked& a) {
       a.rules = {};
       a.facts.unique->clear();
       a.facts.may_delete = a.facts.columns[1].may_update = false;
       a.facts.columns[0].comparison = Comparison::kNone;
     },
     ""},
};

class CheckTableTest : public ::testing::TestWithParam<Case> {};

TEST_P(CheckTableTest, RefusesWhatTheTableCannotDo) {
  Asked asked;
  GetParam().change(asked);
  const auto shape = ShapeOfRows(asked.columns, asked.rules);
  ASSERT_TRUE(shape) << shape.error().what;
  const auto places = CheckTable(asked.facts, *shape, asked.terms);
  const std::string refusal = places ? "" : places.error().error.Line();
  EXPECT_THAT(refusal, HasSubstr(GetParam().refusal));
  EXPECT_EQ(refusal.empty(), std::string_view(GetParam().refusal).empty()) << refusal;
}

INSTANTIATE_TEST_SUITE_P(Effects, CheckTableTest, ::testing::ValuesIn(kEffects),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(CheckTable, SaysWhereTheColumnsAre) {
  Asked asked;
  asked.columns = Columns({{"version", "offset"}, {"id", "key"}});
  EXPECT_THAT(CheckTable(asked.facts, *ShapeOfRows(asked.columns, {}), asked.terms).value(),
              ::testing::ElementsAre(2u, 0u));
}

TEST(CheckTable, AdvisesToLeaveOutWhatIsNotNull) {
  Asked asked;
  asked.facts.columns[1].takes_null = false;
  const auto advice = [&](const char* selector) {
    asked.columns = Columns({{"id", "key"}, {"amount", selector}});
    return AdviseOnTable(asked.facts, *ShapeOfRows(asked.columns, asked.rules), asked.terms);
  };
  EXPECT_THAT(advice("json:/amount"), ::testing::IsEmpty());
  EXPECT_THAT(advice("json:/amount?default"), ::testing::IsEmpty());
  EXPECT_THAT(advice("json:/amount?"),
              ::testing::ElementsAre("shop.items.amount is NOT NULL, and json:/amount? gives null "
                                     "where there is nothing: such a record is refused; "
                                     "json:/amount?default leaves the column to its DEFAULT"));
  asked.facts.columns[1].must_fill = true;
  EXPECT_THAT(advice("json:/amount?"), ::testing::ElementsAre(HasSubstr("and it needs one")));
}

TableFacts GoodLedger() {
  TableFacts facts{
      .name = "fencepost_ledger", .columns = {}, .unique = {{{"pipeline", "record_id"}}}};
  for (const LedgerColumn& column : TableOfLedger(false).columns) {
    facts.columns.push_back(
        {.name = std::string(column.name), .type = std::string(column.postgres)});
  }
  return facts;
}

TEST(CheckLedger, RefusesWhatWouldNotKeepTheLedger) {
  struct Row {
    void (*change)(TableFacts& facts);
    const char* refusal;
  };
  const Row rows[] = {
      {[](TableFacts&) {}, ""},
      {[](TableFacts& f) { f.columns.push_back({.name = "remark", .type = "text"}); }, ""},
      {[](TableFacts& f) { f.is_table = false; },
       "fencepost_ledger is not a table; rename it; a worker creates a new one, or create it with "
       "ledger.sql"},
      {[](TableFacts& f) { f.columns.erase(f.columns.begin() + 4); }, "has no column source"},
      {[](TableFacts& f) { f.columns[2].type = "integer"; }, "has token as integer, not bigint"},
      {[](TableFacts& f) {
         f.columns.push_back({.name = "remark", .type = "text", .must_fill = true});
       },
       "has remark as NOT NULL without default; give it a default"},
      {[](TableFacts& f) {
         f.unique = {{{"record_id", "pipeline"}, {"record_id"}}};
       },
       "has no primary key (pipeline, record_id): nothing would keep an effect from happening "
       "twice"},
      {[](TableFacts& f) { f.unique.reset(); }, "has no primary key"},
      {[](TableFacts& f) { f.hides_rows = true; }, "hides rows from this role"},
      {[](TableFacts& f) {
         f.unsafe = {"is unlogged", "SET LOGGED"};
       },
       "fencepost_ledger is unlogged; SET LOGGED"},
      {[](TableFacts& f) { f.may_select = false; },
       "no right to read, insert into and delete from fencepost_ledger; GRANT SELECT, INSERT, "
       "DELETE ON"},
      {[](TableFacts& f) { f.may_insert = false; }, "no right to read, insert"},
      {[](TableFacts& f) { f.may_delete = false; }, "no right to read, insert into and delete"},
      {[](TableFacts& f) { f.may_update = false; }, ""}};
  for (const Row& row : rows) {
    TableFacts facts = GoodLedger();
    row.change(facts);
    const auto fine =
        CheckLedger(facts, TableOfLedger(false),
                    {.output = "", .where = "", .ledger_file = "ledger.sql", .ledger_types = true});
    const std::string refusal = fine ? "" : fine.error().error.Line();
    EXPECT_THAT(refusal, HasSubstr(row.refusal));
    EXPECT_EQ(refusal.empty(), std::string_view(row.refusal).empty()) << refusal;
  }
}

// A database of these tables.
class FakeCatalogue final : public Catalogue {
 public:
  Facts ReadTable(const Name& name, const RowShape& /*shape*/) override {
    return Found(name.back());
  }
  void TakeTable(const std::vector<std::size_t>& columns) override { taken.push_back(columns); }
  Facts ReadLedger(const LedgerTable& ledger) override { return Found(std::string(ledger.name)); }
  Answer<void> CreateLedger(const LedgerTable& ledger) override {
    if (!may_create) return tl::unexpected(DeniedError("", "permission denied", "ask somebody"));
    tables[std::string(ledger.name)] = GoodLedger();
    return {};
  }
  Answer<void> Run(const std::vector<std::string>& /*statements*/) override { return {}; }
  Answer<bool> HasRows(const LedgerTable& ledger, const std::string& /*pipeline*/) override {
    return rows.contains(std::string(ledger.name));
  }

  std::map<std::string, TableFacts> tables{{"items", Asked().facts}};
  std::map<std::string, bool> rows;
  bool may_create = true;
  std::vector<std::vector<std::size_t>> taken;

 private:
  Facts Found(const std::string& name) {
    const auto found = tables.find(name);
    if (found == tables.end()) return std::nullopt;
    return found->second;
  }
};

std::string Refusal(FakeCatalogue& catalogue, LedgerTerms asked, const char* table = "items") {
  asked.pipeline = "orders";
  const auto learnt = LearnTables(
      catalogue, ShapesOf({{.table = table, .columns = Asked().columns}}, false).value(), asked,
      {.output = "output.some", .where = "db", .ledger_file = "ledger.sql"});
  return learnt ? "" : (learnt.error().fatal ? "fatal " : "") + learnt.error().error.Line();
}

TEST(LearnTables, CreatesTheLedgerWhereItIsMissing) {
  FakeCatalogue catalogue;
  EXPECT_EQ(Refusal(catalogue, {}), "");
  EXPECT_TRUE(catalogue.tables.contains("fencepost_ledger"));
  catalogue.may_create = false;
  EXPECT_EQ(Refusal(catalogue, {}), "") << "it is there";
  catalogue.tables.erase("fencepost_ledger");
  EXPECT_EQ(Refusal(catalogue, {}),
            "the ledger fencepost_ledger is missing and could not be created: permission "
            "denied; create it with ledger.sql, as its owner");
}

TEST(LearnTables, ByPositionNeedsTheTableOfIdsTooForItsDeadLetters) {
  FakeCatalogue catalogue;
  catalogue.tables["fencepost_positions"] = GoodLedger();
  catalogue.tables["fencepost_positions"].columns.clear();
  for (const LedgerColumn& column : TableOfLedger(true).columns) {
    catalogue.tables["fencepost_positions"].columns.push_back({.name = std::string(column.name)});
  }
  catalogue.tables["fencepost_positions"].unique = {{"pipeline", "cluster", "topic", "partition"}};
  catalogue.may_create = false;
  EXPECT_THAT(Refusal(catalogue, {.by_position = true}),
              HasSubstr("the ledger fencepost_ledger is missing and could not be created"));
  catalogue.may_create = true;
  EXPECT_EQ(Refusal(catalogue, {.by_position = true}), "");
  EXPECT_TRUE(catalogue.tables.contains("fencepost_ledger"));
}

TEST(LearnTables, DoesNotCreateALedgerThatIsGoneOrNotItsOwn) {
  FakeCatalogue catalogue;
  EXPECT_THAT(Refusal(catalogue, {.missing = MissingLedger::kGone}),
              HasSubstr("fatal db: the ledger fencepost_ledger that this worker has written to"));
  EXPECT_THAT(Refusal(catalogue, {.missing = MissingLedger::kTell}),
              HasSubstr("there is no ledger fencepost_ledger yet"));
  catalogue.rows["fencepost_positions"] = true;
  EXPECT_THAT(Refusal(catalogue, {}), HasSubstr("fencepost_positions has rows of pipeline orders"));
  EXPECT_FALSE(catalogue.tables.contains("fencepost_ledger"));
  catalogue.rows["fencepost_ledger"] = true;
  catalogue.tables["fencepost_ledger"] = GoodLedger();
  EXPECT_EQ(Refusal(catalogue, {}), "") << "both have been in use";
}

TEST(LearnTables, NamesAllTablesThatAreMissingAndTheirPlaceInTheFile) {
  FakeCatalogue catalogue;
  const auto what = [&](const std::vector<std::string>& tables, bool listed) {
    std::vector<Effect> effects;
    for (const auto& name : tables) effects.push_back({.table = name, .columns = Asked().columns});
    const auto learnt = LearnTables(catalogue, ShapesOf(effects, listed).value(), {},
                                    {.output = "output.some", .where = "db"});
    return learnt ? "" : learnt.error().error.Line();
  };
  EXPECT_EQ(what({"a"}, false),
            "db: there is no table a; create it (fencepost tables apply), or correct "
            "output.some.table");
  EXPECT_EQ(what({"a"}, true),
            "db: there is no table a; create it (fencepost tables apply), or correct "
            "output.some.effects.table");
  EXPECT_EQ(what({"a", "items", "b", "a"}, true),
            "db: there are no tables a, b; create them (fencepost tables apply), or correct "
            "output.some.effects.table");
  std::erase_if(catalogue.tables["items"].columns,
                [](const ColumnFacts& column) { return column.name == "amount"; });
  EXPECT_THAT(what({"a", "items", "b"}, true), HasSubstr("there are no tables a, b;"))
      << "before what is wrong with another";
  EXPECT_THAT(what({"items"}, true), HasSubstr("or correct output.some.effects.columns"));
  EXPECT_THAT(what({"items"}, false), HasSubstr("or correct output.some.columns"));
}

TEST(CreateTables, TellsWhoOnlyLooksWhatWouldBeMade) {
  FakeCatalogue catalogue;
  const TableTerms terms{.output = "output.some", .where = "db", .schema = "public"};
  const auto told = [&](const std::string& table) {
    const auto shapes = ShapesOf({{.table = table, .columns = Asked().columns}}).value();
    const auto made = CreateTables(catalogue, shapes, Dialect::kPostgres,
                                   {.missing = MissingLedger::kTell}, terms);
    return made ? "" : made.error().error.code + " " + made.error().error.Line();
  };
  EXPECT_EQ(told("lines"),
            "ledger_missing db: output.some.create: a worker makes at its start: CREATE TABLE "
            "\"lines\", the ledger fencepost_ledger; see fencepost tables plan");
  catalogue.tables["fencepost_ledger"] = GoodLedger();
  EXPECT_THAT(told("lines"), ::testing::StartsWith("tables_missing db: output.some.create: "));
  EXPECT_EQ(told("items"), "") << "nothing is missing";
  std::erase_if(catalogue.tables["items"].columns,
                [](const ColumnFacts& column) { return column.name == "amount"; });
  EXPECT_THAT(told("items"), HasSubstr("ALTER TABLE \"items\" ADD COLUMN "));
}

TEST(CreateTables, TellsWhoOnlyLooksWhatAWorkerWouldRefuseOfWhatIsThere) {
  FakeCatalogue catalogue;
  const TableTerms terms{.output = "output.some", .where = "db", .schema = "public"};
  const auto told = [&] {
    const auto shapes = ShapesOf({{.table = "lines", .columns = Asked().columns},
                                  {.table = "items", .columns = Asked().columns}})
                            .value();
    const auto made = CreateTables(catalogue, shapes, Dialect::kPostgres,
                                   {.pipeline = "orders", .missing = MissingLedger::kTell}, terms);
    return made ? "" : made.error().error.Line();
  };
  EXPECT_THAT(told(), HasSubstr("a worker makes at its start: CREATE TABLE \"lines\""));
  catalogue.tables["items"].columns.push_back({.name = "vat", .type = "int", .must_fill = true});
  EXPECT_THAT(told(), HasSubstr("items.vat is NOT NULL without default"));
  catalogue.tables["items"].columns.pop_back();
  catalogue.tables["fencepost_ledger"] = GoodLedger();
  catalogue.tables["fencepost_ledger"].unique.reset();
  EXPECT_THAT(told(), HasSubstr("fencepost_ledger has no primary key"));
  catalogue.tables.erase("fencepost_ledger");
  catalogue.rows["fencepost_positions"] = true;
  EXPECT_THAT(told(), HasSubstr("fencepost_positions has rows of pipeline orders"));
}

TEST(LearnTables, NamesATableThatIsMissingAndATableThatCannotKeepTheGuarantee) {
  FakeCatalogue catalogue;
  EXPECT_THAT(Refusal(catalogue, {}, "item"),
              HasSubstr("db: there is no table item; create it (fencepost tables apply), or "
                        "correct output.some.table"));
  EXPECT_THAT(Refusal(catalogue, {}, "a..b"), HasSubstr("the table's name has an empty part"));
  catalogue.tables["items"].unsafe = {"forgets", "use another"};
  EXPECT_EQ(Refusal(catalogue, {}), "");
  EXPECT_THAT(Refusal(catalogue, {.exactly_once = true}),
              HasSubstr("guarantee: exactly-once cannot be kept: shop.items forgets; use another, "
                        "or write guarantee: at-least-once"));
  catalogue.tables["items"].unsafe.reset();
  catalogue.tables["fencepost_ledger"].unsafe = {"forgets, too", ""};
  EXPECT_THAT(Refusal(catalogue, {.exactly_once = true}), HasSubstr("forgets, too"));
}

}  // namespace
}  // namespace fencepost::consumer
