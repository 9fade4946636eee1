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
  int nodes = 0;  // lock nodes configured, 1 to locking::kMaxNodes
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

struct Readiness {
  bool ready = false;
  std::string reason;  // why not; when ready, what is to be known all the same (a stall), or empty
};

class PipelineMetrics final : public locking::LockObserver, public consumer::ConsumerObserver {
 public:
  using Nanos = locking::Nanos;

  PipelineMetrics(PipelineInfo info, Log* log);  // `log` may be nullptr; else it outlives this

  [[nodiscard]] const PipelineInfo& info() const { return info_; }
  [[nodiscard]] Counts CurrentCounts() const;  // any thread

  // Appends this pipeline's series of a metric. Any thread.
  void Collect(const MetricInfo& metric, std::vector<prometheus::ClientMetric>& out) const;

  // locking::LockObserver
  void OnRound(locking::RoundResult result, Nanos took) override;
  void OnTakeover() override;
  void OnTokenIssued() override;
  void OnLeased(Nanos waited) override;
  void OnExtension(locking::ExtensionResult result) override;
  void OnExpired(locking::Phase phase) override;
  void OnLoss(locking::LossReason reason) override;
  void OnLeaseEnded(Nanos held, Nanos validity_left) override;
  void OnReleased(locking::ReleaseOutcome outcome) override;
  void OnCompletedAfterExpiry() override;
  void OnFencingRejection() override;
  void OnQuorumFailure(locking::QuorumFailure reason) override;
  void OnHeld(std::int64_t held) override;
  void OnQuorum(bool available) override;
  void OnNode(locking::NodeIndex node, bool up, bool quarantined) override;
  void OnClockOffset(locking::NodeIndex node, Nanos offset) override;
  void OnRestartDetected(locking::NodeIndex node) override;
  void OnCall(locking::NodeIndex node, locking::OpKind kind, std::size_t keys, Nanos took) override;
  void OnCommandError(locking::NodeIndex node, locking::CommandError reason) override;
  void OnReconnect(locking::NodeIndex node) override;

  // Of both observers
  void OnInvariant(locking::Invariant invariant) override;
  void OnNote(locking::Severity severity, std::string_view event, std::string_view text) override;

  // consumer::ConsumerObserver
  void OnConsumed(std::size_t records) override;
  void OnProcessed(consumer::ProcessedResult result, std::size_t count) override;
  void OnDedupeSkip(consumer::DedupeSource source) override;
  void OnOutputFencing() override;
  void OnIdConflict() override;
  void OnInFlight(std::size_t records, std::size_t bytes) override;
  void OnBackpressure(Nanos paused) override;
  void OnProgress(std::chrono::milliseconds unix_time) override;
  void OnEndToEnd(Nanos took) override;
  void OnRetry(consumer::RetryStage stage) override;
  void OnDeadLetter(consumer::DeadLetterReason reason) override;
  void OnDeadLetterError() override;
  void OnHandled(Nanos took) override;
  void OnLag(const consumer::TopicPartition& where, std::int64_t records) override;
  void OnOldest(const consumer::TopicPartition& where, consumer::Offset offset,
                Nanos for_so_long) override;
  void OnPartitionGone(const consumer::TopicPartition& where) override;
  void OnOldestUnprocessed(std::chrono::milliseconds unix_time) override;
  void OnCommitGap(std::int64_t records) override;
  void OnPartitions(std::size_t assigned, std::size_t paused) override;
  void OnCommit(consumer::CommitResult result, Nanos took) override;
  void OnRebalance(consumer::RebalanceEvent event) override;
  void OnRebalanceTook(Nanos took) override;
  void OnWrite(Nanos took, std::size_t batch) override;
  void OnRecordNote(locking::Severity severity, std::string_view event, std::string_view text,
                    const consumer::AboutRecord& record) override;
  void OnReady(bool ready) override;

 private:
  struct PartitionNumbers {
    std::optional<std::int64_t> lag;         // nullopt: not told yet
    std::optional<consumer::Offset> oldest;  // unfinished record; -1: none; nullopt: not told yet
    Nanos oldest_for{0};                     // since it has been the oldest
  };

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
