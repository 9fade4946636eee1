#include "metrics/pipeline_metrics.h"

#include <utility>

#include <prometheus/client_metric.h>

#include "locking/base/check.h"
#include "locking/base/types.h"

namespace fencepost::metrics {
namespace {

using prometheus::ClientMetric;

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
    if (metric.kind == MetricKind::kHistogram) {
      series.histogram = HistogramOf(metric, cells_.Histogram(metric.id, i));
    } else {
      series.counter.value = series.gauge.value = cells_.Value(metric.id, i);
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

void PipelineMetrics::OnCall(locking::NodeIndex node, locking::OpKind kind, std::size_t keys,
                             Nanos took) {
  cells_.Observe(Metric::kRedisCommandDuration, took.count(), node * kCommands + CommandOf(kind));
  cells_.Observe(Metric::kLockBatchSize, static_cast<std::int64_t>(keys));
}

void PipelineMetrics::OnCommandError(locking::NodeIndex node, locking::CommandError reason) {
  cells_.Add(Metric::kRedisCommandErrors, 1, node * kCommandErrors + Series(reason));
}

}  // namespace fencepost::metrics
