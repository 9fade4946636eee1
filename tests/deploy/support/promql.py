"""What a PromQL expression uses, and whether a worker's page has that."""

import re

import promql_parser

# Labels that the scrape adds; a Prometheus without namespaces has none of these to give.
OPS = {"MatchOp.Equal": "=", "MatchOp.NotEqual": "!=", "MatchOp.Re": "=~", "MatchOp.NotRe": "!~"}
TARGET_LABELS = {"job", "instance", "namespace"}


def _nodes(node):
    yield node
    for name in ("lhs", "rhs", "expr", "param", "vector_selector"):
        child = getattr(node, name, None)
        if isinstance(child, promql_parser.Expr):
            yield from _nodes(child)
    for child in getattr(node, "args", None) or []:
        yield from _nodes(child)


def selectors(expr: str):
    """(metric, [(label, op, value)]) of every selector in it."""
    for node in _nodes(promql_parser.parse(expr)):
        if isinstance(node, promql_parser.VectorSelector):
            found = [(m.name, OPS[str(m.op)], m.value) for m in node.matchers.matchers]
            yield node.name, found


def grouping(expr: str) -> set[str]:
    """The labels that it groups or matches by."""
    labels = set()
    for node in _nodes(promql_parser.parse(expr)):
        modifier = getattr(node, "modifier", None)
        if isinstance(modifier, promql_parser.AggModifier):
            labels.update(modifier.labels)
        elif isinstance(modifier, promql_parser.BinModifier):
            if modifier.matching:
                labels.update(modifier.matching.labels)
            labels.update(modifier.group_labels or [])
    return labels


class Vocabulary:
    """The metrics of a worker's page with their labels and values, and those that rules record."""

    def __init__(self, samples, recorded: dict[str, str]):
        self.metrics = {}
        for name, labels, _ in samples:
            known = self.metrics.setdefault(name, {})
            for label, value in labels.items():
                known.setdefault(label, set()).add(value)
        self.recorded = recorded

    def labels_of(self, metric: str) -> dict[str, set]:
        if metric not in self.recorded:
            return self.metrics[metric]
        labels = {}
        for name, _ in selectors(self.recorded[metric]):
            for label, values in self.labels_of(name).items():
                labels.setdefault(label, set()).update(values)
        return {
            k: v
            for k, v in labels.items()
            if k in grouping(self.recorded[metric]) or k == "pipeline"
        }

    def strangers(self, expr: str, free=()) -> list[str]:
        """What the expression names and no worker shows. Labels in `free` may have any value."""
        found, all_labels = [], set(TARGET_LABELS)
        for metric, matchers in selectors(expr):
            if metric not in self.metrics and metric not in self.recorded:
                found.append(f"no metric {metric}")
                continue
            labels = self.labels_of(metric)
            all_labels |= labels.keys()
            for label, op, value in matchers:
                if label in TARGET_LABELS or label in free:
                    continue
                if label not in labels:
                    found.append(f"{metric} has no label {label}")
                    continue
                for one in value.strip("()").split("|") if "~" in op else [value]:
                    if not any(
                        re.fullmatch(one if "~" in op else re.escape(one), v) for v in labels[label]
                    ):
                        found.append(f"{metric} has no {label}={one}")
        found += [f"no label {label}" for label in grouping(expr) - all_labels]
        return found
