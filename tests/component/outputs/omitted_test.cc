// Columns that a row leaves out: ?default where there is nothing, and `keep` for texts that stand
// for an unchanged value.
#include <map>
#include <random>

#include <gmock/gmock.h>

#include "tests/component/outputs/store.h"

namespace fencepost::consumer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using enum WriteResult;

constexpr const char* kUnavailable = "__debezium_unavailable_value";

class OmittedTest : public StoreTest {
 protected:
  static RowRules Update() { return {.on_conflict = OnConflict::kUpdate, .key = {"id"}}; }
  [[nodiscard]] std::unique_ptr<Output> OpenWith(RowRules rules,
                                                 const char* note = "json:/note?default") {
    return store_->Open(
        Columns({{"id", "key"}, {"amount", "json:/amount?default"}, {"note", note}}),
        std::move(rules));
  }
  std::string Notes() { return Exec("SELECT id, amount, note FROM effects ORDER BY id"); }
  void Write(Output& output, const char* value) {
    const Batch batch{{.id = fmt::format("i{}", ++ids_), .value = value, .key = "k"}};
    ASSERT_THAT(Results(output, batch), ElementsAre(kCommitted)) << value;
  }

 private:
  int ids_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Stores, OmittedTest, kStores, StoreName);

TEST_P(OmittedTest, ANewRowHasItsDefaultAndOneThatIsThereStaysAsItIs) {
  const auto output = OpenWith(Update());
  Write(*output, R"({"amount":1})");
  EXPECT_EQ(Notes(), "k|1|new");
  Write(*output, R"({"amount":2,"note":"said"})");
  Write(*output, R"({"amount":3})");
  EXPECT_EQ(Notes(), "k|3|said");
  Write(*output, R"({"note":"again"})");
  EXPECT_EQ(Notes(), "k|3|again");
  Write(*output, R"({"amount":4,"note":null})");
  EXPECT_EQ(Notes(), "k|4|NULL") << "a JSON null is a null";
  Write(*output, "{}");
  EXPECT_EQ(Notes(), "k|4|NULL");
}

TEST_P(OmittedTest, WithoutUpdatesANewRowHasItsDefault) {
  for (const OnConflict rule : {OnConflict::kError, OnConflict::kIgnore}) {
    Exec("DELETE FROM effects");
    Exec("DROP TABLE IF EXISTS fencepost_ledger");
    const auto output = OpenWith({.on_conflict = rule, .key = {}});
    const Batch batch{{.id = "1", .value = R"({"amount":1})", .key = "a"},
                      {.id = "2", .value = R"({"note":"n"})", .key = "b"},
                      {.id = "3", .value = R"({"amount":3,"note":null})", .key = "c"}};
    EXPECT_EQ(Results(*output, batch), All(3, kCommitted));
    EXPECT_EQ(Notes(), "a|1|new b|NULL|n c|3|NULL");
  }
}

TEST_P(OmittedTest, ATextToKeepLeavesItsColumnOutWhereItIsTheWholeCell) {
  RowRules rules = Update();
  rules.keep = {kUnavailable};
  const auto output = OpenWith(rules, "json:/note");
  Write(*output, R"({"amount":1,"note":"long"})");
  Write(*output, R"({"amount":2,"note":"__debezium_unavailable_value"})");
  EXPECT_EQ(Notes(), "k|2|long");
  Write(*output, R"({"amount":3,"note":"a __debezium_unavailable_value"})");
  EXPECT_EQ(Notes(), "k|3|a __debezium_unavailable_value");
  Write(*output, R"({"amount":4,"note":["__debezium_unavailable_value"]})");
  EXPECT_EQ(Notes(), "k|4|a __debezium_unavailable_value");
}

