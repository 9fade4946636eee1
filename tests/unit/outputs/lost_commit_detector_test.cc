#include "consumer/outputs/lost_commit_detector.h"

#include <set>

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
  // One record a commit: order-N from orders/PARTITION/OFFSET.
  void Commit(std::int32_t partition, Offset offset, bool inserted = true) {
    const std::string id = "order-" + std::to_string(next_++);
    witness_.Begin(now_);
    witness_.Add({"orders", partition}, offset, id, inserted);
    there_.insert(id);
  }
  void Lose(int first, int last) {
    for (int n = first; n <= last; ++n) there_.erase("order-" + std::to_string(n));
  }
  std::optional<LostCommits> Look() {
    auto search = witness_.Look(now_.boot);
    for (looks_ = 0; const auto* ids = search.Ask(); ++looks_) {
      bool there = false;
      for (const std::string& id : *ids) there = there || there_.contains(id);
      search.Answer(there);
    }
    return search.Lost();
  }
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
  std::set<std::string> there_;
  int next_ = 0;
  int looks_ = 0;
};

TEST_F(LostCommitDetectorTest, LooksOnceWhereNothingIsMissing) {
  EXPECT_EQ(BackTo(Look()), "nothing lost");
  EXPECT_EQ(looks_, 0);
  for (int n = 0; n < 6; ++n) Commit(0, n);
  EXPECT_EQ(BackTo(Look()), "nothing lost");
  EXPECT_EQ(looks_, 1);
}

TEST_F(LostCommitDetectorTest, KnowsARowThatAnotherWroteAnewFromItsOwn) {
  witness_.Begin(now_);
  witness_.Add({"orders", 0}, 5, "order-5", true, locking::Token(7));
  const auto search = witness_.Look(now_.boot);
  ASSERT_NE(search.Ask(), nullptr);
  EXPECT_TRUE(search.IsOurs(0, locking::Token(7)));
  EXPECT_FALSE(search.IsOurs(0, locking::Token(8)));
}

TEST_F(LostCommitDetectorTest, RemembersOfATransactionTheRecordsWhoseEffectStands) {
  const Batch batch{{.id = "a", .offset = 9, .token = 7},
                    {.id = "b", .offset = 4},
                    {.id = "c", .offset = 2},
                    {.id = "d", .offset = 6}};
  BatchRows rows(OrderColumns(), "w");
  std::vector<WriteOutcome> outcomes(4);
  rows.Fill(batch.items(), outcomes);
  outcomes[1].result = WriteResult::kOwnEarlier;  // stands, and the row is of an earlier one
  outcomes[2].result = WriteResult::kIdConflict;  // does not stand
  outcomes[3].result = WriteResult::kNotWritten;
  witness_.Remember(now_, rows, outcomes);
  auto search = witness_.Look(now_.boot);
  ASSERT_NE(search.Ask(), nullptr);
  EXPECT_THAT(*search.Ask(), ElementsAre("a"));
  EXPECT_TRUE(search.IsOurs(0, locking::Token(7)));
  EXPECT_EQ(BackTo(Look()), "1: orders/3/4");
}

TEST_F(LostCommitDetectorTest, NamesTheLowestLostOffsetOfEachPartition) {
  for (int n = 0; n < 6; ++n) Commit(n % 2, 10 + n);
  for (int lost = 1; lost <= 5; ++lost) {
    Lose(6 - lost, 5);
    const std::string odd = lost < 2 ? "" : fmt::format("orders/0/{} ", 10 + (lost < 4 ? 4 : 2));
    const std::string even = fmt::format("orders/1/{}", 10 + (lost < 3 ? 5 : lost < 5 ? 3 : 1));
    EXPECT_EQ(BackTo(Look()), fmt::format("{}: {}{}", lost, odd, even));
  }
}

TEST_F(LostCommitDetectorTest, SaysAtLeastWhereOlderOnesAreNotRemembered) {
  for (int n = 0; n < 20; ++n) Commit(0, n);
  Lose(5, 19);
  EXPECT_EQ(BackTo(Look()), "at least 8: orders/0/12");
}

TEST_F(LostCommitDetectorTest, TakesOneRowOfACommitForAllOfThem) {
  Commit(0, 1);
  witness_.Add({"orders", 0}, 2, "forgotten-1", true);
  witness_.Add({"orders", 0}, 3, "forgotten-2", true);
  EXPECT_EQ(BackTo(Look()), "nothing lost");
}

TEST_F(LostCommitDetectorTest, DoesNotAskForWhatMayHaveBeenPruned) {
  Commit(0, 1);
  Lose(0, 0);
  now_.boot += minutes(29);
  EXPECT_EQ(BackTo(Look()), "1: orders/0/1");
  now_.boot += minutes(2);
  EXPECT_EQ(BackTo(Look()), "nothing lost");
  Commit(0, 2);
  Lose(1, 1);
  EXPECT_EQ(BackTo(Look()), "at least 1: orders/0/1") << "the first one may be lost, too";
}

TEST_F(LostCommitDetectorTest, CountsCommitsWithoutRowsOfTheirOwnWithTheLostOnesBesideThem) {
  Commit(0, 1);
  Commit(1, 7, /*inserted=*/false);
  Commit(0, 2);
  Commit(1, 8, /*inserted=*/false);
  Lose(2, 2);
  EXPECT_EQ(BackTo(Look()), "2: orders/0/2 orders/1/7");
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
