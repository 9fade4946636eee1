"""The dashboard's queries with its variables filled in, put to a Prometheus."""

import json
import math
import re
import urllib.error
import urllib.parse
import urllib.request

from support.processes import SOURCE

DASHBOARD = SOURCE / "deploy" / "grafana" / "fencepost.json"
PROMETHEUS = {"type": "prometheus", "uid": "${datasource}"}


def load() -> dict:
    return json.loads(DASHBOARD.read_text())


def panels(dashboard: dict) -> list[dict]:
    """Those that ask Prometheus: rows, texts and what lists another panel's answers do not."""
    return [panel for panel in dashboard["panels"] if panel.get("datasource") == PROMETHEUS]


class Source:
    """A Prometheus and the span of time that is shown, in Unix seconds."""

    def __init__(self, url: str, start: float, end: float, rate_interval="1m", points=120):
        self._url, self.start, self.end = url.rstrip("/"), start, end
        self.step = max((end - start) / points, 0.5)
        self._values = {
            "__rate_interval": rate_interval,
            "__range": f"{max(1, round(end - start))}s",
            "__interval": f"{max(1, round(self.step))}s",
        }

    def _get(self, path, **arguments):
        url = f"{self._url}{path}?{urllib.parse.urlencode(arguments, doseq=True)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise ValueError(f"{arguments}: {error.read().decode()}") from error

    def fill_variables(self, dashboard: dict):
        """All values of every query variable, in the order of the list, as Grafana's All."""
        for variable in dashboard["templating"]["list"]:
            if variable["type"] != "query":
                continue
            text = self.resolve(variable["query"]["query"])
            selector, label = re.fullmatch(r"label_values\((.+), (\w+)\)", text).groups()
            found = self._get(f"/api/v1/label/{label}/values", **{"match[]": selector},
                              start=self.start, end=self.end)  # fmt: skip
            # Prometheus reads \\ in a string as one \, as Grafana escapes it.
            escaped = [re.escape(value).replace("\\", "\\\\") for value in sorted(found)]
            self._values[variable["name"]] = "(" + "|".join(escaped) + ")"

    def resolve(self, expr: str) -> str:
        for name, value in self._values.items():
            expr = expr.replace(f"${{{name}}}", value)
            expr = re.sub(rf"\${name}\b", lambda _, v=value: v, expr)
        return expr

    def over_time(self, expr: str) -> list:
        """[(labels, [(time, value)])]; NaN and infinite values are left out."""
        data = self._get("/api/v1/query_range", query=self.resolve(expr), start=self.start,
                         end=self.end, step=self.step)  # fmt: skip
        series = []
        for one in data["result"]:
            points = [(float(t), float(v)) for t, v in one["values"]]
            points = [(t, v) for t, v in points if math.isfinite(v)]
            if points:
                series.append((one["metric"], points))
        return series

    def at_the_end(self, expr: str) -> list:
        """[(labels, value)]"""
        data = self._get("/api/v1/query", query=self.resolve(expr), time=self.end)
        found = [(one["metric"], float(one["value"][1])) for one in data["result"]]
        return [(labels, value) for labels, value in found if math.isfinite(value)]

    def answers(self, target: dict) -> list:
        """As [(labels, [(time, value)])], however the target asks."""
        if not target["instant"]:
            return self.over_time(target["expr"])
        return [(labels, [(self.end, value)]) for labels, value in self.at_the_end(target["expr"])]


def legend(target: dict, labels: dict) -> str:
    return re.sub(r"{{\s*(\w+)\s*}}", lambda m: labels.get(m[1], ""), target["legendFormat"])
