#include "metrics/metric_definitions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "metrics/page.h"

namespace fencepost::metrics {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

// The cumulated counts of a histogram's buckets, and its sum.
std::pair<std::vector<double>, double> Buckets(const Metric& metric) {
  std::vector<prometheus::ClientMetric> series;
  Exemplars exemplars;
  metric.Collect("", series, exemplars);
  std::vector<double> counts;
  for (const auto& bucket : series.at(0).histogram.bucket) {
    counts.push_back(static_cast<double>(bucket.cumulative_count));
  }
  counts.push_back(static_cast<double>(series[0].histogram.sample_count));
  return {counts, series[0].histogram.sample_sum};
}

TEST(Cells, PutAValueIntoTheFirstBucketThatHoldsIt) {
  PipelineCells cells(3, "");
  for (const std::int64_t keys : {0, 1, 2, 3, 512, 513}) cells.lock_batch_size.Observe(keys);
  const auto [counts, sum] = Buckets(cells.lock_batch_size);
  EXPECT_THAT(counts, ElementsAre(2, 3, 4, 4, 4, 4, 4, 4, 4, 5, 6));
  EXPECT_EQ(sum, 1031);
}

TEST(Cells, HoldABucketsBoundExactlyInNanoseconds) {
  PipelineCells cells(3, "");
  cells.lock_acquire_duration.Observe(2'500'000);
  cells.lock_acquire_duration.Observe(2'500'001);
  EXPECT_THAT(Buckets(cells.lock_acquire_duration).first,
              ElementsAre(0, 0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2));
}

TEST(Cells, ShowBucketsCumulatedUpToTheCount) {
  MetricsPage page({"v", "c"});
  PipelineMetrics* const metrics = page.Add({"orders", 3, 10s, "abc"}, nullptr).value();
  for (const auto took : {400us, 3000us, 2'000'000us}) metrics->OnEndToEnd(took);
  metrics->OnEndToEnd(1h);
  for (const auto& family : page.Collect()) {
    if (family.name != "fencepost_record_end_to_end_duration_seconds") continue;
    ASSERT_EQ(family.metric.size(), 1U);
    const auto& histogram = family.metric[0].histogram;
    EXPECT_EQ(histogram.sample_count, 4U);
    EXPECT_EQ(histogram.bucket.front().cumulative_count, 2U);
    EXPECT_EQ(histogram.bucket.back().cumulative_count, 3U);
    return;
  }
  FAIL() << "no such family";
}

TEST(Cells, LoseNothingWhenThreadsCountTogetherUnderAScrape) {
  constexpr int kThreads = 4, kRounds = 20'000;
  MetricsPage page({"v", "c"});
  PipelineMetrics* const metrics = page.Add({"orders", 3, 10s, "abc"}, nullptr).value();
  std::atomic<bool> stop{false};
  std::thread scraper([&] {
    while (!stop) EXPECT_FALSE(page.Render().empty());
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        metrics->OnRound(locking::RoundResult::kAcquired, 1ms);
        metrics->OnCall(t % 3, locking::OpKind::kAcquire, 2, 1ms);
        metrics->OnConsumed(1);
        metrics->OnLag({"t", t}, i);
        if (i % 100 == 0) metrics->OnPartitionGone({"t", t});
        if (i % 100 == 0) metrics->OnReady(i % 200 == 0);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  stop = true;
  scraper.join();
  std::map<std::string, double> values;
  for (const auto& family : page.Collect()) {
    for (const auto& series : family.metric) {
      values[family.name] += series.counter.value + series.histogram.sample_sum;
    }
  }
  EXPECT_EQ(values["fencepost_lock_acquisitions_total"], kThreads * kRounds);
  EXPECT_EQ(values["fencepost_records_consumed_total"], kThreads * kRounds);
  EXPECT_EQ(values["fencepost_lock_batch_size"], 2 * kThreads * kRounds);
  EXPECT_NEAR(values["fencepost_redis_command_duration_seconds"], .001 * kThreads * kRounds, 1e-6);
}

TEST(CellsDeathTest, ASeriesThatDoesNotExistIsAProgrammingError) {
  PipelineCells cells(3, "");
  EXPECT_DEATH(cells.redis_reconnects.Add(1, 3), "fencepost_redis_reconnects_total");
}

}  // namespace
}  // namespace fencepost::metrics
