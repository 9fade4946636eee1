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
import urllib.parse

import ask
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models import dashboard as sdk
from support.fleet import folder
from support.processes import SOURCE, run
from support.promql import selectors
from support.rules import ALERTS, rules, runbooks_at

ROWS = ("Overview", "Locks", "Safety", "Redis by node", "Kafka", "Handler and output", "Process",
        "Runbooks")  # fmt: skip
RUNBOOKS = {  # the address of each, which people keep: no number here may ever change
    "Before anything else": 1001, "FencepostInvariantViolated": 1002,
    "FencepostQuorumLost": 1003, "FencepostNoWorkerReady": 1004,
    "FencepostPipelineStalled": 1005, "FencepostEndToEndBudgetBurn": 1006,
    "FencepostDeadLettersFailing": 1007, "FencepostLagGrowing": 1008,
    "FencepostRedisNodeDown": 1009, "FencepostLocksExpiring": 1010,
    "FencepostLockValidityLow": 1011, "FencepostFencingRejections": 1012,
    "FencepostRebalancing": 1013, "FencepostRedisClockOff": 1014,
    "FencepostRecordStuck": 1015, "FencepostDeadLettersMany": 1016,
    "FencepostDeadLettersNew": 1017, "FencepostIdConflicts": 1018,
}  # fmt: skip
WITH_TRACES = {  # panels with exemplars, and the histogram that has them
    "End to end": "fencepost_record_end_to_end_duration_seconds_bucket",
    "Handler": "fencepost_handler_duration_seconds_bucket",
}
LEFT_OUT = {  # metrics that no panel shows, each with the reason
    "process_virtual_memory_bytes": "address space: it says nothing of use, and flattens the rest",
}


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
    # Grafana's DashboardQuery has a topic; the SDK, which leaves it out, does not.
    unknown = re.compile(r"dashboard\.panels\[\d+\]\.targets\[0\]\.topic is unknown to Grafana")
    found = [one for one in differences(ours, theirs) if not unknown.fullmatch(one)]
    return [*found, *ill_typed(decoded)]


