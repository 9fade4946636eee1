// Each call of an observer moves exactly the series that it should.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include <prometheus/client_metric.h>

#include "metrics/page.h"
#include "tests/unit/metrics/page_text.h"

namespace fencepost::metrics {
namespace {

using namespace std::chrono_literals;
using Changes = std::map<std::string, double>;

struct Case {
  std::string name;
  std::function<void(PipelineMetrics&)> call;
  Changes changes;  // without the prefix, without the label `pipeline`, without buckets
};

std::string PlainName(std::string series) {
  series.erase(0, std::string("fencepost_").size());
  const std::string pipeline = "pipeline=\"orders\"";
  series.erase(series.find(pipeline), pipeline.size());
  if (const auto comma = series.find("{,"); comma != std::string::npos) series.erase(comma + 1, 1);
  if (series.ends_with("{}")) series.resize(series.size() - 2);
  return series;
}

Changes Difference(const PageText& before, const PageText& after) {
  Changes changes;
  for (const auto& [series, value] : after.series) {
    if (series.find("pipeline=\"orders\"") == std::string::npos) continue;
    if (series.find("_bucket{") != std::string::npos) continue;
    const auto old = before.series.find(series);
    const double change = value - (old == before.series.end() ? 0 : old->second);
    if (change != 0) changes[PlainName(series)] = change;
  }
  return changes;
}

// One case a value of an enum, in the enum's order.
template <typename Enum>
void AddEach(std::vector<Case>& cases, const std::string& metric, const std::string& label,
             const std::vector<std::string>& values, void (PipelineMetrics::*method)(Enum)) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    cases.push_back({metric + " " + values[i],
                     [method, i](PipelineMetrics& m) { (m.*method)(static_cast<Enum>(i)); },
                     {{metric + "{" + label + "=\"" + values[i] + "\"}", 1}}});
  }
}

std::vector<Case> EnumCases() {
  using M = PipelineMetrics;
  std::vector<Case> cases;
  AddEach(cases, "lock_extensions_total", "result", {"extended", "lost", "error"}, &M::OnExtension);
  AddEach(cases, "lock_expirations_total", "phase", {"waiting", "handling", "writing", "releasing"},
          &M::OnExpired);
  AddEach(cases, "lock_losses_total", "reason", {"expired", "stolen", "node_wiped", "clock"},
          &M::OnLoss);
  AddEach(cases, "lock_releases_total", "result", {"released", "expired", "stolen", "unknown"},
          &M::OnReleased);
  AddEach(cases, "quorum_failures_total", "reason",
          {"unreachable", "timeout", "quarantined", "policy", "clock"}, &M::OnQuorumFailure);
  AddEach(cases, "invariant_violations_total", "invariant",
          {"token_regressed", "commit_past_hole", "lease_after_loss", "double_grant"},
          &M::OnInvariant);
  AddEach(cases, "dedupe_skips_total", "source", {"lock", "ledger"}, &M::OnDedupeSkip);
  AddEach(cases, "retries_total", "stage", {"lock", "handler", "output", "dead_letter"},
          &M::OnRetry);
  AddEach(cases, "rebalances_total", "event", {"assigned", "revoked", "lost"}, &M::OnRebalance);
  return cases;
}

