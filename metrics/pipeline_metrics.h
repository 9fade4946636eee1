// What one pipeline is observed to do, as numbers: the observer of its lock and of its consumer.
//
// The observer methods may be called from any thread (each from one thread in the main, see the
// observers); they take no mutex, but for lag, readiness and notes, which are rare.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "consumer/pipeline/observer.h"
#include "consumer/record/record.h"
#include "locking/core/observer.h"
#include "metrics/cells.h"
#include "metrics/log/log.h"
#include "metrics/metric_definitions.h"

namespace prometheus {
struct ClientMetric;
}

namespace fencepost::metrics {

struct PipelineInfo {
  std::string name;
  int nodes = 0;  // lock nodes configured: 1 to locking::kMaxNodes
  std::chrono::milliseconds lock_ttl{0};
  std::string config_hash;
};

// Since the start, for people (the status page); a scrape has all of it.
struct Counts {
  std::uint64_t consumed = 0, done = 0, skipped = 0, dead_lettered = 0, failed = 0;
  std::uint64_t rounds = 0, acquired = 0, contended = 0, takeovers = 0, losses = 0;
  std::array<std::uint64_t, 4> expired{};  // by locking::Phase
  std::uint64_t fenced_by_redis = 0, fenced_by_output = 0;
  std::uint64_t dedupe_by_lock = 0, dedupe_by_ledger = 0, id_conflicts = 0;
  std::uint64_t violations = 0, retries = 0, dead_letter_errors = 0, rebalances = 0;
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

  // Appends this pipeline's series of a metric. Any thread.
  void Collect(const MetricInfo& metric, std::vector<prometheus::ClientMetric>& out) const;

  // locking::LockObserver; the first two of both
  void OnRound(locking::RoundResult result, Nanos took) override {
    cells_.Add(Metric::kLockAcquisitions, 1, Series(result));
    if (took > Nanos(0)) cells_.Observe(Metric::kLockAcquireDuration, took.count());
  }
  void OnTakeover() override { cells_.Add(Metric::kLockTakeovers, 1); }
  void OnTokenIssued() override { cells_.Add(Metric::kFencingTokensIssued, 1); }
  void OnLeased(Nanos waited) override {
    cells_.Observe(Metric::kLockWaitDuration, waited.count());
  }
  void OnExtension(locking::ExtensionResult result) override {
    cells_.Add(Metric::kLockExtensions, 1, Series(result));
  }
  void OnExpired(locking::Phase phase) override {
    cells_.Add(Metric::kLockExpirations, 1, Series(phase));
  }
  void OnLoss(locking::LossReason reason) override {
    cells_.Add(Metric::kLockLosses, 1, Series(reason));
  }
  void OnLeaseEnded(Nanos held, Nanos validity_left) override {
    cells_.Observe(Metric::kLockHoldDuration, held.count());
    cells_.Observe(Metric::kLockValidityRemaining, validity_left.count());
  }
  void OnReleased(locking::ReleaseOutcome outcome) override {
    cells_.Add(Metric::kLockReleases, 1, Series(outcome));
  }
  void OnCompletedAfterExpiry() override { cells_.Add(Metric::kCompletedAfterExpiry, 1); }
  void OnFencingRejection() override { cells_.Add(Metric::kFencingRejections, 1, 0); }
  void OnQuorumFailure(locking::QuorumFailure reason) override {
    cells_.Add(Metric::kQuorumFailures, 1, Series(reason));
  }
  void OnHeld(std::int64_t change) override { cells_.Add(Metric::kLocksHeld, change); }
  void OnQuorum(bool available) override {
    cells_.Set(Metric::kRedisQuorumAvailable, available ? 1 : 0);
  }
  void OnNode(locking::NodeIndex node, bool up, bool quarantined) override {
    cells_.Set(Metric::kRedisNodeUp, up ? 1 : 0, node);
    cells_.Set(Metric::kRedisNodeQuarantined, quarantined ? 1 : 0, node);
  }
  void OnClockOffset(locking::NodeIndex node, Nanos offset) override {
    cells_.Set(Metric::kRedisNodeClockOffset, offset.count(), node);
  }
  void OnRestartDetected(locking::NodeIndex node) override {
    cells_.Add(Metric::kRedisNodeRestarts, 1, node);
  }
  void OnCall(locking::NodeIndex node, locking::OpKind kind, std::size_t keys, Nanos took) override;
  void OnCommandError(locking::NodeIndex node, locking::CommandError reason) override;
  void OnReconnect(locking::NodeIndex node) override {
    cells_.Add(Metric::kRedisReconnects, 1, node);
  }

