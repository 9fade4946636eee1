#include "consumer/outputs/rows/batch_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/component/outputs/batch.h"

namespace fencepost::consumer {
namespace {

BatchRows Make(std::vector<Column> columns, const RowRules& rules) {
  return {OneShape(ShapeOfRows(columns, rules).value()), "w"};
}

TEST(BatchRows, KeepTheOrderOfTheRequestWhereARuleDependsOnIt) {
  const Batch batch{{.id = "c"}, {.id = "a"}, {.id = "d"}};
  BatchRows rows = Make(OrderColumns(), {.on_conflict = OnConflict::kUpdate, .key = {"order_id"}});
  std::vector<WriteOutcome> outcomes(3);
  rows.Fill(batch.items(), outcomes);
  ASSERT_EQ(rows.size(), 3u);
  const std::vector<std::string_view> ids{"c", "a", "d"};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(rows.item(i).record_id, ids[i]);
    EXPECT_EQ(rows.Find(ids[i]), i);
  }
  EXPECT_EQ(rows.Find("e"), std::nullopt);
}

TEST(BatchRows, HoldNothingWhereARecordIsRefusedSinceOthersMayStandBehindIt) {
  const Batch batch{{.id = "c"}, {.id = "b", .value = "no JSON"}, {.id = "a"}};
  BatchRows rows = Make(OrderColumns(), {});
  std::vector<WriteOutcome> outcomes(3);
  rows.Fill(batch.items(), outcomes);
  EXPECT_EQ(rows.size(), 0u);
  EXPECT_EQ(outcomes[0].result, WriteResult::kNotWritten);
  EXPECT_EQ(outcomes[1].result, WriteResult::kBadRecord);
  EXPECT_EQ(outcomes[2].result, WriteResult::kNotWritten);
}

TEST(BatchRows, HoldTheFirstEightMebibytesOfARequestAndAtLeastOneRecord) {
  const std::string large(3u << 20, 'x');
  const std::string huge(9u << 20, 'x');
  const Batch batch{{.id = "d", .value = large},
                    {.id = "c", .value = large},
                    {.id = "b", .value = large},
                    {.id = "a", .value = "x"}};
  BatchRows rows(OneShape({.columns = Columns({{"body", "value"}})}), "w");
  std::vector<WriteOutcome> outcomes(4);
  rows.Fill(batch.items(), outcomes);
  EXPECT_EQ(rows.size(), 2u);
  EXPECT_EQ(outcomes[2].result, WriteResult::kNotWritten);
  EXPECT_EQ(outcomes[3].result, WriteResult::kNotWritten) << "no record passes another";
  const Batch one{{.id = "b", .value = huge}, {.id = "a", .value = "x"}};
  outcomes.assign(2, {});
  rows.Fill(one.items(), outcomes);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows.item(0).record_id, "b");
}

TEST(BatchRows, HoldARowForEachValue) {
  const Batch batch{{.id = "b", .values = {{R"({"x":1})", R"({"x":2})"}}},
                    {.id = "a", .values = HandlerValues{}}};
  BatchRows rows(OneShape({.columns = Columns({{"x", "json:/x"}, {"id", "record_id"}})}), "w");
  std::vector<WriteOutcome> outcomes(2);
  rows.Fill(batch.items(), outcomes);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_FALSE(rows.of(0).one_row_each());
  EXPECT_EQ(rows.of(0).rows(0), 0u);
  ASSERT_EQ(rows.of(0).rows(1), 2u);
  EXPECT_EQ(rows.of(0).cell(1, 0, 0), "1");
  EXPECT_EQ(rows.of(0).cell(1, 0, 1), "2");
  EXPECT_EQ(rows.of(0).cell(1, 1, 1), "b");
  const Batch plain{{.id = "b", .value = R"({"x":1})"}};
  outcomes.resize(1);
  rows.Fill(plain.items(), outcomes);
  EXPECT_TRUE(rows.of(0).one_row_each());
}

TEST(BatchRows, ADeletionReadsKeyAndFenceAlone) {
  RowRules rules{.on_conflict = OnConflict::kUpdate,
                 .key = {"id"},
                 .fence_column = "v",
                 .fence_by = Selector::Parse("offset").value(),
                 .on_null_value = OnNull::kDelete};
  BatchRows rows = Make(Columns({{"id", "key"}, {"x", "json:/x"}}), rules);
  const Batch batch{{.id = "1", .offset = 7, .key = "k", .tombstone = true}};
  std::vector<WriteOutcome> outcomes(1);
  rows.Fill(batch.items(), outcomes);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_TRUE(rows.of(0).deletes(0, 0));
  EXPECT_EQ(rows.of(0).cell(0, 0), "k");
  EXPECT_EQ(rows.of(0).cell(0, 1), std::nullopt);
  EXPECT_EQ(rows.of(0).cell(0, 2), "7");
  EXPECT_FALSE(rows.takes_rows(0));
  const Batch keyless{{.id = "2", .offset = 8, .tombstone = true}};
  rows.Fill(keyless.items(), outcomes);
  EXPECT_EQ(outcomes[0].result, WriteResult::kBadRecord) << "no key, no row to delete";
}

