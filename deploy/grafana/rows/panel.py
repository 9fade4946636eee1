"""One panel of the dashboard, and short ways to ask for rates and quantiles.

A panel asks by pipeline, summed over the pods that are chosen; by pod only where a pod's own number
helps. Every description says what it is and what to do when it moves.
"""

import dataclasses

P = 'pipeline=~"$pipeline",instance=~"$pod"'  # what the variables choose
POD = 'instance=~"$pod"'  # for process_*, which has no pipeline
R = "[$__rate_interval]"


@dataclasses.dataclass
class Panel:
    title: str
    does: str  # the description
    queries: list  # of (expression, legend)
    runbook: str  # the alert whose runbook is linked
    unit: str = "short"
    kind: str = "timeseries"  # or stat, heatmap, table
    width: int = 8
    height: int = 7
    steps: tuple = ()  # thresholds: (value, colour), after green at the start
    stack: bool = False
    low: float | None = 0
    high: float | None = None
    states: dict = dataclasses.field(default_factory=dict)  # value: (text, colour)
    exemplars: bool = False  # of its histogram, which links them to traces
    traces_of: str = ""  # for a table without queries: the panel whose exemplars it lists


def rate(metric, by, more=""):
    return f"sum by ({by}) (rate(fencepost_{metric}{{{P}{more}}}{R}))"


def quantile(q, metric, by="pipeline"):
    return f"histogram_quantile({q}, sum by ({by}, le) (rate(fencepost_{metric}_bucket{{{P}}}{R})))"


def quantiles(metric, qs=(0.5, 0.99), by="pipeline"):
    label = " ".join(f"{{{{{one}}}}}" for one in by.split(", "))
    return [(quantile(q, metric, by), f"{label} p{q * 100:g}") for q in qs]


def stat(title, does, query, runbook, unit="short", steps=(), states=None):
    return Panel(title, does, [(query, title)], runbook, unit, "stat", 3, 4, steps,
                 states=states or {})  # fmt: skip


def heatmap(title, does, metric, runbook):
    query = f"sum by (le) (increase(fencepost_{metric}_bucket{{{P}}}{R}))"
    return Panel(title, does, [(query, "{{le}}")], runbook, "s", "heatmap", 12, 8)


RED, ORANGE = "red", "orange"
