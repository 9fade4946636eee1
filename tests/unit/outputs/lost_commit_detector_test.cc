#include "consumer/outputs/ledger/lost_commit_detector.h"

#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/component/outputs/batch.h"

namespace fencepost::consumer {
namespace {

using std::chrono::minutes;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A worker that commits, and a database that may forget.
class LostCommitDetectorTest : public ::testing::Test {
 protected:
  // What a transaction made of order-N from orders/PARTITION/OFFSET.
  struct Written {
    std::int32_t partition = 0;
    Offset offset = 0;
    WriteResult result = WriteResult::kCommitted;
    std::optional<int> id{};  // nullopt: a new one
  };

  void Commit(const std::vector<Written>& all) {
    Batch batch;
    std::vector<WriteOutcome> outcomes;
    for (const Written& one : all) {
      const int n = one.id ? *one.id : next_++;
      const locking::Token token = locking::Token::AtWall(now_.wall);
      batch.Add(
          {.id = Id(n), .offset = one.offset, .token = token.value(), .partition = one.partition});
      if (one.result == WriteResult::kCommitted) there_[Id(n)] = token;
      const bool found = EffectIsWritten(one.result) && one.result != WriteResult::kCommitted;
      outcomes.push_back(
          {.result = one.result, .stands = found ? there_.at(Id(n)) : locking::Token()});
    }
    witness_.Remember(now_, batch.items(), outcomes);
  }
  void Commit(std::int32_t partition, Offset offset) { Commit({{partition, offset}}); }
  // A transaction that was not answered, or another worker's.
  int CommitUnanswered() {
    there_[Id(next_)] = locking::Token::AtWall(now_.wall);
    return next_++;
  }
  void Find(int id, std::int32_t partition, Offset offset) {
    Commit({{partition, offset, WriteResult::kOwnEarlier, id}});
  }
  void Lose(int first, int last) {
    for (int n = first; n <= last; ++n) there_.erase(Id(n));
  }
  void Pass(std::chrono::minutes time) {
    now_.boot += time;
    now_.wall += time;
  }
  std::optional<LostCommits> Look() {
    auto search = witness_.Look(now_);
    for (asked_.clear(); const auto* ids = search.Ask();) {
      std::vector<std::optional<locking::Token>> rows;
      for (const std::string& id : *ids) {
        const auto row = there_.find(id);
        rows.push_back(row == there_.end() ? std::nullopt : std::optional(row->second));
      }
      asked_.push_back(*ids);
      search.Answer(rows);
    }
    return search.Lost();
  }
  static std::string Id(int n) { return "order-" + std::to_string(n); }
  static std::string BackTo(const std::optional<LostCommits>& lost) {
    std::string text;
    if (!lost) return "nothing lost";
    for (const SourceOffset& one : lost->back_to) {
      text += fmt::format("{}{}", text.empty() ? "" : " ", SourceText(one.where, one.next));
    }
    return fmt::format("{}{}: {}", lost->at_least ? "at least " : "", lost->commits, text);
  }

