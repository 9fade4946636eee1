// What one pipeline is observed to do, as numbers: the observer of its lock and of its consumer.
//
// The observer methods may be called from any thread (each from one thread in the main, see the
// observers); they take no mutex, but for lag, exemplars and notes, which are rare.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "consumer/pipeline/observer.h"
#include "consumer/record/record.h"
#include "consumer/trace/trace_context.h"
#include "locking/core/observer.h"
#include "metrics/log/log.h"
#include "metrics/metric_definitions.h"

namespace fencepost::metrics {

struct PipelineInfo {
  std::string name;
  int nodes = 0;  // lock nodes configured: 1 to locking::kMaxNodes
  std::chrono::milliseconds lock_ttl{0};
  std::string config_hash;
  // Sees each record as the observer does; on the same thread.
  std::function<void(consumer::ProcessedResult, const consumer::WriteItem&, bool lost)>
      on_processed{};
  std::function<void(std::vector<consumer::Span>)> on_spans{};  // as the observer does
};

// Counters since the start, for people (/status and the status page); a scrape has all of them.
class Counts {
 public:
  struct Row {
    std::string_view name;   // in /status; of lock_expired/waiting in an object lock_expired
    std::string_view words;  // on the status page; none: it is not there
    Counter PipelineCells::*metric;
    int series = -1;  // all of them
  };
  static std::span<const Row> Rows();

  // By the name of a row.
  std::uint64_t& operator[](std::string_view name);
  std::uint64_t operator[](std::string_view name) const { return Counts(*this)[name]; }
  [[nodiscard]] std::uint64_t LeasesExpired() const;

 private:
  std::array<std::uint64_t, 26> values_{};  // in the order of the rows
};

// What a health probe (/live, /ready) is answered.
struct ProbeResult {
  bool ready = false;  // or live
  std::string reason;  // why not; when ready, what is worth knowing (a stall), or empty
};

class PipelineMetrics final : public locking::LockObserver, public consumer::ConsumerObserver {
 public:
  using Nanos = locking::Nanos;

  PipelineMetrics(PipelineInfo info, Log* log);  // `log` may be nullptr; else it outlives this

  [[nodiscard]] const PipelineInfo& info() const { return info_; }
  [[nodiscard]] Counts CurrentCounts() const;  // any thread

  [[nodiscard]] const Metrics& All() const { return cells_.all; }
  // Appends this pipeline's series of one of them, and adds their exemplars. Any thread.
  void Collect(const Metric& metric, std::vector<prometheus::ClientMetric>& out,
               Exemplars& exemplars) const;

  // locking::LockObserver; the first two of both
  void OnRound(locking::RoundResult result, Nanos took) override {
    cells_.lock_acquisitions.Count(result);
    if (took > Nanos(0)) cells_.lock_acquire_duration.Observe(took.count());
  }
  void OnTakeover() override { cells_.lock_takeovers.Add(1); }
  void OnTokenIssued() override { cells_.fencing_tokens_issued.Add(1); }
  void OnLeased(Nanos waited) override { cells_.lock_wait_duration.Observe(waited.count()); }
  void OnExtension(locking::ExtensionResult result) override {
    cells_.lock_extensions.Count(result);
  }
  void OnExpired(locking::Phase phase) override { cells_.lock_expirations.Count(phase); }
  void OnLoss(locking::LossReason reason) override { cells_.lock_losses.Count(reason); }
  void OnLeaseEnded(Nanos held, Nanos validity_left) override {
    cells_.lock_hold_duration.Observe(held.count());
    cells_.lock_validity_remaining.Observe(validity_left.count());
  }
  void OnReleased(locking::ReleaseOutcome outcome) override { cells_.lock_releases.Count(outcome); }
  void OnCompletedAfterExpiry() override { cells_.completed_after_expiry.Add(1); }
  void OnFencingRejection() override { cells_.fencing_rejections.Add(1, 0); }
  void OnQuorumFailure(locking::QuorumFailure reason) override {
    cells_.quorum_failures.Count(reason);
  }
  void OnHeld(std::int64_t change) override { cells_.locks_held.Add(change); }
  void OnQuorum(bool available) override { cells_.redis_quorum_available.Set(available ? 1 : 0); }
  void OnNode(locking::NodeIndex node, bool up, bool quarantined) override {
    cells_.redis_node_up.Set(up ? 1 : 0, node);
    cells_.redis_node_quarantined.Set(quarantined ? 1 : 0, node);
  }
  void OnClockOffset(locking::NodeIndex node, Nanos offset) override {
    cells_.redis_node_clock_offset.Set(offset.count(), node);
  }
  void OnRestartDetected(locking::NodeIndex node) override {
    cells_.redis_node_restarts.Add(1, node);
  }
  void OnCall(locking::NodeIndex node, locking::OpKind kind, std::size_t keys, Nanos took) override;
  void OnCommandError(locking::NodeIndex node, locking::CommandError reason) override;
  void OnReconnect(locking::NodeIndex node) override { cells_.redis_reconnects.Add(1, node); }

  // Of both observers
  void OnInvariant(locking::Invariant invariant) override {
    cells_.invariant_violations.Count(invariant);
  }
  void OnNote(locking::Severity severity, std::string_view event, std::string_view text) override {
    if (log_ != nullptr) log_->Write(severity, info_.name, event, text);
  }

