"""Every query of the dashboard, asked of a real Prometheus after workers had trouble."""

import unittest

import ask
from storm import Storm
from support.fleet import samples, shared
from support.processes import TORTURE
from support.promql import Vocabulary

SECONDS = 100 if TORTURE else 25

# What the storm makes must be seen: the highest value of a panel's query is above this.
SEEN = {
    "Broken invariants": 0, "Late records by pipeline": -1, "Dead letters": 0,
    "Contention ratio": 0, "Expiries by phase": 0, "Share of leases that expire": 0,
    "Takeovers": 0, "Losses by reason": 0, "Duplicates skipped": 0, "Invariants": 0,
    "Id conflicts": 0, "Quarantined": 0, "Errors by node": 0, "Restarts and reconnects": 0,
    "Rounds without a quorum": 0, "Rebalances": 0, "Retries by stage": 0,
    "Dead letters by reason": 0, "Dead letters not published": 0, "Partitions paused": 0,
    "Handler": 0.02, "Output transaction": 0, "Lag by pipeline": 0,
}  # fmt: skip


class Queries(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.storm = Storm(shared(cls), SECONDS)
        cls.dashboard = ask.load()
        cls.panels = {panel["title"]: panel for panel in ask.panels(cls.dashboard)}
        cls.source = ask.Source(cls.storm.prometheus.url, cls.storm.start, cls.storm.end, "5s")
        cls.source.fill_variables(cls.dashboard)

    def points(self, target):
        return [value for _, points in self.source.answers(target) for _, value in points]

    def test_the_variables_offer_the_pipelines_and_the_pods(self):
        self.assertEqual(self.source.resolve("$pipeline"), "(mails|orders)")
        pods = self.source.resolve("$pod")
        for worker in self.storm.workers:
            self.assertIn(worker.address.replace(".", r"\\."), pods)

    def test_every_query_of_every_panel_returns_data(self):
        for title, panel in self.panels.items():
            for target in panel["targets"]:
                with self.subTest(panel=title, query=target["refId"]):
                    self.assertTrue(self.points(target), self.source.resolve(target["expr"]))

    def test_what_happened_is_to_be_seen(self):
        for title, least in SEEN.items():
            with self.subTest(panel=title):
                values = [v for t in self.panels[title]["targets"] for v in self.points(t)]
                self.assertGreater(max(values, default=float("-inf")), least)
        up = self.panels["Node up"]["targets"][0]
        self.assertEqual(min(self.points(up)), 0, "the node that was killed")
        quorum = self.panels["Quorum and nodes"]["targets"][0]
        self.assertEqual(min(self.points(quorum)), 0, "the quorum that was lost")

    def test_legends_name_what_their_series_have(self):
        for title, panel in self.panels.items():
            for target in panel["targets"]:
                for labels, _ in self.source.answers(target):
                    told = ask.legend(target, labels)
                    self.assertTrue(told.strip(), title)
                    self.assertNotIn(
                        "  ", told, f"{title}: a label of {target['legendFormat']} is missing"
                    )

    def test_the_annotations_mark_worker_starts(self):
        starts = self.dashboard["annotations"]["list"][1]
        self.assertEqual(len(self.source.over_time(starts["expr"])), 3)

    def test_queries_name_only_metrics_and_labels_that_a_worker_shows(self):
        pages = [worker.get("/metrics")[1] for worker in self.storm.workers]
        vocabulary = Vocabulary(samples("".join(pages)), {})
        for title, panel in self.panels.items():
            for target in panel["targets"]:
                expr = self.source.resolve(target["expr"])
                self.assertEqual(vocabulary.strangers(expr), [], title)


if __name__ == "__main__":
    unittest.main()