  // Of both observers
  void OnInvariant(locking::Invariant invariant) override {
    cells_.Add(Metric::kInvariantViolations, 1, Series(invariant));
  }
  void OnNote(locking::Severity severity, std::string_view event, std::string_view text) override {
    if (log_ != nullptr) log_->Write(severity, info_.name, event, text);
  }

  // consumer::ConsumerObserver
  void OnConsumed(std::size_t records) override {
    cells_.Add(Metric::kRecordsConsumed, static_cast<std::int64_t>(records));
  }
  void OnProcessed(consumer::ProcessedResult result, std::size_t count) override {
    cells_.Add(Metric::kRecordsProcessed, static_cast<std::int64_t>(count), Series(result));
  }
  void OnDedupeSkip(consumer::DedupeSource source) override {
    cells_.Add(Metric::kDedupeSkips, 1, Series(source));
  }
  void OnUnlocked() override { cells_.Add(Metric::kRecordsUnlocked, 1); }
  void OnOutputFencing() override { cells_.Add(Metric::kFencingRejections, 1, 1); }
  void OnIdConflict() override { cells_.Add(Metric::kIdConflicts, 1); }
  void OnInFlight(std::size_t records, std::size_t bytes) override {
    cells_.Set(Metric::kRecordsInFlight, static_cast<std::int64_t>(records));
    cells_.Set(Metric::kQueueSize, static_cast<std::int64_t>(bytes));
  }
  void OnBackpressure(Nanos paused) override { cells_.Add(Metric::kBackpressure, paused.count()); }
  void OnProgress(std::chrono::milliseconds unix_time) override {
    cells_.Set(Metric::kLastProgress, unix_time.count());
  }
  void OnEndToEnd(Nanos took) override { cells_.Observe(Metric::kRecordEndToEnd, took.count()); }
  void OnRetry(consumer::RetryStage stage) override {
    cells_.Add(Metric::kRetries, 1, Series(stage));
  }
  void OnDeadLetter(consumer::DeadLetterReason reason) override {
    cells_.Add(Metric::kDeadLetters, 1, Series(reason));
  }
  void OnDeadLetterError() override { cells_.Add(Metric::kDeadLetterErrors, 1); }
  void OnGroupLag(std::int64_t records) override { cells_.Set(Metric::kGroupLag, records); }
  void OnHandled(Nanos took) override { cells_.Observe(Metric::kHandlerDuration, took.count()); }
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
    cells_.Set(Metric::kOldestUnprocessed, unix_time.count());
  }
  void OnCommitGap(std::int64_t records) override { cells_.Set(Metric::kCommitGap, records); }
  void OnPartitions(std::size_t assigned, std::size_t paused) override {
    cells_.Set(Metric::kPartitionsAssigned, static_cast<std::int64_t>(assigned));
    cells_.Set(Metric::kPartitionsPaused, static_cast<std::int64_t>(paused));
  }
  void OnCommit(consumer::CommitResult result, Nanos took) override {
    cells_.Add(Metric::kOffsetCommits, 1, Series(result));
    cells_.Observe(Metric::kOffsetCommitDuration, took.count());
  }
  void OnRebalance(consumer::RebalanceEvent event) override {
    cells_.Add(Metric::kRebalances, 1, Series(event));
  }
  void OnRebalanceTook(Nanos took) override {
    cells_.Observe(Metric::kRebalanceDuration, took.count());
  }
  void OnWrite(Nanos took, std::size_t batch) override {
    cells_.Observe(Metric::kOutputWriteDuration, took.count());
    cells_.Observe(Metric::kOutputBatchSize, static_cast<std::int64_t>(batch));
  }
  void OnRecordNote(locking::Severity severity, std::string_view event, std::string_view text,
                    const consumer::AboutRecord& record) override {
    if (log_ != nullptr) log_->Write(severity, info_.name, event, text, record);
  }
  void OnReady(bool ready) override { cells_.Set(Metric::kReady, ready ? 1 : 0); }

 private:
  struct PartitionNumbers {
    std::optional<std::int64_t> lag;         // nullopt: not told yet
    std::optional<consumer::Offset> oldest;  // unfinished record; -1: none; nullopt: not told yet
    Nanos oldest_for{0};                     // since it has been the oldest
  };

  // Of an enum, the place of its value among the values of a label.
  template <typename Enum>
  static int Series(Enum value) {
    return static_cast<int>(value);
  }
  void CollectByPartition(const MetricInfo& metric,
                          std::vector<prometheus::ClientMetric>& out) const;
  static std::optional<double> ValueOf(Metric metric, const PartitionNumbers& partition);

  const PipelineInfo info_;
  Log* const log_;
  Cells cells_;

  mutable std::mutex partitions_mutex_;
  // Of those that this worker owns; guarded by partitions_mutex_
  std::map<consumer::TopicPartition, PartitionNumbers> partitions_;
};

}  // namespace fencepost::metrics
