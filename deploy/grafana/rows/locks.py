"""What the locks cost, and where leases run out."""

from rows.panel import ORANGE, RED, P, Panel, R, heatmap, quantiles, rate

PANELS = [
    Panel(
        "Contention ratio",
        "Share of acquire rounds that met another holder. A rise: duplicates, replays, or two"
        " groups on the same ids. It costs time, never correctness.",
        [
            (
                (
                    "sum by (pipeline)"
                    f' (rate(fencepost_lock_acquisitions_total{{{P},result="contended"}}{R})) / sum'
                    f" by (pipeline) (rate(fencepost_lock_acquisitions_total{{{P}}}{R}))"
                ),
                "{{pipeline}}",
            )
        ],
        "FencepostLagGrowing",
        "percentunit",
        steps=((0.1, ORANGE), (0.5, RED)),
    ),
    Panel(
        "Acquire rounds by result",
        "no_quorum, timeout, error: look at the Redis row. refused: compare clocks. stale: tokens"
        " overtaken. contended: others work on the same ids.",
        [(rate("lock_acquisitions_total", "result"), "{{result}}")],
        "FencepostQuorumLost",
        "ops",
    ),
    Panel(
        "Expiries by phase",
        "Leases that ran out, by where the record was. handling: the handler is slow or the pod was"
        " frozen; writing: the output; waiting and releasing: the pod stalls.",
        [(rate("lock_expirations_total", "phase"), "{{phase}}")],
        "FencepostLocksExpiring",
        "ops",
        steps=((0.01, ORANGE),),
    ),
    heatmap(
        "Wait for the lock",
        "From the first try to the lease. Dark high up: contended ids, stuck holders, or slow"
        " nodes.",
        "lock_wait_duration_seconds",
        "FencepostLagGrowing",
    ),
    heatmap(
        "Holding the lock",
        "How long leases are held. Dark near the ttl: handler or output is slow; raise lock.ttl.",
        "lock_hold_duration_seconds",
        "FencepostLocksExpiring",
    ),
    Panel(
        "Share of leases that expire",
        "Expiries among the leases taken; 0.1% is normal. More: raise lock.ttl or end the stall.",
        [
            (
                (
                    f"sum by (pipeline) (rate(fencepost_lock_expirations_total{{{P}}}{R})) / (sum"
                    " by (pipeline)"
                    f' (rate(fencepost_lock_acquisitions_total{{{P},result="acquired"}}{R})) > 0)'
                ),
                "{{pipeline}}",
            )
        ],
        "FencepostLocksExpiring",
        "percentunit",
        steps=((0.001, RED),),
    ),
    Panel(
        "Validity left",
        "What one lease in a hundred and the typical lease have left when they end, and the ttl."
        " Near 0: raise lock.ttl, or find what delays extensions.",
        [
            *quantiles("lock_validity_remaining_seconds", (0.01, 0.5)),
            (f"min by (pipeline) (fencepost_lock_ttl_seconds{{{P}}})", "{{pipeline}} ttl"),
        ],
        "FencepostLockValidityLow",
        "s",
    ),
    Panel(
        "One acquire round",
        "Time of one round over all nodes. Growing: see Calls by node for the slowest.",
        quantiles("lock_acquire_duration_seconds"),
        "FencepostRedisNodeDown",
        "s",
    ),
    Panel(
        "Leases held",
        "Leases held now, by pod. At the concurrency limit for long: handler or output is the"
        " bottleneck.",
        [(f"sum by (instance) (fencepost_locks_held{{{P}}})", "{{instance}}")],
        "FencepostLagGrowing",
    ),
    Panel(
        "Losses by reason",
        "Leases lost. stolen or clock: check clocks; node_wiped: find who restarts or flushes"
        " Redis; expired: see Expiries.",
        [(rate("lock_losses_total", "reason"), "{{reason}}")],
        "FencepostLocksExpiring",
        "ops",
        steps=((0.01, ORANGE),),
    ),
    Panel(
        "Extensions and releases",
        "What extending and releasing came to. lost, error, expired, stolen, unknown are bad: look"
        " at Losses and at the nodes.",
        [
            (rate("lock_extensions_total", "result"), "extend {{result}}"),
            (rate("lock_releases_total", "result"), "release {{result}}"),
        ],
        "FencepostLocksExpiring",
        "ops",
    ),
    Panel(
        "Takeovers",
        "Locks granted after another's deadline: that holder crashed or froze. Look for a restarted"
        " or starved pod.",
        [(rate("lock_takeovers_total", "pipeline"), "{{pipeline}}")],
        "FencepostLocksExpiring",
        "ops",
    ),
    Panel(
        "Keys in one call",
        "At 512 the nodes are the bottleneck; at 1 with many records in flight they have room.",
        quantiles("lock_batch_size"),
        "FencepostRedisNodeDown",
    ),
]
