#include "metrics/traces/export_retry.h"

#include <gtest/gtest.h>

namespace fencepost::metrics {
namespace {

using namespace std::chrono_literals;
using Verdict = ExportRetry::Verdict;

const ExportRetry::Moment kNow = ExportRetry::Moment() + 1000h;

TEST(ExportRetry, TriesAgainAfterTheStatusesThatTheSpecificationNamesAlone) {
  for (const int status : {0, 429, 502, 503, 504}) {
    EXPECT_EQ(ExportRetry::Judge(status), Verdict::kAgain) << status;
  }
  for (const int status : {301, 307, 400, 401, 403, 404, 413, 500, 501}) {
    EXPECT_EQ(ExportRetry::Judge(status), Verdict::kRefused) << status;
  }
  for (const int status : {200, 202}) {
    EXPECT_EQ(ExportRetry::Judge(status), Verdict::kTaken) << status;
  }
}

TEST(ExportRetry, DoublesItsPausesUpToTheLongest) {
  ExportRetry retry(1s);
  retry.Begin(kNow);
  for (const auto pause : {500ms, 1000ms, 2000ms, 4000ms, 8000ms, 15000ms, 15000ms}) {
    ASSERT_TRUE(retry.Again(kNow, std::nullopt, 0));
    EXPECT_EQ(retry.not_before() - kNow, pause);
  }
  retry.Begin(kNow);
  ASSERT_TRUE(retry.Again(kNow, std::nullopt, 0));
  EXPECT_EQ(retry.not_before() - kNow, 500ms);  // each batch from the start
}

TEST(ExportRetry, SpreadsItsPausesOverTheirSecondHalf) {
  ExportRetry retry(8s);
  retry.Begin(kNow);
  ASSERT_TRUE(retry.Again(kNow, std::nullopt, 0.5));
  EXPECT_EQ(retry.not_before() - kNow, 6s);
}

TEST(ExportRetry, WaitsForWhatRetryAfterAsks) {
  ExportRetry retry(1s);
  retry.Begin(kNow);
  ASSERT_TRUE(retry.Again(kNow, 17s, 0));
  EXPECT_EQ(retry.not_before() - kNow, 17s);
}

TEST(ExportRetry, GivesABatchUpThatWouldTakeLongerThanItsPatience) {
  ExportRetry retry(1s);
  retry.Begin(kNow);
  EXPECT_TRUE(retry.Again(kNow + 59s, std::nullopt, 0));
  EXPECT_FALSE(retry.Again(kNow + 60s, std::nullopt, 0));
  EXPECT_EQ(retry.not_before() - kNow, 59500ms);  // nothing new
}

TEST(ExportRetry, KeepsABatchForTheLongestRetryAfterAndWaitsAsLongWithTheNextOfOthers) {
  struct Row {
    std::chrono::seconds asked, wait;
    bool again;
  };
  for (const auto& [asked, wait, again] :
       {Row{300s, 300s, true}, Row{600s, 600s, true}, Row{7200s, 600s, false}}) {
    ExportRetry retry(1s);
    retry.Begin(kNow);
    EXPECT_EQ(retry.Again(kNow + 59s, asked, 0), again) << asked.count();
    EXPECT_EQ(retry.not_before() - kNow, 59s + wait);
  }
}

TEST(ExportRetry, GivesABatchUpThatIsPutOffAgainAndAgain) {
  ExportRetry retry(1s);
  retry.Begin(kNow);
  EXPECT_TRUE(retry.Again(kNow, 600s, 0));
  EXPECT_TRUE(retry.Again(kNow + 600s, 60s, 0));
  EXPECT_FALSE(retry.Again(kNow + 660s, 1s, 0));
}

}  // namespace
}  // namespace fencepost::metrics
