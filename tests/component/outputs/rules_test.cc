// What a row does to one that stands in the table: the same in PostgreSQL and SQLite.
#include <gmock/gmock.h>

#include "tests/component/outputs/store.h"

namespace fencepost::consumer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using enum WriteResult;

std::string Amount(int amount) { return fmt::format(R"({{"amount":{}}})", amount); }

RowRules Update() { return {.on_conflict = OnConflict::kUpdate, .key = {"id"}}; }
RowRules Fenced() {
  RowRules rules = Update();
  rules.fence_column = "version";
  rules.fence_by = Parsed("offset");
  return rules;
}
RowRules WithDeletes(RowRules rules) {
  rules.key = {"id"};
  rules.on_null_value = OnNull::kDelete;
  return rules;
}

class RulesTest : public StoreTest {};
INSTANTIATE_TEST_SUITE_P(Stores, RulesTest, ::testing::Values("postgres", "mysql", "sqlite"),
                         [](const auto& store) { return std::string(store.param); });

TEST_P(RulesTest, ErrorMakesTheRecordOfARowThatStandsBad) {
  const auto output = Open({});
  const Batch first{{.id = "1", .value = Amount(1), .key = "k"}};
  ASSERT_THAT(Results(*output, first), ElementsAre(kCommitted));
  const Batch second{{.id = "2", .value = Amount(2), .key = "j"},
                     {.id = "3", .value = Amount(3), .key = "k"},
                     {.id = "4", .value = Amount(4), .key = "l"}};
  EXPECT_THAT(Results(*output, second), ElementsAre(kCommitted, kBadRecord, kCommitted));
  EXPECT_EQ(Effects(), "j|2|NULL k|1|NULL l|4|NULL");
  EXPECT_EQ(Ledger(), "1 2 4");
}

TEST_P(RulesTest, IgnoreKeepsTheRowThatStandsAndTheFirstOfABatch) {
  const auto output = Open({.on_conflict = OnConflict::kIgnore, .key = {}});
  const Batch first{{.id = "1", .value = Amount(1), .key = "k"}};
  ASSERT_THAT(Results(*output, first), ElementsAre(kCommitted));
  // The ids are not in the order of the records.
  const Batch second{{.id = "9", .value = Amount(2), .key = "j"},
                     {.id = "3", .value = Amount(3), .key = "k"},
                     {.id = "2", .value = Amount(4), .key = "j"}};
  EXPECT_THAT(Results(*output, second), ElementsAre(kCommitted, kCommitted, kCommitted));
  EXPECT_EQ(Effects(), "j|2|NULL k|1|NULL");
  EXPECT_EQ(Ledger(), "1 2 3 9");
}

TEST_P(RulesTest, UpdateOverwritesAllColumnsButTheKeyAndLeavesTheOthersOfTheTable) {
  Exec("INSERT INTO effects VALUES ('k', 1, 5, 'kept')");
  const auto output = Open(Update());
  const Batch batch{{.id = "1", .value = Amount(2), .key = "k"},
                    {.id = "2", .value = Amount(3), .key = "j"}};
  EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted, kCommitted));
  EXPECT_EQ(Exec("SELECT * FROM effects ORDER BY id"), "j|3|NULL|new k|2|5|kept");
}

TEST_P(RulesTest, OfTwoRecordsOfOneKeyInABatchTheLastUpdates) {
  const auto output = Open(Update());
  const Batch batch{{.id = "9", .value = Amount(1), .key = "k"},
                    {.id = "5", .value = Amount(2), .key = "k"},
                    {.id = "7", .value = Amount(3), .key = "k"}};
  EXPECT_EQ(Results(*output, batch), All(3, kCommitted));
  EXPECT_EQ(Effects(), "k|3|NULL");
  EXPECT_EQ(Ledger(), "5 7 9");
}

TEST_P(RulesTest, ARecordThatTheLedgerKnowsDoesNotHoldBackAnEarlierOneOfItsKey) {
  const auto output = Open(Update());
  const Batch first{{.id = "7", .offset = 1, .value = Amount(3), .key = "k"}};
  ASSERT_THAT(Results(*output, first), ElementsAre(kCommitted));
  Exec("UPDATE effects SET amount = 0");
  const Batch batch{{.id = "5", .offset = 2, .value = Amount(2), .key = "k"},
                    {.id = "7", .offset = 3, .value = Amount(3), .key = "k"}};
  EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted, kDuplicate));
  EXPECT_EQ(Effects(), "k|2|NULL");
}

