// Which records a failure is about, and what becomes of the others.
#include "consumer/outputs/write_retry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/outputs/scripted_table.h"

namespace fencepost::consumer {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using enum WriteResult;

class WriteRetryTest : public ::testing::Test {
 protected:
  ScriptedTable table_;
  PlanRun run_{table_};
};

TEST_F(WriteRetryTest, AHealthyRequestIsOneTransaction) {
  EXPECT_THAT(run_.Results(Items::Range(0, 500)), Each(kCommitted));
  EXPECT_EQ(table_.transactions, 1);
  EXPECT_EQ(table_.prepared, 0);
  EXPECT_THAT(run_.waits, IsEmpty());
}

TEST_F(WriteRetryTest, HandsBackWhatHasNoOutcomeOnceTheTimeOfTheBatchIsOver) {
  const Items items{{1, 7}, {2, 7}, {3}};
  WriteRetry retry(table_.max_records());
  retry.Begin(1, 0, items.items(), {});
  retry.Next();
  retry.OnFailed(ScriptedTable::Failed(WriteFailure::kTooSlow));
  ASSERT_THAT(retry.Next().items, ElementsAre(0));
  retry.OnWritten({{.result = kCommitted}});
  retry.Next();
  retry.OnFailed(ScriptedTable::Failed(WriteFailure::kUnavailable));
  retry.Expire();
  EXPECT_EQ(retry.Next().kind, WriteRetry::Step::Kind::kDone);
  std::vector<WriteResult> results;
  for (const WriteOutcome& outcome : retry.Take()) results.push_back(outcome.result);
  EXPECT_THAT(results, ElementsAre(kCommitted, kNotWritten, kNotWritten));
}

// Their log cannot be compared yet.
TEST_F(WriteRetryTest, WhatIsLeftOutIsHandedBackWithItsChainAndTheOthersAreWrittenAtOnce) {
  for (const bool unanswered : {false, true}) {
    OutputError error = ScriptedTable::Failed(WriteFailure::kUnavailable);
    error.later = {0, 2};
    error.unanswered = unanswered;
    table_.failures = {error};
    Items items;
    items.Add(1, 7);
    items.Add(2, 7);
    items.Add(3);
    items.Add(4);
    const auto outcomes = run_.Write(items);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(outcomes[i].result, i == 3 ? kCommitted : kNotWritten) << i;
      EXPECT_EQ(outcomes[i].in_doubt, unanswered && i < 3) << i;
    }
    EXPECT_THAT(run_.waits, IsEmpty());
    table_.committed.clear();
  }
  OutputError all = ScriptedTable::Failed(WriteFailure::kUnavailable);
  all.later = {0};
  table_.failures = {all};
  EXPECT_THAT(run_.Results({1}), ElementsAre(kNotWritten));
  EXPECT_THAT(run_.waits, ElementsAre(100ms)) << "there is no other to write meanwhile";
}

// --- refused -----------------------------------------------------------------------------------

TEST_F(WriteRetryTest, ARefusalThatANewLookAtTheCatalogFixesIsNobodysFault) {
  table_.failures = {ScriptedTable::Failed(WriteFailure::kRefused)};
  EXPECT_THAT(run_.Results({1, 2, 3}), Each(kCommitted));
  EXPECT_EQ(table_.prepared, 1);
  EXPECT_THAT(table_.sizes, ElementsAre(3, 3));
}

TEST_F(WriteRetryTest, OneRefusedRecordIsFoundAmongManyAndKeepsTheServersWords) {
  table_.refused = {137};
  const Items items(Items::Range(0, 500));
  const auto outcomes = run_.Write(items);
  for (int i = 0; i < 500; ++i) {
    EXPECT_EQ(outcomes[i].result, i == 137 ? kBadRecord : kCommitted) << i;
  }
  EXPECT_EQ(outcomes[137].detail, "refused 137");
  EXPECT_EQ(outcomes[137].shown, "refused");
  EXPECT_EQ(outcomes[137].reason, DeadLetterReason::kOutput);
  EXPECT_EQ(table_.transactions, 2);
  EXPECT_EQ(run_.reason, "");
}

