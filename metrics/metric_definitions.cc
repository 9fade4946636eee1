#include "metrics/metric_definitions.h"

#include <array>
#include <string>

#include "locking/base/check.h"

namespace fencepost::metrics {
namespace {

using Values = std::string_view;

// The values are in the order of the enums that the observers carry.
constexpr Values kRoundResults[] = {"acquired", "contended", "done",    "stale",
                                    "refused",  "no_quorum", "timeout", "error"};
constexpr Values kExtensionResults[] = {"extended", "lost", "error"};
constexpr Values kPhases[] = {"waiting", "handling", "writing", "releasing"};
constexpr Values kLossReasons[] = {"expired", "stolen", "node_wiped", "clock"};
constexpr Values kReleaseOutcomes[] = {"released", "expired", "stolen", "unknown"};
constexpr Values kQuorumReasons[] = {"unreachable", "timeout", "quarantined", "policy", "clock"};
constexpr Values kNodes[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m",
                             "n", "o", "p", "q", "r", "s", "t", "u", "v", "w", "x", "y", "z"};
constexpr Values kCommands[] = {"acquire", "extend", "done", "release"};
constexpr Values kCommandErrors[] = {"timeout",  "connection", "auth", "oom",
                                     "readonly", "noscript",   "other"};
constexpr Values kFenceSides[] = {"redis", "output"};
constexpr Values kDedupeSources[] = {"lock", "ledger"};
constexpr Values kInvariants[] = {"token_regressed", "commit_past_hole", "lease_after_loss",
                                  "double_grant"};
constexpr Values kProcessedResults[] = {"done", "skipped", "dead_lettered", "failed"};
constexpr Values kRetryStages[] = {"lock", "handler", "output", "dead_letter"};
constexpr Values kDeadLetterReasons[] = {"bad_record", "id_conflict", "handler", "output",
                                         "timeout"};
constexpr Values kCommitResults[] = {"committed", "rejected", "failed"};
constexpr Values kRebalanceEvents[] = {"assigned", "revoked", "lost"};

constexpr LabelInfo kByRoundResult[] = {{"result", kRoundResults}};
constexpr LabelInfo kByExtensionResult[] = {{"result", kExtensionResults}};
constexpr LabelInfo kByPhase[] = {{"phase", kPhases}};
constexpr LabelInfo kByLossReason[] = {{"reason", kLossReasons}};
constexpr LabelInfo kByReleaseOutcome[] = {{"result", kReleaseOutcomes}};
constexpr LabelInfo kByQuorumReason[] = {{"reason", kQuorumReasons}};
constexpr LabelInfo kByNode[] = {{"node", kNodes}};
constexpr LabelInfo kByNodeAndCommand[] = {{"node", kNodes}, {"command", kCommands}};
constexpr LabelInfo kByNodeAndError[] = {{"node", kNodes}, {"reason", kCommandErrors}};
constexpr LabelInfo kByFenceSide[] = {{"side", kFenceSides}};
constexpr LabelInfo kByDedupeSource[] = {{"source", kDedupeSources}};
constexpr LabelInfo kByInvariant[] = {{"invariant", kInvariants}};
constexpr LabelInfo kByProcessedResult[] = {{"result", kProcessedResults}};
constexpr LabelInfo kByRetryStage[] = {{"stage", kRetryStages}};
constexpr LabelInfo kByDeadLetterReason[] = {{"reason", kDeadLetterReasons}};
constexpr LabelInfo kByPartition[] = {{"topic", {}}, {"partition", {}}};
constexpr LabelInfo kByCommitResult[] = {{"result", kCommitResults}};
constexpr LabelInfo kByRebalanceEvent[] = {{"event", kRebalanceEvents}};
constexpr LabelInfo kByHash[] = {{"hash", {}}};
constexpr LabelInfo kByBuild[] = {{"version", {}}, {"commit", {}}};

constexpr double kRoundBuckets[] = {.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1};
constexpr double kWaitBuckets[] = {.001, .005, .01, .05, .1, .5, 1, 2.5, 5, 10, 30};
constexpr double kHoldBuckets[] = {.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60};
constexpr double kValidityBuckets[] = {.1, .25, .5, 1, 2, 3, 5, 7.5, 10, 20, 30};
constexpr double kCommandBuckets[] = {.0001, .00025, .0005, .001, .0025, .005,
                                      .01,   .025,   .05,   .1,   .25};
constexpr double kLockBatchBuckets[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512};
constexpr double kHandlerBuckets[] = {.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10};
constexpr double kWriteBuckets[] = {.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5};
constexpr double kOutputBatchBuckets[] = {1, 2, 5, 10, 25, 50, 100, 200, 500, 1000, 2000};
constexpr double kEndToEndBuckets[] = {.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 60, 300};
constexpr double kCommitBuckets[] = {.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5};
constexpr double kRebalanceBuckets[] = {.01, .05, .1, .5, 1, 2.5, 5, 10, 30, 60, 300};

using Labels = std::span<const LabelInfo>;
using Buckets = std::span<const double>;

constexpr MetricInfo Counter(Metric id, std::string_view name, std::string_view help,
                             Labels labels = {}, CellUnit unit = CellUnit::kOne) {
  return {id, name, MetricKind::kCounter, Scope::kPipeline, unit, help, labels, {}};
}
constexpr MetricInfo Gauge(Metric id, std::string_view name, std::string_view help,
                           Labels labels = {}, CellUnit unit = CellUnit::kOne) {
  return {id, name, MetricKind::kGauge, Scope::kPipeline, unit, help, labels, {}};
}
constexpr MetricInfo Seconds(Metric id, std::string_view name, std::string_view help,
                             Buckets buckets, Labels labels = {}) {
  return {id,     name,   MetricKind::kHistogram, Scope::kPipeline, CellUnit::kNanos, help,
          labels, buckets};
}
constexpr MetricInfo Sizes(Metric id, std::string_view name, std::string_view help,
                           Buckets buckets) {
  return {id, name, MetricKind::kHistogram, Scope::kPipeline, CellUnit::kOne, help, {}, buckets};
}
constexpr MetricInfo Process(Metric id, MetricKind kind, std::string_view name,
                             std::string_view help, Labels labels = {}) {
  return {id, name, kind, Scope::kProcess, CellUnit::kOne, help, labels, {}};
}

constexpr MetricInfo kMetricDefinitions[] = {
    Counter(Metric::kLockAcquisitions, "fencepost_lock_acquisitions_total",
            "Acquire rounds of a lock, by how they ended. contended: others work on the same ids; "
            "no_quorum, timeout or error: look at the redis_ series; refused: compare the clocks.",
            kByRoundResult),
    Counter(Metric::kLockTakeovers, "fencepost_lock_takeovers_total",
            "Locks granted after another holder's deadline had passed. It crashed or froze: look "
            "for a restarted or starved worker."),
    Seconds(Metric::kLockAcquireDuration, "fencepost_lock_acquire_duration_seconds",
            "Seconds of one acquire round. When it grows, look at the slowest node in "
            "redis_command_duration_seconds.",
            kRoundBuckets),
    Seconds(Metric::kLockWaitDuration, "fencepost_lock_wait_duration_seconds",
            "Seconds from the first try to the lease. When it grows faster than the rounds, ids "
            "are contended: look for duplicates or stuck holders.",
            kWaitBuckets),
    Seconds(Metric::kLockHoldDuration, "fencepost_lock_hold_duration_seconds",
            "Seconds a lease was held. When it nears the ttl, look at handler and output "
            "durations.",
            kHoldBuckets),
    Seconds(Metric::kLockValidityRemaining, "fencepost_lock_validity_remaining_seconds",
            "Seconds of validity left when a lease ended. When low values appear, raise lock.ttl "
            "or find "
            "what delays extensions.",
            kValidityBuckets),
    Gauge(Metric::kLockTtl, "fencepost_lock_ttl_seconds",
          "Seconds a lease lives without extension, as configured. Moves only with the "
          "configuration.",
          {}, CellUnit::kMillis),
    Gauge(Metric::kLocksHeld, "fencepost_locks_held",
          "Leases held now. When it stays at the concurrency limit, handler or output is the "
          "bottleneck."),
    Counter(Metric::kLockExtensions, "fencepost_lock_extensions_total",
            "Rounds that extended a lease, by result. lost or error: look at lock_losses_total and "
            "at the nodes.",
            kByExtensionResult),
    Counter(Metric::kLockExpirations, "fencepost_lock_expirations_total",
            "Own leases ended by their own clock, by where the record was. Raise lock.ttl or find "
            "the stall: CPU starvation, a frozen process, nodes away.",
            kByPhase),
    Counter(Metric::kLockLosses, "fencepost_lock_losses_total",
            "Leases lost, by reason. stolen or clock: check the clocks of workers and nodes; "
            "node_wiped: find who restarted or flushed Redis.",
            kByLossReason),
    Counter(Metric::kLockReleases, "fencepost_lock_releases_total",
            "Releases by outcome. expired: the work outlasted its lease; unknown: a majority did "
            "not answer, so the locks stay until their deadline.",
            kByReleaseOutcome),
    Counter(Metric::kCompletedAfterExpiry, "fencepost_completed_after_expiry_total",
            "Records done by a caller that was no longer the holder. Without a ledger their effect "
            "may have happened twice: raise lock.ttl."),
    Counter(Metric::kQuorumFailures, "fencepost_quorum_failures_total",
            "Rounds that ended for want of nodes, by the main reason. Bring nodes back; for policy "
            "set noeviction; for clock correct the clock named in the log.",
            kByQuorumReason),
    Gauge(Metric::kRedisQuorumAvailable, "fencepost_redis_quorum_available",
          "1 while a majority of the lock nodes can be asked. At 0 the pipeline is paused: see "
          "redis_node_up and redis_node_quarantined."),
    Gauge(Metric::kRedisNodesConfigured, "fencepost_redis_nodes_configured",
          "Lock nodes in the configuration. Must be the same on every worker."),
    Gauge(Metric::kRedisNodeUp, "fencepost_redis_node_up",
          "1 while the node is connected. At 0 check its process, network, credentials and TLS.",
          kByNode),
    Gauge(Metric::kRedisNodeQuarantined, "fencepost_redis_node_quarantined",
          "1 while the node's grants do not count, after it restarted, was wiped or its clock "
          "moved. It ends after a time; find out why it happened.",
          kByNode),
    Gauge(Metric::kRedisNodeClockOffset, "fencepost_redis_node_clock_offset_seconds",
          "Seconds that the node's wall clock is ahead of this worker's. Beyond a tenth of the "
          "ttl, fix time synchronization.",
          kByNode, CellUnit::kNanos),
    Counter(Metric::kRedisNodeRestarts, "fencepost_redis_node_restarts_detected_total",
            "Restarts and wipes of the node that were noticed. Each one costs a quarantine: find "
            "who restarts it.",
            kByNode),
    Seconds(Metric::kRedisCommandDuration, "fencepost_redis_command_duration_seconds",
            "Seconds of one batched script call at a node (fill counts as acquire, abort as "
            "release). One slow node: its host; all: this worker or the network.",
            kCommandBuckets, kByNodeAndCommand),
    Counter(Metric::kRedisCommandErrors, "fencepost_redis_command_errors_total",
            "Calls that a node refused or did not answer, by reason. oom: raise maxmemory; "
            "readonly: the node is a replica; auth: check the ACL and password.",
            kByNodeAndError),
    Counter(Metric::kRedisReconnects, "fencepost_redis_reconnects_total",
            "Reconnections to a node. A steady rise: network, or the node's timeout and "
            "client limits.",
            kByNode),
    Sizes(Metric::kLockBatchSize, "fencepost_lock_batch_size",
          "Keys in one script call. At 512 the nodes are the bottleneck; at 1 with a high "
          "concurrency they have room.",
          kLockBatchBuckets),
    Counter(Metric::kRecordsUnlocked, "fencepost_records_unlocked_total",
            "Records that went on without a lease, by the ledger alone, since no quorum of lock "
            "nodes was available (lock.on_unavailable: proceed). It rises only then: see "
            "redis_quorum_available."),
    Counter(Metric::kFencingTokensIssued, "fencepost_fencing_tokens_issued_total",
            "Fencing tokens drawn. Many more than records consumed means repeated rounds: see "
            "lock_acquisitions_total."),
    Counter(Metric::kFencingRejections, "fencepost_fencing_rejections_total",
            "Tokens refused as older than another's, by the node (redis) or at the write (output). "
            "The fence did its work; a spike means frozen workers or clocks apart.",
            kByFenceSide),
    Counter(Metric::kDedupeSkips, "fencepost_dedupe_skips_total",
            "Records skipped because their id was done, by what knew it. A jump: a producer "
            "repeats itself or a topic is replayed.",
            kByDedupeSource),
    Counter(Metric::kIdConflicts, "fencepost_id_conflicts_total",
            "Records whose id was done with other content. Check record_id and the producer; "
            "explain shows both."),
    Counter(Metric::kInvariantViolations, "fencepost_invariant_violations_total",
            "Promises found broken, by which. Must stay 0: stop rollouts, keep the logs, follow "
            "the runbook of this alert.",
            kByInvariant),
    Counter(Metric::kRecordsConsumed, "fencepost_records_consumed_total",
            "Records taken from Kafka. Flat with lag: see partitions_paused and ready."),
    Counter(Metric::kRecordsProcessed, "fencepost_records_processed_total",
            "Records finished, by how. dead_lettered: look with dlq list; failed: see the log and "
            "last errors.",
            kByProcessedResult),
    Gauge(
        Metric::kRecordsInFlight, "fencepost_records_in_flight",
        "Unfinished records that this worker holds. At max_in_flight consumption pauses: speed up "
        "handler or output, or see what they wait for at /status."),
    Gauge(Metric::kQueueSize, "fencepost_queue_size_bytes",
          "Bytes of the records in flight. At max_in_flight_bytes consumption pauses."),
    Counter(Metric::kBackpressure, "fencepost_backpressure_seconds_total",
            "Seconds that consumption was paused because too much was in flight. When it rises, "
            "speed up handler or output, or add workers.",
            {}, CellUnit::kNanos),
    Gauge(Metric::kLastProgress, "fencepost_last_progress_timestamp_seconds",
          "Unix time in seconds of the last finished record; 0 before the first. Old while there "
          "is lag: the worker is stuck, see status.",
          {}, CellUnit::kMillis),
    Seconds(Metric::kHandlerDuration, "fencepost_handler_duration_seconds",
            "Seconds of one handler call. Near processing.timeout: look at the service behind it.",
            kHandlerBuckets),
    Seconds(Metric::kOutputWriteDuration, "fencepost_output_write_duration_seconds",
            "Seconds of one output transaction. When it grows: locks, disk and connections of the "
            "database.",
            kWriteBuckets),
    Sizes(Metric::kOutputBatchSize, "fencepost_output_batch_size",
          "Records in one output transaction. Large with slow writes: the output is the "
          "bottleneck.",
          kOutputBatchBuckets),
    Seconds(Metric::kRecordEndToEnd, "fencepost_record_end_to_end_duration_seconds",
            "Seconds from the record's timestamp to its effect. When it grows: lag first, then "
            "lock wait, handler and output durations.",
            kEndToEndBuckets),
    Counter(Metric::kRetries, "fencepost_retries_total",
            "Further tries of a record, by stage. When one rises, the thing behind that stage "
            "fails: the log says how.",
            kByRetryStage),
    Counter(Metric::kDeadLetters, "fencepost_dead_letters_total",
            "Records published to the dead-letter topic, by reason. Look with dlq show, fix the "
            "cause, then dlq replay.",
            kByDeadLetterReason),
    Counter(Metric::kDeadLetterErrors, "fencepost_dead_letter_errors_total",
            "Dead letters that could not be published; the partition waits. Check that the topic "
            "exists and may be written."),
    Gauge(Metric::kConsumerLag, "fencepost_consumer_lag_records",
          "Records from the watermark to the partition's end. Growing: add workers up to the "
          "number of partitions, or find the bottleneck.",
          kByPartition),
    Gauge(
        Metric::kGroupLag, "fencepost_group_lag_records",
        "Records from the group's committed offsets to the ends of all partitions, as the brokers "
        "reported them in the last ten seconds: also of partitions that no worker holds. Take "
        "the maximum over workers. Above the sum of consumer_lag_records for long: partitions "
        "without a worker."),
    Gauge(Metric::kOldestUnprocessed, "fencepost_oldest_unprocessed_record_timestamp_seconds",
          "Unix time in seconds of the oldest record taken and not finished; 0 for none. When it "
          "is stalled, explain that record.",
          {}, CellUnit::kMillis),
    Gauge(Metric::kOldestUnfinishedOffset, "fencepost_oldest_unfinished_offset",
          "Offset of the oldest record taken and not finished, which the partition's commits wait "
          "for; -1 for none. When it is stalled, explain that record.",
          kByPartition),
    Gauge(Metric::kOldestUnfinishedSeconds, "fencepost_oldest_unfinished_seconds",
          "Seconds for which that record has been the partition's oldest; 0 for none. Growing: see "
          "at /status what it waits for, or explain it.",
          kByPartition),
    Gauge(Metric::kCommitGap, "fencepost_commit_gap_records",
          "Records finished whose offset is not committed yet. Growing: one unfinished record "
          "holds the watermark, or commits fail."),
    Counter(Metric::kOffsetCommits, "fencepost_offset_commits_total",
            "Offset commits by result. rejected: a rebalance took the partition; failed: check "
            "brokers and group permissions.",
            kByCommitResult),
    Seconds(Metric::kOffsetCommitDuration, "fencepost_offset_commit_duration_seconds",
            "Seconds of one offset commit. When it grows: the group coordinator's broker.",
            kCommitBuckets),
    Counter(Metric::kRebalances, "fencepost_rebalances_total",
            "Rebalances of the group seen here, by event. Many outside a rollout: members time "
            "out; lost: this worker stalled past the session timeout.",
            kByRebalanceEvent),
    Seconds(Metric::kRebalanceDuration, "fencepost_rebalance_duration_seconds",
            "Seconds of one rebalance, draining included. Near revoke_drain: records are too slow "
            "to finish in it.",
            kRebalanceBuckets),
    Gauge(Metric::kPartitionsAssigned, "fencepost_partitions_assigned",
          "Partitions this worker owns. 0 on a ready worker: there are more workers than "
          "partitions."),
    Gauge(Metric::kPartitionsPaused, "fencepost_partitions_paused",
          "Partitions owned but not read now: backpressure, no quorum, or one record that too much "
          "waits for. See backpressure, redis_quorum_available and oldest_unfinished_seconds."),
    Gauge(Metric::kConfigInfo, "fencepost_config_info",
          "1, with the hash of the pipeline's file. Different hashes among workers: a rollout is "
          "under way or stuck.",
          kByHash),
    Gauge(Metric::kReady, "fencepost_ready",
          "1 while the worker has joined its group, sees a quorum and is not draining. At 0 the "
          "reason is at /ready."),
    Process(Metric::kBuildInfo, MetricKind::kGauge, "fencepost_build_info",
            "1, with version and commit. Different ones among workers: a rollout is under way or "
            "stuck.",
            kByBuild),
    Process(Metric::kProcessCpu, MetricKind::kCounter, "process_cpu_seconds_total",
            "Seconds of user and system CPU time spent. At the CPU limit leases expire: raise it."),
    Process(Metric::kProcessOpenFds, MetricKind::kGauge, "process_open_fds",
            "Open file descriptors. Near process_max_fds: raise the limit or find the leak."),
    Process(Metric::kProcessMaxFds, MetricKind::kGauge, "process_max_fds",
            "Most file descriptors the process may open. Set by its surroundings (ulimit -n)."),
    Process(Metric::kProcessVirtualMemory, MetricKind::kGauge, "process_virtual_memory_bytes",
            "Bytes of virtual memory. Steady growth: a leak."),
    Process(Metric::kProcessResidentMemory, MetricKind::kGauge, "process_resident_memory_bytes",
            "Bytes of resident memory. Near the limit: lower max_in_flight_bytes or raise it."),
    Process(Metric::kProcessStartTime, MetricKind::kGauge, "process_start_time_seconds",
            "Unix time in seconds of the process's start. Moves at a restart: see why in the log."),
    Process(Metric::kProcessThreads, MetricKind::kGauge, "process_threads",
            "Threads of the process. Constant after the start; growth is a fault to report."),
};

constexpr bool InOrder() {
  for (int i = 0; i < kMetrics; ++i) {
    if (static_cast<int>(kMetricDefinitions[i].id) != i ||
        kMetricDefinitions[i].buckets.size() >= kMaxBuckets) {
      return false;
    }
  }
  return std::size(kMetricDefinitions) == kMetrics;
}
static_assert(InOrder(), "the table follows the enum, and histograms have few buckets");

}  // namespace

std::span<const MetricInfo> AllMetrics() { return kMetricDefinitions; }

const MetricInfo& Info(Metric metric) {
  const auto index = static_cast<std::size_t>(metric);
  FENCEPOST_CHECK(index < std::size(kMetricDefinitions), std::to_string(index));
  return kMetricDefinitions[index];
}

bool IsNodeLabel(const LabelInfo& label) { return label.values.data() == kNodes; }

}  // namespace fencepost::metrics
