#!/usr/bin/env python3
"""Draws the dashboard from fencepost.json and its own queries, without Grafana.

  python3 deploy/grafana/draw.py --prometheus http://127.0.0.1:9090 --minutes 30 --out dashboard.png

The picture is a page of SVG that Chromium turns into a PNG; --out page.html keeps the page instead.
"""

import argparse
import html
import itertools
import math
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import ask
import units

WIDTH, CELL_HEIGHT, GAP, HEADER = 1440, 28, 6, 64
COLORS = ["#73bf69", "#f2cc0c", "#5794f2", "#ff780a", "#f2495c", "#b877d9", "#5fc9c4", "#e8a0bf",
          "#a3a3ff", "#b5d33d", "#c08a5a", "#9aa5b1"]  # fmt: skip
NAMED = {"green": "#3d8a45", "orange": "#d9822b", "red": "#d0364a", "blue": "#5794f2"}
STYLE = """
body{margin:0;background:#111217;color:#ccccdc;font:12px "DejaVu Sans",sans-serif}
.panel,.row,h1,.sub{position:absolute;box-sizing:border-box;overflow:hidden}
.panel{background:#181b1f;border:1px solid #2c3036;border-radius:3px}
.row{font-size:15px;font-weight:bold;padding:6px 4px 0}
h1{font-size:20px;margin:0;left:12px;top:10px}.sub{left:12px;top:38px;color:#8e8e9a}
.title{font-weight:bold;padding:5px 8px 0;white-space:nowrap}
.big{font-size:26px;text-align:center;color:#fff;padding-top:18px}
.legend{padding:0 8px;line-height:15px;font-size:10.5px;max-height:30px;overflow:hidden}
.legend span{margin-right:10px;white-space:nowrap}
.legend i{display:inline-block;width:11px;height:3px;margin:0 4px 3px 0}
table{border-collapse:collapse;margin:6px 8px}td,th{padding:3px 18px 3px 0;text-align:left}
svg text{fill:#8e8e9a;font-size:10px}
"""


def text(what) -> str:
    return html.escape(str(what))


class Plot:
    """An SVG with a time axis below and values at the left."""

    def __init__(self, source, width, height, low, high):
        self.source, self.width, self.height = source, width, height
        self.low, self.high = low, high if high > low else low + 1
        self.left, self.bottom, self.parts = 52, 16, []

    def x(self, when):
        share = (when - self.source.start) / (self.source.end - self.source.start)
        return self.left + share * (self.width - self.left - 8)

    def y(self, value):
        share = (value - self.low) / (self.high - self.low)
        return 10 + (1 - share) * (self.height - self.bottom - 10)

    def time_axis(self):
        for i in range(5):
            when = self.source.start + (self.source.end - self.source.start) * i / 4
            anchor = "end" if i == 4 else "start" if i == 0 else "middle"
            label = time.strftime("%H:%M:%S", time.gmtime(when))
            self.parts.append(f'<text x="{self.x(when):.0f}" y="{self.height - 3}"'
                              f' text-anchor="{anchor}">{label}</text>')  # fmt: skip

    def level(self, value, label, color="#2c3036", dash=""):
        y = self.y(value)
        self.parts.append(f'<path d="M{self.left} {y:.1f}H{self.width - 8}" stroke="{color}"'
                          f' stroke-dasharray="{dash}"/>')  # fmt: skip
        if label:
            self.parts.append(f'<text x="{self.left - 5}" y="{y + 3:.1f}"'
                              f' text-anchor="end">{text(label)}</text>')  # fmt: skip

    def mark(self, when, color):
        self.parts.append(f'<path d="M{self.x(when):.1f} 4V{self.height - self.bottom}"'
                          f' stroke="{color}" stroke-dasharray="2 3" opacity=".7"/>')  # fmt: skip

    def line(self, points, color, stepped):
        path, before = [], None
        for when, value in points:
            x, y = self.x(when), self.y(min(max(value, self.low), self.high))
            if before is None or when - before > 2.5 * self.source.step:
                path.append(f"M{x:.1f} {y:.1f}")
            else:
                path.append(f"H{x:.1f}V{y:.1f}" if stepped else f"L{x:.1f} {y:.1f}")
            before = when
        self.parts.append(f'<path d="{"".join(path)}" fill="none" stroke="{color}"'
                          ' stroke-width="1.4"/>')  # fmt: skip

    def svg(self):
        return f'<svg width="{self.width}" height="{self.height}">{"".join(self.parts)}</svg>'


