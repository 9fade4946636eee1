"""Lag, the group, commits."""

from rows.panel import ORANGE, RED, P, Panel, R, quantiles, rate

PANELS = [
    Panel(
        "Lag by partition",
        "The ten partitions with most lag. One alone: a hot or stuck partition, fencepost explain"
        " its next offset; all: too few pods or a slow part.",
        [
            (
                (
                    "topk(10, sum by (pipeline, topic, partition)"
                    f" (fencepost_consumer_lag_records{{{P}}}))"
                ),
                "{{topic}}/{{partition}}",
            )
        ],
        "FencepostLagGrowing",
    ),
    Panel(
        "Lag of the group",
        "By committed offsets, of all partitions, also those that no pod holds. Above the sum of the"
        " lags by partition for long: partitions without a pod, or one record holds an offset.",
        [
            (
                f"max by (pipeline) (fencepost_group_lag_records{{{P}}})",
                "{{pipeline}}",
            )
        ],
        "FencepostLagGrowing",
    ),
    Panel(
        "Partitions by pod",
        "Partitions that each pod owns. 0 on a ready pod: more pods than partitions.",
        [
            (
                f"sum by (pipeline, instance) (fencepost_partitions_assigned{{{P}}})",
                "{{pipeline}} {{instance}}",
            )
        ],
        "FencepostRebalancing",
    ),
    Panel(
        "Partitions paused",
        "Owned and not read now: backpressure, no quorum, dead letters that cannot be published, or"
        " one record that too much waits for.",
        [
            (
                f"sum by (pipeline, instance) (fencepost_partitions_paused{{{P}}})",
                "{{pipeline}} {{instance}}",
            )
        ],
        "FencepostQuorumLost",
    ),
    Panel(
        "Rebalances",
        "By event, as the pods see it. Many outside a rollout: members time out. lost: a pod"
        " stalled past session.timeout.ms.",
        [
            (
                f"max by (pipeline, event) (increase(fencepost_rebalances_total{{{P}}}{R}))",
                "{{pipeline}} {{event}}",
            )
        ],
        "FencepostRebalancing",
    ),
    Panel(
        "Time of a rebalance",
        "Draining included. Near revoke_drain: records are too slow to finish in it.",
        [
            (
                (
                    "sum by (pipeline)"
                    f" (increase(fencepost_rebalance_duration_seconds_sum{{{P}}}[$__range])) / sum"
                    " by (pipeline)"
                    f" (increase(fencepost_rebalance_duration_seconds_count{{{P}}}[$__range]))"
                ),
                "{{pipeline}} mean",
            )
        ],
        "FencepostRebalancing",
        "s",
        steps=((10, ORANGE),),
    ),
    Panel(
        "Age of the oldest record in work",
        "Age of the oldest record taken and not finished. A straight line upwards: that one is"
        " stuck, explain it.",
        [
            (
                (
                    "max by (pipeline) (time() -"
                    f" (fencepost_oldest_unprocessed_record_timestamp_seconds{{{P}}} > 0)) or 0 *"
                    f" max by (pipeline) (fencepost_ready{{{P}}})"
                ),
                "{{pipeline}}",
            )
        ],
        "FencepostPipelineStalled",
        "s",
        steps=((300, RED),),
    ),
    Panel(
        "Waiting for one record",
        "For how long each partition has had the same oldest unfinished record: the ten longest."
        " Above 300 s: /status of its pod says what the record waits for.",
        [
            (
                (
                    "topk(10, max by (pipeline, topic, partition)"
                    f" (fencepost_oldest_unfinished_seconds{{{P}}}))"
                ),
                "{{topic}}/{{partition}}",
            )
        ],
        "FencepostRecordStuck",
        "s",
        steps=((300, RED),),
    ),
    Panel(
        "Oldest unfinished offset",
        "The offset that the commits of those partitions wait for. Where it is stalled, fencepost"
        " explain that record; -1: none.",
        [
            (
                (
                    "max by (pipeline, topic, partition) (fencepost_oldest_unfinished_offset"
                    f"{{{P}}}) and on (pipeline, topic, partition) topk(10, max by (pipeline,"
                    f" topic, partition) (fencepost_oldest_unfinished_seconds{{{P}}}))"
                ),
                "{{topic}}/{{partition}}",
            )
        ],
        "FencepostRecordStuck",
    ),
    Panel(
        "Commits",
        "Offset commits by result. rejected: a rebalance came between; failed: brokers, or the"
        " group's permissions.",
        [(rate("offset_commits_total", "pipeline, result"), "{{pipeline}} {{result}}")],
        "FencepostPipelineStalled",
        "ops",
    ),
    Panel(
        "Time of a commit",
        "Growing: the broker that coordinates the group.",
        quantiles("offset_commit_duration_seconds"),
        "FencepostRebalancing",
        "s",
    ),
    Panel(
        "Finished, not committed",
        "Growing: one unfinished record holds the watermark, or commits fail.",
        [(f"sum by (pipeline) (fencepost_commit_gap_records{{{P}}})", "{{pipeline}}")],
        "FencepostPipelineStalled",
    ),
]