TEST_P(RulesTest, TheOrderOfARequestHoldsWhereABadRecordSplitsIt) {
  const auto output = Open(Update());
  Batch batch;
  for (int i = 0; i < 64; ++i) {
    // Ids fall while the amounts rise; 13 is refused by the table, and the last of its key here.
    batch.Add({.id = fmt::format("o-{:02}", 99 - i),
               .value = Amount(i == 40 ? 13 : 100 + i),
               .key = i == 40 ? "bad" : "k"});
  }
  const auto results = Results(*output, batch);
  ASSERT_EQ(results.size(), 64u);
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(results[i], i == 40 ? kBadRecord : kCommitted);
  EXPECT_EQ(Effects(), "k|163|NULL");
}

TEST_P(RulesTest, UpdateOfAKeyAloneKeepsTheRow) {
  Exec("INSERT INTO effects VALUES ('k', 1, 5, 'kept')");
  const auto output = store_->Open(Columns({{"id", "key"}}), Update());
  const Batch batch{{.id = "1", .key = "k"}, {.id = "2", .key = "j"}, {.id = "3", .key = "j"}};
  EXPECT_EQ(Results(*output, batch), All(3, kCommitted));
  EXPECT_EQ(Effects(), "j|NULL|NULL k|1|5");
}

TEST_P(RulesTest, OnlyAHigherFenceOverwritesWhateverTheOrderOfOffsets) {
  const auto output = Open(Fenced());
  const auto write = [&](const std::string& id, Offset offset) {
    const Batch batch{
        {.id = id, .offset = offset, .value = Amount(static_cast<int>(offset)), .key = "k"}};
    EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted));
    return Effects();
  };
  EXPECT_EQ(write("a", 9), "k|9|9");
  EXPECT_EQ(write("b", 7), "k|9|9");
  EXPECT_EQ(write("c", 100), "k|100|100") << "as a number, not as text";
  EXPECT_EQ(write("d", 100), "k|100|100");
  Exec("UPDATE effects SET version = NULL");
  EXPECT_EQ(write("e", 3), "k|3|3") << "NULL is lower than any";
}

TEST_P(RulesTest, InABatchTheHighestFenceWinsAndAmongEqualsTheFirst) {
  RowRules rules = Fenced();
  rules.fence_by = Parsed("json:/v?");
  const auto output = Open(rules);
  const auto entry = [](const char* id, const char* key, int amount, const char* version) {
    return Batch::Entry{
        .id = id, .value = fmt::format(R"({{"amount":{},"v":{}}})", amount, version), .key = key};
  };
  const Batch batch{
      entry("9", "k", 1, "5"),    entry("8", "k", 2, "30"),   entry("7", "k", 3, "30"),
      entry("6", "k", 4, "4"),    entry("5", "k", 5, "null"), entry("4", "n", 6, "null"),
      entry("3", "n", 7, "null"), entry("2", "m", 8, "null"), entry("1", "m", 9, "1")};
  EXPECT_EQ(Results(*output, batch), All(9, kCommitted));
  EXPECT_EQ(Effects(), "k|2|30 m|9|1 n|6|NULL");
}

TEST_P(RulesTest, TheFenceColumnMayBeAmongTheColumns) {
  RowRules rules = Update();
  rules.fence_column = "version";
  const auto output = store_->Open(
      Columns({{"version", "offset"}, {"id", "key"}, {"amount", "json:/amount"}}), rules);
  const Batch batch{{.id = "1", .offset = 7, .value = Amount(7), .key = "k"},
                    {.id = "2", .offset = 6, .value = Amount(6), .key = "k"}};
  EXPECT_EQ(Results(*output, batch), All(2, kCommitted));
  EXPECT_EQ(Effects(), "k|7|7");
}

