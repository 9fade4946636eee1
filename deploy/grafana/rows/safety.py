"""Fencing, dedupe, invariants: what kept effects single."""

from rows.panel import ORANGE, RED, P, Panel, R, rate

PANELS = [
    Panel(
        "Fencing rejections",
        "Old tokens refused, by a node (redis) or at the write (output). The fence did its work; a"
        " spike means frozen pods or clocks apart.",
        [(rate("fencing_rejections_total", "pipeline, side"), "{{pipeline}} {{side}}")],
        "FencepostFencingRejections",
        "ops",
    ),
    Panel(
        "Duplicates skipped",
        "Records whose id was done, by what knew it. A jump: a producer repeats itself or a topic"
        " is replayed. Nothing to fix here.",
        [(rate("dedupe_skips_total", "pipeline, source"), "{{pipeline}} {{source}}")],
        "FencepostFencingRejections",
        "ops",
    ),
    Panel(
        "Records without a lock",
        "Only with lock.on_unavailable: proceed, while no quorum of lock nodes is available: the"
        " ledger alone decides.",
        [(rate("records_unlocked_total", "pipeline"), "{{pipeline}}")],
        "FencepostQuorumLost",
        "ops",
    ),
    Panel(
        "Invariants",
        "Promises found broken, by which. Any: stop rollouts, keep the logs, follow the runbook.",
        [
            (
                (
                    "sum by (pipeline, invariant)"
                    f" (increase(fencepost_invariant_violations_total{{{P}}}{R}))"
                ),
                "{{pipeline}} {{invariant}}",
            )
        ],
        "FencepostInvariantViolated",
        steps=((0.5, RED),),
    ),
    Panel(
        "Id conflicts",
        "Ids that came again with other content. Check record_id and the producer; fencepost"
        " explain shows both.",
        [(rate("id_conflicts_total", "pipeline"), "{{pipeline}}")],
        "FencepostIdConflicts",
        "ops",
        steps=((0.01, ORANGE),),
    ),
    Panel(
        "Done after expiry",
        "Records marked done by a caller that no longer held the lock. Without a ledger the effect"
        " may have come twice: raise lock.ttl.",
        [(rate("completed_after_expiry_total", "pipeline"), "{{pipeline}}")],
        "FencepostLocksExpiring",
        "ops",
        steps=((0.01, ORANGE),),
    ),
    Panel(
        "Tokens for each record",
        "Fencing tokens drawn for each record taken. Far above 1: rounds are repeated, see Acquire"
        " rounds by result.",
        [
            (
                (
                    f'{rate("fencing_tokens_issued_total", "pipeline")} /'
                    f' ({rate("records_consumed_total", "pipeline")} > 0)'
                ),
                "{{pipeline}}",
            )
        ],
        "FencepostFencingRejections",
    ),
]
