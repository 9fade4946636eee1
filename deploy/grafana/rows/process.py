"""The pods themselves."""

from rows.panel import POD, RED, P, Panel, R

PANELS = [
    Panel(
        "CPU",
        "CPUs used, by pod. At the limit leases expire: raise it.",
        [(f"rate(process_cpu_seconds_total{{{POD}}}{R})", "{{instance}}")],
        "FencepostLocksExpiring",
    ),
    Panel(
        "Memory",
        "Resident memory. Near the pod's limit: lower max_in_flight_bytes or raise it; steady"
        " growth: a leak, report it.",
        [(f"process_resident_memory_bytes{{{POD}}}", "{{instance}}")],
        "FencepostPipelineStalled",
        "bytes",
    ),
    Panel(
        "File descriptors",
        "Share of the limit that is open. Near 1: raise LimitNOFILE or find the leak.",
        [(f"process_open_fds{{{POD}}} / process_max_fds{{{POD}}}", "{{instance}}")],
        "FencepostPipelineStalled",
        "percentunit",
        steps=((0.8, RED),),
    ),
    Panel(
        "Threads",
        "Constant after the start. Growth is a fault to report.",
        [(f"process_threads{{{POD}}}", "{{instance}}")],
        "FencepostPipelineStalled",
    ),
    Panel(
        "Uptime",
        "Since the process started. Short again and again: it crashes, see why in its log.",
        [(f"time() - process_start_time_seconds{{{POD}}}", "{{instance}}")],
        "FencepostRebalancing",
        "s",
    ),
    Panel(
        "Ready by pod",
        "1 while the pod has joined its group, sees a quorum and is not draining. 0: the reason is"
        " at /ready.",
        [(f"min by (instance, pipeline) (fencepost_ready{{{P}}})", "{{pipeline}} {{instance}}")],
        "FencepostNoWorkerReady",
        high=1,
    ),
    Panel(
        "Versions and configurations",
        "One version and, for each pipeline, one configuration, or a rollout is under way or"
        " stuck.",
        [
            (f"count by (version, commit) (fencepost_build_info{{{POD}}})", "pods"),
            (f"count by (pipeline, hash) (fencepost_config_info{{{P}}})", "pods"),
        ],
        "FencepostRebalancing",
        kind="table",
        width=24,
        height=6,
    ),
]
