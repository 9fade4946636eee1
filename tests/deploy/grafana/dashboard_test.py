"""The dashboard by itself: its format, its layout, its words, what it covers."""

import enum
import json
import pathlib
import re
import shutil
import sys
import types
import typing
import unittest

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models import dashboard as sdk
from support.fleet import folder
from support.processes import SOURCE, run
from support.promql import selectors
from support.rules import ALERTS, rules

HOME = SOURCE / "deploy" / "grafana"
sys.path.insert(0, str(HOME))
import ask  # noqa: E402
import units  # noqa: E402

ROWS = ("Overview", "Locks", "Safety", "Redis by node", "Kafka", "Handler and output", "Process")
LEFT_OUT = {}  # metrics that no panel shows, each with the reason


def differences(ours, theirs, path="dashboard"):
    """Where `theirs`, which went through the SDK, lacks or changes something of ours."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key, value in ours.items():
            if key in theirs:
                yield from differences(value, theirs[key], f"{path}.{key}")
            else:
                yield f"{path}.{key} is unknown to Grafana"
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for place, (a, b) in enumerate(zip(ours, theirs)):
            yield from differences(a, b, f"{path}[{place}]")
    elif ours != theirs:
        yield f"{path} is {ours!r} and became {theirs!r}"


def fits(value, kind) -> bool:
    """Whether a decoded value has the type that the SDK declares; it decodes without looking."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind in (typing.Any, object):
        return True
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, one) for one in arguments)
    if origin is typing.Literal:
        return value in arguments
    if origin is list:
        return isinstance(value, list) and all(fits(one, arguments[0]) for one in value)
    if origin is dict:
        return isinstance(value, dict) and all(fits(one, arguments[1]) for one in value.values())
    if isinstance(kind, typing.TypeVar) or not isinstance(kind, type):
        return True
    if issubclass(kind, enum.Enum):
        return value in [one.value for one in kind]
    if isinstance(value, dict) and hasattr(kind, "from_json"):  # the SDK left it as it was
        decoded = kind.from_json(value)
        theirs = json.loads(json.dumps(decoded, cls=JSONEncoder))
        return not [*differences(value, theirs), *ill_typed(decoded)]
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, kind)


def ill_typed(thing, path="dashboard"):
    if isinstance(thing, list):
        for place, one in enumerate(thing):
            yield from ill_typed(one, f"{path}[{place}]")
    elif isinstance(thing, dict):
        for key, one in thing.items():
            yield from ill_typed(one, f"{path}.{key}")
    elif type(thing).__module__.startswith("grafana_foundation_sdk"):
        hints = {}
        for base in reversed(type(thing).__mro__):
            if base.__module__.startswith("grafana_foundation_sdk"):
                hints |= typing.get_type_hints(base)
        for name, value in vars(thing).items():
            if not fits(value, hints.get(name, object)):
                yield f"{path}.{name} is {value!r}, not {hints[name]}"
            yield from ill_typed(value, f"{path}.{name}")


def through_the_sdk(ours):
    decoded = sdk.Dashboard.from_json(json.loads(json.dumps(ours)))
    theirs = json.loads(json.dumps(decoded, cls=JSONEncoder))
    return [*differences(ours, theirs), *ill_typed(decoded)]


