// The names, types and labels that dashboards, alerts and outside checks rely on, told once more
// here, so that a change of the table cannot pass by itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "metrics/page.h"
#include "tests/support/paths.h"
#include "tests/unit/metrics/page_text.h"

namespace fencepost::metrics {
namespace {

struct Expected {
  std::string name;
  std::string type;
  std::vector<std::string> labels;  // "name=value|value|…", beyond `pipeline`
  double value = 0;
};

const std::string kNode = "node=a|b|c";

std::vector<Expected> LockFamilies() {
  return {
      {"lock_acquisitions_total",
       "counter",
       {"result=acquired|contended|done|stale|refused|no_quorum|timeout|error"}},
      {"lock_takeovers_total", "counter", {}},
      {"lock_acquire_duration_seconds", "histogram", {}},
      {"lock_wait_duration_seconds", "histogram", {}},
      {"lock_hold_duration_seconds", "histogram", {}},
      {"lock_validity_remaining_seconds", "histogram", {}},
      {"lock_ttl_seconds", "gauge", {}, 10},
      {"locks_held", "gauge", {}},
      {"lock_extensions_total", "counter", {"result=extended|lost|error"}},
      {"lock_expirations_total", "counter", {"phase=waiting|handling|writing|releasing"}},
      {"lock_losses_total", "counter", {"reason=expired|stolen|node_wiped|clock"}},
      {"lock_releases_total", "counter", {"result=released|expired|stolen|unknown"}},
      {"completed_after_expiry_total", "counter", {}},
      {"quorum_failures_total", "counter", {"reason=unreachable|timeout|quarantined|policy|clock"}},
      {"redis_quorum_available", "gauge", {}},
      {"redis_nodes_configured", "gauge", {}, 3},
      {"redis_node_up", "gauge", {kNode}},
      {"redis_node_quarantined", "gauge", {kNode}},
      {"redis_node_clock_offset_seconds", "gauge", {kNode}},
      {"redis_node_restarts_detected_total", "counter", {kNode}},
      {"redis_command_duration_seconds",
       "histogram",
       {kNode, "command=acquire|extend|done|release"}},
      {"redis_command_errors_total",
       "counter",
       {kNode, "reason=timeout|connection|auth|oom|readonly|noscript|other"}},
      {"redis_reconnects_total", "counter", {kNode}},
      {"lock_batch_size", "histogram", {}},
      {"records_unlocked_total", "counter", {}},
      {"fencing_tokens_issued_total", "counter", {}},
      {"fencing_rejections_total", "counter", {"side=redis|output|row"}},
      {"dedupe_skips_total", "counter", {"source=lock|ledger"}},
      {"id_conflicts_total", "counter", {}},
      {"invariant_violations_total",
       "counter",
       {"invariant=token_regressed|commit_past_hole|lease_after_loss|double_grant"}},
  };
}

std::vector<Expected> RecordFamilies() {
  return {
      {"records_consumed_total", "counter", {}},
      {"records_processed_total",
       "counter",
       {"result=done|skipped|dead_lettered|failed|no_output|filtered"}},
      {"records_in_flight", "gauge", {}},
      {"queue_size_bytes", "gauge", {}},
      {"backpressure_seconds_total", "counter", {}},
      {"last_progress_timestamp_seconds", "gauge", {}},
      {"handler_duration_seconds", "histogram", {}},
      {"output_write_duration_seconds", "histogram", {}},
      {"output_batch_size", "histogram", {}},
      {"write_splits_total", "counter", {}},
      {"record_end_to_end_duration_seconds", "histogram", {}},
      {"retries_total", "counter", {"stage=lock|handler|output|dead_letter"}},
      {"dead_letters_total", "counter", {"reason=bad_record|id_conflict|handler|output|timeout"}},
      {"dead_letter_errors_total", "counter", {}},
      {"group_lag_records", "gauge", {}},
      {"oldest_unprocessed_record_timestamp_seconds", "gauge", {}},
      {"commit_gap_records", "gauge", {}},
      {"offset_commits_total", "counter", {"result=committed|rejected|failed"}},
      {"offset_commit_duration_seconds", "histogram", {}},
      {"rebalances_total", "counter", {"event=assigned|revoked|lost"}},
      {"rebalance_duration_seconds", "histogram", {}},
      {"partitions_assigned", "gauge", {}},
      {"partitions_paused", "gauge", {}},
      {"config_info", "gauge", {"hash=abc"}, 1},
      {"ready", "gauge", {}},
  };
}

const std::map<std::string, std::string> kProcessFamilies = {
    {"fencepost_spans_exported_total", "counter"},
    {"fencepost_spans_dropped_total", "counter"},
    {"process_cpu_seconds_total", "counter"},
    {"process_open_fds", "gauge"},
    {"process_max_fds", "gauge"},
    {"process_virtual_memory_bytes", "gauge"},
    {"process_resident_memory_bytes", "gauge"},
    {"process_start_time_seconds", "gauge"},
    {"process_threads", "gauge"},
};

// `{pipeline="orders",…` without the closing brace, for every combination of the labels' values.
std::vector<std::string> LabelSets(const Expected& expected) {
  std::vector<std::string> sets = {"{pipeline=\"orders\""};
  for (const std::string& label : expected.labels) {
    const auto equals = label.find('=');
    std::vector<std::string> longer;
    for (const std::string& set : sets) {
      std::istringstream values(label.substr(equals + 1));
      for (std::string value; std::getline(values, value, '|');) {
        longer.push_back(set + "," + label.substr(0, equals) + "=\"" + value + "\"");
      }
    }
    sets = longer;
  }
  return sets;
}

class Contract : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(page_.Add({"orders", 3, std::chrono::seconds(10), "abc"}, nullptr));
    text_ = ParsePage(page_.Render());
    expected_ = LockFamilies();
    for (const Expected& family : RecordFamilies()) expected_.push_back(family);
  }

