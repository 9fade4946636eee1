"""The rule files by themselves: promtool's checks and tests, labels, links."""

import re
import unittest

import yaml
from support.fleet import folder
from support.processes import SOURCE, run
from support.promql import grouping
from support.rules import ALERTS, HOME, RECORDING, faster, recorded, rules, runbooks_at

PAGES = {
    "FencepostInvariantViolated", "FencepostQuorumLost", "FencepostNoWorkerReady",
    "FencepostPipelineStalled", "FencepostEndToEndBudgetBurn", "FencepostDeadLettersFailing",
    "FencepostDeadLettersMany",
}  # fmt: skip
TICKETS = {
    "FencepostLagGrowing", "FencepostRedisNodeDown", "FencepostLocksExpiring",
    "FencepostLockValidityLow", "FencepostFencingRejections", "FencepostRebalancing",
    "FencepostRedisClockOff", "FencepostRecordStuck",
    "FencepostDeadLettersNew", "FencepostIdConflicts",
}  # fmt: skip
RUNBOOKS = SOURCE / "deploy" / "RUNBOOKS.md"
MONITORING = SOURCE / "deploy" / "operations" / "monitoring.md"
TESTS = sorted((HOME / "tests").glob("*.yaml"))


def sections(path) -> dict[str, str]:
    """Anchor and text of every `## ` section."""
    parts = re.split(r"^## (.+)$", path.read_text(), flags=re.MULTILINE)
    return {
        re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-"): text
        for title, text in zip(parts[1::2], parts[2::2])
    }