  // consumer::ConsumerObserver
  void OnConsumed(std::size_t records) override {
    cells_.records_consumed.Add(static_cast<std::int64_t>(records));
  }
  void OnProcessed(consumer::ProcessedResult result, const consumer::WriteItem& item,
                   bool lost) override {
    cells_.records_processed.Count(result);
    if (info_.on_processed) info_.on_processed(result, item, lost);
  }
  void OnDedupeSkip(consumer::DedupeSource source) override { cells_.dedupe_skips.Count(source); }
  void OnUnlocked() override { cells_.records_unlocked.Add(1); }
  void OnOutputFencing() override { cells_.fencing_rejections.Add(1, 1); }
  void OnRowLost() override { cells_.fencing_rejections.Add(1, 2); }
  void OnIdConflict() override { cells_.id_conflicts.Add(1); }
  void OnInFlight(std::size_t records, std::size_t bytes) override {
    cells_.records_in_flight.Set(static_cast<std::int64_t>(records));
    cells_.queue_size.Set(static_cast<std::int64_t>(bytes));
  }
  void OnBackpressure(Nanos paused) override { cells_.backpressure.Add(paused.count()); }
  void OnProgress(std::chrono::milliseconds unix_time) override {
    cells_.last_progress.Set(unix_time.count());
  }
  void OnEndToEnd(Nanos took, const consumer::TraceContext& kept = {}) override {
    Observe(cells_.record_end_to_end, took, kept);
  }
  void OnRetry(consumer::RetryStage stage) override { cells_.retries.Count(stage); }
  void OnDeadLetter(consumer::DeadLetterReason reason) override {
    cells_.dead_letters.Count(reason);
  }
  void OnDeadLetterError() override { cells_.dead_letter_errors.Add(1); }
  void OnGroupLag(std::int64_t records) override { cells_.group_lag.Set(records); }
  void OnHandled(Nanos took, const consumer::TraceContext& sampled = {}) override {
    Observe(cells_.handler_duration, took, sampled);
  }
  void OnLag(const consumer::TopicPartition& where, std::int64_t records) override {
    const std::lock_guard lock(partitions_mutex_);
    partitions_[where].lag = records;
  }
  void OnOldest(const consumer::TopicPartition& where, consumer::Offset offset,
                Nanos for_so_long) override {
    const std::lock_guard lock(partitions_mutex_);
    PartitionNumbers& partition = partitions_[where];
    partition.oldest = offset;
    partition.oldest_for = offset < 0 ? Nanos(0) : for_so_long;
  }
  void OnPartitionGone(const consumer::TopicPartition& where) override {
    const std::lock_guard lock(partitions_mutex_);
    partitions_.erase(where);
  }
  void OnOldestUnprocessed(std::chrono::milliseconds unix_time) override {
    cells_.oldest_unprocessed.Set(unix_time.count());
  }
  void OnCommitGap(std::int64_t records) override { cells_.commit_gap.Set(records); }
  void OnPartitions(std::size_t assigned, std::size_t paused) override {
    cells_.partitions_assigned.Set(static_cast<std::int64_t>(assigned));
    cells_.partitions_paused.Set(static_cast<std::int64_t>(paused));
  }
  void OnCommit(consumer::CommitResult result, Nanos took) override {
    cells_.offset_commits.Count(result);
    cells_.offset_commit_duration.Observe(took.count());
  }
  void OnRebalance(consumer::RebalanceEvent event) override { cells_.rebalances.Count(event); }
  void OnRebalanceTook(Nanos took) override { cells_.rebalance_duration.Observe(took.count()); }
  void OnWrite(Nanos took, std::size_t batch) override {
    cells_.output_write_duration.Observe(took.count());
    cells_.output_batch_size.Observe(static_cast<std::int64_t>(batch));
  }
  void OnWriteSplit() override { cells_.write_splits.Add(1); }
  void OnRecordNote(locking::Severity severity, std::string_view event, std::string_view text,
                    const consumer::AboutRecord& record) override {
    if (log_ != nullptr) log_->Write(severity, info_.name, event, text, record);
  }
  void OnReady(bool ready) override { cells_.ready.Set(ready ? 1 : 0); }
  void OnSpans(std::vector<consumer::Span> spans) override {
    if (info_.on_spans) info_.on_spans(std::move(spans));
  }

 private:
  struct PartitionNumbers {
    std::optional<std::int64_t> lag;         // nullopt: not told yet
    std::optional<consumer::Offset> oldest;  // unfinished record; -1: none; nullopt: not told yet
    Nanos oldest_for{0};                     // since it has been the oldest
  };

  static void Observe(Seconds& histogram, Nanos took, const consumer::TraceContext& trace) {
    if (!trace.there()) return histogram.Observe(took.count());
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    histogram.Observe(took.count(), trace,
                      std::chrono::duration_cast<std::chrono::milliseconds>(now));
  }
  [[nodiscard]] std::optional<double> ValueOf(const Metric& metric,
                                              const PartitionNumbers& partition) const;

  const PipelineInfo info_;
  Log* const log_;
  PipelineCells cells_;

  mutable std::mutex partitions_mutex_;
  // Of those that this worker owns; guarded by partitions_mutex_
  std::map<consumer::TopicPartition, PartitionNumbers> partitions_;
};

}  // namespace fencepost::metrics