TEST_P(RulesTest, ATombstoneIsBadByDefault) {
  const auto output = Open({});
  const Batch batch{{.id = "1", .key = "k", .tombstone = true}};
  EXPECT_EQ(WhyBad(*output, batch), "the value is null (see on_null_value)");
  const auto keys = store_->Open(Columns({{"id", "key"}}), {});
  EXPECT_EQ(WhyBad(*keys, batch), "the value is null (see on_null_value)");
  const auto nullable = store_->Open(Columns({{"id", "key"}, {"note", "value?"}}), {});
  EXPECT_THAT(Results(*nullable, batch), ElementsAre(kCommitted));
  EXPECT_EQ(Exec("SELECT id, note FROM effects"), "k|NULL");
}

TEST_P(RulesTest, ATombstoneThatIsSkippedHasALedgerRowAlone) {
  const auto output = Open({.key = {}, .on_null_value = OnNull::kSkip});
  const Batch batch{{.id = "1", .offset = 1, .key = "k", .tombstone = true},
                    {.id = "2", .offset = 2, .value = Amount(2), .key = "j"}};
  EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted, kCommitted));
  EXPECT_THAT(Results(*output, batch), ElementsAre(kOwnEarlier, kOwnEarlier));
  EXPECT_EQ(Effects(), "j|2|NULL");
  EXPECT_EQ(Ledger(), "1 2");
}

TEST_P(RulesTest, ATombstoneDeletesItsRow) {
  Exec("INSERT INTO effects (id, amount) VALUES ('k', 1), ('j', 2), ('i', 3)");
  const auto output = Open(WithDeletes({}));
  const Batch batch{{.id = "1", .key = "k", .tombstone = true},
                    {.id = "2", .key = "none", .tombstone = true},
                    {.id = "3", .key = "j", .tombstone = true}};
  EXPECT_EQ(Results(*output, batch), All(3, kCommitted));
  EXPECT_EQ(Effects(), "i|3|NULL");
  const Batch again{{.id = "4", .value = Amount(4), .key = "k"}};
  EXPECT_THAT(Results(*output, again), ElementsAre(kCommitted));
  const Batch late{{.id = "1", .key = "k", .tombstone = true}};
  EXPECT_THAT(Results(*output, late), ElementsAre(kOwnEarlier));
  EXPECT_EQ(Effects(), "i|3|NULL k|4|NULL");
}

TEST_P(RulesTest, OfAnUpdateAndADeletionOfOneKeyInABatchTheLastWins) {
  for (const OnConflict rule : {OnConflict::kUpdate, OnConflict::kIgnore, OnConflict::kError}) {
    Exec("DROP TABLE IF EXISTS fencepost_ledger");
    Exec("DELETE FROM effects");
    Exec("INSERT INTO effects VALUES ('a', 1, 1, 'old'), ('c', 1, 1, 'old')");
    const auto output = Open(WithDeletes({.on_conflict = rule, .key = {}}));
    const Batch batch{
        {.id = "9", .key = "a", .tombstone = true},  {.id = "8", .value = Amount(2), .key = "a"},
        {.id = "7", .value = Amount(3), .key = "b"}, {.id = "6", .key = "b", .tombstone = true},
        {.id = "5", .key = "c", .tombstone = true},  {.id = "4", .value = Amount(4), .key = "c"},
        {.id = "3", .key = "c", .tombstone = true},  {.id = "2", .value = Amount(5), .key = "d"}};
    EXPECT_EQ(Results(*output, batch), All(8, kCommitted));
    EXPECT_EQ(Exec("SELECT * FROM effects ORDER BY id"), "a|2|NULL|new d|5|NULL|new");
  }
}

TEST_P(RulesTest, ADeletionRespectsTheFence) {
  Exec(
      "INSERT INTO effects (id, amount, version) VALUES ('new', 1, 100), ('old', 1, 3), ('none', "
      "1, NULL)");
  const auto output = Open(WithDeletes(Fenced()));
  const Batch batch{{.id = "1", .offset = 50, .key = "new", .tombstone = true},
                    {.id = "2", .offset = 51, .key = "old", .tombstone = true},
                    {.id = "3", .offset = 52, .key = "none", .tombstone = true}};
  EXPECT_EQ(Results(*output, batch), All(3, kCommitted));
  EXPECT_EQ(Effects(), "new|1|100");
  // A row that is gone has taken its fence with it.
  const Batch late{{.id = "4", .offset = 2, .value = Amount(4), .key = "old"}};
  EXPECT_THAT(Results(*output, late), ElementsAre(kCommitted));
  EXPECT_EQ(Effects(), "new|1|100 old|4|2");
}

