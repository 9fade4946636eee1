#include "consumer/outputs/rows/row_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/component/outputs/batch.h"

namespace fencepost::consumer {
namespace {

using ::testing::HasSubstr;

RowRules Update() { return {.on_conflict = OnConflict::kUpdate, .key = {"id"}}; }
RowRules Fenced(const char* column, const char* by) {
  RowRules rules = Update();
  rules.fence_column = column;
  rules.fence_by = Selector::Parse(by).value();
  return rules;
}
RowRules WithDeletes(RowRules rules) {
  rules.key = {"id"};
  rules.on_null_value = OnNull::kDelete;
  return rules;
}
RowRules With(OnConflict on_conflict, RowRules rules) {
  rules.on_conflict = on_conflict;
  return rules;
}
RowRules WithKey(std::vector<std::string> key) {
  RowRules rules = Update();
  rules.key = std::move(key);
  return rules;
}
RowRules Unfilled() {
  RowRules rules = Fenced("version", "offset");
  rules.fence_by.reset();
  return rules;
}

TEST(RowRules, SayWhatTheyLack) {
  const auto columns = Columns({{"id", "key"}, {"amount", "json:/amount"}});
  struct Row {
    RowRules rules;
    const char* problem;  // "": none
  };
  const Row rows[] = {
      {{}, ""},
      {Fenced("version", "offset"), ""},
      {WithDeletes(Fenced("version", "offset")), ""},
      {WithKey({}), "on_conflict: update needs to know which columns name a row; add key: "},
      {{.key = {}, .on_null_value = OnNull::kDelete},
       "on_null_value: delete needs to know which columns name a row"},
      {WithKey({"name"}), "the key column name is not among the columns"},
      {WithKey({"ID"}), "the key column ID is not among the columns"},
      {WithKey({"id", "id"}), "key names id twice"},
      {With(OnConflict::kIgnore, Fenced("version", "offset")),
       "fence_column counts only with on_conflict: update"},
      {Unfilled(), "nothing fills the fence column version; add fence_by"},
      {Fenced("id", "key"), "the fence column id is part of the key"},
      {Fenced("amount", "key"),
       "the fence column amount is filled from json:/amount, and fence_by is key; take amount out "
       "of columns"},
      {WithDeletes(Fenced("version", "json:/v")),
       "the fence column version reads the value (json:/v), and a tombstone has none"},
  };
  for (const Row& row : rows) {
    const auto shape = ShapeOfRows(columns, row.rules);
    const std::string problem = shape ? "" : shape.error().what + "; " + shape.error().hint;
    EXPECT_THAT(problem, HasSubstr(row.problem));
    EXPECT_EQ(problem.empty(), std::string_view(row.problem).empty()) << problem;
  }
  const auto by_value = ShapeOfRows(Columns({{"id", "json:/id"}}), WithDeletes({}));
  ASSERT_FALSE(by_value);
  EXPECT_THAT(by_value.error().what,
              HasSubstr("the key column id reads the value (json:/id), and a tombstone has none"));
}

}  // namespace
}  // namespace fencepost::consumer
