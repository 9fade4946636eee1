// What a row does to one that is in the table, in every database. What a batch of them leaves:
// order_test.cc.
#include <gmock/gmock.h>

#include "tests/component/outputs/store.h"

namespace fencepost::consumer {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
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
INSTANTIATE_TEST_SUITE_P(Stores, RulesTest, kStores, StoreName);

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

// Rows of two keys come in any order: one gives a unique value up, the other takes it.
TEST_P(RulesTest, AUniqueValueThatAnotherRowHasMayPassAndIsTakenOnceThatRowGivesItUp) {
  Exec("CREATE UNIQUE INDEX amounts ON effects (amount)");
  const auto output = Open(WithDeletes(Update()));
  const Batch first{{.id = "1", .value = Amount(1), .key = "k"},
                    {.id = "2", .value = Amount(2), .key = "l"}};
  ASSERT_THAT(Results(*output, first), ElementsAre(kCommitted, kCommitted));
  const Batch takes{{.id = "3", .value = Amount(1), .key = "j"}};
  const auto alone = WriteAll(*output, takes);
  ASSERT_TRUE(alone) << alone.error().error.Line();
  EXPECT_EQ((*alone)[0].result, kBadRecord);
  EXPECT_TRUE((*alone)[0].may_pass);
  const Batch both{{.id = "3", .value = Amount(1), .key = "j"},
                   {.id = "4", .value = Amount(2), .key = "i"},
                   {.id = "5", .value = Amount(5), .key = "k"},
                   {.id = "6", .key = "l", .tombstone = true}};
  const auto outcomes = WriteAll(*output, both);
  ASSERT_TRUE(outcomes) << outcomes.error().error.Line();
  // Written with the deletion behind it, the second is taken at once.
  for (const std::size_t i : {0U, 1U}) {
    EXPECT_TRUE((*outcomes)[i].result == kCommitted || (*outcomes)[i].may_pass) << i;
  }
  const Batch again{{.id = "3", .value = Amount(1), .key = "j"},
                    {.id = "4", .value = Amount(2), .key = "i"}};
  EXPECT_THAT(Results(*output, again), Each(AnyOf(kCommitted, kOwnEarlier)));
  EXPECT_EQ(Effects(), "i|2|NULL j|1|NULL k|5|NULL");
}

TEST_P(RulesTest, AUniqueValueThatAnotherRowHasDoesNotPassWhereNoRowIsChanged) {
  Exec("CREATE UNIQUE INDEX amounts ON effects (amount)");
  const auto output = Open({});
  const Batch batch{{.id = "1", .value = Amount(1), .key = "k"},
                    {.id = "2", .value = Amount(1), .key = "j"}};
  const auto outcomes = WriteAll(*output, batch);
  ASSERT_TRUE(outcomes) << outcomes.error().error.Line();
  EXPECT_EQ((*outcomes)[1].result, kBadRecord);
  EXPECT_FALSE((*outcomes)[1].may_pass);
}

TEST_P(RulesTest, ARowWhoseForeignKeyIsStillToComeMayPassAndOthersAreBadForThemselves) {
  Exec(fmt::format("CREATE TABLE parents (id {} PRIMARY KEY)", Text()));
  Exec(
      fmt::format("CREATE TABLE children (id {0}, amount integer CHECK (amount <> 13), FOREIGN KEY"
                  " (id) REFERENCES parents (id))",
                  Text()));
  Exec("INSERT INTO parents VALUES ('k')");
  const auto output = store_->Open({.columns = ByKey(), .table = "children"});
  const Batch batch{{.id = "1", .value = Amount(1), .key = "k"},
                    {.id = "2", .value = Amount(1), .key = "j"},
                    {.id = "3", .value = Amount(13), .key = "k"}};
  const auto outcomes = WriteAll(*output, batch);
  ASSERT_TRUE(outcomes) << outcomes.error().error.Line();
  EXPECT_EQ((*outcomes)[0].result, kCommitted);
  EXPECT_TRUE((*outcomes)[1].may_pass) << (*outcomes)[1].detail;
  EXPECT_EQ((*outcomes)[2].result, kBadRecord);
  EXPECT_FALSE((*outcomes)[2].may_pass) << (*outcomes)[2].detail;
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

// Without a fence: of a worker that was frozen with the first change in its hands, while another
// took its partition over.
TEST_P(RulesTest, ALateWriteOfAFrozenWorkerChangesNothing) {
  for (const bool deletes : {false, true}) {
    Exec("DROP TABLE IF EXISTS fencepost_ledger");
    Exec("DELETE FROM effects");
    const auto frozen = store_->Open(ByKey(), WithDeletes(Update()), {}, "worker-1");
    const auto next = store_->Open(ByKey(), WithDeletes(Update()), {}, "worker-2");
    const Batch first{{.id = "1", .offset = 1, .token = 1, .value = Amount(1), .key = "k"}};
    const Batch both{
        {.id = "1", .offset = 1, .token = 2, .value = Amount(1), .key = "k"},
        {.id = "2", .offset = 2, .token = 2, .value = Amount(2), .key = "k", .tombstone = deletes}};
    ASSERT_TRUE(frozen->Prepare());
    EXPECT_EQ(Results(*next, both), All(2, kCommitted));
    const std::string left = deletes ? "" : "k|2|NULL";
    EXPECT_EQ(Effects(), left);
    EXPECT_THAT(Results(*frozen, first), ElementsAre(kOwnEarlier));
    EXPECT_EQ(Effects(), left);
    EXPECT_EQ(Results(*frozen, both), All(2, kOwnEarlier));
    EXPECT_EQ(Effects(), left);
  }
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

// 2^53 + 1 and its neighbours are one number to a double.
TEST_P(RulesTest, FencesOfMoreThan53BitsAreCompared) {
  RowRules rules = WithDeletes(Fenced());
  rules.fence_by = Parsed("header:version");
  const auto output = Open(rules);
  Exec("INSERT INTO effects (id, amount, version) VALUES ('k', 1, 9007199254740993)");
  const auto after = [&](const char* id, const char* version) {
    const Batch batch{{.id = id, .key = "k", .tombstone = true, .headers = {{"version", version}}}};
    EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted));
    return Exec("SELECT count(*) FROM effects");
  };
  EXPECT_EQ(after("1", "9007199254740992"), "1");
  EXPECT_EQ(after("2", "9007199254740994"), "0");
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
  EXPECT_THAT(Results(*output, batch), ElementsAre(kNoOutput, kCommitted));
  EXPECT_THAT(Results(*output, batch), ElementsAre(kOwnEarlier, kOwnEarlier));
  EXPECT_EQ(Effects(), "j|2|NULL");
  EXPECT_EQ(Ledger(), "1 2");
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
  EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted, kCommitted, kNoOutput, kCommitted));
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
