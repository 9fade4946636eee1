// Each call of an observer moves exactly the series that it should.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <sstream>
#include <vector>

#include <fmt/format.h>
#include <prometheus/client_metric.h>

#include "consumer/flow/ports/ports.h"
#include "metrics/page.h"
#include "tests/unit/metrics/page_text.h"

namespace fencepost::metrics {
namespace {

using namespace std::chrono_literals;
using Changes = std::map<std::string, double>;

struct Case {
  std::function<void(PipelineMetrics&)> call;
  std::string changes;  // "series 1; series 2", without the prefix, the label `pipeline`, buckets
};

Changes Read(const std::string& text) {
  Changes changes;
  std::istringstream rows(text);
  for (std::string row; std::getline(rows >> std::ws, row, ';');) {
    const auto space = row.rfind(' ');
    changes[row.substr(0, space)] = std::stod(row.substr(space + 1));
  }
  return changes;
}

// A histogram that has seen one value.
std::string Seen(const std::string& metric, double value, const std::string& labels = "") {
  const std::string count = metric + "_count" + labels + " 1";
  return value == 0 ? count : fmt::format("{}; {}_sum{} {}", count, metric, labels, value);
}

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
    cases.push_back({[method, i](PipelineMetrics& m) { (m.*method)(static_cast<Enum>(i)); },
                     fmt::format("{}{{{}=\"{}\"}} 1", metric, label, values[i])});
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
  AddEach(cases, "dead_letters_total", "reason",
          {"bad_record", "id_conflict", "handler", "output", "timeout"}, &M::OnDeadLetter);
  return cases;
}

std::vector<Case> LockCases() {
  using M = PipelineMetrics;
  const std::string held = Seen("lock_hold_duration_seconds", 1.5);
  std::vector<Case> cases = {
      {[](M& m) { m.OnTakeover(); }, "lock_takeovers_total 1"},
      {[](M& m) { m.OnTokenIssued(); }, "fencing_tokens_issued_total 1"},
      {[](M& m) { m.OnLeased(250ms); }, Seen("lock_wait_duration_seconds", .25)},
      {[](M& m) { m.OnLeaseEnded(1500ms, 8s); },
       held + "; " + Seen("lock_validity_remaining_seconds", 8)},
      {[](M& m) { m.OnLeaseEnded(1500ms, -1s); },
       held + "; " + Seen("lock_validity_remaining_seconds", 0)},
      {[](M& m) { m.OnCompletedAfterExpiry(); }, "completed_after_expiry_total 1"},
      {[](M& m) { m.OnFencingRejection(); }, "fencing_rejections_total{side=\"redis\"} 1"},
      {[](M& m) { m.OnHeld(17); }, "locks_held 17"},
      {[](M& m) { m.OnQuorum(true); }, "redis_quorum_available 1"},
      {[](M& m) { m.OnNode(0, true, false); }, "redis_node_up{node=\"a\"} 1"},
      {[](M& m) { m.OnNode(2, true, true); },
       "redis_node_up{node=\"c\"} 1; redis_node_quarantined{node=\"c\"} 1"},
      {[](M& m) { m.OnClockOffset(1, -1500us); },
       "redis_node_clock_offset_seconds{node=\"b\"} -.0015"},
      {[](M& m) { m.OnRestartDetected(2); }, "redis_node_restarts_detected_total{node=\"c\"} 1"},
      {[](M& m) { m.OnReconnect(1); }, "redis_reconnects_total{node=\"b\"} 1"},
  };
  const std::vector<std::string> results = {"acquired", "contended", "done",    "stale",
                                            "refused",  "no_quorum", "timeout", "error"};
  for (std::size_t i = 0; i < results.size(); ++i) {
    cases.push_back({[i](M& m) { m.OnRound(static_cast<locking::RoundResult>(i), 3ms); },
                     "lock_acquisitions_total{result=\"" + results[i] + "\"} 1; " +
                         Seen("lock_acquire_duration_seconds", .003)});
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
    cases.push_back({[kind = kind](PipelineMetrics& m) { m.OnCall(1, kind, 128, 2ms); },
                     Seen("redis_command_duration_seconds", .002, labels) + "; " +
                         Seen("lock_batch_size", 128)});
  }
  const std::vector<std::string> reasons = {"timeout",  "connection", "auth", "oom",
                                            "readonly", "noscript",   "other"};
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    const auto reason = static_cast<locking::CommandError>(i);
    cases.push_back({[reason](PipelineMetrics& m) { m.OnCommandError(2, reason); },
                     "redis_command_errors_total{node=\"c\",reason=\"" + reasons[i] + "\"} 1"});
  }
  return cases;
}