// Takes no cell that is "x".
class NoX final : public CellTypes {
 public:
  [[nodiscard]] std::string_view Name(std::size_t /*column*/) const override { return "no x"; }
  tl::expected<void, std::string> Convert(std::size_t /*column*/, std::optional<JsonType> /*type*/,
                                          std::string& text, std::size_t at) override {
    if (std::string_view(text).substr(at) != "x") return {};
    return tl::unexpected<std::string>("is x");
  }
};

TEST(BatchRows, ApartNameWhatTheTypesAndSelectorsRefuseAndHoldTheOthersButThoseBehind) {
  const Batch batch{{.id = "a", .value = R"({"v":1})", .chain = 1},
                    {.id = "b", .value = R"({"v":"x"})", .chain = 1},
                    {.id = "c", .value = R"({"v":1})", .chain = 1},
                    {.id = "d", .value = "no JSON"},
                    {.id = "e", .value = R"({"v":2})"}};
  BatchRows rows = Make(Columns({{"v", "json:/v"}}), {});
  NoX types;
  const std::vector<CellTypes*> of_table{&types};
  std::vector<WriteOutcome> outcomes(5);
  ASSERT_TRUE(rows.Fill(batch.items(), outcomes, of_table, BatchRows::Refused::kApart));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows.item(0).record_id, "a");
  EXPECT_EQ(rows.item(1).record_id, "e");
  EXPECT_EQ(outcomes[1].result, WriteResult::kBadRecord);
  EXPECT_EQ(outcomes[1].reason, DeadLetterReason::kOutput);
  EXPECT_EQ(outcomes[1].detail, "column v (no x) from json:/v is x");
  EXPECT_EQ(outcomes[2].result, WriteResult::kNotWritten);
  EXPECT_EQ(outcomes[3].result, WriteResult::kBadRecord);
  EXPECT_EQ(outcomes[3].reason, DeadLetterReason::kBadRecord);
}

TEST(BatchRows, AreSelectedByTheirPlacesAndByWhatAnErrorQuotes) {
  const Batch batch{{.id = "c", .value = R"({"order_id":"c","amount":13})"},
                    {.id = "a", .value = R"({"order_id":"a","amount":13})"},
                    {.id = "b", .value = R"({"order_id":"b","amount":"x y"})"}};
  BatchRows rows = Make(OrderColumns(), {});
  std::vector<WriteOutcome> outcomes(3);
  ASSERT_TRUE(rows.Fill(batch.items(), outcomes));
  using Places = std::vector<std::size_t>;
  EXPECT_EQ(rows.Quoted(R"(invalid input syntax for type integer: "x y")"), Places{1});
  EXPECT_EQ(rows.Quoted("Failing row contains (c, 13, new)."), Places{2});
  EXPECT_EQ(rows.Quoted("value 13 is bad"), Places{});
  EXPECT_EQ(rows.Quoted("Key (amount)=(13) exists"), (Places{0, 2}));
  rows.Select({2, 0});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows.item(0).record_id, "a");
  EXPECT_EQ(rows.item(1).record_id, "c");
  EXPECT_EQ(rows.place(1), 2u);
  EXPECT_EQ(rows.of(0).cell(1, 1), "13");
  rows.Select({1});
  EXPECT_EQ(rows.item(0).record_id, "b");
}

TEST(RowShape, OrderMattersForAllButPlainInserts) {
  const auto ordered = [](const RowRules& rules) {
    return ShapeOfRows(Columns({{"id", "key"}}), rules).value().ordered();
  };
  EXPECT_FALSE(ordered({}));
  EXPECT_FALSE(ordered({.key = {}, .on_null_value = OnNull::kSkip}));
  EXPECT_TRUE(ordered({.on_conflict = OnConflict::kIgnore, .key = {}}));
  EXPECT_TRUE(ordered({.on_conflict = OnConflict::kUpdate, .key = {"id"}}));
  EXPECT_TRUE(ordered({.key = {"id"}, .on_null_value = OnNull::kDelete}));
  EXPECT_TRUE(ShapeOfStatement({}).ordered());
}

// --- several effects -----------------------------------------------------------------------------

struct EachRow {
  const char* each;
  const char* value;
  const char* rows;      // index=x of each row
  const char* why = "";  // it is refused instead
};

