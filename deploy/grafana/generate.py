#!/usr/bin/env python3
"""Writes fencepost.json, the Grafana dashboard, of what stands in rows/ and in ../RUNBOOKS.md.

The format is that of Grafana 11, as its Foundation SDK types have it.
"""

import json
import pathlib
import re
import sys
import urllib.parse

from rows import ROWS, runbooks
from rows.panel import POD, Panel

HERE = pathlib.Path(__file__).parent
RUNBOOKS = "deploy/RUNBOOKS.md"  # in this repository
URL_FILE = HERE.parent / "RUNBOOK_URL"  # set-runbook-url makes it
URL = URL_FILE.read_text().strip() if URL_FILE.exists() else ""
UID = "fencepost"
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
OTHER_PANEL = {"type": "datasource", "uid": "-- Dashboard --"}  # Grafana's own
TRACES = {"type": "tempo", "uid": "${traces}"}
COLUMNS = 24
ALERTS = 'alertname=~"Fencepost.+",alertstate="firing",pipeline=~"$pipeline"'


def link(title, url, keep=False):
    return {
        "title": title, "type": "link", "icon": "doc", "tooltip": "", "url": url,
        "tags": [], "asDropdown": False, "targetBlank": True, "includeVars": keep,
        "keepTime": keep,
    }  # fmt: skip


def runbook_link(alert):
    """To where the runbooks are shown, or else to the panel that has the text of this one.

    Grafana 9 and 10 take a panel's number as viewPanel and nothing else, later ones that too.
    """
    if URL:
        return link("Runbook", f"{URL}#{alert.lower()}")
    panel = f"/d/{UID}?viewPanel={runbooks.panel_id(alert)}"
    return link("Runbook", f"{panel}&${{__url_time_range}}&${{__all_variables}}")


def dashboard_link():
    # Grafana adds time and variables to a dashboard's links by itself, and only to those.
    general = f"/d/{UID}?viewPanel={runbooks.panel_id(runbooks.GENERAL)}"
    return link("Runbooks", URL) if URL else link("Runbooks", general, keep=True)


def trace_link():
    """From a trace_id to its trace, in the time that is shown; without a Tempo it leads nowhere."""
    query = {"refId": "A", "datasource": TRACES, "queryType": "traceql", "query": "${__value.raw}"}
    pane = {"datasource": TRACES["uid"], "queries": [query],
            "range": {"from": "${__from}", "to": "${__to}"}}  # fmt: skip
    panes = urllib.parse.quote(json.dumps({"trace": pane}, separators=(",", ":")))
    panes = re.sub(r"%24%7B([\w.]+)%7D", r"${\1}", panes)  # what Grafana fills in
    return {"title": "Trace", "url": f"/explore?schemaVersion=1&panes={panes}", "targetBlank": True}


def targets(panel: Panel, ids: dict) -> list:
    if panel.traces_of:  # exemplars come as annotations of their panel
        return [{"refId": "A", "datasource": OTHER_PANEL, "panelId": ids[panel.traces_of],
                 "topic": "annotations"}]  # fmt: skip
    made = []
    for place, (expr, legend) in enumerate(panel.queries):
        instant = panel.kind in ("stat", "table")
        made.append({
            "refId": chr(ord("A") + place), "datasource": DATASOURCE, "expr": expr,
            "legendFormat": legend, "instant": instant, "range": not instant,
            "format": panel.kind if panel.kind in ("heatmap", "table") else "time_series",
        })  # fmt: skip
    if panel.exemplars:  # they are of the histogram: asked for by one quantile, not by each
        made[-1]["exemplar"] = True
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
            str(value): {"text": text, "color": color, "index": place}
            for place, (value, (text, color)) in enumerate(panel.states.items())
        }
        defaults["mappings"] = [{"type": "value", "options": options}]
    overrides = []
    if panel.exemplars or panel.traces_of:
        overrides = [{"matcher": {"id": "byName", "options": "trace_id"},
                      "properties": [{"id": "links", "value": [trace_link()]}]}]  # fmt: skip
    return {"defaults": defaults, "overrides": overrides}