std::vector<Case> LockCases() {
  using M = PipelineMetrics;
  std::vector<Case> cases = {
      {"takeover", [](M& m) { m.OnTakeover(); }, {{"lock_takeovers_total", 1}}},
      {"token", [](M& m) { m.OnTokenIssued(); }, {{"fencing_tokens_issued_total", 1}}},
      {"leased",
       [](M& m) { m.OnLeased(250ms); },
       {{"lock_wait_duration_seconds_count", 1}, {"lock_wait_duration_seconds_sum", .25}}},
      {"lease ended",
       [](M& m) { m.OnLeaseEnded(1500ms, 8s); },
       {{"lock_hold_duration_seconds_count", 1},
        {"lock_hold_duration_seconds_sum", 1.5},
        {"lock_validity_remaining_seconds_count", 1},
        {"lock_validity_remaining_seconds_sum", 8}}},
      {"lease ended with no validity left",
       [](M& m) { m.OnLeaseEnded(1500ms, -1s); },
       {{"lock_hold_duration_seconds_count", 1},
        {"lock_hold_duration_seconds_sum", 1.5},
        {"lock_validity_remaining_seconds_count", 1}}},
      {"late done",
       [](M& m) { m.OnCompletedAfterExpiry(); },
       {{"completed_after_expiry_total", 1}}},
      {"fenced by a node",
       [](M& m) { m.OnFencingRejection(); },
       {{"fencing_rejections_total{side=\"redis\"}", 1}}},
      {"held", [](M& m) { m.OnHeld(17); }, {{"locks_held", 17}}},
      {"quorum", [](M& m) { m.OnQuorum(true); }, {{"redis_quorum_available", 1}}},
      {"node up", [](M& m) { m.OnNode(0, true, false); }, {{"redis_node_up{node=\"a\"}", 1}}},
      {"node quarantined",
       [](M& m) { m.OnNode(2, true, true); },
       {{"redis_node_up{node=\"c\"}", 1}, {"redis_node_quarantined{node=\"c\"}", 1}}},
      {"clock offset",
       [](M& m) { m.OnClockOffset(1, -1500us); },
       {{"redis_node_clock_offset_seconds{node=\"b\"}", -.0015}}},
      {"restart",
       [](M& m) { m.OnRestartDetected(2); },
       {{"redis_node_restarts_detected_total{node=\"c\"}", 1}}},
      {"reconnect", [](M& m) { m.OnReconnect(1); }, {{"redis_reconnects_total{node=\"b\"}", 1}}},
  };
  const std::vector<std::string> results = {"acquired", "contended", "done",    "stale",
                                            "refused",  "no_quorum", "timeout", "error"};
  for (std::size_t i = 0; i < results.size(); ++i) {
    cases.push_back({"round " + results[i],
                     [i](M& m) { m.OnRound(static_cast<locking::RoundResult>(i), 3ms); },
                     {{"lock_acquisitions_total{result=\"" + results[i] + "\"}", 1},
                      {"lock_acquire_duration_seconds_count", 1},
                      {"lock_acquire_duration_seconds_sum", .003}}});
  }
  return cases;
}

std::vector<Case> CommandCases() {
  using locking::OpKind;
  const std::vector<std::pair<OpKind, std::string>> kinds = {
      {OpKind::kAcquire, "acquire"}, {OpKind::kFill, "acquire"},    {OpKind::kExtend, "extend"},
      {OpKind::kDone, "done"},       {OpKind::kRelease, "release"}, {OpKind::kAbort, "release"},
      {OpKind::kForget, "release"}};
  std::vector<Case> cases;
  for (const auto& [kind, command] : kinds) {
    const std::string labels = "{node=\"b\",command=\"" + command + "\"}";
    cases.push_back({"call " + std::to_string(static_cast<int>(kind)),
                     [kind = kind](PipelineMetrics& m) { m.OnCall(1, kind, 128, 2ms); },
                     {{"redis_command_duration_seconds_count" + labels, 1},
                      {"redis_command_duration_seconds_sum" + labels, .002},
                      {"lock_batch_size_count", 1},
                      {"lock_batch_size_sum", 128}}});
  }
  const std::vector<std::string> reasons = {"timeout",  "connection", "auth", "oom",
                                            "readonly", "noscript",   "other"};
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    const auto reason = static_cast<locking::CommandError>(i);
    cases.push_back(
        {"command error " + reasons[i],
         [reason](PipelineMetrics& m) { m.OnCommandError(2, reason); },
         {{"redis_command_errors_total{node=\"c\",reason=\"" + reasons[i] + "\"}", 1}}});
  }
  return cases;
}

