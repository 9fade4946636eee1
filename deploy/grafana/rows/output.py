"""Handler and output: what a record waits for besides its lock."""

from rows.panel import RED, P, Panel, R, quantiles, rate

PANELS = [
    Panel(
        "Handler",
        "Time of one call. Near processing.timeout: look at the service or program behind it.",
        quantiles("handler_duration_seconds"),
        "FencepostEndToEndBudgetBurn",
        "s",
        exemplars=True,
    ),
    Panel(
        "Output transaction",
        "Time of one write. Growing: locks, disk and connections of the database.",
        quantiles("output_write_duration_seconds"),
        "FencepostEndToEndBudgetBurn",
        "s",
    ),
    Panel(
        "Records in a transaction",
        "Large with slow writes: the output is the bottleneck.",
        quantiles("output_batch_size"),
        "FencepostLagGrowing",
    ),
    Panel(
        "Retries by stage",
        "Further tries. When one rises, the thing behind that stage fails; the log says how.",
        [
            (rate("retries_total", "pipeline, stage"), "{{pipeline}} {{stage}}"),
            (rate("write_splits_total", "pipeline"), "{{pipeline}} writes in parts"),
        ],
        "FencepostEndToEndBudgetBurn",
        "ops",
    ),
    Panel(
        "Dead letters by reason",
        "Records given up. fencepost dlq show tells the error; fix the cause, then dlq replay.",
        [(rate("dead_letters_total", "pipeline, reason"), "{{pipeline}} {{reason}}")],
        "FencepostDeadLettersNew",
        "ops",
    ),
    Panel(
        "Dead letters not published",
        "The pipeline waits until they are. Create the topic, grant write access, raise"
        " max.message.bytes.",
        [(rate("dead_letter_errors_total", "pipeline"), "{{pipeline}}")],
        "FencepostDeadLettersFailing",
        "ops",
        steps=((0.001, RED),),
    ),
    Panel(
        "In flight",
        "Unfinished records, by pod. At max_in_flight consumption pauses: see what they wait for, at"
        " /status of that pod.",
        [
            (
                f"sum by (pipeline, instance) (fencepost_records_in_flight{{{P}}})",
                "{{pipeline}} {{instance}}",
            )
        ],
        "FencepostPipelineStalled",
    ),
    Panel(
        "Bytes in flight",
        "At max_in_flight_bytes consumption pauses. Lower it when memory is short.",
        [
            (
                f"sum by (pipeline, instance) (fencepost_queue_size_bytes{{{P}}})",
                "{{pipeline}} {{instance}}",
            )
        ],
        "FencepostLagGrowing",
        "bytes",
    ),
    Panel(
        "Backpressure",
        "Share of time that partitions were paused. In flight at its limit: speed up"
        " handler or output, or add pods.",
        [
            (
                f"max by (pipeline) (rate(fencepost_backpressure_seconds_total{{{P}}}{R}))",
                "{{pipeline}}",
            )
        ],
        "FencepostLagGrowing",
        "percentunit",
    ),
]