def transformations(panel: Panel) -> list:
    if panel.traces_of:
        shown = ["Time", "Value", "pipeline", "instance", "trace_id"]
        return [  # the first leaves nothing of the dashboard's own annotations
            {"id": "filterFieldsByName", "options": {"include": {"names": shown}}},
            {"id": "organize", "options": {
                "indexByName": {name: place for place, name in enumerate(shown)},
                "renameByName": {"Value": "took", "instance": "pod"}}},
        ]  # fmt: skip
    return [
        {"id": "merge", "options": {}},
        {"id": "organize", "options": {
            "excludeByName": {"Time": True},
            "renameByName": {"Value #A": "pods", "Value #B": "pods with it"}}},
    ]  # fmt: skip


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


def panel_json(panel: Panel, ids: dict, x: int, y: int) -> dict:
    anchor = f"#{panel.runbook.lower()}"
    made = {
        "id": ids[panel.title], "type": panel.kind, "title": panel.title,
        "description": f"{panel.does} Runbook: {RUNBOOKS}{anchor}",
        "datasource": OTHER_PANEL if panel.traces_of else DATASOURCE,
        "targets": targets(panel, ids),
        "gridPos": {"x": x, "y": y, "w": panel.width, "h": panel.height},
        "fieldConfig": field_config(panel), "options": OPTIONS[panel.kind],
        "links": [runbook_link(panel.runbook)],
    }  # fmt: skip
    if panel.kind == "table":
        made["transformations"] = transformations(panel)
    if panel.traces_of:
        made["options"] = {**made["options"], "sortBy": [{"displayName": "took", "desc": True}]}
    return made


def row_json(title: str, number: int, y: int) -> dict:
    return {"id": number, "type": "row", "title": title, "collapsed": False, "panels": [],
            "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1}}  # fmt: skip


def runbooks_row(y: int) -> list:
    """Not collapsed: Grafana does not find the panels of a collapsed row by their address."""
    width, height = COLUMNS // 3, 9
    made = [row_json("Runbooks", runbooks.ROW_ID, y)]
    for place, (title, text) in enumerate(runbooks.texts().items()):
        made.append({
            "id": runbooks.panel_id(title), "type": "text", "title": title,
            "gridPos": {"x": place % 3 * width, "y": y + 1 + place // 3 * height, "w": width,
                        "h": height},
            "options": {"mode": "markdown", "content": text},
        })  # fmt: skip
    return made


def lay_out() -> list:
    made, ids, number, y = [], {}, 0, 0
    for title, panels in ROWS.items():
        number += 1
        made.append(row_json(title, number, y))
        y, x, tallest = y + 1, 0, 0
        for panel in panels:
            if x + panel.width > COLUMNS:
                y, x, tallest = y + tallest, 0, 0
            number += 1
            ids[panel.title] = number
            made.append(panel_json(panel, ids, x, y))
            x, tallest = x + panel.width, max(tallest, panel.height)
        y += tallest
    return made + runbooks_row(y)


def datasource(name, label, kind):
    return {"type": "datasource", "name": name, "label": label, "query": kind, "refresh": 1,
            "multi": False, "includeAll": False, "options": [], "current": {}}  # fmt: skip


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
        "uid": UID, "title": "fencepost", "tags": ["fencepost", "kafka"],
        "description": "Pipelines of fencepost: what to look at, and what to do when it moves.",
        "schemaVersion": 39, "version": 1, "editable": True, "graphTooltip": 1,
        "timezone": "browser", "refresh": "30s", "time": {"from": "now-1h", "to": "now"},
        "links": [dashboard_link()],
        "templating": {"list": [
            datasource("datasource", "Prometheus", "prometheus"),
            variable("pipeline", "Pipeline", "label_values(fencepost_ready, pipeline)", 1),
            variable("pod", "Pod",
                     'label_values(fencepost_ready{pipeline=~"$pipeline"}, instance)', 1),
            datasource("traces", "Traces", "tempo"),
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