class Dashboard(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        register_default_plugins()
        cls.dashboard = ask.load()
        cls.panels = ask.panels(cls.dashboard)

    def test_it_is_what_the_generator_makes(self):
        made = run(sys.executable, HOME / "generate.py", "--print").stdout
        self.assertEqual(made, ask.DASHBOARD.read_text(), "run deploy/grafana/generate.py")

    def test_grafanas_own_types_take_all_of_it(self):
        self.assertEqual(through_the_sdk(self.dashboard), [])

    def test_what_grafana_does_not_know_is_found(self):
        for change, told in (
            (lambda d: d["panels"][1].update(colour="red"), "unknown"),
            (lambda d: d["panels"][1]["options"].update(graphMode="pie"), "not"),
            (lambda d: d["panels"][1]["fieldConfig"]["defaults"].update(units="s"), "unknown"),
            (lambda d: d["panels"][1]["gridPos"].update(x="0"), "not"),
            (lambda d: d["panels"][1]["targets"][0].update(legend="x"), "unknown"),
            (lambda d: d["panels"][1]["links"][0].update(href="x"), "not"),
            (lambda d: d["templating"]["list"][1].update(multi="yes"), "not"),
        ):
            broken = ask.load()
            change(broken)
            found = through_the_sdk(broken)
            self.assertEqual(len(found), 1, found)
            self.assertIn(told, found[0])

    def test_panels_have_ids_of_their_own_and_do_not_overlap(self):
        everything = self.dashboard["panels"]
        ids = [panel["id"] for panel in everything]
        self.assertEqual(len(ids), len(set(ids)))
        taken = {}
        for panel in everything:
            place = panel["gridPos"]
            self.assertLessEqual(place["x"] + place["w"], 24, panel["title"])
            for x in range(place["x"], place["x"] + place["w"]):
                for y in range(place["y"], place["y"] + place["h"]):
                    self.assertNotIn((x, y), taken, f"{panel['title']} covers {taken.get((x, y))}")
                    taken[x, y] = panel["title"]

    def test_rows_and_variables_are_those_of_the_contract(self):
        rows = [p["title"] for p in self.dashboard["panels"] if p["type"] == "row"]
        self.assertEqual(len(rows), len(ROWS))
        for found, wanted in zip(rows, ROWS):
            self.assertTrue(found.startswith(wanted), found)
        variables = {v["name"]: v for v in self.dashboard["templating"]["list"]}
        self.assertEqual(list(variables), ["datasource", "pipeline", "pod"])
        for name in ("pipeline", "pod"):
            self.assertTrue(variables[name]["multi"] and variables[name]["includeAll"], name)

    def test_every_panel_says_what_to_do_and_links_to_the_runbook_of_an_alert(self):
        runbooks = {alert["annotations"]["runbook_url"] for alert in rules(ALERTS)}
        titles = [panel["title"] for panel in self.panels]
        self.assertEqual(len(titles), len(set(titles)))
        for panel in self.panels:
            self.assertGreater(len(panel["description"]), 40, panel["title"])
            self.assertTrue(panel["fieldConfig"]["defaults"]["unit"], panel["title"])
            self.assertEqual(panel["datasource"]["uid"], "${datasource}")
            self.assertIn(panel["links"][0]["url"], runbooks, panel["title"])

    def test_every_query_parses_and_asks_only_for_what_the_variables_choose(self):
        source = ask.Source("http://unused", 0, 3600)
        source._values |= {"pipeline": "(orders|mails)", "pod": "(a:1|b:2)"}
        for panel in self.panels:
            for target in panel["targets"]:
                expr = source.resolve(target["expr"])
                self.assertNotIn("$", expr, panel["title"])
                found = list(selectors(expr))
                self.assertTrue(found, panel["title"])
                for metric, matchers in found:
                    wanted = {("instance", "=~", "(a:1|b:2)")}
                    if metric.startswith("fencepost_") and metric != "fencepost_build_info":
                        wanted.add(("pipeline", "=~", "(orders|mails)"))
                    self.assertLessEqual(wanted, set(matchers), f"{panel['title']}: {metric}")

    def test_every_metric_of_the_table_is_on_a_panel_or_left_out_for_a_reason(self):
        table = (SOURCE / "metrics" / "table.cc").read_text()
        every = set(re.findall(r'"((?:fencepost|process)_\w+)"', table))
        self.assertGreater(len(every), 60)
        source = ask.Source("http://unused", 0, 3600)
        source._values |= {"pipeline": "x", "pod": "x"}
        shown = set()
        for panel in self.panels:
            for target in panel["targets"]:
                for metric, _ in selectors(source.resolve(target["expr"])):
                    shown.add(
                        metric if metric in every else re.sub(r"_(bucket|count|sum)$", "", metric)
                    )
        self.assertEqual(every - shown - LEFT_OUT.keys(), set(), "on no panel")
        self.assertEqual(shown - every, set(), "no such metric")

    def test_a_new_address_of_the_runbooks_reaches_alerts_tests_and_dashboard(self):
        old, new = (SOURCE / "deploy" / "RUNBOOK_URL").read_text().strip(), "https://wiki/x/RUN.md"
        self.assertEqual(self.dashboard["links"][0]["url"], old)
        home = folder(self)
        copy = pathlib.Path(shutil.copytree(SOURCE / "deploy", home / "deploy"))
        files = ["alerts.yaml", "tests/page.yaml", "tests/ticket.yaml", "../grafana/fencepost.json"]
        before = [(copy / "prometheus" / file).read_text() for file in files]
        self.assertEqual(run(copy / "set-runbook-url", "no url", check=False).returncode, 2)
        self.assertEqual([(copy / "prometheus" / file).read_text() for file in files], before)
        run(copy / "set-runbook-url", new)
        after = [(copy / "prometheus" / file).read_text() for file in files]
        self.assertEqual(after, [text.replace(old, new) for text in before])
        made = run(sys.executable, copy / "grafana" / "generate.py", "--print").stdout
        self.assertEqual(made, after[-1])


class Units(unittest.TestCase):
    def test_numbers_are_shown_as_people_write_them(self):
        for value, unit, shown in (
            (0.00025, "s", "250 µs"), (0.25, "s", "250 ms"), (90, "s", "1.5 min"), (0, "s", "0 s"),
            (1536, "bytes", "1.5 KiB"), (0.0123, "percentunit", "1.23%"), (12, "ops", "12/s"),
            (123456, "short", "123k"), (2.5e6, "short", "2.5M"), (523.4, "short", "523"),
        ):  # fmt: skip
            self.assertEqual(units.show(value, unit), shown)

    def test_an_axis_covers_its_values_with_few_round_numbers(self):
        for low, high in ((0, 1), (0, 0.037), (-3, 8), (5, 5), (0, 12345)):
            ticks = units.ticks(low, high)
            self.assertLessEqual(ticks[0], low)
            self.assertGreaterEqual(ticks[-1], high)
            self.assertLessEqual(len(ticks), 7)


if __name__ == "__main__":
    unittest.main()
