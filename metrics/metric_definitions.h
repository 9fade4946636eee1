// The one table of all metrics: name, type, help, labels, buckets. Dashboards, alerts and outside
// checks use these names: a name, a label or a label's value is changed only together with them.
// Constant data; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace fencepost::metrics {

enum class MetricKind : std::uint8_t { kCounter, kGauge, kHistogram };

// What is counted inside (integers, so that a cell is one atomic add); exposition divides it.
enum class CellUnit : std::uint8_t { kOne, kMillis, kNanos };

enum class Scope : std::uint8_t {
  kPipeline,  // has the label `pipeline`, before all others
  kProcess,   // one series a process
};

struct LabelInfo {
  std::string_view name;
  std::span<const std::string_view> values;  // empty: known only at run time
};

// In the order of the table and of the page.
enum class Metric : std::uint8_t {
  // Lock
  kLockAcquisitions,
  kLockTakeovers,
  kLockAcquireDuration,
  kLockWaitDuration,
  kLockHoldDuration,
  kLockValidityRemaining,
  kLockTtl,
  kLocksHeld,
  kLockExtensions,
  kLockExpirations,
  kLockLosses,
  kLockReleases,
  kCompletedAfterExpiry,
  kQuorumFailures,
  kRedisQuorumAvailable,
  kRedisNodesConfigured,
  kRedisNodeUp,
  kRedisNodeQuarantined,
  kRedisNodeClockOffset,
  kRedisNodeRestarts,
  kRedisCommandDuration,
  kRedisCommandErrors,
  kRedisReconnects,
  kLockBatchSize,
  kRecordsUnlocked,
  // Fence and dedupe
  kFencingTokensIssued,
  kFencingRejections,
  kDedupeSkips,
  kIdConflicts,
  kInvariantViolations,
  // Records
  kRecordsConsumed,
  kRecordsProcessed,
  kRecordsInFlight,
  kQueueSize,
  kBackpressure,
  kLastProgress,
  kHandlerDuration,
  kOutputWriteDuration,
  kOutputBatchSize,
  kRecordEndToEnd,
  kRetries,
  kDeadLetters,
  kDeadLetterErrors,
  // Kafka
  kConsumerLag,
  kGroupLag,
  kOldestUnprocessed,
  kOldestUnfinishedOffset,
  kOldestUnfinishedSeconds,
  kCommitGap,
  kOffsetCommits,
  kOffsetCommitDuration,
  kRebalances,
  kRebalanceDuration,
  kPartitionsAssigned,
  kPartitionsPaused,
  // Process
  kConfigInfo,
  kReady,
  kBuildInfo,
  kProcessCpu,
  kProcessOpenFds,
  kProcessMaxFds,
  kProcessVirtualMemory,
  kProcessResidentMemory,
  kProcessStartTime,
  kProcessThreads,
};
inline constexpr int kMetrics = static_cast<int>(Metric::kProcessThreads) + 1;

// At most this many buckets a histogram, the one up to infinity included.
inline constexpr std::size_t kMaxBuckets = 12;

struct MetricInfo {
  Metric id;
  std::string_view name;
  MetricKind kind;
  Scope scope;
  CellUnit unit;
  std::string_view help;  // the unit, and what to do when it moves
  std::span<const LabelInfo> labels;
  std::span<const double> buckets;  // upper bounds without infinity, in the exposed unit
};

std::span<const MetricInfo> AllMetrics();
const MetricInfo& Info(Metric metric);

// The label `node` has as many series as the pipeline has nodes.
bool IsNodeLabel(const LabelInfo& label);

}  // namespace fencepost::metrics