TEST_P(OmittedTest, AColumnThatIsNotNullStaysAsItIsAndIsMissedInANewRow) {
  Exec(fmt::format("CREATE TABLE strict_rows (id {0} PRIMARY KEY, bio {0} NOT NULL, n integer)",
                   Text()));
  RowRules rules = Update();
  rules.keep = {kUnavailable};
  const auto output =
      store_->Open({.columns = Columns({{"id", "key"}, {"bio", "json:/bio"}, {"n", "json:/n"}}),
                    .rules = rules,
                    .table = "strict_rows"});
  const Batch first{{.id = "1", .value = R"({"bio":"long","n":1})", .key = "k"}};
  ASSERT_THAT(Results(*output, first), ElementsAre(kCommitted));
  const Batch second{
      {.id = "2", .value = R"({"bio":"__debezium_unavailable_value","n":2})", .key = "k"},
      {.id = "3", .value = R"({"bio":"__debezium_unavailable_value","n":3})", .key = "new"},
      {.id = "4", .value = R"({"bio":"other","n":4})", .key = "other"}};
  EXPECT_THAT(Results(*output, second), ElementsAre(kCommitted, kBadRecord, kCommitted));
  EXPECT_EQ(Exec("SELECT * FROM strict_rows ORDER BY id"), "k|long|2 other|other|4");
}

TEST_P(OmittedTest, RowsOfOneKeyInOneRecordAreBadWhereALaterOneLeavesAColumnOut) {
  const auto output = OpenWith(Update());
  const Batch batch{{.id = "1",
                     .key = "k",
                     .values = HandlerValues{R"({"amount":1,"note":"a"})", R"({"amount":2})"}}};
  EXPECT_THAT(WhyBad(*output, batch), HasSubstr("of which a later one leaves a column out"));
}

// Batches of a few keys, against the same changes one after the other.
TEST_P(OmittedTest, ABatchLeavesWhatItsRowsLeaveOneAfterTheOther) {
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (const bool fenced : {false, true}) {
    Exec("DROP TABLE IF EXISTS fencepost_ledger");
    RowRules rules = Update();
    rules.on_null_value = OnNull::kDelete;
    if (fenced) rules.fence_column = "version", rules.fence_by = Parsed("header:v");
    const auto output = OpenWith(rules);
    struct Row {
      std::string amount, note;
      int fence = 0;
    };
    for (int round = 0, number = 0; round < 15; ++round) {
      Exec("DELETE FROM effects");
      std::map<std::string, Row> oracle;
      Batch batch;
      for (int i = 0; i < 20; ++i, ++number) {
        const std::string key = fmt::format("k{}", below(4));
        const int fence = below(30);
        const bool deletes = below(5) == 0;
        const bool has_amount = below(2) == 0;
        const bool has_note = below(2) == 0;
        batch.Add({.id = fmt::format("i{}", number),
                   .value = fmt::format("{{{}{}{}}}",
                                        has_amount ? fmt::format("\"amount\":{}", 100 + i) : "",
                                        has_amount && has_note ? "," : "",
                                        has_note ? fmt::format("\"note\":\"n{}\"", i) : ""),
                   .key = key,
                   .tombstone = deletes,
                   .headers = {{"v", std::to_string(fence)}}});
        const auto at = oracle.find(key);
        if (at != oracle.end() && fenced && fence <= at->second.fence) continue;
        if (deletes) {
          oracle.erase(key);
          continue;
        }
        Row& row = oracle.try_emplace(key, Row{"NULL", "new"}).first->second;
        row.fence = fence;
        if (has_amount) row.amount = std::to_string(100 + i);
        if (has_note) row.note = fmt::format("n{}", i);
      }
      ASSERT_EQ(Results(*output, batch), All(20, kCommitted));
      std::string expected;
      for (const auto& [key, row] : oracle) {
        expected +=
            fmt::format("{}{}|{}|{}", expected.empty() ? "" : " ", key, row.amount, row.note);
      }
      ASSERT_EQ(Notes(), expected) << "round " << round << (fenced ? " fenced" : "");
    }
  }
}

}  // namespace
}  // namespace fencepost::consumer
