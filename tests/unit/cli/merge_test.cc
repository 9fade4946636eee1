// What several processes answer, as one: each family once, each series once and with its process.
#include <cstdio>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "consumer/cli/supervise/merge.h"
#include "metrics/page.h"
#include "tests/support/process.h"
#include "tests/unit/metrics/page_text.h"

namespace fencepost::cli {
namespace {

using metrics::ParsePage;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// What a process with a pipeline of this name shows, at these many records.
std::string PageWith(int records) {
  metrics::MetricsPage page({"1.0", "c"});
  metrics::PipelineMetrics* const metrics =
      page.Add({"orders", 3, std::chrono::seconds(10), "abc"}, nullptr).value();
  metrics->OnLag({"orders", records}, 7);
  for (int i = 0; i < records; ++i) metrics->OnLeased(std::chrono::milliseconds(3));
  return page.Render();
}

TEST(MergePages, GivesEachSeriesItsProcessAndTellsEachFamilyOnce) {
  const auto merged = ParsePage(MergePages({{"0", PageWith(2)}, {"1", PageWith(3)}}));
  EXPECT_THAT(merged.repeated, IsEmpty());
  const auto one = ParsePage(PageWith(2));
  EXPECT_EQ(merged.help, one.help);
  EXPECT_EQ(merged.type, one.type);
  EXPECT_EQ(merged.series.size(), one.series.size() + ParsePage(PageWith(3)).series.size());
  const auto at = [&](const std::string& series) { return merged.series.at(series); };
  const std::string wait = "fencepost_lock_wait_duration_seconds_";
  EXPECT_EQ(at(wait + "count{process=\"0\",pipeline=\"orders\"}"), 2);
  EXPECT_EQ(at(wait + "count{process=\"1\",pipeline=\"orders\"}"), 3);
  EXPECT_EQ(at(wait + "bucket{process=\"1\",pipeline=\"orders\",le=\"+Inf\"}"), 3);
  EXPECT_EQ(at("fencepost_consumer_lag_records{process=\"0\",pipeline=\"orders\",topic=\"orders\","
               "partition=\"2\"}"),
            7);
  EXPECT_GT(at("process_resident_memory_bytes{process=\"1\"}"), 1e6);
}

TEST(MergePages, KeepsAFamilyTogetherAlsoWhereOnlySomePagesHaveIt) {
  EXPECT_EQ(MergePages({{"0", "# HELP a A.\n# TYPE a gauge\na 1\n"},
                        {"1",
                         "# HELP b B.\n# TYPE b gauge\nb{x=\"{ }\"} 2\n"
                         "# HELP a A.\n# TYPE a gauge\na{} 3\n"},
                        {"", "# HELP c C.\n# TYPE c counter\nc{process=\"0\"} 4\n"}}),
            "# HELP a A.\n# TYPE a gauge\na{process=\"0\"} 1\na{process=\"1\"} 3\n"
            "# HELP b B.\n# TYPE b gauge\nb{process=\"1\",x=\"{ }\"} 2\n"
            "# HELP c C.\n# TYPE c counter\nc{process=\"0\"} 4\n");
}

TEST(MergePages, MakesAPageThatPromtoolAccepts) {
  const testing::TempDir folder;
  const std::string text = MergePages(
      {{"0", PageWith(1)},
       {"1", PageWith(2)},
       {"supervisor", metrics::MetricsPage({"1.0", "c"}).Render()},
       {"", PageOf(metrics::Info(metrics::Metric::kEachUp), {"orders"}, {1, 0})},
       {"", PageOf(metrics::Info(metrics::Metric::kEachRestarts), {"orders"}, {0, 12})}});
  const auto said =
      testing::RunToEnd({.argv = {"promtool", "check", "metrics"}, .stdin_text = text});
  EXPECT_EQ(said.exit_code, 0) << said.output;
  EXPECT_EQ(said.output, "");
  const auto page = ParsePage(text);
  EXPECT_THAT(page.repeated, IsEmpty());
  EXPECT_EQ(page.series.at("fencepost_process_restarts_total{process=\"1\",pipeline=\"orders\"}"),
            12);
  EXPECT_EQ(page.series.at("fencepost_process_up{process=\"1\",pipeline=\"orders\"}"), 0);
  EXPECT_TRUE(page.series.contains("process_threads{process=\"supervisor\"}"));
}

ProcessState Process(int number, const std::string& status) {
  return {.worker = "w-" + std::to_string(number), .pid = 100 + number, .status = status};
}

std::string StatusText(bool ready, int partition, int in_flight) {
  const nlohmann::json reasons =
      ready ? nlohmann::json::array() : nlohmann::json{"orders: kafka: joining the group"};
  return nlohmann::json{{"worker", "told by the process"},
                        {"libraries", {{"librdkafka", "2.8"}}},
                        {"ready", ready},
                        {"reasons", reasons},
                        {"pipelines",
                         {{{"pipeline", "orders"},
                           {"in_flight", {{"records", in_flight}}},
                           {"partitions", {{{"topic", "orders"}, {"partition", partition}}}}}}}}
      .dump();
}

TEST(MergeStatus, ListsProcessesAndTheirPipelinesEachPartitionOnce) {
  const auto status = nlohmann::json::parse(MergeStatus(
      {.worker = "w",
       .version = "1.0",
       .uptime_seconds = 2,
       .processes = {Process(0, StatusText(true, 0, 1)), Process(1, StatusText(true, 1, 2))}}));
  EXPECT_EQ(status["worker"], "w");
  EXPECT_EQ(status["ready"], true);
  EXPECT_EQ(status["reason"], "");
  EXPECT_EQ(status["libraries"]["librdkafka"], "2.8");
  ASSERT_EQ(status["processes"].size(), 2u);
  EXPECT_EQ(status["processes"][1]["pid"], 101);
  EXPECT_EQ(status["processes"][1]["worker"], "w-1");
  std::vector<int> partitions;
  for (const auto& pipeline : status["pipelines"]) {
    EXPECT_EQ(pipeline["pipeline"], "orders");
    for (const auto& row : pipeline["partitions"]) partitions.push_back(row["partition"]);
  }
  EXPECT_THAT(partitions, ElementsAre(0, 1));
  EXPECT_EQ(status["pipelines"][1]["process"], "1");
  EXPECT_EQ(status["pipelines"][1]["worker"], "w-1");
}

TEST(MergeStatus, IsNotReadyWhereOneProcessIsNotAndSaysWhich) {
  const SupervisorState state{
      .processes = {Process(0, StatusText(false, 0, 1)),
                    {.worker = "w-1", .restarts = 3, .trouble = "ended, starts again in 0.5 s"}}};
  const auto status = nlohmann::json::parse(MergeStatus(state));
  EXPECT_EQ(status["ready"], false);
  EXPECT_EQ(status["reason"],
            "process 0: orders: kafka: joining the group; process 1: ended, starts again in 0.5 s");
  EXPECT_EQ(status["reasons"].size(), 2u);
  EXPECT_EQ(status["processes"][1]["pid"], nullptr);
  EXPECT_EQ(status["processes"][1]["restarts"], 3);
  EXPECT_EQ(status["pipelines"].size(), 1u);
}

TEST(InFlight, IsToldForEachProcessAndUnknownWhereThereIsNoAnswer) {
  EXPECT_EQ(InFlightText({.processes = {Process(0, StatusText(true, 0, 12)), {}}}),
            "process 0: 12, process 1: unknown");
}

}  // namespace
}  // namespace fencepost::cli
