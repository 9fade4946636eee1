// The one table of all metrics: name, help, labels, buckets. Dashboards, alerts and outside checks
// use these names: a name, a label or a label's value is changed only together with them. The
// values of a label are in the order of the enum that the observers carry.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "metrics/cells.h"

namespace fencepost::metrics {

// Of one pipeline. On the page each series has the label `pipeline`, before all others.
struct PipelineCells {
  PipelineCells(int nodes, const std::string& config_hash);

  const Label node;  // with as many values as the pipeline has nodes
  const Label hash;
  Metrics all;  // in the order of the page

  // Lock
  Counter lock_acquisitions{
      all,
      "fencepost_lock_acquisitions_total",
      "Acquire rounds of a lock, by how they ended. contended: others work on the same ids; "
      "no_quorum, timeout or error: look at the redis_ series; refused: compare the clocks.",
      {{"result",
        {"acquired", "contended", "done", "stale", "refused", "no_quorum", "timeout", "error"}}}};
  Counter lock_takeovers{all, "fencepost_lock_takeovers_total",
                         "Locks granted after another holder's deadline had passed. It crashed or "
                         "froze: look for a restarted or starved worker."};
  Seconds lock_acquire_duration{all,
                                "fencepost_lock_acquire_duration_seconds",
                                "Seconds of one acquire round. When it grows, look at the slowest "
                                "node in redis_command_duration_seconds.",
                                {.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1}};
  Seconds lock_wait_duration{all,
                             "fencepost_lock_wait_duration_seconds",
                             "Seconds from the first try to the lease. When it grows faster than "
                             "the rounds, ids are contended: look for duplicates or stuck holders.",
                             {.001, .005, .01, .05, .1, .5, 1, 2.5, 5, 10, 30}};
  Seconds lock_hold_duration{
      all,
      "fencepost_lock_hold_duration_seconds",
      "Seconds a lease was held. When it nears the ttl, look at handler and output durations.",
      {.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60}};
  Seconds lock_validity_remaining{all,
                                  "fencepost_lock_validity_remaining_seconds",
                                  "Seconds of validity left when a lease ended. When low values "
                                  "appear, raise lock.ttl or find what delays extensions.",
                                  {.1, .25, .5, 1, 2, 3, 5, 7.5, 10, 20, 30}};
  Gauge lock_ttl{
      all,
      "fencepost_lock_ttl_seconds",
      "Seconds a lease lives without extension, as configured. Moves only with the configuration.",
      {},
      CellUnit::kMillis};
  Gauge locks_held{all, "fencepost_locks_held",
                   "Leases held now. When it stays at the concurrency limit, handler or output is "
                   "the bottleneck."};
  Counter lock_extensions{all,
                          "fencepost_lock_extensions_total",
                          "Rounds that extended a lease, by result. lost or error: look at "
                          "lock_losses_total and at the nodes.",
                          {{"result", {"extended", "lost", "error"}}}};
  Counter lock_expirations{
      all,
      "fencepost_lock_expirations_total",
      "Own leases ended by their own clock, by where the record was. Raise lock.ttl or find the "
      "stall: CPU starvation, a frozen process, nodes away.",
      {{"phase", {"waiting", "handling", "writing", "releasing"}}}};
  Counter lock_losses{all,
                      "fencepost_lock_losses_total",
                      "Leases lost, by reason. stolen or clock: check the clocks of workers and "
                      "nodes; node_wiped: find who restarted or flushed Redis.",
                      {{"reason", {"expired", "stolen", "node_wiped", "clock"}}}};
  Counter lock_releases{all,
                        "fencepost_lock_releases_total",
                        "Releases by outcome. expired: the work outlasted its lease; unknown: a "
                        "majority did not answer, so the locks stay until their deadline.",
                        {{"result", {"released", "expired", "stolen", "unknown"}}}};
  Counter completed_after_expiry{all, "fencepost_completed_after_expiry_total",
                                 "Records done by a caller that was no longer the holder. Without "
                                 "a ledger their effect may have happened twice: raise lock.ttl."};
  Counter quorum_failures{
      all,
      "fencepost_quorum_failures_total",
      "Rounds that ended for want of nodes, by the main reason. Bring nodes back; for policy set "
      "noeviction; for clock correct the clock named in the log.",
      {{"reason", {"unreachable", "timeout", "quarantined", "policy", "clock"}}}};
  Gauge redis_quorum_available{all, "fencepost_redis_quorum_available",
                               "1 while a majority of the lock nodes can be asked. At 0 the "
                               "pipeline is paused: see redis_node_up and redis_node_quarantined."};
  Gauge redis_nodes_configured{
      all, "fencepost_redis_nodes_configured",
      "Lock nodes in the configuration. Must be the same on every worker."};
  Gauge redis_node_up{
      all,
      "fencepost_redis_node_up",
      "1 while the node is connected. At 0 check its process, network, credentials and TLS.",
      {node}};
  Gauge redis_node_quarantined{
      all,
      "fencepost_redis_node_quarantined",
      "1 while the node's grants do not count, after it restarted, was wiped or its clock moved. "
      "It ends after a time; find out why it happened.",
      {node}};
  Gauge redis_node_clock_offset{all,
                                "fencepost_redis_node_clock_offset_seconds",
                                "Seconds that the node's wall clock is ahead of this worker's. "
                                "Beyond a tenth of the ttl, fix time synchronization.",
                                {node},
                                CellUnit::kNanos};
  Counter redis_node_restarts{all,
                              "fencepost_redis_node_restarts_detected_total",
                              "Restarts and wipes of the node that were noticed. Each one costs a "
                              "quarantine: find who restarts it.",
                              {node}};
  Seconds redis_command_duration{
      all,
      "fencepost_redis_command_duration_seconds",
      "Seconds of one batched script call at a node (fill counts as acquire, abort as release). "
      "One slow node: its host; all: this worker or the network.",
      {.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25},
      {node, {"command", {"acquire", "extend", "done", "release"}}}};
  Counter redis_command_errors{
      all,
      "fencepost_redis_command_errors_total",
      "Calls that a node refused or did not answer, by reason. oom: raise maxmemory; readonly: the "
      "node is a replica; auth: check the ACL and password.",
      {node,
       {"reason", {"timeout", "connection", "auth", "oom", "readonly", "noscript", "other"}}}};
  Counter redis_reconnects{
      all,
      "fencepost_redis_reconnects_total",
      "Reconnections to a node. A steady rise: network, or the node's timeout and client limits.",
      {node}};
  Sizes lock_batch_size{all,
                        "fencepost_lock_batch_size",
                        "Keys in one script call. At 512 the nodes are the bottleneck; at 1 with a "
                        "high concurrency they have room.",
                        {1, 2, 4, 8, 16, 32, 64, 128, 256, 512}};
  Counter records_unlocked{all, "fencepost_records_unlocked_total",
                           "Records that went on without a lease, by the ledger alone, since no "
                           "quorum of lock nodes was available (lock.on_unavailable: proceed). It "
                           "rises only then: see redis_quorum_available."};