TEST(BatchRows, HoldARowForEachElementOfAnArray) {
  for (const EachRow& row : {
           EachRow{"json:/l", R"({"o":1,"l":[{"x":"a"},{"x":"b"}]})", "1/0=a 1/1=b"},
           EachRow{"json:/l", R"({"o":1,"l":[ {"x":"],\"{"} , {"x":[1,{"y":"\\\\"}]} ]})",
                   R"(1/0=],"{ 1/1=[1,{"y":"\\\\"}])"},
           EachRow{"json:/l", R"({"o":1,"l":[]})", ""},
           EachRow{"json:/l?", R"({"o":1})", ""},
           EachRow{"json:/l?", R"({"o":1,"l":null})", ""},
           EachRow{"json:", R"([{"x":"a"}])", "",
                   "element 1: column o from record./o: record./o finds "
                   "nothing in the value"},
           EachRow{"json:/l", R"({"o":1})", "", "each: json:/l finds nothing in the value"},
           EachRow{"json:/l", R"({"o":1,"l":null})", "", "each: json:/l is null"},
           EachRow{"json:/l", R"({"o":1,"l":{"x":1}})", "", "each: json:/l is no array"},
           EachRow{"json:/l", R"({"o":1,"l":"[1]"})", "", "each: json:/l is no array"},
           EachRow{"json:/l", R"({"o":1,"l":[{"x":1},{"z":2}]})", "",
                   "element 2: column x from json:/x: json:/x finds nothing in the element"},
           EachRow{
               "json:/l", R"({"o":1,"l":[null]})", "",
               "element 1: column x from json:/x: json:/x finds nothing in the element, which is "
               "no JSON object or array"},
       }) {
    SCOPED_TRACE(row.value);
    Effect effect{.table = "t",
                  .columns = Columns({{"o", "record./o"}, {"n", "index"}, {"x", "json:/x"}})};
    effect.each = Selector::Parse(row.each).value();
    BatchRows rows(ShapesOf({effect}).value(), "w");
    const Batch batch{{.id = "a", .value = row.value}};
    std::vector<WriteOutcome> outcomes(1);
    rows.Fill(batch.items(), outcomes);
    std::string seen;
    for (std::size_t i = 0; rows.size() == 1 && i < rows.of(0).rows(0); ++i) {
      const auto cell = [&](std::size_t column) { return *rows.of(0).cell(0, column, i); };
      seen += fmt::format("{}{}/{}={}", i == 0 ? "" : " ", cell(0), cell(1), cell(2));
    }
    EXPECT_EQ(seen, row.rows);
    EXPECT_EQ(outcomes[0].detail, row.why);
  }
}

TEST(BatchRows, HoldElementsThatAreTextsAsWhatTheyAre) {
  Effect effect{.table = "t", .columns = Columns({{"tag", "value?"}})};
  effect.each = Selector::Parse("json:/tags").value();
  BatchRows rows(ShapesOf({effect}).value(), "w");
  const Batch batch{{.id = "a", .value = R"({"tags":["a\"b",null,1.50]})"}};
  std::vector<WriteOutcome> outcomes(1);
  rows.Fill(batch.items(), outcomes);
  ASSERT_EQ(rows.size(), 1u) << outcomes[0].detail;
  EXPECT_EQ(rows.of(0).cell(0, 0, 0), "a\"b");
  EXPECT_EQ(rows.of(0).cell(0, 0, 1), std::nullopt);
  EXPECT_EQ(rows.of(0).cell(0, 0, 2), "1.50");
}

TEST(BatchRows, HoldOneRecordOfAKeyWhereADeletionMayUndoAnotherTablesRow) {
  RowRules deletes{
      .on_conflict = OnConflict::kUpdate, .key = {"id"}, .on_null_value = OnNull::kDelete};
  const Effect orders{.table = "a", .columns = Columns({{"id", "key"}}), .rules = deletes};
  const Effect other{
      .table = "b", .columns = Columns({{"id", "key"}}), .rules = {.on_null_value = OnNull::kSkip}};
  const Batch batch{{.id = "1", .key = "k", .chain = 4},
                    {.id = "2", .key = "l", .chain = 5},
                    {.id = "3", .key = "k", .chain = 4}};
  for (const bool alone : {true, false}) {
    BatchRows rows(ShapesOf(alone ? std::vector{orders} : std::vector{orders, other}).value(), "w");
    std::vector<WriteOutcome> outcomes(3);
    rows.Fill(batch.items(), outcomes);
    EXPECT_EQ(rows.size(), alone ? 3u : 2u) << outcomes[0].detail;
  }
}

TEST(BatchRows, RefuseARecordOfMoreThanTenThousandRows) {
  Effect effect{.table = "t", .columns = Columns({{"n", "value"}})};
  effect.each = Selector::Parse("json:").value();
  BatchRows rows(ShapesOf({effect}).value(), "w");
  std::string value = "[0";
  for (int i = 1; i < 10'000; ++i) value += ",0";
  std::vector<WriteOutcome> outcomes(1);
  const Batch most{{.id = "a", .value = value + "]"}};
  rows.Fill(most.items(), outcomes);
  EXPECT_EQ(rows.size(), 1u) << outcomes[0].detail;
  const Batch more{{.id = "a", .value = value + ",0]"}};
  rows.Fill(more.items(), outcomes);
  EXPECT_EQ(outcomes[0].detail, "each: 10001 elements, and a record may make 10000 rows");
}

}  // namespace
}  // namespace fencepost::consumer