TEST_F(WriteRetryTest, BadRecordsAreFoundInOneTransactionThatCommitsTheOthers) {
  for (int i = 0; i < 500; i += 10) table_.refused.insert(i);
  const auto results = run_.Results(Items::Range(0, 500));
  for (int i = 0; i < 500; ++i) EXPECT_EQ(results[i], i % 10 == 0 ? kBadRecord : kCommitted) << i;
  EXPECT_THAT(table_.sizes, ElementsAre(500, 500));
}

TEST_F(WriteRetryTest, AnOutputThatCannotWriteRecordsApartIsAskedByHalves) {
  table_.savepoints = false;
  table_.refused = {137, 400};
  const auto results = run_.Results(Items::Range(0, 500));
  EXPECT_EQ(std::ranges::count(results, kBadRecord), 2);
  EXPECT_EQ(std::ranges::count(results, kCommitted), 498);
  EXPECT_LE(table_.transactions, 75);
}

TEST_F(WriteRetryTest, TheCatalogIsReadAgainOnceAMinuteForAKindOfRefusalThatIsARecords) {
  int next = 0;
  const auto prepared = [&](const std::string& kind) {
    table_.kind = kind;
    table_.prepared = 0;
    table_.refused = {next + 5};
    table_.words[next + 5] = kind;
    EXPECT_EQ(run_.Results(Items::Range(next, next + 10))[5], kBadRecord);
    next += 10;
    return table_.prepared;
  };
  EXPECT_EQ(prepared("a text"), 1);
  run_.now += 59s;
  EXPECT_EQ(prepared("a text"), 0);
  EXPECT_EQ(prepared("a null"), 1) << "of another kind";
  run_.now += 1s;
  EXPECT_EQ(prepared("a text"), 1) << "the table may have been changed";
  EXPECT_EQ(prepared("a text"), 0);
}

TEST_F(WriteRetryTest, TheCatalogIsReadAgainEachTimeWhereNoRecordWasToBlame) {
  for (int batch = 0; batch < 2; ++batch) {
    table_.failures = {ScriptedTable::Failed(WriteFailure::kRefused)};
    table_.failures.front().kind = "42703";
    EXPECT_THAT(run_.Results({batch}), ElementsAre(kCommitted));
  }
  EXPECT_EQ(table_.prepared, 2);
}

TEST_F(WriteRetryTest, TheFourBatchesBehindOneWithBadRecordsAreWrittenApartAtOnce) {
  int next = 0;
  const auto sizes = [&](bool dirty) {
    table_.refused = {dirty ? next + 5 : -1};
    table_.sizes.clear();
    run_.Results(Items::Range(next, next + 100));
    next += 100;
    return table_.sizes.size();
  };
  EXPECT_EQ(sizes(true), 2u) << "together, then apart";
  for (int clean = 0; clean < 3; ++clean) EXPECT_EQ(sizes(false), 1u);
  EXPECT_EQ(sizes(true), 1u) << "apart at once";
  for (int clean = 0; clean < 4; ++clean) EXPECT_EQ(sizes(false), 1u);
  EXPECT_EQ(sizes(true), 2u);
}