class Dashboard(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        register_default_plugins()
        cls.dashboard = ask.load()
        cls.panels = ask.panels(cls.dashboard)

    def test_it_is_what_the_generator_makes(self):
        made = run(sys.executable, SOURCE / "deploy" / "grafana" / "generate.py", "--print").stdout
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
            (lambda d: d["panels"][1]["links"].append({"title": "x", "href": "x"}), "not"),
            (lambda d: d["panels"][-1]["options"].update(mode="wiki"), "not"),
            (lambda d: d["panels"][-1]["options"].update(text="x"), "unknown"),
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
        self.assertEqual(list(variables), ["datasource", "pipeline", "pod", "traces"])
        for name in ("pipeline", "pod"):
            self.assertTrue(variables[name]["multi"] and variables[name]["includeAll"], name)

    def test_every_panel_says_what_to_do_and_links_to_the_runbook_of_an_alert(self):
        runbooks = {f"deploy/RUNBOOKS.md#{alert['alert'].lower()}" for alert in rules(ALERTS)}
        panels = [*self.panels, self.traces()]
        titles = [panel["title"] for panel in panels]
        self.assertEqual(len(titles), len(set(titles)))
        self.assertEqual(len(titles), sum("targets" in p for p in self.dashboard["panels"]))
        for panel in panels:
            does, _, runbook = panel["description"].rpartition(" Runbook: ")
            self.assertGreater(len(does), 40, panel["title"])
            self.assertIn(runbook, runbooks, panel["title"])
            (link,) = panel["links"]
            self.assertEqual(self.led_to(link["url"]), runbook.partition("#")[2], panel["title"])
            if not runbooks_at():
                self.assertRegex(link["url"], r"&\$\{__url_time_range\}&\$\{__all_variables\}$")
            self.assertTrue(panel["fieldConfig"]["defaults"]["unit"], panel["title"])

    def traces(self) -> dict:
        (panel,) = (p for p in self.dashboard["panels"] if p["title"] == "Traces")
        return panel

    def links_of_traces(self, panel) -> list:
        """The data links of the field trace_id."""
        found = [prop["value"] for override in panel["fieldConfig"]["overrides"]
                 if override["matcher"] == {"id": "byName", "options": "trace_id"}
                 for prop in override["properties"] if prop["id"] == "links"]  # fmt: skip
        return [link for links in found for link in links]

    def test_exemplars_are_asked_for_once_by_the_panels_whose_histograms_have_them(self):
        for panel in self.panels:
            asked = [t for t in panel["targets"] if t.get("exemplar")]
            of = WITH_TRACES.get(panel["title"])
            self.assertEqual(len(asked), 1 if of else 0, panel["title"])
            self.assertEqual(bool(self.links_of_traces(panel)), bool(of), panel["title"])
            for target in asked:
                self.assertIn(of, target["expr"])
                self.assertTrue(target["range"], "Grafana asks for exemplars over a range alone")
                self.assertEqual(panel["type"], "timeseries")

    def test_a_table_lists_the_exemplars_of_end_to_end_with_a_link_to_each_trace(self):
        table = self.traces()
        (source,) = (p for p in self.panels if p["title"] == "End to end")
        (target,) = table["targets"]
        self.assertEqual((target["panelId"], target["topic"]), (source["id"], "annotations"))
        for panel in (table, source):
            (link,) = self.links_of_traces(panel)
            url = urllib.parse.urlsplit(
                link["url"]
                .replace("${traces}", "tempo-1").replace("${__value.raw}", "0af7651916cd")
                .replace("${__from}", "1764000000000").replace("${__to}", "1764003600000")
            )  # fmt: skip
            self.assertEqual(url.path, "/explore")
            asked = dict(urllib.parse.parse_qsl(url.query, strict_parsing=True))
            self.assertEqual(asked.pop("schemaVersion"), "1")
            (pane,) = json.loads(asked.pop("panes")).values()
            self.assertEqual(asked, {})
            self.assertEqual(pane["datasource"], "tempo-1")
            self.assertEqual(pane["range"], {"from": "1764000000000", "to": "1764003600000"})
            (query,) = pane["queries"]
            self.assertEqual(query["datasource"], {"type": "tempo", "uid": "tempo-1"})
            self.assertEqual((query["queryType"], query["query"]), ("traceql", "0af7651916cd"))

    def test_a_grafana_without_a_place_for_traces_shows_everything_but_the_link(self):
        (traces,) = (v for v in self.dashboard["templating"]["list"] if v["name"] == "traces")
        self.assertEqual((traces["type"], traces["query"]), ("datasource", "tempo"))
        for panel in self.dashboard["panels"]:
            asks = {k: v for k, v in panel.items() if k != "fieldConfig"}
            self.assertNotIn("${traces}", json.dumps(asks), panel["title"])

    def led_to(self, url) -> str:
        """The anchor of the runbook behind a link: at an address, or on this dashboard."""
        if runbooks_at():
            self.assertTrue(url.startswith(f"{runbooks_at()}#"), url)
            return url.partition("#")[2]
        found = re.fullmatch(r"/d/([\w-]+)\?viewPanel=(\d+)(&.*)?", url)
        self.assertTrue(found, url)
        self.assertEqual(found[1], self.dashboard["uid"])
        (panel,) = (p for p in self.dashboard["panels"] if p["id"] == int(found[2]))
        self.assertEqual(panel["type"], "text", url)
        return panel["title"].lower()

    def test_the_dashboard_itself_links_to_what_to_do_before_anything_else(self):
        (link,) = self.dashboard["links"]
        if runbooks_at():
            self.assertEqual(link["url"], runbooks_at())
        else:
            self.assertEqual(self.led_to(link["url"]), "before anything else")
            self.assertTrue(link["keepTime"] and link["includeVars"])

    def test_the_last_row_has_the_runbooks_word_for_word_at_addresses_that_stay(self):
        everything = self.dashboard["panels"]
        row = next(p for p in everything if p["title"] == "Runbooks")
        below = everything[everything.index(row) + 1 :]
        self.assertFalse(row["collapsed"], "viewPanel does not find what a collapsed row holds")
        self.assertEqual([p for p in everything if p["type"] == "text"], below)
        self.assertEqual({panel["title"]: panel["id"] for panel in below}, RUNBOOKS)
        self.assertEqual(self.dashboard["uid"], "fencepost")
        self.assertLess(max(panel["id"] for panel in self.panels), row["id"])
        self.assertLess(row["id"], min(RUNBOOKS.values()))
        file = (SOURCE / "deploy" / "RUNBOOKS.md").read_text()
        for panel in below:
            said = panel["options"]["content"]
            (text,) = re.findall(rf"(?ms)^## {panel['title']}\n(.*?)(?=^## |\Z)", file)
            links = re.findall(r"\[[^\]]*\]\(([^)]*)\)", text)
            for link in links:
                text = re.sub(r"\[[^\]]*\]\([^)]*\)", f"`deploy/{link}`", text, count=1)
            self.assertEqual(said, text.strip())
            self.assertNotIn("](", said, "a relative link leads nowhere in Grafana")
            self.assertNotIn("$", said, "Grafana fills variables in")
        self.assertEqual(len(below), file.count("\n## "))

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
                    whole = metric == "fencepost_build_info" or metric.startswith("fencepost_spans_")
                    if metric.startswith("fencepost_") and not whole:  # it is of a pipeline
                        wanted.add(("pipeline", "=~", "(orders|mails)"))
                    self.assertLessEqual(wanted, set(matchers), f"{panel['title']}: {metric}")

    def test_every_metric_of_the_table_is_on_a_panel_or_left_out_for_a_reason(self):
        table = (SOURCE / "metrics" / "metric_definitions.h").read_text()
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

    def test_an_address_of_the_runbooks_reaches_alerts_tests_and_dashboard_and_can_be_taken_away(
        self,
    ):
        url = "https://wiki/x/RUN.md?ref=main"
        home = folder(self)
        copy = pathlib.Path(shutil.copytree(SOURCE / "deploy", home / "deploy"))
        alerts, page, ticket, dashboard = files = [
            copy / "prometheus" / file
            for file in ("alerts.yaml", "tests/page.yaml", "tests/ticket.yaml",
                         "../grafana/fencepost.json")
        ]  # fmt: skip
        run(copy / "set-runbook-url", "--none")
        before = [file.read_text() for file in files]
        for wrong in ("no url", "https://wiki/RUN.md#part", ""):
            self.assertNotEqual(run(copy / "set-runbook-url", wrong, check=False).returncode, 0)
            self.assertEqual([file.read_text() for file in files], before)
        for address in ("https://old/RUN.md", url):  # the second takes the place of the first
            run(copy / "set-runbook-url", address)
        for alert in rules(alerts):
            link = alert["annotations"]["runbook_url"]
            self.assertEqual(link, f"{url}#{alert['alert'].lower()}")
        run("promtool", "test", "rules", page, ticket)
        made = json.loads(dashboard.read_text())
        self.assertEqual(through_the_sdk(made), [])
        self.assertEqual([link["url"] for link in made["links"]], [url])
        for panel in ask.panels(made):
            (link,) = panel["links"]
            anchor = panel["description"].rpartition("#")[2]
            self.assertEqual(link["url"], f"{url}#{anchor}", panel["title"])
        run(copy / "set-runbook-url", "--none")
        self.assertEqual([file.read_text() for file in files], before)


if __name__ == "__main__":
    unittest.main()