class Rules(unittest.TestCase):
    def test_promtool_finds_nothing_to_say_about_the_rules_and_the_configuration(self):
        said = run("promtool", "check", "rules", "--lint=all", "--lint-fatal", RECORDING, ALERTS)
        self.assertEqual(said.stdout.count("SUCCESS"), 2, said.stdout)
        run("promtool", "check", "config", HOME / "prometheus.yaml")

    def test_the_alerts_fire_do_not_fire_and_resolve_in_promtools_tests(self):
        said = run("promtool", "test", "rules", *TESTS, limit=300)
        self.assertEqual(said.stdout.count("SUCCESS"), len(TESTS), said.stdout)

    def test_every_alert_has_cases_that_fire_that_resolve_and_that_stay_silent(self):
        for alert in rules(ALERTS):
            name, cases = alert["alert"], []
            for path in TESTS:
                cases += re.findall(rf"- name: >-\n +{name}: .*?(?=\n  - name|\n  # ---|\Z)",
                                    path.read_text(), re.DOTALL)  # fmt: skip
            fires = [bool(re.search(r"value: 1$", case, re.MULTILINE)) for case in cases]
            self.assertIn(True, fires, f"{name} has no case that fires")
            self.assertIn(False, fires, f"{name} has no case that stays silent")
            resolves = [re.search(r"value: 1\n(.*\n)*? +exp_samples: \[\]", c) for c in cases]
            self.assertTrue(any(resolves), f"{name} has no case that resolves")
            self.assertTrue(any("exp_annotations" in c for c in cases), f"{name}: texts untried")

    def test_the_alerts_are_those_of_the_contract_with_their_severity(self):
        found = {a["alert"]: a["labels"]["severity"] for a in rules(ALERTS)}
        self.assertEqual({n for n, s in found.items() if s == "page"}, PAGES)
        self.assertEqual({n for n, s in found.items() if s == "ticket"}, TICKETS)

    def test_every_rule_keeps_the_pipeline(self):
        for rule in rules(RECORDING) + rules(ALERTS):
            by = grouping(rule["expr"])
            used = [n for n in recorded() if n in rule["expr"] and n != rule.get("record")]
            self.assertTrue("pipeline" in by or used, rule)
            self.assertNotRegex(rule["expr"], r"\bby \((?!namespace, pipeline)", rule)
            self.assertNotRegex(rule["expr"], r"\bwithout\b|\b(sum|max|min|count) \(", rule)

    def test_every_alert_names_its_own_runbook(self):
        runbooks = sections(RUNBOOKS)
        for alert in rules(ALERTS):
            notes = alert["annotations"]
            anchor = f"#{alert['alert'].lower()}"
            self.assertEqual(set(notes), {"summary", "description", "runbook_url"})
            self.assertEqual(notes["runbook_url"], (runbooks_at() or "deploy/RUNBOOKS.md") + anchor)
            self.assertIn("$labels.pipeline", notes["summary"])
            self.assertGreater(len(notes["description"]), 150, alert["alert"])
            text = runbooks.pop(alert["alert"].lower(), "")
            for part in ("**Why.**", "**Look.**", "**Do.**"):
                self.assertIn(part, text, f"the runbook of {alert['alert']}")
        self.assertEqual(set(runbooks) - {"before-anything-else"}, set(), "runbooks of no alert")

    def test_runbook_and_alert_begin_with_what_users_lose_in_one_plain_sentence(self):
        runbooks = sections(RUNBOOKS)
        orders = set(re.findall(r"\*\*Do\.\*\* (\w+)", RUNBOOKS.read_text()))
        self.assertIn("Start", orders)
        for alert in rules(ALERTS):
            text = runbooks[alert["alert"].lower()]
            loss, trigger = text.strip().split("\n\n")[:2]
            with self.subTest(loss):
                self.assertRegex(loss, r"^[A-Z][\w ,;:'()%-]+\.$", "one sentence without code")
                self.assertLessEqual(len(loss.split()), 20)
                self.assertNotIn(loss.split()[0], orders, "an instruction")
                self.assertTrue(trigger.startswith(f"*{alert['labels']['severity']}.* "))
                told = alert["annotations"]["description"]
                self.assertTrue(told.startswith(f"{loss} "), told)

    def test_the_objective_that_a_page_offers_to_copy_is_found_by_its_query_and_guarded(self):
        blocks = dict(re.findall(r"(?ms)^```(promql|yaml)\n(.*?)^```$", MONITORING.read_text()))
        (alert,) = yaml.safe_load(blocks["yaml"])
        home, metric = folder(self), "fencepost_record_end_to_end_duration_seconds"
        copied = {"groups": [{"name": "copied", "rules": [alert]}]}
        (home / "copied.yaml").write_text(yaml.safe_dump(copied))
        firing = f'count(ALERTS{{alertname="{alert["alert"]}",alertstate="firing"}})'
        for name, in_time, share, fires in (  # of ten a minute
            ("one in ten late, for three hours", "0+10x400 4009+9x179", 0.969, 1),
            ("one in twenty late, for long", "0+9.5x580", 0.95, 1),
            ("one in a hundred late, for long", "0+9.9x580", 0.99, 0),
            ("half late, for three minutes", "0+10x577 5775+5x2", 0.997, 0),
            ("all late until ten minutes ago, for nine", "0+10x560 5600x8 5610+10x10", 0.984, 0),
            ("one in ten late, until forty minutes ago", "0+9x540 4870+10x39", 0.907, 0),
        ):
            series = {
                f'{metric}_bucket{{pipeline="orders",le="60"}}': in_time,
                f'{metric}_count{{pipeline="orders"}}': "0+10x580",
            }
            expected = {firing: (fires, "{}"),
                        f"round({blocks['promql']}, 0.001)": (share, '{le="60"}')}  # fmt: skip
            case = {
                "rule_files": [str(RECORDING), "copied.yaml"],
                "evaluation_interval": "2m",
                "group_eval_order": ["fencepost-slo", "copied"],
                "tests": [{
                    "interval": "1m",
                    "input_series": [{"series": s, "values": v} for s, v in series.items()],
                    "promql_expr_test": [
                        {"expr": expr, "eval_time": "580m",
                         "exp_samples": [{"labels": labels, "value": value}] if value else []}
                        for expr, (value, labels) in expected.items()
                    ],
                }],
            }  # fmt: skip
            (home / "case.yaml").write_text(yaml.safe_dump(case))
            said = run("promtool", "test", "rules", home / "case.yaml", check=False)
            with self.subTest(name):
                self.assertEqual(said.returncode, 0, said.stdout + said.stderr)

    def test_the_runbooks_name_only_metrics_that_the_table_has(self):
        table = (SOURCE / "metrics" / "metric_definitions.h").read_text()
        known = set(re.findall(r'"((?:fencepost|process)_\w+)"', table))
        for name in re.findall(r"\b(?:fencepost|process)_[a-z_]+\b", RUNBOOKS.read_text()):
            if name != "fencepost_ledger":  # the table in the database
                self.assertIn(re.sub(r"_(bucket|count|sum)$", "", name), known)

    def test_making_the_rules_faster_changes_durations_and_nothing_else(self):
        self.assertEqual(faster("rate(a[5m]) > 14.4 offset 1h"), "rate(a[10s]) > 14.4 offset 120s")
        self.assertEqual(faster("for: 2m\nrate2m d[3d]"), "for: 4s\nrate2m d[8640s]")
        text = ALERTS.read_text()
        self.assertEqual(len(faster(text).splitlines()), len(text.splitlines()))
        self.assertNotRegex(faster(text), r"\[\d+[hd]\]|for: \d+m")
        self.assertNotRegex(faster(text), r"rate10m \* 600|< 900|> 300", "seconds by themselves")


if __name__ == "__main__":
    unittest.main()