// The second kind is met where the catalog was not read again for it.
TEST_F(WriteRetryTest, NobodyIsBadForAKindOfRefusalBeforeTheCatalogWasReadAgainForIt) {
  for (const bool fixed : {false, true}) {
    ScriptedTable table;
    PlanRun run(table);
    table.words = {{8, "old"}, {108, "old"}, {208, "old"}, {308, "old"}, {309, "new"}};
    for (int from = 0; from < 300; from += 100) {
      table.refused = {from + 8};
      run.Results(Items::Range(from, from + 100));
    }
    table.refused = {308, 309};
    table.prepared = table.transactions = 0;
    table.fixed_by_prepare = fixed ? std::set<int>{309} : std::set<int>{};
    const auto results = run.Results(Items::Range(300, 400));
    for (int i = 0; i < 100; ++i) {
      EXPECT_EQ(results[i], i == 8 || (i == 9 && !fixed) ? kBadRecord : kCommitted) << i;
    }
    EXPECT_EQ(table.prepared, 1);
    EXPECT_EQ(table.transactions, 2);
    EXPECT_EQ(run.reason, "");
  }
}

TEST_F(WriteRetryTest, ManyRecordsThatAreRefusedForANewKindAreBadSinceTheTableTookTheOthers) {
  for (int i = 0; i < 4; ++i) {
    for (int bad = 100 * i; bad < 100 * i + 40; ++bad) {
      table_.refused.insert(bad);
      table_.words[bad] = i < 3 ? "old" : "new";
    }
    const auto results = run_.Results(Items::Range(100 * i, 100 * i + 100));
    EXPECT_EQ(std::ranges::count(results, kBadRecord), 40) << i;
    EXPECT_EQ(std::ranges::count(results, kCommitted), 60) << i;
  }
}

TEST_F(WriteRetryTest, NothingOfAChainIsWrittenBehindARecordThatIsRefusedApart) {
  table_.refused = {2};
  const Items items{{1, 7}, {2, 7}, {3, 7}, {4, 8}};
  EXPECT_THAT(run_.Results(items), ElementsAre(kCommitted, kBadRecord, kNotWritten, kCommitted));
  const Items filled_before{{5, 7}, {6, 8}};
  std::vector<WriteResult> results;
  for (const WriteOutcome& outcome : run_.Write(filled_before, run_.batch() - 1)) {
    results.push_back(outcome.result);
  }
  EXPECT_THAT(results, ElementsAre(kNotWritten, kCommitted));
}

TEST_F(WriteRetryTest, OneBadRecordDoesNotStopAQuietTopicButAFurtherElevenInARowDo) {
  table_.refuses_all = true;
  for (int i = 0; i < 10; ++i) EXPECT_THAT(run_.Results({i}), ElementsAre(kBadRecord)) << i;
  EXPECT_THAT(run_.Results({10}), ElementsAre(kNotWritten));
  EXPECT_THAT(run_.reason, HasSubstr("refuses every record: refused"));
  table_.refuses_all = false;
  EXPECT_THAT(run_.Results({10}), ElementsAre(kCommitted));
  table_.refuses_all = true;
  EXPECT_THAT(run_.Results({11}), ElementsAre(kBadRecord))
      << "counted from the last that was taken";
}

TEST_F(WriteRetryTest, ARecordThatAnotherMayMendIsSaidToMayPassAndIsNoEvidenceAgainstTheTable) {
  OutputError error = ScriptedTable::Failed(WriteFailure::kRefused);
  error.between = OutputError::Between::kUnique;
  for (int i = 0; i < 30; ++i) {
    table_.failures = {error};
    const auto outcomes = run_.Write(Items(std::vector<int>{i}));
    ASSERT_EQ(outcomes[0].result, kBadRecord) << i;
    EXPECT_TRUE(outcomes[0].may_pass);
  }
  EXPECT_EQ(table_.prepared, 0) << "the catalog says nothing of it";
  EXPECT_THAT(run_.waits, IsEmpty());
}

TEST_F(WriteRetryTest, SoManyInARowAreBadAsItIsToldAndWithoutALimitAllAre) {
  table_.refuses_all = true;
  PlanRun three(table_, 3);
  for (int i = 0; i < 3; ++i) EXPECT_THAT(three.Results({i}), ElementsAre(kBadRecord)) << i;
  EXPECT_THAT(three.Results({3}), ElementsAre(kNotWritten));
  PlanRun unlimited(table_, 0);
  EXPECT_THAT(unlimited.Results(Items::Range(0, 500)), Each(kBadRecord));
  EXPECT_THAT(unlimited.Results(Items::Range(500, 600)), Each(kBadRecord));
  EXPECT_EQ(unlimited.reason, "");
}

