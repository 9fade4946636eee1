"""The lock nodes, one by one."""

from rows.panel import ORANGE, RED, P, Panel, R, quantile, rate

NODE = "pipeline, node"
PANELS = [
    Panel(
        "Node up",
        "1 while every pod reaches the node. 0: its process, network, password, TLS. Letters follow"
        " the order in lock.redis.nodes.",
        [(f"min by ({NODE}) (fencepost_redis_node_up{{{P}}})", "{{pipeline}} {{node}}")],
        "FencepostRedisNodeDown",
        high=1,
    ),
    Panel(
        "Quarantined",
        "1 while the node's grants do not count, after a restart, a wipe or a clock step. It ends"
        " by itself; find out why it began.",
        [(f"max by ({NODE}) (fencepost_redis_node_quarantined{{{P}}})", "{{pipeline}} {{node}}")],
        "FencepostQuorumLost",
        high=1,
    ),
    Panel(
        "Quorum and nodes",
        "Whether all pods have a majority, and how many nodes they are configured with, which must"
        " be one number.",
        [
            (f"min by (pipeline) (fencepost_redis_quorum_available{{{P}}})", "{{pipeline}} quorum"),
            (
                f"min by (pipeline) (fencepost_redis_nodes_configured{{{P}}})",
                "{{pipeline}} nodes, least",
            ),
            (
                f"max by (pipeline) (fencepost_redis_nodes_configured{{{P}}})",
                "{{pipeline}} nodes, most",
            ),
        ],
        "FencepostQuorumLost",
    ),
    Panel(
        "Calls by node",
        "99th percentile of one batched call. One slow node: its host or disk; all of them: this"
        " pod's CPU or the network.",
        [(quantile(0.99, "redis_command_duration_seconds", NODE), "{{pipeline}} {{node}}")],
        "FencepostRedisNodeDown",
        "s",
    ),
    Panel(
        "Calls by command",
        "99th percentile by what is asked. extend slow: leases run out; acquire slow: records"
        " wait.",
        [(quantile(0.99, "redis_command_duration_seconds", "command"), "{{command}}")],
        "FencepostRedisNodeDown",
        "s",
    ),
    Panel(
        "Errors by node",
        "timeout, connection: network or host; oom: raise maxmemory; readonly: it is a replica;"
        " auth: ACL or password; noscript: it restarted.",
        [(f"{rate('redis_command_errors_total', 'node, reason')}", "{{node}} {{reason}}")],
        "FencepostRedisNodeDown",
        "ops",
        steps=((0.1, ORANGE),),
    ),
    Panel(
        "Clock offset",
        "How far the node's wall clock is ahead of the pods'. Beyond a tenth of the ttl: fix time"
        " synchronization, slewing, not by a step.",
        [
            (
                f"max by ({NODE}) (fencepost_redis_node_clock_offset_seconds{{{P}}})",
                "{{pipeline}} {{node}} most",
            ),
            (
                f"min by ({NODE}) (fencepost_redis_node_clock_offset_seconds{{{P}}})",
                "{{pipeline}} {{node}} least",
            ),
        ],
        "FencepostRedisClockOff",
        "s",
        low=None,
    ),
    Panel(
        "Restarts and reconnects",
        "Restarts or wipes noticed (each costs a quarantine) and reconnections. A steady"
        " rise: the network, or the node's client limits.",
        [
            (
                f"sum by (node) (increase(fencepost_redis_node_restarts_detected_total{{{P}}}{R}))",
                "{{node}} restarts",
            ),
            (
                f"sum by (node) (increase(fencepost_redis_reconnects_total{{{P}}}{R}))",
                "{{node}} reconnects",
            ),
        ],
        "FencepostRedisNodeDown",
    ),
    Panel(
        "Rounds without a quorum",
        "Rounds that ended for want of nodes. unreachable, timeout: bring nodes back; policy: set"
        " noeviction; clock: correct the clock named in the log.",
        [(rate("quorum_failures_total", "reason"), "{{reason}}")],
        "FencepostQuorumLost",
        "ops",
        steps=((0.01, RED),),
    ),
]