  // Fence and dedupe
  Counter fencing_tokens_issued{all, "fencepost_fencing_tokens_issued_total",
                                "Fencing tokens drawn. Many more than records consumed means "
                                "repeated rounds: see lock_acquisitions_total."};
  Counter fencing_rejections{
      all,
      "fencepost_fencing_rejections_total",
      "What was refused as older than another's: tokens, by the node (redis) or at the write "
      "(output), and rows, by fence_by (row). The fence did its work; a spike means frozen "
      "workers, "
      "clocks apart, or a source that sends old changes again.",
      {{"side", {"redis", "output", "row"}}}};
  Counter dedupe_skips{all,
                       "fencepost_dedupe_skips_total",
                       "Records skipped because their id was done, by what knew it. A jump: a "
                       "producer repeats itself or a topic is replayed.",
                       {{"source", {"lock", "ledger"}}}};
  Counter id_conflicts{all, "fencepost_id_conflicts_total",
                       "Records whose id was done with other content. Check record_id and the "
                       "producer; explain shows both."};
  Counter invariant_violations{
      all,
      "fencepost_invariant_violations_total",
      "Promises found broken, by which. Must stay 0: stop rollouts, keep the logs, follow the "
      "runbook of this alert.",
      {{"invariant", {"token_regressed", "commit_past_hole", "lease_after_loss", "double_grant"}}}};