TEST_F(WriteRetryTest, AnErrorThatAllRecordsShareMakesNoneBadAndCostsFewTransactions) {
  table_.refuses_all = true;
  std::vector<WriteRetry::Wait> waits;
  for (int i = 0; i < 7; ++i) {
    table_.transactions = 0;
    EXPECT_THAT(run_.Results(Items::Range(0, 500)), Each(kNotWritten));
    EXPECT_LE(table_.transactions, 60);
    ASSERT_EQ(run_.waits.size(), 1u);
    waits.push_back(run_.waits[0]);
  }
  EXPECT_THAT(waits, ElementsAre(1s, 2s, 4s, 8s, 16s, 30s, 30s));
  EXPECT_THAT(run_.Results({500}), ElementsAre(kNotWritten)) << "not one by one either";
}

TEST_F(WriteRetryTest, ManyBadRecordsInARowAreBadWhereTheTableTakesOthers) {
  for (int i = 0; i < 300; ++i) table_.refused.insert(i);
  const auto results = run_.Results(Items::Range(0, 500));
  for (int i = 0; i < 500; ++i) EXPECT_EQ(results[i], i < 300 ? kBadRecord : kCommitted) << i;
}

// Refuses everything until the count-th transaction.
class FixedTable final : public Output {
 public:
  explicit FixedTable(ScriptedTable& table, int at) : table_(table), at_(at) {}
  [[nodiscard]] std::size_t max_records() const override { return table_.max_records(); }
  tl::expected<void, OutputError> Prepare() override { return {}; }
  void Interrupt() override {}
  ScriptedTable::Outcomes Write(const WriteRequest& request) override {
    table_.refuses_all = table_.transactions < at_;
    return table_.Write(request);
  }

 private:
  ScriptedTable& table_;
  const int at_;
};

TEST_F(WriteRetryTest, WhatATableRefusedThatIsFixedDuringTheSearchIsNotBad) {
  for (int at = 2; at < 50; at += 3) {
    ScriptedTable table;
    FixedTable fixed(table, at);
    WriteRetry retry(500);
    const Items items(Items::Range(0, 500));
    const auto outcomes = WriteAtOnce(fixed, retry, {.items = items.items(), .offsets = {}});
    ASSERT_TRUE(outcomes);
    const auto bad = std::ranges::count(*outcomes, kBadRecord, &WriteOutcome::result);
    // Up to ten are believed without a second look.
    EXPECT_LE(bad, 10) << "fixed at transaction " << at;
  }
}

TEST_F(WriteRetryTest, ADeletionOrALedgerRowAloneIsNoEvidenceThatTheTableTakesRows) {
  table_.deletions = true;
  for (int i = 0; i < 11; ++i) table_.refused.insert(i);
  const auto results = run_.Results(Items::Range(0, 30));
  EXPECT_THAT(std::vector(results.begin(), results.begin() + 11), Each(kNotWritten));
  EXPECT_NE(run_.reason, "");
}

// --- too slow ----------------------------------------------------------------------------------

TEST_F(WriteRetryTest, ATransactionThatTakesTooLongIsHalvedAndTheLimitIsRemembered) {
  table_.most_cost = 200;
  EXPECT_THAT(run_.Results(Items::Range(0, 500)), Each(kCommitted));
  EXPECT_THAT(table_.sizes, ElementsAre(500, 250, 125, 125, 125, 125));
  table_.sizes.clear();
  EXPECT_THAT(run_.Results(Items::Range(500, 1000)), Each(kCommitted));
  EXPECT_THAT(table_.sizes, ElementsAre(125, 125, 125, 125));
}