std::vector<Case> ConsumerCases() {
  using M = PipelineMetrics;
  std::vector<Case> cases = {
      {"consumed", [](M& m) { m.OnConsumed(500); }, {{"records_consumed_total", 500}}},
      {"unlocked", [](M& m) { m.OnUnlocked(); }, {{"records_unlocked_total", 1}}},
      {"fenced by the output",
       [](M& m) { m.OnOutputFencing(); },
       {{"fencing_rejections_total{side=\"output\"}", 1}}},
      {"id conflict", [](M& m) { m.OnIdConflict(); }, {{"id_conflicts_total", 1}}},
      {"in flight",
       [](M& m) { m.OnInFlight(12, 3456); },
       {{"records_in_flight", 12}, {"queue_size_bytes", 3456}}},
      {"backpressure",
       [](M& m) { m.OnBackpressure(1500ms); },
       {{"backpressure_seconds_total", 1.5}}},
      {"group lag", [](M& m) { m.OnGroupLag(77); }, {{"group_lag_records", 77}}},
      {"progress",
       [](M& m) { m.OnProgress(1'763'695'260'123ms); },
       {{"last_progress_timestamp_seconds", 1'763'695'260.123}}},
      {"end to end",
       [](M& m) { m.OnEndToEnd(40ms); },
       {{"record_end_to_end_duration_seconds_count", 1},
        {"record_end_to_end_duration_seconds_sum", .04}}},
      {"a record from the future",
       [](M& m) { m.OnEndToEnd(-1s); },
       {{"record_end_to_end_duration_seconds_count", 1}}},
      {"lag",
       [](M& m) {
         m.OnLag({"orders.in", 7}, 99);
       },
       {{"consumer_lag_records{topic=\"orders.in\",partition=\"7\"}", 99}}},
      {"the record that a partition waits for",
       [](M& m) {
         m.OnOldest({"orders.in", 7}, 17, 312s);
       },
       {{"oldest_unfinished_offset{topic=\"orders.in\",partition=\"7\"}", 17},
        {"oldest_unfinished_seconds{topic=\"orders.in\",partition=\"7\"}", 312}}},
      {"no record to wait for",
       [](M& m) {
         m.OnOldest({"orders.in", 7}, -1, 312s);
       },
       {{"oldest_unfinished_offset{topic=\"orders.in\",partition=\"7\"}", -1}}},
      {"oldest",
       [](M& m) { m.OnOldestUnprocessed(1'500ms); },
       {{"oldest_unprocessed_record_timestamp_seconds", 1.5}}},
      {"commit gap", [](M& m) { m.OnCommitGap(8); }, {{"commit_gap_records", 8}}},
      {"partitions",
       [](M& m) { m.OnPartitions(12, 3); },
       {{"partitions_assigned", 12}, {"partitions_paused", 3}}},
      {"rebalance took",
       [](M& m) { m.OnRebalanceTook(2s); },
       {{"rebalance_duration_seconds_count", 1}, {"rebalance_duration_seconds_sum", 2}}},
      {"write",
       [](M& m) { m.OnWrite(25ms, 500); },
       {{"output_write_duration_seconds_count", 1},
        {"output_write_duration_seconds_sum", .025},
        {"output_batch_size_count", 1},
        {"output_batch_size_sum", 500}}},
      {"ready", [](M& m) { m.OnReady(true); }, {{"ready", 1}}},
      {"note", [](M& m) { m.OnNote(Severity::kError, "event", "text"); }, {}},
  };
  const std::vector<std::string> results = {"done", "skipped", "dead_lettered", "failed"};
  for (std::size_t i = 0; i < results.size(); ++i) {
    cases.push_back({"processed " + results[i],
                     [i](M& m) { m.OnProcessed(static_cast<consumer::ProcessedResult>(i), 3); },
                     {{"records_processed_total{result=\"" + results[i] + "\"}", 3}}});
  }
  const std::vector<std::string> commits = {"committed", "rejected", "failed"};
  for (std::size_t i = 0; i < commits.size(); ++i) {
    cases.push_back({"commit " + commits[i],
                     [i](M& m) { m.OnCommit(static_cast<consumer::CommitResult>(i), 5ms); },
                     {{"offset_commits_total{result=\"" + commits[i] + "\"}", 1},
                      {"offset_commit_duration_seconds_count", 1},
                      {"offset_commit_duration_seconds_sum", .005}}});
  }
  return cases;
}

class Observer : public ::testing::Test {
 protected:
  void SetUp() override {
    metrics_ = page_.Add({"orders", 3, 10s, "abc"}, nullptr).value();
    other_ = page_.Add({"other", 5, 10s, "abc"}, nullptr).value();
  }
  PageText Read() const { return ParsePage(page_.Render()); }

  void Run(const std::vector<Case>& cases) {
    for (const Case& one : cases) {
      SCOPED_TRACE(one.name);
      MetricsPage page({"v", "c"});
      PipelineMetrics* const metrics = page.Add({"orders", 3, 10s, "abc"}, nullptr).value();
      const PageText before = ParsePage(page.Render());
      one.call(*metrics);
      const Changes changes = Difference(before, ParsePage(page.Render()));
      ASSERT_EQ(changes.size(), one.changes.size()) << ::testing::PrintToString(changes);
      for (const auto& [series, change] : one.changes) {
        ASSERT_TRUE(changes.contains(series)) << series << ::testing::PrintToString(changes);
        EXPECT_NEAR(changes.at(series), change, 1e-9) << series;
      }
    }
  }

  MetricsPage page_{{"v", "c"}};
  PipelineMetrics* metrics_ = nullptr;
  PipelineMetrics* other_ = nullptr;
};

TEST_F(Observer, MovesTheSeriesOfEachResultReasonAndPhase) { Run(EnumCases()); }
TEST_F(Observer, MovesTheSeriesOfTheLock) { Run(LockCases()); }
TEST_F(Observer, MovesTheSeriesOfTheNodesCommands) { Run(CommandCases()); }
TEST_F(Observer, MovesTheSeriesOfTheConsumer) { Run(ConsumerCases()); }

TEST_F(Observer, MovesNothingOfAnotherPipeline) {
  metrics_->OnConsumed(5);
  metrics_->OnLag({"t", 0}, 5);
  PageText page = Read();
  EXPECT_EQ(page.series["fencepost_records_consumed_total{pipeline=\"orders\"}"], 5);
  EXPECT_EQ(page.series["fencepost_records_consumed_total{pipeline=\"other\"}"], 0);
  EXPECT_FALSE(page.series.contains(
      "fencepost_consumer_lag_records{pipeline=\"other\",topic=\"t\",partition=\"0\"}"));
}

TEST_F(Observer, GaugesGoBackAndCountersAddUp) {
  metrics_->OnHeld(3);
  metrics_->OnHeld(-2);
  metrics_->OnQuorum(true);
  metrics_->OnQuorum(false);
  metrics_->OnNode(0, true, true);
  metrics_->OnNode(0, false, false);
  metrics_->OnReady(true);
  metrics_->OnReady(false);
  metrics_->OnTakeover();
  metrics_->OnTakeover();
  PageText page = Read();
  EXPECT_EQ(page.series["fencepost_locks_held{pipeline=\"orders\"}"], 1);
  EXPECT_EQ(page.series["fencepost_redis_quorum_available{pipeline=\"orders\"}"], 0);
  EXPECT_EQ(page.series["fencepost_redis_node_up{pipeline=\"orders\",node=\"a\"}"], 0);
  EXPECT_EQ(page.series["fencepost_redis_node_quarantined{pipeline=\"orders\",node=\"a\"}"], 0);
  EXPECT_EQ(page.series["fencepost_ready{pipeline=\"orders\"}"], 0);
  EXPECT_EQ(page.series["fencepost_lock_takeovers_total{pipeline=\"orders\"}"], 2);
}

TEST_F(Observer, NothingIsLeftOfARevokedPartition) {
  const std::string labels = "{pipeline=\"orders\",topic=\"t\",partition=\"1\"}";
  const std::string lag = "fencepost_consumer_lag_records" + labels;
  metrics_->OnLag({"t", 1}, 10);
  metrics_->OnLag({"t", 1}, 0);
  metrics_->OnOldest({"t", 1}, 5, 2s);
  ASSERT_TRUE(Read().series.contains(lag));
  EXPECT_EQ(Read().series[lag], 0);
  EXPECT_EQ(Read().series["fencepost_oldest_unfinished_offset" + labels], 5);
  metrics_->OnPartitionGone({"t", 1});
  for (const auto& [series, value] : Read().series) {
    EXPECT_EQ(series.find("partition="), std::string::npos) << series;
  }
}

}  // namespace
}  // namespace fencepost::metrics
