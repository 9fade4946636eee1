#include "metrics/pipeline_metrics.h"

#include <utility>

#include <prometheus/client_metric.h>

#include "locking/base/check.h"

namespace fencepost::metrics {
namespace {

using prometheus::ClientMetric;

template <typename Enum>
int Series(Enum value) {
  return static_cast<int>(value);
}

// In the order of the label `command`. A fill brings a lock to a node that lacks it, like an
// acquire; abort and forget free a name, like a release.
int CommandOf(locking::OpKind kind) {
  enum { kAcquire, kExtend, kDone, kRelease, kCommands };
  switch (kind) {
    case locking::OpKind::kExtend:
      return kExtend;
    case locking::OpKind::kDone:
      return kDone;
    case locking::OpKind::kAbort:
    case locking::OpKind::kRelease:
    case locking::OpKind::kForget:
      return kRelease;
    case locking::OpKind::kAcquire:
    case locking::OpKind::kFill:
    case locking::OpKind::kInspect:  // a look at a name, like an acquire that takes nothing
      break;
  }
  return kAcquire;
}

constexpr int kCommands = 4;
constexpr int kCommandErrors = static_cast<int>(locking::CommandError::kOther) + 1;

// The labels of a series by its place: the last label moves fastest.
std::vector<ClientMetric::Label> LabelsOf(const MetricInfo& metric, const std::string& pipeline,
                                          int series) {
  std::vector<ClientMetric::Label> labels(metric.labels.size() + 1);
  labels[0] = {"pipeline", pipeline};
  for (std::size_t i = metric.labels.size(); i > 0; --i) {
    const LabelInfo& label = metric.labels[i - 1];
    // Only the first label may be `node`, so its length of values does not matter here.
    const int values = static_cast<int>(label.values.size());
    labels[i] = {std::string(label.name), std::string(label.values[series % values])};
    series /= values;
  }
  return labels;
}

ClientMetric::Histogram HistogramOf(const MetricInfo& metric, const HistogramReading& reading) {
  ClientMetric::Histogram histogram;
  histogram.sample_sum = reading.sum;
  for (std::size_t i = 0; i < metric.buckets.size(); ++i) {
    histogram.sample_count += reading.buckets[i];
    histogram.bucket.push_back({histogram.sample_count, metric.buckets[i]});
  }
  histogram.sample_count += reading.buckets.back();
  return histogram;
}

}  // namespace

PipelineMetrics::PipelineMetrics(PipelineInfo info, Log* log)
    : info_(std::move(info)), log_(log), cells_(info_.nodes) {
  FENCEPOST_CHECK(info_.nodes >= 1 && info_.nodes <= locking::kMaxNodes, info_.name);
  cells_.Set(Metric::kLockTtl, info_.lock_ttl.count());
  cells_.Set(Metric::kRedisNodesConfigured, info_.nodes);
}

Counts PipelineMetrics::CurrentCounts() const {
  const auto one = [this](Metric metric, auto series) {
    return static_cast<std::uint64_t>(cells_.Value(metric, static_cast<int>(series)));
  };
  const auto all = [&](Metric metric) {
    std::uint64_t sum = 0;
    for (int i = 0; i < cells_.SeriesOf(metric); ++i) sum += one(metric, i);
    return sum;
  };
  using consumer::DedupeSource;
  using consumer::ProcessedResult;
  using locking::RoundResult;
  Counts counts{
      .consumed = all(Metric::kRecordsConsumed),
      .done = one(Metric::kRecordsProcessed, ProcessedResult::kDone),
      .skipped = one(Metric::kRecordsProcessed, ProcessedResult::kSkipped),
      .dead_lettered = one(Metric::kRecordsProcessed, ProcessedResult::kDeadLettered),
      .failed = one(Metric::kRecordsProcessed, ProcessedResult::kFailed),
      .rounds = all(Metric::kLockAcquisitions),
      .acquired = one(Metric::kLockAcquisitions, RoundResult::kAcquired),
      .contended = one(Metric::kLockAcquisitions, RoundResult::kContended),
      .takeovers = all(Metric::kLockTakeovers),
      .losses = all(Metric::kLockLosses),
      .expired = {},
      .fenced_by_redis = one(Metric::kFencingRejections, 0),
      .fenced_by_output = one(Metric::kFencingRejections, 1),
      .dedupe_by_lock = one(Metric::kDedupeSkips, DedupeSource::kLock),
      .dedupe_by_ledger = one(Metric::kDedupeSkips, DedupeSource::kLedger),
      .id_conflicts = all(Metric::kIdConflicts),
      .violations = all(Metric::kInvariantViolations),
      .retries = all(Metric::kRetries),
      .dead_letter_errors = all(Metric::kDeadLetterErrors),
      .rebalances = all(Metric::kRebalances),
  };
  for (std::size_t phase = 0; phase < counts.expired.size(); ++phase) {
    counts.expired[phase] = one(Metric::kLockExpirations, phase);
  }
  return counts;
}

void PipelineMetrics::Collect(const MetricInfo& metric, std::vector<ClientMetric>& out) const {
  if (metric.labels.data() == Info(Metric::kConsumerLag).labels.data()) {
    return CollectByPartition(metric, out);
  }
  if (metric.id == Metric::kConfigInfo) {
    ClientMetric series;
    series.label = {{"pipeline", info_.name},
                    {std::string(metric.labels[0].name), info_.config_hash}};
    series.gauge.value = 1;
    out.push_back(std::move(series));
    return;
  }
  for (int i = 0; i < cells_.SeriesOf(metric.id); ++i) {
    ClientMetric series;
    series.label = LabelsOf(metric, info_.name, i);
    switch (metric.kind) {
      case MetricKind::kCounter:
        series.counter.value = cells_.Value(metric.id, i);
        break;
      case MetricKind::kGauge:
        series.gauge.value = cells_.Value(metric.id, i);
        break;
      case MetricKind::kHistogram:
        series.histogram = HistogramOf(metric, cells_.Histogram(metric.id, i));
        break;
    }
    out.push_back(std::move(series));
  }
}

void PipelineMetrics::CollectByPartition(const MetricInfo& metric,
                                         std::vector<ClientMetric>& out) const {
  const std::lock_guard lock(partitions_mutex_);
  out.reserve(out.size() + partitions_.size());
  for (const auto& [where, partition] : partitions_) {
    const std::optional<double> value = ValueOf(metric.id, partition);
    if (!value) continue;
    ClientMetric series;
    series.label = {{"pipeline", info_.name},
                    {std::string(metric.labels[0].name), where.topic},
                    {std::string(metric.labels[1].name), std::to_string(where.partition)}};
    series.gauge.value = *value;
    out.push_back(std::move(series));
  }
}

std::optional<double> PipelineMetrics::ValueOf(Metric metric, const PartitionNumbers& partition) {
  if (metric == Metric::kConsumerLag) return partition.lag;
  if (!partition.oldest) return std::nullopt;
  if (metric == Metric::kOldestUnfinishedOffset) return static_cast<double>(*partition.oldest);
  return std::chrono::duration<double>(partition.oldest_for).count();
}

// --- the lock ---

void PipelineMetrics::OnRound(locking::RoundResult result, Nanos took) {
  cells_.Add(Metric::kLockAcquisitions, 1, Series(result));
  if (took > Nanos(0)) cells_.Observe(Metric::kLockAcquireDuration, took.count());
}

void PipelineMetrics::OnTakeover() { cells_.Add(Metric::kLockTakeovers, 1); }

void PipelineMetrics::OnTokenIssued() { cells_.Add(Metric::kFencingTokensIssued, 1); }

void PipelineMetrics::OnLeased(Nanos waited) {
  cells_.Observe(Metric::kLockWaitDuration, waited.count());
}

void PipelineMetrics::OnExtension(locking::ExtensionResult result) {
  cells_.Add(Metric::kLockExtensions, 1, Series(result));
}

void PipelineMetrics::OnExpired(locking::Phase phase) {
  cells_.Add(Metric::kLockExpirations, 1, Series(phase));
}

void PipelineMetrics::OnLoss(locking::LossReason reason) {
  cells_.Add(Metric::kLockLosses, 1, Series(reason));
}

void PipelineMetrics::OnLeaseEnded(Nanos held, Nanos validity_left) {
  cells_.Observe(Metric::kLockHoldDuration, held.count());
  cells_.Observe(Metric::kLockValidityRemaining, validity_left.count());
}

void PipelineMetrics::OnReleased(locking::ReleaseOutcome outcome) {
  cells_.Add(Metric::kLockReleases, 1, Series(outcome));
}

void PipelineMetrics::OnCompletedAfterExpiry() { cells_.Add(Metric::kCompletedAfterExpiry, 1); }

void PipelineMetrics::OnFencingRejection() { cells_.Add(Metric::kFencingRejections, 1, 0); }

void PipelineMetrics::OnQuorumFailure(locking::QuorumFailure reason) {
  cells_.Add(Metric::kQuorumFailures, 1, Series(reason));
}

void PipelineMetrics::OnHeld(std::int64_t held) { cells_.Set(Metric::kLocksHeld, held); }

void PipelineMetrics::OnQuorum(bool available) {
  cells_.Set(Metric::kRedisQuorumAvailable, available ? 1 : 0);
}

void PipelineMetrics::OnNode(locking::NodeIndex node, bool up, bool quarantined) {
  cells_.Set(Metric::kRedisNodeUp, up ? 1 : 0, node);
  cells_.Set(Metric::kRedisNodeQuarantined, quarantined ? 1 : 0, node);
}

void PipelineMetrics::OnClockOffset(locking::NodeIndex node, Nanos offset) {
  cells_.Set(Metric::kRedisNodeClockOffset, offset.count(), node);
}

void PipelineMetrics::OnRestartDetected(locking::NodeIndex node) {
  cells_.Add(Metric::kRedisNodeRestarts, 1, node);
}

void PipelineMetrics::OnCall(locking::NodeIndex node, locking::OpKind kind, std::size_t keys,
                             Nanos took) {
  cells_.Observe(Metric::kRedisCommandDuration, took.count(), node * kCommands + CommandOf(kind));
  cells_.Observe(Metric::kLockBatchSize, static_cast<std::int64_t>(keys));
}

void PipelineMetrics::OnCommandError(locking::NodeIndex node, locking::CommandError reason) {
  cells_.Add(Metric::kRedisCommandErrors, 1, node * kCommandErrors + Series(reason));
}

void PipelineMetrics::OnReconnect(locking::NodeIndex node) {
  cells_.Add(Metric::kRedisReconnects, 1, node);
}

// --- lock and consumer ---

void PipelineMetrics::OnInvariant(locking::Invariant invariant) {
  cells_.Add(Metric::kInvariantViolations, 1, Series(invariant));
}

void PipelineMetrics::OnNote(locking::Severity severity, std::string_view event,
                             std::string_view text) {
  if (log_ != nullptr) log_->Write(severity, info_.name, event, text);
}

void PipelineMetrics::OnRecordNote(locking::Severity severity, std::string_view event,
                                   std::string_view text, const consumer::AboutRecord& record) {
  if (log_ != nullptr) log_->Write(severity, info_.name, event, text, record);
}

// --- the consumer ---

void PipelineMetrics::OnConsumed(std::size_t records) {
  cells_.Add(Metric::kRecordsConsumed, static_cast<std::int64_t>(records));
}

void PipelineMetrics::OnProcessed(consumer::ProcessedResult result, std::size_t count) {
  cells_.Add(Metric::kRecordsProcessed, static_cast<std::int64_t>(count), Series(result));
}

void PipelineMetrics::OnDedupeSkip(consumer::DedupeSource source) {
  cells_.Add(Metric::kDedupeSkips, 1, Series(source));
}

void PipelineMetrics::OnOutputFencing() { cells_.Add(Metric::kFencingRejections, 1, 1); }

void PipelineMetrics::OnIdConflict() { cells_.Add(Metric::kIdConflicts, 1); }

void PipelineMetrics::OnInFlight(std::size_t records, std::size_t bytes) {
  cells_.Set(Metric::kRecordsInFlight, static_cast<std::int64_t>(records));
  cells_.Set(Metric::kQueueSize, static_cast<std::int64_t>(bytes));
}

void PipelineMetrics::OnBackpressure(Nanos paused) {
  cells_.Add(Metric::kBackpressure, paused.count());
}

void PipelineMetrics::OnProgress(std::chrono::milliseconds unix_time) {
  cells_.Set(Metric::kLastProgress, unix_time.count());
}

void PipelineMetrics::OnEndToEnd(Nanos took) {
  cells_.Observe(Metric::kRecordEndToEnd, took.count());
}

void PipelineMetrics::OnRetry(consumer::RetryStage stage) {
  cells_.Add(Metric::kRetries, 1, Series(stage));
}

void PipelineMetrics::OnDeadLetter(consumer::DeadLetterReason reason) {
  cells_.Add(Metric::kDeadLetters, 1, Series(reason));
}

void PipelineMetrics::OnDeadLetterError() { cells_.Add(Metric::kDeadLetterErrors, 1); }

void PipelineMetrics::OnHandled(Nanos took) {
  cells_.Observe(Metric::kHandlerDuration, took.count());
}

void PipelineMetrics::OnLag(const consumer::TopicPartition& where, std::int64_t records) {
  const std::lock_guard lock(partitions_mutex_);
  partitions_[where].lag = records;
}

void PipelineMetrics::OnOldest(const consumer::TopicPartition& where, consumer::Offset offset,
                               Nanos for_so_long) {
  const std::lock_guard lock(partitions_mutex_);
  PartitionNumbers& partition = partitions_[where];
  partition.oldest = offset;
  partition.oldest_for = offset < 0 ? Nanos(0) : for_so_long;
}

void PipelineMetrics::OnPartitionGone(const consumer::TopicPartition& where) {
  const std::lock_guard lock(partitions_mutex_);
  partitions_.erase(where);
}

void PipelineMetrics::OnOldestUnprocessed(std::chrono::milliseconds unix_time) {
  cells_.Set(Metric::kOldestUnprocessed, unix_time.count());
}

void PipelineMetrics::OnCommitGap(std::int64_t records) { cells_.Set(Metric::kCommitGap, records); }

void PipelineMetrics::OnPartitions(std::size_t assigned, std::size_t paused) {
  cells_.Set(Metric::kPartitionsAssigned, static_cast<std::int64_t>(assigned));
  cells_.Set(Metric::kPartitionsPaused, static_cast<std::int64_t>(paused));
}

void PipelineMetrics::OnCommit(consumer::CommitResult result, Nanos took) {
  cells_.Add(Metric::kOffsetCommits, 1, Series(result));
  cells_.Observe(Metric::kOffsetCommitDuration, took.count());
}

void PipelineMetrics::OnRebalance(consumer::RebalanceEvent event) {
  cells_.Add(Metric::kRebalances, 1, Series(event));
}

void PipelineMetrics::OnRebalanceTook(Nanos took) {
  cells_.Observe(Metric::kRebalanceDuration, took.count());
}

void PipelineMetrics::OnWrite(Nanos took, std::size_t batch) {
  cells_.Observe(Metric::kOutputWriteDuration, took.count());
  cells_.Observe(Metric::kOutputBatchSize, static_cast<std::int64_t>(batch));
}

void PipelineMetrics::OnReady(bool ready) { cells_.Set(Metric::kReady, ready ? 1 : 0); }

}  // namespace fencepost::metrics