TEST_F(WriteRetryTest, TheLimitGrowsAgainSlowlyOnceTheOutputIsQuick) {
  table_.most_cost = 200;
  int next = 0;
  const auto write = [&](int batches) {
    for (int i = 0; i < batches; ++i, next += 500) {
      ASSERT_THAT(run_.Results(Items::Range(next, next + 500)), Each(kCommitted));
    }
  };
  write(1);
  EXPECT_EQ(run_.retry().limit(), 125u);
  table_.most_cost = 1 << 30;
  write(40);
  EXPECT_EQ(run_.retry().limit(), 500u);
}

TEST_F(WriteRetryTest, WhereGrowingFailsItIsTriedMoreAndMoreRarely) {
  table_.most_cost = 200;
  int next = 0;
  const auto failed = [&](int batches) {
    int slow = 0;
    for (int i = 0; i < batches; ++i, next += 500) {
      table_.sizes.clear();
      EXPECT_THAT(run_.Results(Items::Range(next, next + 500)), Each(kCommitted));
      slow += static_cast<int>(std::ranges::count_if(table_.sizes, [](auto n) { return n > 200; }));
    }
    return slow;
  };
  failed(1);
  const int early = failed(100);
  failed(300);
  EXPECT_GT(early, 0);
  EXPECT_LT(failed(100), early);
}

TEST_F(WriteRetryTest, ARecordThatIsTooSlowTwiceByItselfIsBadForItsTime) {
  table_.most_cost = 600;
  table_.cost = {{2, 1000}};
  const Items items(Items::Range(1, 4));
  const auto outcomes = run_.Write(items);
  EXPECT_EQ(outcomes[0].result, kCommitted);
  EXPECT_EQ(outcomes[1].result, kBadRecord);
  EXPECT_EQ(outcomes[1].reason, DeadLetterReason::kTimeout);
  EXPECT_EQ(outcomes[2].result, kCommitted);
  EXPECT_THAT(table_.sizes, ElementsAre(3, 1, 1, 1, 1));
}

TEST_F(WriteRetryTest, WhereEveryRecordIsTooSlowNoneIsBad) {
  table_.most_cost = 0;
  EXPECT_THAT(run_.Results(Items::Range(0, 100)), Each(kNotWritten));
  EXPECT_LE(table_.transactions, 26);
  EXPECT_NE(run_.reason, "");
}

TEST_F(WriteRetryTest, WithoutAnAnswerARecordIsNeverBad) {
  table_.most_cost = 5;
  table_.cost = {{2, 1000}};
  table_.unknown = true;
  EXPECT_THAT(run_.Results({1, 2, 3}), ElementsAre(kCommitted, kNotWritten, kCommitted));
  EXPECT_GE(run_.waits.size(), 3u);
}

// The first transaction may be committed yet, when its connection has been given up.
TEST_F(WriteRetryTest, ABadRecordOfATransactionThatWasNotAnsweredIsInDoubt) {
  table_.refused = {2};
  OutputError unanswered = ScriptedTable::Failed(WriteFailure::kUnavailable);
  unanswered.unanswered = true;
  table_.failures = {unanswered};
  const Items items(Items::Range(1, 4));
  const auto outcomes = run_.Write(items);
  EXPECT_EQ(outcomes[1].result, kBadRecord);
  EXPECT_TRUE(outcomes[1].in_doubt);
  EXPECT_FALSE(outcomes[0].in_doubt) << "it is committed";
  table_.failures = {ScriptedTable::Failed(WriteFailure::kUnavailable)};
  const Items answered{{2}};
  EXPECT_FALSE(run_.Write(answered)[0].in_doubt);
}