  // Records
  Counter records_consumed{
      all, "fencepost_records_consumed_total",
      "Records taken from Kafka. Flat with lag: see partitions_paused and ready."};
  Counter records_processed{
      all,
      "fencepost_records_processed_total",
      "Records finished, by how. dead_lettered: look with dlq list; failed: "
      "see the log and last errors; no_output: no row was made of them; filtered: by `when`.",
      {{"result", {"done", "skipped", "dead_lettered", "failed", "no_output", "filtered"}}}};
  Gauge records_in_flight{
      all, "fencepost_records_in_flight",
      "Unfinished records that this worker holds. At max_in_flight consumption pauses: speed up "
      "handler or output, or see what they wait for at /status."};
  Gauge queue_size{all, "fencepost_queue_size_bytes",
                   "Bytes of the records in flight. At max_in_flight_bytes consumption pauses."};
  Counter backpressure{all,
                       "fencepost_backpressure_seconds_total",
                       "Seconds that consumption was paused because too much was in flight. When "
                       "it rises, speed up handler or output, or add workers.",
                       {},
                       CellUnit::kNanos};
  Gauge last_progress{all,
                      "fencepost_last_progress_timestamp_seconds",
                      "Unix time in seconds of the last finished record; 0 before the first. Old "
                      "while there is lag: the worker is stuck, see status.",
                      {},
                      CellUnit::kMillis};
  Seconds handler_duration{
      all,
      "fencepost_handler_duration_seconds",
      "Seconds of one handler call. Near processing.timeout: look at the service behind it. "
      "Exemplars: traces.",
      {.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}};
  Seconds output_write_duration{all,
                                "fencepost_output_write_duration_seconds",
                                "Seconds of one output transaction. When it grows: locks, disk and "
                                "connections of the database.",
                                {.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5}};
  Sizes output_batch_size{
      all,
      "fencepost_output_batch_size",
      "Records in one output transaction. Large with slow writes: the output is the bottleneck.",
      {1, 2, 5, 10, 25, 50, 100, 200, 500, 1000, 2000}};
  Counter write_splits{all, "fencepost_write_splits_total",
                       "Output transactions written in parts to find the records that the output "
                       "refuses, which takes time. Many: see the dead letters of reason output."};
  Seconds record_end_to_end{all,
                            "fencepost_record_end_to_end_duration_seconds",
                            "Seconds from the record's timestamp to its effect. When it grows: lag "
                            "first, then lock wait, handler and output durations. Exemplars: "
                            "traces.",
                            {.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 60, 300}};
  Counter retries{all,
                  "fencepost_retries_total",
                  "Further tries of a record, by stage. When one rises, the thing behind that "
                  "stage fails: the log says how.",
                  {{"stage", {"lock", "handler", "output", "dead_letter"}}}};
  Counter dead_letters{all,
                       "fencepost_dead_letters_total",
                       "Records published to the dead-letter topic, by reason. Look with dlq show, "
                       "fix the cause, then dlq replay.",
                       {{"reason", {"bad_record", "id_conflict", "handler", "output", "timeout"}}}};
  Counter dead_letter_errors{all, "fencepost_dead_letter_errors_total",
                             "Dead letters that could not be published; the partition waits. Check "
                             "that the topic exists and may be written."};

