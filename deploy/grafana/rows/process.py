"""The pods themselves."""

from rows.panel import POD, RED, P, Panel, R

PANELS = [
    Panel(
        "CPU",
        "CPUs used, by pod, all its processes. At the limit leases expire: raise it.",
        [(
                f"sum by (instance) (rate(process_cpu_seconds_total{{{POD}}}{R}))",
                "{{instance}}",
            )],
        "FencepostLocksExpiring",
    ),
    Panel(
        "Memory",
        "Resident memory, of all processes of a pod. Near the pod's limit: lower max_in_flight_bytes or raise it; steady"
        " growth: a leak, report it.",
        [(f"sum by (instance) (process_resident_memory_bytes{{{POD}}})", "{{instance}}")],
        "FencepostPipelineStalled",
        "bytes",
    ),
    Panel(
        "File descriptors",
        "Share of the limit that is open. Near 1: raise LimitNOFILE or find the leak.",
        [(
                f"max by (instance) (process_open_fds{{{POD}}} / process_max_fds{{{POD}}})",
                "{{instance}}",
            )],
        "FencepostPipelineStalled",
        "percentunit",
        steps=((0.8, RED),),
    ),
    Panel(
        "Threads",
        "Constant after the start. Growth is a fault to report.",
        [(f"sum by (instance) (process_threads{{{POD}}})", "{{instance}}")],
        "FencepostPipelineStalled",
    ),
    Panel(
        "Uptime",
        "Since the youngest process of a pod started. Short again and again: it crashes, see why in its log.",
        [(
                f"min by (instance) (time() - process_start_time_seconds{{{POD}}})",
                "{{instance}}",
            )],
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
        "Spans of traces",
        "Spans a second that the collector took, and those that were dropped, by reason. queue_full: it is too slow;"
        " refused: check endpoint and headers; failed: bring it back. Records wait for none of it.",
        [
            (
                f"sum by (instance) (rate(fencepost_spans_exported_total{{{POD}}}{R}))",
                "{{instance}} exported",
            ),
            (
                f"sum by (instance, reason) (rate(fencepost_spans_dropped_total{{{POD}}}{R}))",
                "{{instance}} {{reason}}",
            ),
        ],
        "FencepostRecordStuck",
        width=24,
        height=6,
    ),
    Panel(
        "Versions and configurations",
        "One version and, for each pipeline, one configuration, or a rollout is under way or"
        " stuck.",
        [
            (
                (
                    "count by (version, commit) (max by (instance, version, commit)"
                    f" (fencepost_build_info{{{POD}}}))"
                ),
                "pods",
            ),
            (
                (
                    "count by (pipeline, hash) (max by (instance, pipeline, hash)"
                    f" (fencepost_config_info{{{P}}}))"
                ),
                "pods",
            ),
        ],
        "FencepostRebalancing",
        kind="table",
        width=24,
        height=6,
    ),
]