  MetricsPage page_{{"1.2.3", "c0ffee"}};
  PageText text_;
  std::vector<Expected> expected_;
};

TEST_F(Contract, EverySeriesOfAPipelineExistsAtZeroFromTheStart) {
  std::set<std::string> expected_series;
  for (const Expected& family : expected_) {
    const std::string name = "fencepost_" + family.name;
    EXPECT_EQ(text_.type[name], family.type) << name;
    for (const std::string& labels : LabelSets(family)) {
      if (family.type != "histogram") {
        expected_series.insert(name + labels + "}");
        EXPECT_TRUE(text_.series.contains(name + labels + "}")) << name + labels;
        EXPECT_EQ(text_.series[name + labels + "}"], family.value) << name + labels;
        continue;
      }
      for (const std::string part : {"_sum", "_count"}) {
        expected_series.insert(name + part + labels + "}");
        EXPECT_TRUE(text_.series.contains(name + part + labels + "}")) << name + part + labels;
        EXPECT_EQ(text_.series[name + part + labels + "}"], 0);
      }
      EXPECT_TRUE(text_.series.contains(name + "_bucket" + labels + ",le=\"+Inf\"}"))
          << name + labels;
    }
  }
  for (const auto& [series, value] : text_.series) {
    if (!series.starts_with("fencepost_") || series.starts_with("fencepost_build_info")) continue;
    if (kProcessFamilies.contains(series.substr(0, series.find('{')))) continue;
    if (series.find("_bucket{") != std::string::npos) continue;
    EXPECT_TRUE(expected_series.contains(series)) << "not in the contract: " << series;
  }
}

TEST_F(Contract, NoFamilyIsMissingOrBeyondTheContract) {
  std::set<std::string> expected = {"fencepost_consumer_lag_records",
                                    "fencepost_oldest_unfinished_offset",
                                    "fencepost_oldest_unfinished_seconds", "fencepost_build_info"};
  for (const Expected& family : expected_) expected.insert("fencepost_" + family.name);
  for (const auto& [name, type] : kProcessFamilies) {
    expected.insert(name);
    EXPECT_EQ(text_.type[name], type);
  }
  std::set<std::string> found;
  for (const auto& [name, type] : text_.type) found.insert(name);
  EXPECT_EQ(found, expected);
  EXPECT_EQ(text_.series["fencepost_build_info{version=\"1.2.3\",commit=\"c0ffee\"}"], 1);
}