TEST_P(RulesTest, ADeletionAndUpdatesOfOneKeyInABatchAreWeighedByTheirFences) {
  Exec("INSERT INTO effects (id, amount, version) VALUES ('a', 1, 3), ('b', 1, 3), ('c', 1, 60)");
  const auto output = Open(WithDeletes(Fenced()));
  const Batch batch{{.id = "1", .offset = 50, .value = Amount(5), .key = "a"},
                    {.id = "2", .offset = 51, .key = "a", .tombstone = true},
                    {.id = "3", .offset = 52, .key = "b", .tombstone = true},
                    {.id = "4", .offset = 53, .value = Amount(6), .key = "b"},
                    {.id = "5", .offset = 54, .key = "c", .tombstone = true},
                    {.id = "6", .offset = 55, .value = Amount(7), .key = "c"}};
  EXPECT_EQ(Results(*output, batch), All(6, kCommitted));
  EXPECT_EQ(Effects(), "b|6|53 c|1|60");
}

TEST_P(RulesTest, ANullKeyNamesNoRow) {
  const auto output = store_->Open(Columns({{"id", "key?"}, {"amount", "json:/amount"}}), Update());
  const Batch batch{{.id = "1", .value = Amount(1)}};
  EXPECT_THAT(WhyBad(*output, batch), HasSubstr("column id from key?: a key cannot be null"));
}

TEST_P(RulesTest, AHandlersValuesAreRowsOfOneRecord) {
  const auto output = store_->Open(
      Columns({{"id", "json:/id"}, {"amount", "json:/amount"}, {"note", "record_id"}}), {});
  const auto value = [](const char* id, int amount) {
    return fmt::format(R"({{"id":"{}","amount":{}}})", id, amount);
  };
  const Batch batch{
      {.id = "2", .offset = 1, .value = "no JSON", .values = {{value("a", 1), value("b", 2)}}},
      {.id = "1", .offset = 2, .value = "nor here", .values = {{value("c", 3)}}},
      {.id = "3", .offset = 3, .value = "nor here", .values = {HandlerValues{}}},
      {.id = "4", .offset = 4, .value = value("d", 4)}};
  EXPECT_EQ(Results(*output, batch), All(4, kCommitted));
  EXPECT_EQ(Results(*output, batch), All(4, kOwnEarlier));
  EXPECT_EQ(Exec("SELECT id, amount, note FROM effects ORDER BY id"), "a|1|2 b|2|2 c|3|1 d|4|4");
  EXPECT_EQ(Ledger(), "1 2 3 4");
}

TEST_P(RulesTest, OneBadRowMakesItsRecordBadAndNothingOfItIsWritten) {
  const auto output = store_->Open(Columns({{"id", "json:/id"}, {"amount", "json:/amount"}}), {});
  const Batch batch{
      {.id = "1", .values = {{R"({"id":"a","amount":1})", R"({"id":"b","amount":13})"}}},
      {.id = "2", .values = {{R"({"id":"c","amount":1})", R"({"id":"c","amount":2})"}}},
      {.id = "3", .values = {{R"({"id":"d","amount":1})", R"({"amount":2})"}}},
      {.id = "4", .values = {{R"({"id":"e","amount":1})", std::nullopt}}},
      {.id = "5", .values = {{R"({"id":"f","amount":1})", R"({"id":"g","amount":2})"}}}};
  const auto outcomes = WriteAll(*output, batch);
  ASSERT_TRUE(outcomes) << outcomes.error().error.Line();
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ((*outcomes)[i].result, kBadRecord) << i;
  EXPECT_EQ((*outcomes)[4].result, kCommitted);
  EXPECT_EQ(
      (*outcomes)[2].detail,
      "value 2 of 2: column id from json:/id: json:/id finds nothing in the handler's answer");
  EXPECT_EQ((*outcomes)[3].detail,
            "value 2 of 2: the handler's answer is null or has no body (see on_null_value)");
  EXPECT_EQ(Effects(), "f|1|NULL g|2|NULL");
  EXPECT_EQ(Ledger(), "5");
}

