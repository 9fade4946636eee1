"""The rule files of deploy/prometheus, and a faster copy of them for tests on real servers."""

import pathlib
import re

import yaml

from support.processes import SOURCE

HOME = SOURCE / "deploy" / "prometheus"
RECORDING, ALERTS = HOME / "recording-rules.yaml", HOME / "alerts.yaml"


def rules(path) -> list[dict]:
    return [r for group in yaml.safe_load(path.read_text())["groups"] for r in group["rules"]]


def runbooks_at() -> str:
    """The address that deploy/set-runbook-url was given; empty as long as nobody has said one."""
    file = SOURCE / "deploy" / "RUNBOOK_URL"
    return file.read_text().strip() if file.exists() else ""


def recorded() -> dict[str, str]:
    return {rule["record"]: rule["expr"] for rule in rules(RECORDING)}


# Only durations, which stand in brackets, after `offset` and after `for:`.
DURATION = re.compile(r"(\[|offset |for: )(\d+)([mhd])\b")
UNITS = {"m": 1, "h": 60, "d": 24 * 60}
MINUTE = 2  # seconds; with a scrape a second, as many a minute as the 30 s of a real Prometheus


def faster(text: str) -> str:
    """A minute becomes two seconds, everywhere: 2m is 4s, 1h is 120s; so do the five, ten
    and fifteen minutes that expressions count in seconds. The promise of the SLO becomes
    0.5 s instead of 10 s. Nothing else changes: no threshold, no ratio, no label."""

    def shorter(found):
        return f"{found[1]}{int(found[2]) * UNITS[found[3]] * MINUTE}s"

    text = DURATION.sub(shorter, text).replace('le=~"10([.]0)?"', 'le="0.5"')
    text = text.replace("rate10m * 600 >", f"rate10m * {10 * MINUTE} >")
    text = text.replace("unfinished_seconds) > 300", f"unfinished_seconds) > {5 * MINUTE}")
    return text.replace(") < 900", f") < {15 * MINUTE}")


def write_faster(folder: pathlib.Path) -> list[pathlib.Path]:
    written = []
    for path in (RECORDING, ALERTS):
        target = folder / path.name
        target.write_text(faster(path.read_text()))
        written.append(target)
    return written
