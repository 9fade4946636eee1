"""Debian's Prometheus watches real workers while the fault of each page is made and mended.

The rules are those of deploy/prometheus with a minute made a second (support/rules.py: faster).
"""

import signal
import unittest

from support.fleet import LockStore, Pipeline, Prometheus, Service, Worker, folder, samples, shared
from support.kafka import Kafka
from support.processes import wait_until
from support.promql import Vocabulary
from support.rules import ALERTS, RECORDING, recorded, rules, write_faster

NAMES = ("calm", "burning", "dead", "forgotten", "lonely", "stuck")  # one for each fault


class PagesOfRealWorkers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        owner = shared(cls)
        cls.kafka = Kafka(owner)
        cls.locks = LockStore(owner, 3, "10s")
        cls.other_locks = LockStore(owner, 3, "10s")  # of the pipeline that is to lose its quorum
        cls.service = Service(owner, lambda order: (200, cls.handler_seconds))
        cls.handler_seconds = 0
        cls.kafka.create_topic("dead.letters", 1, max_message_bytes=100)
        more = {
            "burning": f'handler:\n  http: {{url: "{cls.service.url}", idempotent: true}}',
            "dead": "dead_letter: {topic: dead.letters}",
        }
        cls.pipelines = {
            name: Pipeline(
                owner, cls.kafka, cls.other_locks if name == "lonely" else cls.locks, name,
                more=more.get(name, ""),
            )
            for name in NAMES
        }  # fmt: skip
        files = list(cls.pipelines.values())
        cls.workers = [Worker(owner, files, f"worker-{i}") for i in (1, 2)]
        faster = write_faster(folder(owner))
        cls.prometheus = Prometheus(owner, [w.address for w in cls.workers], faster)
        for worker in cls.workers:
            worker.wait_ready()
        for pipeline in files:
            pipeline.send(range(20))
        for pipeline in files:
            wait_until(lambda p=pipeline: p.effects() == 20, 40, f"the effects of {pipeline.name}")

    def firing(self, alert, pipeline):
        """The alert of this name and pipeline as Prometheus has it, and no other pipeline's."""
        found = [a for a in self.prometheus.alerts() if a["labels"]["alertname"] == alert]
        others = [a for a in found if a["labels"]["pipeline"] != pipeline]
        self.assertEqual(others, [], f"only {pipeline} has this fault")
        return found[0] if found else None

    def expect_page(self, alert, pipeline, limit=20):
        page = wait_until(lambda: self.firing(alert, pipeline), limit, f"{alert} to fire")
        self.assertEqual(page["labels"]["severity"], "page")
        for text in page["annotations"].values():
            self.assertNotRegex(text, r"<|{{|NaN|%!", "a template that went wrong")
        return page

    def expect_clear(self, alert, pipeline, limit=30):
        wait_until(lambda: not self.firing(alert, pipeline), limit, f"{alert} to clear")

    def value(self, expr):
        return sum(value for _, value in self.prometheus.query(expr))

    def tearDown(self):
        calm = [a for a in self.prometheus.alerts() if a["labels"]["pipeline"] == "calm"]
        self.assertEqual(calm, [], "the pipeline without a fault")

    def test_every_expression_names_only_metrics_and_labels_that_a_worker_shows(self):
        page = self.workers[0].get("/metrics")[1] + self.workers[1].get("/metrics")[1]
        vocabulary = Vocabulary(samples(page), recorded())
        for rule in rules(RECORDING) + rules(ALERTS):
            self.assertEqual(vocabulary.strangers(rule["expr"]), [], rule)
        self.assertEqual(
            vocabulary.strangers('sum by (colour) (fencepost_ready{pod="x"}) + fencepost_nothing'),
            ["fencepost_ready has no label pod", "no metric fencepost_nothing", "no label colour"],
        )

    def test_every_rule_is_evaluated_without_an_error(self):
        wait_until(lambda: self.value("pipeline:fencepost_records_processed:rate5m"), what="rules")
        groups = self.prometheus.get("/api/v1/rules")["groups"]
        self.assertEqual(
            [
                (r["name"], r["lastError"])
                for g in groups
                for r in g["rules"]
                if r["health"] != "ok"
            ],
            [],
        )

    def test_a_deleted_ledger_under_done_marks_pages_as_a_broken_invariant(self):
        pipeline = self.pipelines["forgotten"]
        done = 'fencepost_redis_command_duration_seconds_count{pipeline="forgotten",command="done"}'
        wait_until(lambda: self.value(done) >= 2, what="the DONE marks")
        with pipeline.open() as db:
            db.execute("DELETE FROM fencepost_ledger")
        pipeline.send(range(20))
        page = self.expect_page("FencepostInvariantViolated", "forgotten")
        self.assertEqual(page["labels"]["invariant"], "done_without_ledger")
        self.expect_clear("FencepostInvariantViolated", "forgotten")

    def test_two_of_three_frozen_lock_nodes_page_as_a_lost_quorum(self):
        pipeline, frozen = self.pipelines["lonely"], self.other_locks.nodes[1:]
        for node in frozen:
            node.process.send(signal.SIGSTOP)
        pipeline.send(range(100, 105))
        page = self.expect_page("FencepostQuorumLost", "lonely")
        self.assertIn("2 workers", page["annotations"]["summary"])
        for node in frozen:
            node.process.send(signal.SIGCONT)
        self.expect_clear("FencepostQuorumLost", "lonely")
        wait_until(lambda: pipeline.effects() == 25, what="the records that waited")

    def test_a_locked_output_pages_as_a_stalled_pipeline(self):
        pipeline = self.pipelines["stuck"]
        with pipeline.open() as db:
            db.execute("BEGIN IMMEDIATE")
            pipeline.send(range(100, 105))
            page = self.expect_page("FencepostPipelineStalled", "stuck")
            self.assertIn("5 records wait", page["annotations"]["summary"])
            self.assertEqual(pipeline.effects(), 20)
            db.execute("ROLLBACK")
        self.expect_clear("FencepostPipelineStalled", "stuck")
        wait_until(lambda: pipeline.effects() == 25, what="the records that waited")

    def test_a_slow_handler_pages_as_a_burnt_end_to_end_budget(self):
        pipeline, orders = self.pipelines["burning"], iter(range(1000, 1_000_000))
        type(self).handler_seconds = 0.8

        def page():
            pipeline.send([next(orders)])
            return self.firing("FencepostEndToEndBudgetBurn", "burning")

        wait_until(page, 30, "FencepostEndToEndBudgetBurn to fire")
        self.expect_page("FencepostEndToEndBudgetBurn", "burning")
        type(self).handler_seconds = 0

        # Only good times make the share small again that the long windows see.
        def clear():
            pipeline.send([next(orders) for _ in range(50)])
            return not self.firing("FencepostEndToEndBudgetBurn", "burning")

        wait_until(clear, 60, "FencepostEndToEndBudgetBurn to clear")

    def test_a_dead_letter_topic_that_takes_nothing_pages(self):
        pipeline = self.pipelines["dead"]
        for partition in (0, 1):
            pipeline.send_text('{"amount": 1}', partition)
        self.expect_page("FencepostDeadLettersFailing", "dead")
        pipeline.send(range(100, 105))
        self.kafka.set_topic("dead.letters", max_message_bytes=1_000_000)
        self.expect_clear("FencepostDeadLettersFailing", "dead")
        wait_until(lambda: pipeline.effects() == 25, what="the records that waited")
        published = 'fencepost_dead_letters_total{pipeline="dead",reason="bad_record"}'
        wait_until(lambda: self.value(published) == 2, what="the dead letters")


if __name__ == "__main__":
    unittest.main()