def draw_timeseries(panel, source, marks, width, height):
    series = [
        (ask.legend(target, labels), points)
        for target in panel["targets"]
        for labels, points in source.answers(target)
    ]
    defaults = panel["fieldConfig"]["defaults"]
    values = [value for _, points in series for _, value in points] or [0]
    low = min(defaults.get("min", min(values)), min(values))
    high = max(defaults.get("max", max(values)), max(values))
    steps = units.ticks(low, high)
    plot = Plot(source, width, height - 56, min(low, steps[0]), max(high, steps[-1]))
    for value in steps:
        plot.level(value, units.show(value, defaults["unit"]))
    for step in defaults["thresholds"]["steps"][1:]:
        if low <= step["value"] <= plot.high:
            plot.level(step["value"], "", NAMED[step["color"]], "5 4")
    for when, color in marks:
        plot.mark(when, color)
    stepped = defaults["custom"]["lineInterpolation"] == "stepAfter"
    keys = []
    # What moves most is drawn last, on top, and named first where the legend is short of room.
    order = sorted(range(len(series)), key=lambda i: max(v for _, v in series[i][1]))
    for i in order:
        plot.line(series[i][1], COLORS[i % len(COLORS)], stepped)
    for i in reversed(order):
        keys.append(f'<span><i style="background:{COLORS[i % len(COLORS)]}"></i>'
                    f"{text(series[i][0])}</span>")  # fmt: skip
    plot.time_axis()
    return f'{plot.svg()}<div class="legend">{" ".join(keys)}</div>'


def draw_stat(panel, source, width, height):
    defaults = panel["fieldConfig"]["defaults"]
    found = source.answers(panel["targets"][0])
    if not found:
        return '<div class="big">no data</div>'
    value = found[0][1][0][1]
    shown, color = units.show(value, defaults["unit"]), "green"
    for step in defaults["thresholds"]["steps"][1:]:
        if value >= step["value"]:
            color = step["color"]
    for mapping in defaults.get("mappings", []):
        option = mapping["options"].get(f"{value:g}")
        if option:
            shown, color = option["text"], option["color"]
    return (f'<div style="position:absolute;inset:0;background:{NAMED[color]};opacity:.75"></div>'
            f'<div style="position:relative"><div class="title">{text(panel["title"])}</div>'
            f'<div class="big">{text(shown)}</div></div>')  # fmt: skip


def draw_heatmap(panel, source, width, height):
    found = [(float(labels["le"]), dict(points))
             for labels, points in source.answers(panel["targets"][0])]  # fmt: skip
    found.sort(key=lambda one: one[0])
    plot = Plot(source, width, height - 28, 0, max(len(found), 1))
    cells, below = [], {}
    for row, (_, points) in enumerate(found):  # the buckets count what lies below them, too
        cells += [(row, when, value - below.get(when, 0)) for when, value in points.items()]
        below = points
    most = max((count for _, _, count in cells), default=0) or 1
    wide = max(plot.x(source.start + source.step) - plot.left, 1)
    tall = plot.y(0) - plot.y(1)
    for row, when, count in cells:
        if count > 1e-9:
            shade = math.sqrt(count / most)
            plot.parts.append(
                f'<rect x="{plot.x(when) - wide:.1f}" y="{plot.y(row + 1):.1f}" width="{wide:.1f}"'
                f' height="{tall:.1f}" fill="rgb({70 + 185 * shade:.0f},{30 + 150 * shade:.0f},'
                f'{20 + 40 * shade:.0f})"/>'
            )
    for row, (edge, _) in enumerate(found):
        label = units.show(edge, "s") if math.isfinite(edge) else "more"
        plot.parts.append(f'<text x="{plot.left - 5}" y="{plot.y(row + 0.5) + 3:.1f}"'
                          f' text-anchor="end">{label}</text>')  # fmt: skip
    plot.time_axis()
    return plot.svg()


