#include "metrics/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "tests/unit/metrics/page_text.h"

namespace fencepost::metrics {
namespace {

using namespace std::chrono_literals;

PipelineInfo Pipeline(std::string name) { return {std::move(name), 5, 10s, "0123abcd"}; }

TEST(Page, HasOneHelpAndTypeAFamilyWithSeveralPipelines) {
  MetricsPage page({"1.0", "c"});
  ASSERT_TRUE(page.Add(Pipeline("orders"), nullptr));
  ASSERT_TRUE(page.Add(Pipeline("refunds"), nullptr));
  const PageText text = ParsePage(page.Render());
  EXPECT_THAT(text.repeated, ::testing::IsEmpty());
  EXPECT_TRUE(text.series.contains("fencepost_locks_held{pipeline=\"orders\"}"));
  EXPECT_TRUE(text.series.contains("fencepost_locks_held{pipeline=\"refunds\"}"));
}

TEST(Page, RefusesASecondPipelineOfTheSameName) {
  MetricsPage page({"1.0", "c"});
  ASSERT_TRUE(page.Add(Pipeline("orders"), nullptr));
  const auto second = page.Add(Pipeline("orders"), nullptr);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, "duplicate_pipeline");
}

TEST(Page, IsAcceptedByPromtool) {
  if (std::system("command -v promtool >/dev/null") != 0) GTEST_SKIP() << "no promtool here";
  MetricsPage page({"1.0", "c"});
  for (const char* name : {"orders", "refunds"}) {
    PipelineMetrics* const metrics = page.Add(Pipeline(name), nullptr).value();
    metrics->OnLag({"a\"b\\c\n", 3}, 7);
    metrics->OnRound(locking::RoundResult::kAcquired, 3ms);
  }
  std::string path = ::testing::TempDir() + "fencepost-page-XXXXXX";
  const int file = mkstemp(path.data());
  ASSERT_GE(file, 0);
  close(file);
  std::ofstream(path) << page.Render();

  FILE* const promtool = popen(("promtool check metrics <" + path + " 2>&1").c_str(), "r");
  ASSERT_NE(promtool, nullptr);
  std::string said;
  for (int c = 0; (c = std::fgetc(promtool)) != EOF;) said += static_cast<char>(c);
  const int status = pclose(promtool);
  std::remove(path.c_str());
  EXPECT_EQ(status, 0) << said;
  EXPECT_EQ(said, "");
}

TEST(Page, ShowsAThousandPartitions) {
  MetricsPage page({"1.0", "c"});
  PipelineMetrics* const metrics = page.Add(Pipeline("orders"), nullptr).value();
  for (int i = 0; i < 1000; ++i) metrics->OnLag({"orders", i}, i);
  ASSERT_FALSE(page.Render().empty());  // warms up
  const auto from = std::chrono::steady_clock::now();
  const std::string text = page.Render();
  const auto took = std::chrono::steady_clock::now() - from;
  RecordProperty(
      "scrape_microseconds",
      std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(took).count()));
  PageText parsed = ParsePage(text);
  EXPECT_EQ(parsed.series["fencepost_consumer_lag_records{pipeline=\"orders\",topic=\"orders\","
                          "partition=\"999\"}"],
            999);
  EXPECT_LT(took, 2s);  // far above what it takes: only a blunder fails here
}

}  // namespace
}  // namespace fencepost::metrics