TEST_F(WriteRetryTest, WhatIsHandedBackWithoutAnAnswerIsInDoubt) {
  table_.most_cost = 5;
  table_.cost = {{2, 1000}};
  table_.unknown = true;
  const Items items{{2}};
  const auto outcomes = run_.Write(items);
  EXPECT_EQ(outcomes[0].result, kNotWritten);
  EXPECT_TRUE(outcomes[0].in_doubt);
}

// --- locked, away ------------------------------------------------------------------------------

TEST_F(WriteRetryTest, ALockedRowHoldsBackItsChainAloneAndIsTriedByItselfFromThenOn) {
  table_.locked = {2};
  const Items items{{1, 7}, {2, 7}, {3, 7}, {4, 8}};
  EXPECT_THAT(run_.Results(items), ElementsAre(kCommitted, kNotWritten, kNotWritten, kCommitted));
  const Items again{{2, 7}, {3, 7}, {5, 9}};
  table_.sizes.clear();
  EXPECT_THAT(run_.Results(again), ElementsAre(kNotWritten, kNotWritten, kCommitted));
  EXPECT_THAT(table_.sizes, ElementsAre(1, 1)) << "the free one, then the locked one";
  table_.locked.clear();
  EXPECT_THAT(run_.Results(again), ElementsAre(kCommitted, kCommitted, kOwnEarlier));
  EXPECT_THAT(table_.order[7], ElementsAre(1, 2, 3));
}

TEST_F(WriteRetryTest, ALockedTableIsGivenUpAfterAFewTriesAndNoRecordIsBad) {
  for (int i = 0; i < 500; ++i) table_.locked.insert(i);
  EXPECT_THAT(run_.Results(Items::Range(0, 500)), Each(kNotWritten));
  EXPECT_LE(table_.transactions, 11);
  EXPECT_THAT(run_.waits, ElementsAre(1s));
  EXPECT_EQ(run_.reason, "locked");
}

TEST_F(WriteRetryTest, ADeadlockIsWrittenAgainAtOnceButNotForEver) {
  OutputError deadlock = ScriptedTable::Failed(WriteFailure::kUnavailable);
  deadlock.retry_at_once = true;
  table_.failures.assign(3, deadlock);
  EXPECT_THAT(run_.Results({1, 2}), Each(kCommitted));
  EXPECT_THAT(run_.waits, IsEmpty());
  table_.failures.assign(100, deadlock);
  EXPECT_THAT(run_.Results({3}), ElementsAre(kNotWritten));
  EXPECT_THAT(run_.waits, ElementsAre(1s));
}

TEST_F(WriteRetryTest, AnOutputThatIsAwayIsWaitedForWithTheSameTransaction) {
  table_.failures.assign(9, ScriptedTable::Failed(WriteFailure::kUnavailable));
  EXPECT_THAT(run_.Results({1, 2, 3}), Each(kCommitted));
  EXPECT_THAT(run_.waits,
              ElementsAre(50ms, 100ms, 200ms, 400ms, 800ms, 1600ms, 3200ms, 5000ms, 5000ms));
  EXPECT_THAT(table_.sizes, Each(3));
}

TEST(WriteRetryOfOneTransaction, TakesTheOutcomesAsTheyAre) {
  ScriptedTable table;
  table.unruly = {2};
  WriteRetry retry(0);
  const Items items{{1, 7}, {2, 7}};
  for (int batch = 1; batch < 3; ++batch) {
    const auto outcomes =
        WriteAtOnce(table, retry, {.items = items.items(), .offsets = {}}, batch, 0);
    ASSERT_TRUE(outcomes);
    EXPECT_EQ((*outcomes)[0].result, kNotWritten);
    EXPECT_EQ((*outcomes)[1].result, kBadRecord);
    EXPECT_EQ(table.transactions, batch);
  }
  const std::vector<WriteItem> none;
  retry.Begin(3, 0, none, {});
  EXPECT_EQ(retry.Next().kind, WriteRetry::Step::Kind::kWrite) << "offsets alone";
}

}  // namespace
}  // namespace fencepost::consumer