std::vector<Case> ConsumerCases() {
  using M = PipelineMetrics;
  static const consumer::TopicPartition kWhere{"orders.in", 7};
  const std::string where = "{topic=\"orders.in\",partition=\"7\"}";
  std::vector<Case> cases = {
      {[](M& m) { m.OnConsumed(500); }, "records_consumed_total 500"},
      {[](M& m) { m.OnUnlocked(); }, "records_unlocked_total 1"},
      {[](M& m) { m.OnOutputFencing(); }, "fencing_rejections_total{side=\"output\"} 1"},
      {[](M& m) { m.OnRowLost(); }, "fencing_rejections_total{side=\"row\"} 1"},
      {[](M& m) { m.OnIdConflict(); }, "id_conflicts_total 1"},
      {[](M& m) { m.OnInFlight(12, 3456); }, "records_in_flight 12; queue_size_bytes 3456"},
      {[](M& m) { m.OnBackpressure(1500ms); }, "backpressure_seconds_total 1.5"},
      {[](M& m) { m.OnGroupLag(77); }, "group_lag_records 77"},
      {[](M& m) { m.OnProgress(1'763'695'260'123ms); },
       "last_progress_timestamp_seconds 1763695260.123"},
      {[](M& m) { m.OnEndToEnd(40ms); }, Seen("record_end_to_end_duration_seconds", .04)},
      {[](M& m) { m.OnEndToEnd(-1s); }, Seen("record_end_to_end_duration_seconds", 0)},
      {[](M& m) { m.OnHandled(40ms); }, Seen("handler_duration_seconds", .04)},
      {[](M& m) { m.OnDeadLetterError(); }, "dead_letter_errors_total 1"},
      {[](M& m) { m.OnLag(kWhere, 99); }, "consumer_lag_records" + where + " 99"},
      {[](M& m) { m.OnOldest(kWhere, 17, 312s); },
       "oldest_unfinished_offset" + where + " 17; oldest_unfinished_seconds" + where + " 312"},
      {[](M& m) { m.OnOldest(kWhere, -1, 312s); }, "oldest_unfinished_offset" + where + " -1"},
      {[](M& m) { m.OnOldestUnprocessed(1'500ms); },
       "oldest_unprocessed_record_timestamp_seconds 1.5"},
      {[](M& m) { m.OnCommitGap(8); }, "commit_gap_records 8"},
      {[](M& m) { m.OnPartitions(12, 3); }, "partitions_assigned 12; partitions_paused 3"},
      {[](M& m) { m.OnRebalanceTook(2s); }, Seen("rebalance_duration_seconds", 2)},
      {[](M& m) { m.OnWrite(25ms, 500); },
       Seen("output_write_duration_seconds", .025) + "; " + Seen("output_batch_size", 500)},
      {[](M& m) { m.OnWriteSplit(); }, "write_splits_total 1"},
      {[](M& m) { m.OnReady(true); }, "ready 1"},
      {[](M& m) { m.OnNote(Severity::kError, "event", "text"); }, ""},
  };
  const std::vector<std::string> results = {"done",   "skipped",   "dead_lettered",
                                            "failed", "no_output", "filtered"};
  for (std::size_t i = 0; i < results.size(); ++i) {
    cases.push_back(
        {[i](M& m) { m.OnProcessed(static_cast<consumer::ProcessedResult>(i), {}, false); },
         "records_processed_total{result=\"" + results[i] + "\"} 1"});
  }
  const std::vector<std::string> commits = {"committed", "rejected", "failed"};
  for (std::size_t i = 0; i < commits.size(); ++i) {
    cases.push_back({[i](M& m) { m.OnCommit(static_cast<consumer::CommitResult>(i), 5ms); },
                     "offset_commits_total{result=\"" + commits[i] + "\"} 1; " +
                         Seen("offset_commit_duration_seconds", .005)});
  }
  return cases;
}

class Observer : public ::testing::Test {
 protected:
  void SetUp() override {
    metrics_ = page_.Add({"orders", 3, 10s, "abc"}, nullptr).value();
    other_ = page_.Add({"other", 5, 10s, "abc"}, nullptr).value();
  }
  PageText Page() const { return ParsePage(page_.Render()); }

  static void Run(const std::vector<Case>& cases) {
    for (const Case& one : cases) {
      MetricsPage page({"v", "c"});
      PipelineMetrics* const metrics = page.Add({"orders", 3, 10s, "abc"}, nullptr).value();
      const PageText before = ParsePage(page.Render());
      one.call(*metrics);
      const Changes changes = Difference(before, ParsePage(page.Render()));
      const Changes expected = Read(one.changes);
      ASSERT_EQ(changes.size(), expected.size()) << one.changes;
      for (const auto& [series, change] : expected) {
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
  PageText page = Page();
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
  PageText page = Page();
  EXPECT_EQ(page.series["fencepost_locks_held{pipeline=\"orders\"}"], 1);
  EXPECT_EQ(page.series["fencepost_redis_quorum_available{pipeline=\"orders\"}"], 0);
  EXPECT_EQ(page.series["fencepost_redis_node_up{pipeline=\"orders\",node=\"a\"}"], 0);
  EXPECT_EQ(page.series["fencepost_redis_node_quarantined{pipeline=\"orders\",node=\"a\"}"], 0);
  EXPECT_EQ(page.series["fencepost_ready{pipeline=\"orders\"}"], 0);
  EXPECT_EQ(page.series["fencepost_lock_takeovers_total{pipeline=\"orders\"}"], 2);
}

TEST_F(Observer, ShowsEachRecordToWhoAskedForThem) {
  using Seen = std::pair<std::string, bool>;
  std::vector<Seen> seen;
  PipelineMetrics* const watched =
      page_
          .Add({.name = "watched",
                .nodes = 1,
                .on_processed = [&](auto, const consumer::WriteItem& item,
                                    bool lost) { seen.emplace_back(item.record_id, lost); }},
               nullptr)
          .value();
  watched->OnProcessed(consumer::ProcessedResult::kDone, {.record_id = "o-1"}, true);
  watched->OnProcessed(consumer::ProcessedResult::kSkipped, {.record_id = "o-2"}, false);
  EXPECT_THAT(seen, ::testing::ElementsAre(Seen("o-1", true), Seen("o-2", false)));
}

TEST_F(Observer, NothingIsLeftOfARevokedPartition) {
  const std::string labels = "{pipeline=\"orders\",topic=\"t\",partition=\"1\"}";
  const std::string lag = "fencepost_consumer_lag_records" + labels;
  metrics_->OnLag({"t", 1}, 10);
  metrics_->OnLag({"t", 1}, 0);
  metrics_->OnOldest({"t", 1}, 5, 2s);
  ASSERT_TRUE(Page().series.contains(lag));
  EXPECT_EQ(Page().series[lag], 0);
  EXPECT_EQ(Page().series["fencepost_oldest_unfinished_offset" + labels], 5);
  metrics_->OnPartitionGone({"t", 1});
  for (const auto& [series, value] : Page().series) {
    EXPECT_EQ(series.find("partition="), std::string::npos) << series;
  }
}

}  // namespace
}  // namespace fencepost::metrics