TEST_F(Contract, SpansExistAtZeroFromTheStartWithoutTracesToo) {
  EXPECT_EQ(text_.series.at("fencepost_spans_exported_total"), 0);
  for (const char* reason : {"queue_full", "refused", "failed"}) {
    const auto series = "fencepost_spans_dropped_total{reason=\"" + std::string(reason) + "\"}";
    ASSERT_TRUE(text_.series.contains(series)) << series;
    EXPECT_EQ(text_.series[series], 0) << series;
  }
}

TEST_F(Contract, HistogramsHaveAtMostTwelveBuckets) {
  std::map<std::string, int> buckets;
  for (const auto& [series, value] : text_.series) {
    const auto le = series.find(",le=\"");
    if (le != std::string::npos) ++buckets[series.substr(0, le)];
  }
  EXPECT_EQ(buckets.size(), 11U + 3 * 4);
  for (const auto& [series, count] : buckets) EXPECT_LE(count, 12) << series;
}

TEST_F(Contract, EveryFamilyHasHelpThatSaysWhatToDo) {
  for (const auto& [name, type] : text_.type) {
    EXPECT_GT(text_.help[name].size(), 40U) << name;
    EXPECT_TRUE(text_.help[name].ends_with(".")) << name;
  }
}

TEST_F(Contract, ProcessNumbersAreThoseOfThisProcess) {
  EXPECT_GT(text_.series["process_cpu_seconds_total"], 0);
  EXPECT_GE(text_.series["process_open_fds"], 3);
  EXPECT_GE(text_.series["process_max_fds"], text_.series["process_open_fds"]);
  EXPECT_GT(text_.series["process_resident_memory_bytes"], 1e6);
  EXPECT_GT(text_.series["process_virtual_memory_bytes"],
            text_.series["process_resident_memory_bytes"]);
  EXPECT_GE(text_.series["process_threads"], 1);
  const double started = text_.series["process_start_time_seconds"];
  EXPECT_LE(started, static_cast<double>(std::time(nullptr)) + 2);
  EXPECT_GT(started, static_cast<double>(std::time(nullptr)) - 3600);
}

// Lines of moved_by.txt: a series, the test that moves it, values of its last label.
std::map<std::string, std::map<std::string, std::string>> TestsBySeries() {
  std::map<std::string, std::map<std::string, std::string>> tests;
  std::ifstream table(testing::SourcePath("tests/unit/metrics/moved_by.txt"));
  std::string line;
  while (std::getline(table, line)) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    std::string series, test, value;
    words >> series >> test;
    if (!(words >> value)) tests[series][""] = test;
    for (; words; words >> value) tests[series][value] = test;
  }
  return tests;
}

TEST(Provoked, EverySeriesHasATestThatMovesIt) {
  auto tests = TestsBySeries();
  std::set<std::string> files;
  const PipelineCells cells(3, "");
  Metrics all = cells.all;
  const ProcessCells process({}, 0);
  all.push_back(&process.build_info);
  const SpanCells spans;
  all.insert(all.end(), spans.all.begin(), spans.all.end());
  for (const Metric* metric : all) {
    const auto& [type, metric_name, help, labels, unit, buckets] = metric->definition();
    const std::string name(metric_name.substr(std::string("fencepost_").size()));
    std::set<std::string> wanted = {""};
    static const std::set<std::string> kOfTheRun = {"node", "hash", "commit", "partition"};
    if (!labels.empty() && !kOfTheRun.contains(labels.back().name)) {
      wanted = {labels.back().values.begin(), labels.back().values.end()};
    }
    std::set<std::string> found;
    for (const auto& [value, test] : tests[name]) found.insert(value), files.insert(test);
    EXPECT_EQ(found, wanted) << name;
    tests.erase(name);
  }
  for (const auto& [name, values] : tests) ADD_FAILURE() << "not a series: " << name;
  for (const std::string& file : files) {
    EXPECT_TRUE(std::filesystem::exists(testing::SourcePath(file))) << file;
  }
}

}  // namespace
}  // namespace fencepost::metrics