  locking::Now now_ = locking::ReadClocks();
  LostCommitDetector witness_{std::chrono::hours(1), 8};
  std::map<std::string, locking::Token> there_;
  int next_ = 0;
  std::vector<std::vector<std::string>> asked_;  // by the last Look
};

TEST_F(LostCommitDetectorTest, LooksOnceWhereNothingIsMissing) {
  EXPECT_EQ(BackTo(Look()), "nothing lost");
  EXPECT_EQ(asked_.size(), 0u);
  for (int n = 0; n < 6; ++n) Commit(0, n);
  EXPECT_EQ(BackTo(Look()), "nothing lost");
  EXPECT_EQ(asked_.size(), 1u);
}

TEST_F(LostCommitDetectorTest, KnowsARowThatAnotherWroteAnewFromItsOwn) {
  Commit(0, 5);
  ASSERT_EQ(BackTo(Look()), "nothing lost");
  there_[Id(0)] = locking::Token(there_[Id(0)].value() + 1);
  EXPECT_EQ(BackTo(Look()), "1: orders/0/5");
}

TEST_F(LostCommitDetectorTest, RemembersOfATransactionTheRecordsWhoseEffectStands) {
  const int earlier = CommitUnanswered();
  Commit({{3, 9},
          {3, 4, WriteResult::kOwnEarlier, earlier},
          {3, 2, WriteResult::kIdConflict},
          {3, 1, WriteResult::kNotWritten}});
  Commit({{3, 0, WriteResult::kNotWritten}});
  Lose(1, 1);
  EXPECT_EQ(BackTo(Look()), "1: orders/3/4");
  EXPECT_THAT(asked_, ElementsAre(ElementsAre(Id(1))));
}

TEST_F(LostCommitDetectorTest, SaysAtLeastWhereOlderOnesAreNotRemembered) {
  for (int n = 0; n < 20; ++n) Commit(0, n);
  Lose(5, 19);
  EXPECT_EQ(BackTo(Look()), "at least 8: orders/0/12");
}

TEST_F(LostCommitDetectorTest, TakesOneRowOfACommitForAllOfThem) {
  Commit({{0, 1}, {0, 2}, {0, 3}});
  Lose(1, 2);
  EXPECT_EQ(BackTo(Look()), "nothing lost");
}

TEST_F(LostCommitDetectorTest, DoesNotAskForWhatMayHaveBeenPruned) {
  Commit(0, 1);
  Lose(0, 0);
  Pass(minutes(29));
  EXPECT_EQ(BackTo(Look()), "1: orders/0/1");
  Pass(minutes(2));
  EXPECT_EQ(BackTo(Look()), "nothing lost");
  Commit(0, 2);
  Lose(1, 1);
  EXPECT_EQ(BackTo(Look()), "at least 1: orders/0/1") << "the first one may be lost, too";
}

TEST_F(LostCommitDetectorTest, CountsCommitsWithoutRowsOfTheirOwnWithTheLostOnesBesideThem) {
  const int others = CommitUnanswered();
  Commit(0, 1);
  Find(others, 1, 7);
  Commit(0, 2);
  Find(others, 1, 8);
  Lose(2, 2);
  EXPECT_EQ(BackTo(Look()), "2: orders/0/2 orders/1/7");
}

// --- rows that a transaction found ---------------------------------------------------------------

TEST_F(LostCommitDetectorTest, AsksForEachRowThatWasFoundSinceItsNewestCommit) {
  Commit(0, 1);
  const int first = CommitUnanswered();
  const int second = CommitUnanswered();
  Commit({{0, 2, WriteResult::kOwnEarlier, first}, {0, 3, WriteResult::kOwnEarlier, second}});
  EXPECT_EQ(BackTo(Look()), "nothing lost");
  EXPECT_THAT(asked_, ElementsAre(ElementsAre(Id(0)), ElementsAre(Id(first), Id(second))));
  Lose(second, second);
  EXPECT_EQ(BackTo(Look()), "1: orders/0/2");
}

TEST_F(LostCommitDetectorTest, FindsTheLossOfRowsOfOthersTooWhereItHasPassedTheirRecords) {
  for (const WriteResult found : {WriteResult::kDuplicate, WriteResult::kFenced}) {
    witness_.Forget();
    const int others = CommitUnanswered();
    Commit({{1, 4, found, others}});
    EXPECT_EQ(BackTo(Look()), "nothing lost");
    Lose(others, others);
    EXPECT_EQ(BackTo(Look()), "at least 1: orders/1/4");
  }
}

TEST_F(LostCommitDetectorTest, TakesAFoundRowThatAnotherWroteAnewForDone) {
  const int id = CommitUnanswered();
  Find(id, 0, 2);
  Pass(minutes(1));
  there_[Id(id)] = locking::Token::AtWall(now_.wall);
  EXPECT_EQ(BackTo(Look()), "nothing lost");
}

TEST_F(LostCommitDetectorTest, TakesAFoundRowForNoEvidenceThatCommitsAreThere) {
  const int old = CommitUnanswered();
  Commit(0, 1);
  Find(old, 1, 7);
  Lose(1, 1);
  EXPECT_EQ(BackTo(Look()), "2: orders/0/1 orders/1/7");
}

TEST_F(LostCommitDetectorTest, AsksForNoRowThatWasFoundBeforeACommitThatIsThere) {
  const int found = CommitUnanswered();
  Find(found, 0, 1);
  Commit(0, 2);
  EXPECT_EQ(BackTo(Look()), "nothing lost");
  EXPECT_THAT(asked_, ElementsAre(ElementsAre(Id(1))));
}

TEST_F(LostCommitDetectorTest, DoesNotTakeAFoundRowThatWasPrunedForALoss) {
  const int old = CommitUnanswered();
  Pass(minutes(31));
  Find(old, 0, 1);
  Lose(old, old);
  EXPECT_EQ(BackTo(Look()), "nothing lost");
}

TEST_F(LostCommitDetectorTest, RemembersTheNewestOfTheRowsThatItFound) {
  for (int n = 0; n < 9; ++n) Find(CommitUnanswered(), 0, n);
  Lose(0, 0);
  EXPECT_EQ(BackTo(Look()), "nothing lost");
  Lose(8, 8);
  EXPECT_EQ(BackTo(Look()), "at least 1: orders/0/1");
}

TEST_F(LostCommitDetectorTest, SaysInOneLineWhatWasLostAndHowToGoBack) {
  Commit(0, 1);
  Commit(3, 17);
  Lose(1, 1);
  const std::string line =
      LostCommitsError(*Look(), "db-2:5432/shop", "timeline 1 -> 2", "billing").Line();
  EXPECT_THAT(line, AllOf(HasSubstr("db-2:5432/shop: the database lost 1 commit of"),
                          HasSubstr("(timeline 1 -> 2)"), HasSubstr("orders,3,17)"),
                          HasSubstr("kafka-consumer-groups --group billing --reset-offsets")));
  EXPECT_EQ(line.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace fencepost::consumer
