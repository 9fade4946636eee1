#include "metrics/pipeline_metrics.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "locking/base/check.h"
#include "locking/base/types.h"

namespace fencepost::metrics {
namespace {

using prometheus::ClientMetric;

// In the order of the label `command`. A fill brings a lock to a node that lacks it, like an
// acquire; abort and forget free a name, like a release.
int CommandOf(locking::OpKind kind) {
  enum { kAcquire, kExtend, kDone, kRelease };
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

using consumer::DedupeSource;
using consumer::ProcessedResult;
using locking::Phase;
using locking::RoundResult;
using Cells = PipelineCells;

template <typename Enum>
constexpr Counts::Row Row(std::string_view name, std::string_view words, Counter Cells::*metric,
                          Enum series) {
  return {name, words, metric, static_cast<int>(series)};
}
constexpr Counts::Row kCountRows[] = {
    {"consumed", "taken from Kafka", &Cells::records_consumed},
    Row("done", "done", &Cells::records_processed, ProcessedResult::kDone),
    Row("skipped", "", &Cells::records_processed, ProcessedResult::kSkipped),
    Row("dead_lettered", "dead letters", &Cells::records_processed, ProcessedResult::kDeadLettered),
    Row("no_output", "done without a row", &Cells::records_processed, ProcessedResult::kNoOutput),
    Row("filtered", "filtered", &Cells::records_processed, ProcessedResult::kFiltered),
    Row("failed", "failed", &Cells::records_processed, ProcessedResult::kFailed),
    {"lock_rounds", "", &Cells::lock_acquisitions},
    Row("lock_acquired", "", &Cells::lock_acquisitions, RoundResult::kAcquired),
    Row("lock_contended", "", &Cells::lock_acquisitions, RoundResult::kContended),
    {"lock_takeovers", "", &Cells::lock_takeovers},
    {"lock_losses", "leases lost, all reasons", &Cells::lock_losses},
    Row("lock_expired/waiting", "leases expired while waiting", &Cells::lock_expirations,
        Phase::kWaiting),
    Row("lock_expired/handling", "leases expired in the handler", &Cells::lock_expirations,
        Phase::kHandling),
    Row("lock_expired/writing", "leases expired in the write", &Cells::lock_expirations,
        Phase::kWriting),
    Row("lock_expired/releasing", "leases expired at release", &Cells::lock_expirations,
        Phase::kReleasing),
    {"fenced_by_redis", "", &Cells::fencing_rejections, 0},
    {"fenced_by_output", "", &Cells::fencing_rejections, 1},
    {"rows_lost", "rows that lost to a newer one", &Cells::fencing_rejections, 2},
    Row("dedupe_by_lock", "skipped: the lock nodes knew the id", &Cells::dedupe_skips,
        DedupeSource::kLock),
    Row("dedupe_by_ledger", "skipped: the ledger knew the id", &Cells::dedupe_skips,
        DedupeSource::kLedger),
    {"id_conflicts", "id conflicts", &Cells::id_conflicts},
    {"invariant_violations", "", &Cells::invariant_violations},
    {"retries", "further tries", &Cells::retries},
    {"dead_letter_errors", "dead letters not published", &Cells::dead_letter_errors},
    {"rebalances", "rebalances", &Cells::rebalances},
};

std::vector<std::string> Letters(int nodes) {
  std::vector<std::string> letters;
  for (int i = 0; i < nodes; ++i) letters.emplace_back(1, locking::NodeLetter(i));
  return letters;
}

}  // namespace

std::span<const Counts::Row> Counts::Rows() { return kCountRows; }

std::uint64_t& Counts::operator[](std::string_view name) {
  static_assert(std::size(kCountRows) == std::tuple_size_v<decltype(values_)>);
  const auto* const row = std::ranges::find(kCountRows, name, &Row::name);
  FENCEPOST_CHECK(row != std::end(kCountRows), name);
  return values_[static_cast<std::size_t>(row - kCountRows)];
}

std::uint64_t Counts::LeasesExpired() const {
  std::uint64_t expired = 0;
  for (const Row& row : kCountRows) {
    if (row.metric == &Cells::lock_expirations) expired += (*this)[row.name];
  }
  return expired;
}

PipelineCells::PipelineCells(int nodes, const std::string& config_hash)
    : node{"node", Letters(nodes)}, hash{"hash", {config_hash}} {}

PipelineMetrics::PipelineMetrics(PipelineInfo info, Log* log)
    : info_(std::move(info)), log_(log), cells_(info_.nodes, info_.config_hash) {
  FENCEPOST_CHECK(info_.nodes >= 1 && info_.nodes <= locking::kMaxNodes, info_.name);
  cells_.lock_ttl.Set(info_.lock_ttl.count());
  cells_.redis_nodes_configured.Set(info_.nodes);
  cells_.config_info.Set(1);
}

Counts PipelineMetrics::CurrentCounts() const {
  Counts counts;
  for (const auto& [name, words, metric, series] : Counts::Rows()) {
    const Metric& counter = cells_.*metric;
    for (int i = 0; i < counter.series(); ++i) {
      if (series < 0 || series == i) counts[name] += static_cast<std::uint64_t>(counter.Value(i));
    }
  }
  return counts;
}

void PipelineMetrics::Collect(const Metric& metric, std::vector<ClientMetric>& out,
                              Exemplars& exemplars) const {
  if (metric.series() > 0) return metric.Collect(info_.name, out, exemplars);
  const std::vector<Label>& labels = metric.definition().labels;
  const std::lock_guard lock(partitions_mutex_);
  out.reserve(out.size() + partitions_.size());
  for (const auto& [where, partition] : partitions_) {
    const std::optional<double> value = ValueOf(metric, partition);
    if (!value) continue;
    ClientMetric& series = out.emplace_back();
    series.label = {{"pipeline", info_.name},
                    {labels[0].name, where.topic},
                    {labels[1].name, std::to_string(where.partition)}};
    series.gauge.value = *value;
  }
}

std::optional<double> PipelineMetrics::ValueOf(const Metric& metric,
                                               const PartitionNumbers& partition) const {
  if (&metric == &cells_.consumer_lag) return partition.lag;
  if (!partition.oldest) return std::nullopt;
  if (&metric == &cells_.oldest_unfinished_offset) return static_cast<double>(*partition.oldest);
  return std::chrono::duration<double>(partition.oldest_for).count();
}

void PipelineMetrics::OnCall(locking::NodeIndex node, locking::OpKind kind, std::size_t keys,
                             Nanos took) {
  cells_.redis_command_duration.Observe(took.count(), node * kCommands + CommandOf(kind));
  cells_.lock_batch_size.Observe(static_cast<std::int64_t>(keys));
}

void PipelineMetrics::OnCommandError(locking::NodeIndex node, locking::CommandError reason) {
  cells_.redis_command_errors.Add(1, node * kCommandErrors + static_cast<int>(reason));
}

}  // namespace fencepost::metrics
