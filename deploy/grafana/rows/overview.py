"""Is all well? If not, where to look."""

from rows.panel import ORANGE, RED, P, Panel, R, quantiles, rate, stat

LATE = 'fencepost_record_end_to_end_duration_seconds_bucket{{{P},le=~"10([.]0)?"}}[{over}]'
COUNT = "fencepost_record_end_to_end_duration_seconds_count{{{P}}}[{over}]"


def late(over, by=""):
    what = f"sum {by}(rate({{}}))"
    good, every = LATE.format(P=P, over=over), COUNT.format(P=P, over=over)
    return f"1 - {what.format(good)} / {what.format(every)}"


PANELS = [
    stat(
        "Not ready",
        "Pipelines on pods that are not ready. Not 0: ask that pod's /ready for the reason."
        " NO PODS: start some.",
        f"count(fencepost_ready{{{P}}} == 0) or 0 * count(fencepost_ready{{{P}}}) or vector(-1)",
        "FencepostNoWorkerReady",
        steps=((1, RED),),
        states={-1: ("NO PODS", RED)},
    ),
    stat(
        "Quorum",
        "Whether every pod can ask a majority of its lock nodes. LOST: bring nodes back; the"
        " pipeline waits and loses nothing.",
        f"min(fencepost_redis_quorum_available{{{P}}})",
        "FencepostQuorumLost",
        states={0: ("LOST", RED), 1: ("there", "green")},
    ),
    stat(
        "Broken invariants",
        "Promises found broken in the time shown. Not 0: stop rollouts, keep the logs, follow the"
        " runbook.",
        f"round(sum(increase(fencepost_invariant_violations_total{{{P}}}[$__range])))",
        "FencepostInvariantViolated",
        steps=((0.5, RED),),
    ),
    stat(
        "Records done",
        "Records a second that had their effect. 0 with lag: look at Not ready, Quorum and the"
        " output.",
        f'sum(rate(fencepost_records_processed_total{{{P},result="done"}}{R}))',
        "FencepostPipelineStalled",
        "ops",
    ),
    stat(
        "Lag",
        "Records that wait in the topics. Growing: add pods up to the number of partitions, or find"
        " the slow part below.",
        f"sum(fencepost_consumer_lag_records{{{P}}})",
        "FencepostLagGrowing",
        steps=((1000, ORANGE), (100000, RED)),
    ),
    stat(
        "Oldest unfinished",
        "Age of the oldest record that was taken and is not finished. Growing: fencepost explain"
        " tells what it waits for.",
        f"max(time() - (fencepost_oldest_unprocessed_record_timestamp_seconds{{{P}}} > 0)) or"
        f" 0 * max(fencepost_ready{{{P}}})",
        "FencepostPipelineStalled",
        "s",
        steps=((60, ORANGE), (300, RED)),
    ),
    stat(
        "Late records",
        "Share of records in the time shown whose effect came later than 10 s after their"
        " timestamp; 1% is promised. More: lag first, then handler and output.",
        late("$__range"),
        "FencepostEndToEndBudgetBurn",
        "percentunit",
        steps=((0.01, ORANGE), (0.06, RED)),
    ),
    stat(
        "Dead letters",
        "Records given up in the time shown. Not 0: fencepost dlq list and show, fix the cause,"
        " then dlq replay.",
        f"round(sum(increase(fencepost_dead_letters_total{{{P}}}[$__range])))",
        "FencepostDeadLettersMany",
        steps=((1, ORANGE),),
    ),
    Panel(
        "Records by result",
        "Records finished a second: done had an effect, no_output made no row, skipped were done"
        " before, filtered are left out by when. dead_lettered or"
        " failed: look at the Handler and output row.",
        [
            (rate("records_processed_total", "pipeline, result"), "{{pipeline}} {{result}}"),
            (rate("records_consumed_total", "pipeline"), "{{pipeline}} consumed"),
        ],
        "FencepostPipelineStalled",
        "ops",
        width=12,
    ),
    Panel(
        "End to end",
        "From the record's timestamp to its effect. When it grows: lag first, then lock wait,"
        " handler and output durations.",
        quantiles("record_end_to_end_duration_seconds", (0.5, 0.95, 0.99)),
        "FencepostEndToEndBudgetBurn",
        "s",
        width=12,
        steps=((10, RED),),
        exemplars=True,
    ),
    Panel(
        "Lag by pipeline",
        "Records up to the end of the partitions that are not finished. Growing: add pods, or find the"
        " bottleneck.",
        [(f"sum by (pipeline) (fencepost_consumer_lag_records{{{P}}})", "{{pipeline}}")],
        "FencepostLagGrowing",
    ),
    Panel(
        "Since the last progress",
        "Seconds since a record was last finished. Only matters while there is lag: then look at"
        " /status of a pod.",
        [
            (
                (
                    f"time() - max by (pipeline) (fencepost_last_progress_timestamp_seconds{{{P}}}"
                    " > 0)"
                ),
                "{{pipeline}}",
            )
        ],
        "FencepostPipelineStalled",
        "s",
        steps=((300, RED),),
    ),
    Panel(
        "Late records by pipeline",
        "Share of records later than 10 s; the promise allows 1%. The page fires at 14.4% in an"
        " hour.",
        [(late("$__rate_interval", "by (pipeline) "), "{{pipeline}}")],
        "FencepostEndToEndBudgetBurn",
        "percentunit",
        steps=((0.01, ORANGE), (0.144, RED)),
    ),
    Panel(
        "Traces",
        "Records of End to end that have a trace, the slowest first: its spans show what took the"
        " time. Empty without observe.traces, or if Prometheus stores no exemplars.",
        [],
        "FencepostEndToEndBudgetBurn",
        "s",
        "table",
        width=24,
        traces_of="End to end",
    ),
]