TEST_P(RulesTest, RowsOfOneRecordCountInTheirOrder) {
  const auto output = store_->Open(Columns({{"id", "json:/id"}, {"amount", "json:/n"}}), Update());
  const Batch batch{{.id = "2", .values = {{R"({"id":"k","n":1})", R"({"id":"k","n":2})"}}},
                    {.id = "1", .values = {{R"({"id":"k","n":4})", R"({"id":"k","n":3})"}}}};
  EXPECT_EQ(Results(*output, batch), All(2, kCommitted));
  EXPECT_EQ(Effects(), "k|3|NULL");
}

TEST_P(RulesTest, TellsWhatTheLedgerHoldsAndForgetsIt) {
  const auto output = Open({});
  EXPECT_TRUE(output->Lookup({}).value().empty());
  const Batch batch{{.id = "a",
                     .offset = 7,
                     .token = 1ull << 62,
                     .crc = 0xfffffffeu,
                     .value = Amount(1),
                     .key = "k"},
                    {.id = "b {\"},\\ c", .offset = 8, .value = Amount(2), .key = "j"}};
  ASSERT_THAT(Results(*output, batch), ElementsAre(kCommitted, kCommitted));
  const auto found = output->Lookup({"none", "b {\"},\\ c", "a", "a"});
  ASSERT_TRUE(found) << found.error().error.Line();
  ASSERT_EQ(found->size(), 4u);
  EXPECT_FALSE((*found)[0]);
  ASSERT_TRUE((*found)[1] && (*found)[2] && (*found)[3]);
  EXPECT_EQ((*found)[1]->source, "orders/3/8");
  EXPECT_EQ((*found)[2]->token.value(), 1ull << 62);
  EXPECT_EQ((*found)[2]->crc, 0xfffffffeu);
  EXPECT_EQ((*found)[2]->worker, "worker-1");
  EXPECT_EQ((*found)[2]->source, "orders/3/7");
  EXPECT_THAT((*found)[2]->completed_at,
              ::testing::MatchesRegex("20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
                                      "\\.[0-9]{3}Z"));
  EXPECT_EQ(output->Forget({"a", "none"}).value(), 1u);
  EXPECT_EQ(output->Forget({"a"}).value(), 0u);
  EXPECT_EQ(output->Forget({}).value(), 0u);
  EXPECT_EQ(Ledger(), "b {\"},\\ c");
  EXPECT_EQ(Effects(), "j|2|NULL k|1|NULL") << "the effect is committed";
  Exec("DELETE FROM effects");
  EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted, kOwnEarlier)) << "on purpose";
}

TEST_P(RulesTest, KnowsTheTopicsOfWhichItsPipelineHasRows) {
  const auto output = Open({});
  ASSERT_TRUE(output->Prepare());
  Exec(
      "INSERT INTO fencepost_ledger VALUES ('other', 'a', 1, 'w', 'orders/0/1', 1,"
      " '2026-01-02 03:04:05')");
  EXPECT_FALSE(output->KnowsTopic("orders").value()) << "another pipeline's";
  const Batch batch{{.id = "a", .value = Amount(1), .key = "k"}};
  EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted));
  EXPECT_TRUE(output->KnowsTopic("orders").value());
  EXPECT_FALSE(output->KnowsTopic("order").value()) << "another topic, though it begins so";
  EXPECT_FALSE(output->KnowsTopic("ord%").value());
}

TEST_P(RulesTest, LooksUpAndForgetsOnlyItsOwnPipeline) {
  const auto output = Open({});
  ASSERT_TRUE(output->Prepare());
  Exec("INSERT INTO fencepost_ledger VALUES ('other', 'a', 1, 'w', 's', 1, '2026-01-02 03:04:05')");
  EXPECT_FALSE(output->Lookup({"a"}).value()[0]);
  EXPECT_EQ(output->Forget({"a"}).value(), 0u);
}

}  // namespace
}  // namespace fencepost::consumer
