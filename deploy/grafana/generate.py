#!/usr/bin/env python3
"""Writes fencepost.json, the Grafana dashboard, of what stands in rows/.

The format is that of Grafana 11, as its Foundation SDK types have it.
"""

import json
import pathlib
import sys

from rows import ROWS
from rows.panel import POD, Panel

HERE = pathlib.Path(__file__).parent
RUNBOOKS = (HERE.parent / "RUNBOOK_URL").read_text().strip()
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
COLUMNS = 24
ALERTS = 'alertname=~"Fencepost.+",alertstate="firing",pipeline=~"$pipeline"'


def link(title, url):
    return {
        "title": title, "type": "link", "icon": "doc", "tooltip": "", "url": url, "tags": [],
        "asDropdown": False, "targetBlank": True, "includeVars": False, "keepTime": False,
    }  # fmt: skip


def targets(panel: Panel) -> list:
    made = []
    for place, (expr, legend) in enumerate(panel.queries):
        instant = panel.kind in ("stat", "table")
        made.append({
            "refId": chr(ord("A") + place), "datasource": DATASOURCE, "expr": expr,
            "legendFormat": legend, "instant": instant, "range": not instant,
            "format": panel.kind if panel.kind in ("heatmap", "table") else "time_series",
        })  # fmt: skip
    return made


def custom(panel: Panel) -> dict:
    if panel.kind != "timeseries":
        return {}
    return {
        "drawStyle": "line", "lineInterpolation": "stepAfter" if panel.high == 1 else "linear",
        "lineWidth": 1, "fillOpacity": 8, "showPoints": "never", "spanNulls": False,
        "thresholdsStyle": {"mode": "dashed" if panel.steps else "off"},
    }  # fmt: skip


def field_config(panel: Panel) -> dict:
    steps = [{"color": "green", "value": None}]
    steps += [{"color": color, "value": value} for value, color in panel.steps]
    defaults = {
        "unit": panel.unit,
        "thresholds": {"mode": "absolute", "steps": steps},
        "color": {"mode": "thresholds" if panel.kind == "stat" else "palette-classic"},
        "custom": custom(panel),
    }
    if panel.kind == "timeseries":
        for key, value in (("min", panel.low), ("max", panel.high)):
            if value is not None:
                defaults[key] = value
    if panel.kind == "heatmap" or not defaults["custom"]:
        del defaults["custom"]
    if panel.states:
        options = {
            str(value): {"text": text, "color": color, "index": value}
            for value, (text, color) in panel.states.items()
        }
        defaults["mappings"] = [{"type": "value", "options": options}]
    return {"defaults": defaults, "overrides": []}


OPTIONS = {
    "timeseries": {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
    "stat": {
        "graphMode": "none", "colorMode": "background", "justifyMode": "auto", "textMode": "value",
        "wideLayout": True, "showPercentChange": False, "percentChangeColorMode": "standard",
        "orientation": "auto",
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
    },
    "heatmap": {
        "calculate": False, "cellGap": 1, "showValue": "never",
        "color": {"mode": "scheme", "scheme": "Oranges", "fill": "dark-orange",
                  "scale": "exponential", "exponent": 0.5, "steps": 64, "reverse": False},
        "yAxis": {"unit": "s", "axisPlacement": "left"},
        "legend": {"show": True}, "exemplars": {"color": "rgba(255,0,255,0.7)"},
        "tooltip": {"mode": "single", "yHistogram": True, "showColorScale": False},
        "rowsFrame": {"layout": "auto"}, "filterValues": {"le": 1e-9},
    },
    "table": {"frameIndex": 0, "showHeader": True, "cellHeight": "sm"},
}  # fmt: skip


def panel_json(panel: Panel, number: int, x: int, y: int) -> dict:
    made = {
        "id": number, "type": panel.kind, "title": panel.title, "description": panel.does,
        "datasource": DATASOURCE, "targets": targets(panel),
        "gridPos": {"x": x, "y": y, "w": panel.width, "h": panel.height},
        "fieldConfig": field_config(panel), "options": OPTIONS[panel.kind],
        "links": [link("Runbook", f"{RUNBOOKS}#{panel.runbook.lower()}")],
    }  # fmt: skip
    if panel.kind == "table":
        made["transformations"] = [
            {"id": "merge", "options": {}},
            {"id": "organize", "options": {
                "excludeByName": {"Time": True},
                "renameByName": {"Value #A": "pods", "Value #B": "pods with it"}}},
        ]  # fmt: skip
    return made


def lay_out() -> list:
    made, number, y = [], 0, 0
    for title, panels in ROWS.items():
        number += 1
        made.append({"id": number, "type": "row", "title": title, "collapsed": False, "panels": [],
                     "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1}})  # fmt: skip
        y, x, tallest = y + 1, 0, 0
        for panel in panels:
            if x + panel.width > COLUMNS:
                y, x, tallest = y + tallest, 0, 0
            number += 1
            made.append(panel_json(panel, number, x, y))
            x, tallest = x + panel.width, max(tallest, panel.height)
        y += tallest
    return made


def variable(name, label, query, sort):
    return {
        "type": "query", "name": name, "label": label, "datasource": DATASOURCE,
        "query": {"query": query, "refId": name}, "refresh": 2, "sort": sort,
        "multi": True, "includeAll": True,
        "current": {"text": ["All"], "value": ["$__all"], "selected": True}, "options": [],
    }  # fmt: skip


def annotation(name, color, expr):
    return {"name": name, "datasource": DATASOURCE, "enable": True, "hide": False,
            "iconColor": color, "expr": expr}  # fmt: skip


def dashboard() -> dict:
    return {
        "uid": "fencepost", "title": "fencepost", "tags": ["fencepost", "kafka"],
        "description": "Pipelines of fencepost: what to look at, and what to do when it moves.",
        "schemaVersion": 39, "version": 1, "editable": True, "graphTooltip": 1,
        "timezone": "browser", "refresh": "30s", "time": {"from": "now-1h", "to": "now"},
        "links": [link("Runbooks", RUNBOOKS)],
        "templating": {"list": [
            {"type": "datasource", "name": "datasource", "label": "Prometheus",
             "query": "prometheus", "refresh": 1, "multi": False, "includeAll": False,
             "options": [], "current": {}},
            variable("pipeline", "Pipeline", "label_values(fencepost_ready, pipeline)", 1),
            variable("pod", "Pod",
                     'label_values(fencepost_ready{pipeline=~"$pipeline"}, instance)', 1),
        ]},
        "annotations": {"list": [
            annotation("Alerts", "red", f"ALERTS{{{ALERTS}}}"),
            annotation("Worker starts", "blue",
                       f"time() - process_start_time_seconds{{{POD}}} < 60"),
        ]},
        "panels": lay_out(),
    }  # fmt: skip


def main() -> int:
    text = json.dumps(dashboard(), indent=1) + "\n"
    if sys.argv[1:] == ["--print"]:
        sys.stdout.write(text)
        return 0
    (HERE / "fencepost.json").write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