  // Kafka
  Gauge consumer_lag{all,
                     "fencepost_consumer_lag_records",
                     "Records up to the partition's end that are not finished, without those done "
                     "behind an unfinished one. Growing: add workers up to the number of "
                     "partitions, or find the bottleneck.",
                     {{"topic", {}}, {"partition", {}}}};
  Gauge group_lag{all, "fencepost_group_lag_records",
                  "Records from the group's committed offsets to the ends of all partitions, as "
                  "the brokers reported them in the last ten seconds: also of partitions that no "
                  "worker holds. Take the maximum over workers. Above the sum of "
                  "consumer_lag_records for long: partitions without a worker, or one unfinished "
                  "record holds an offset."};
  Gauge oldest_unprocessed{all,
                           "fencepost_oldest_unprocessed_record_timestamp_seconds",
                           "Unix time in seconds of the oldest record taken and not finished; 0 "
                           "for none. When it is stalled, explain that record.",
                           {},
                           CellUnit::kMillis};
  Gauge oldest_unfinished_offset{
      all,
      "fencepost_oldest_unfinished_offset",
      "Offset of the oldest record taken and not finished, which the partition's commits wait for; "
      "-1 for none. When it is stalled, explain that record.",
      {{"topic", {}}, {"partition", {}}}};
  Gauge oldest_unfinished_seconds{
      all,
      "fencepost_oldest_unfinished_seconds",
      "Seconds for which that record has been the partition's oldest; 0 for none. Growing: see at "
      "/status what it waits for, or explain it.",
      {{"topic", {}}, {"partition", {}}}};
  Gauge commit_gap{all, "fencepost_commit_gap_records",
                   "Records finished whose offset is not committed yet. Growing: one unfinished "
                   "record holds the watermark, or commits fail."};
  Counter offset_commits{all,
                         "fencepost_offset_commits_total",
                         "Offset commits by result. rejected: a rebalance took the partition; "
                         "failed: check brokers and group permissions.",
                         {{"result", {"committed", "rejected", "failed"}}}};
  Seconds offset_commit_duration{
      all,
      "fencepost_offset_commit_duration_seconds",
      "Seconds of one offset commit. When it grows: the group coordinator's broker.",
      {.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}};
  Counter rebalances{all,
                     "fencepost_rebalances_total",
                     "Rebalances of the group seen here, by event. Many outside a rollout: members "
                     "time out; lost: this worker stalled past the session timeout.",
                     {{"event", {"assigned", "revoked", "lost"}}}};
  Seconds rebalance_duration{all,
                             "fencepost_rebalance_duration_seconds",
                             "Seconds of one rebalance, draining included. Near revoke_drain: "
                             "records are too slow to finish in it.",
                             {.01, .05, .1, .5, 1, 2.5, 5, 10, 30, 60, 300}};
  Gauge partitions_assigned{
      all, "fencepost_partitions_assigned",
      "Partitions this worker owns. 0 on a ready worker: there are more workers than partitions."};
  Gauge partitions_paused{
      all, "fencepost_partitions_paused",
      "Partitions owned but not read now: backpressure, no quorum, or one record that too much "
      "waits for. See backpressure, redis_quorum_available and oldest_unfinished_seconds."};

  // Process
  Gauge config_info{all,
                    "fencepost_config_info",
                    "1, with the hash of the pipeline's file. Different hashes among workers: a "
                    "rollout is under way or stuck.",
                    {hash}};
  Gauge ready{all, "fencepost_ready",
              "1 while the worker has joined its group, sees a quorum and is not draining. At 0 "
              "the reason is at /ready."};
};

// Of the process: spans of traces, on their way to a collector.
enum class SpanDrop : std::uint8_t { kQueueFull, kRefused, kFailed };
struct SpanCells {
  Metrics all;
  Counter exported{all, "fencepost_spans_exported_total",
                   "Spans of traces that the collector took. Flat while records are sampled: see "
                   "spans_dropped_total and the log."};
  Counter dropped{all,
                  "fencepost_spans_dropped_total",
                  "Spans that did not reach the collector. queue_full: it is too slow, or lower "
                  "observe.traces.sample; refused: check endpoint and headers; failed: bring it "
                  "back.",
                  {{"reason", {"queue_full", "refused", "failed"}}}};
};

struct BuildInfo {
  std::string version;
  std::string commit;
};

// Of the process, as it is now.
struct ProcessCells {
  ProcessCells(const BuildInfo& build, double start_time);  // the latter in unix seconds

  const Label version, commit;
  Metrics all;
  Gauge build_info{
      all,
      "fencepost_build_info",
      "1, with version and commit. Different ones among workers: a rollout is under way or stuck.",
      {version, commit}};
  Counter process_cpu{
      all,
      "process_cpu_seconds_total",
      "Seconds of user and system CPU time spent. At the CPU limit leases expire: raise it.",
      {},
      CellUnit::kNanos};
  Gauge process_open_fds{
      all, "process_open_fds",
      "Open file descriptors. Near process_max_fds: raise the limit or find the leak."};
  Gauge process_max_fds{
      all, "process_max_fds",
      "Most file descriptors the process may open. Set by its surroundings (ulimit -n)."};
  Gauge process_virtual_memory{all, "process_virtual_memory_bytes",
                               "Bytes of virtual memory. Steady growth: a leak."};
  Gauge process_resident_memory{
      all, "process_resident_memory_bytes",
      "Bytes of resident memory. Near the limit: lower max_in_flight_bytes or raise it."};
  Gauge process_start_time{
      all,
      "process_start_time_seconds",
      "Unix time in seconds of the process's start. Moves at a restart: see why in the log.",
      {},
      CellUnit::kNanos};
  Gauge process_threads{
      all, "process_threads",
      "Threads of the process. Constant after the start; growth is a fault to report."};
};

}  // namespace fencepost::metrics