def draw_table(panel, source, width, height):
    rows = []
    for target in panel["targets"]:
        for labels, points in source.answers(target):
            told = ", ".join(f"{name} {value}" for name, value in sorted(labels.items()))
            rows.append(f"<tr><td>{text(told)}</td><td>{points[0][1]:g}</td></tr>")
    return f"<table><tr><th>what</th><th>pods</th></tr>{''.join(rows)}</table>"


def marks_of(dashboard, source):
    """Where annotations begin: (time, colour)."""
    marks = []
    for annotation in dashboard["annotations"]["list"]:
        for _, points in source.over_time(annotation["expr"]):
            starts = [
                b for (a, _), (b, _) in itertools.pairwise(points) if b - a > 10 * source.step
            ]
            marks += [(when, NAMED[annotation["iconColor"]]) for when in [points[0][0], *starts]]
    return marks


def draw_panel(panel, source, marks):
    place = panel["gridPos"]
    cell = WIDTH / 24
    left, top = place["x"] * cell + GAP / 2, HEADER + place["y"] * CELL_HEIGHT
    width, height = place["w"] * cell - GAP, place["h"] * CELL_HEIGHT - GAP
    style = f"left:{left:.0f}px;top:{top:.0f}px;width:{width:.0f}px;height:{height:.0f}px"
    if panel["type"] == "row":
        return f'<div class="row" style="{style}">{text(panel["title"])}</div>'
    title = f'<div class="title">{text(panel["title"])}</div>'
    if panel["type"] == "timeseries":
        inside = title + draw_timeseries(panel, source, marks, int(width) - 2, int(height))
    elif panel["type"] == "heatmap":
        inside = title + draw_heatmap(panel, source, int(width) - 2, int(height))
    elif panel["type"] == "stat":
        inside = draw_stat(panel, source, width, height)
    else:
        inside = title + draw_table(panel, source, width, height)
    return f'<div class="panel" style="{style}">{inside}</div>'


def page(dashboard, source) -> tuple[str, int]:
    """The page and how tall it is."""
    marks = marks_of(dashboard, source)
    # Down to the last query: the runbooks below are text.
    end = max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in ask.panels(dashboard))
    shown = [panel for panel in dashboard["panels"] if panel["gridPos"]["y"] < end]
    parts = [draw_panel(panel, source, marks) for panel in shown]
    tall = HEADER + CELL_HEIGHT * end
    when = " to ".join(
        time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(t)) for t in (source.start, source.end)
    )
    head = f"<!doctype html><meta charset=utf-8><title>fencepost</title><style>{STYLE}</style>"
    sub = f"{when} UTC · dashed lines: alerts (red) and worker starts (blue)"
    title = f'<h1>{text(dashboard["title"])}</h1><div class="sub">{sub}</div>'
    return head + title + "".join(parts), tall


def photograph(markup: str, tall: int, out: pathlib.Path):
    with tempfile.TemporaryDirectory() as home:
        file = pathlib.Path(home, "page.html")
        file.write_text(markup)
        shot = pathlib.Path(home, "page.png")
        subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             f"--user-data-dir={home}/profile", f"--window-size={WIDTH},{tall}",
             f"--screenshot={shot}", file.as_uri()],
            check=True, capture_output=True, timeout=120,
        )  # fmt: skip
        if shutil.which("pngquant"):  # a third of the size
            subprocess.run(
                ["pngquant", "--nofs", "--force", "--output", shot, "64", shot], check=True
            )
        out.write_bytes(shot.read_bytes())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prometheus", default="http://127.0.0.1:9090")
    parser.add_argument("--end", type=float, default=time.time(), help="Unix seconds; now")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rate-interval", default="1m")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="a .png or .html file")
    options = parser.parse_args()
    start = options.end - options.minutes * 60
    source = ask.Source(options.prometheus, start, options.end, options.rate_interval)
    dashboard = ask.load()
    source.fill_variables(dashboard)
    markup, tall = page(dashboard, source)
    if options.out.suffix == ".html":
        options.out.write_text(markup)
    else:
        photograph(markup, tall, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
