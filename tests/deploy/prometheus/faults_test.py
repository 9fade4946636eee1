"""Debian's Prometheus watches real workers while the faults of pages and tickets are made and fixed:
each alert waits as pending, fires for its pipeline, and clears.

The rules are those of deploy/prometheus with a minute made two seconds (support/rules.py: faster).
The faults are made at the same time, each on a pipeline of its own.
"""

import signal
import unittest

from support.alongside import alongside, wait_for_all
from support.fleet import (
    LockStore, Pipeline, Prometheus, Service, Worker, folder, samples, shared, total,
)  # fmt: skip
from support.kafka import Kafka
from support.processes import wait_until
from support.promql import Vocabulary
from support.rules import ALERTS, MINUTE, RECORDING, recorded, rules, write_faster

SHARED = ("calm", "burning", "dead", "dirty", "forgotten", "lonely", "stuck")  # run by the same workers
RULES = {rule["alert"]: rule for rule in rules(ALERTS)}
FIRST = 8  # records of each pipeline before its fault: too few for a burnt budget, however slow

# Which pipelines an alert may name: those whose fault it is, and those whose fault brings it along. On
# a busy machine many records are late ones (dirty), and a record that a test holds waits (forgotten).
MAY_FIRE = {
    "FencepostInvariantViolated": {"forgotten"},
    "FencepostQuorumLost": {"lonely"},
    "FencepostNoWorkerReady": {"gone", "lonely", "dead", "stuck"},
    "FencepostPipelineStalled": {"stuck", "lonely", "dead", "forgotten"},
    "FencepostEndToEndBudgetBurn": {"burning", "lonely", "dead", "stuck", "frail", "dirty"},
    "FencepostDeadLettersFailing": {"dead"},
    "FencepostDeadLettersMany": {"dirty"},
    "FencepostDeadLettersNew": {"dead", "dirty"},
    "FencepostIdConflicts": {"dirty"},
    "FencepostLagGrowing": {"stuck"},
    "FencepostRedisNodeDown": {"lonely"},
    "FencepostLocksExpiring": {"frail", "lonely", "stuck"},
    "FencepostLockValidityLow": {"frail", "lonely", "stuck"},
    "FencepostFencingRejections": {"frail", "lonely"},
    "FencepostRebalancing": {"frail"},
    "FencepostRedisClockOff": {"frail"},
    "FencepostRecordStuck": {"stuck", "lonely", "dead", "burning", "frail", "forgotten"},
}


class AlertsOfRealWorkers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        owner = shared(cls)
        cls.kafka = Kafka(owner)
        cls.locks = LockStore(owner, 3, "10s")
        cls.lonely_locks = LockStore(owner, 3, "10s")
        cls.frail_locks = LockStore(owner, 3, "10s", own_clock=True)
        cls.slow = {"burning": 0, "frail": 1}  # seconds that a handler takes
        cls.kafka.create_topic("dead.letters", 1, max_message_bytes=100)
        cls.kafka.create_topic("dirty.letters", 1)
        cls.pipelines = {
            name: Pipeline(owner, cls.kafka, cls.lonely_locks if name == "lonely" else cls.locks,
                           name, more=cls.more(name))
            for name in (*SHARED, "gone")
        }  # fmt: skip
        cls.pipelines["frail"] = Pipeline(owner, cls.kafka, cls.frail_locks, "frail", ttl="2s",
                                          session=1500, more=cls.more("frail"))  # fmt: skip
        common = [cls.pipelines[name] for name in SHARED]
        cls.workers = [Worker(owner, common, f"worker-{i}") for i in (1, 2)]
        cls.last_worker = Worker(owner, [cls.pipelines["gone"]], "last")
        cls.survivor, cls.freezer = (
            Worker(owner, [cls.pipelines["frail"]], name) for name in ("survivor", "freezer")
        )
        everybody = [*cls.workers, cls.last_worker, cls.survivor, cls.freezer]
        faster = write_faster(folder(owner))
        cls.prometheus = Prometheus(owner, [w.address for w in everybody], faster)
        for worker in everybody:
            worker.wait_ready()
        for pipeline in cls.pipelines.values():
            pipeline.send(range(FIRST))
        for name, pipeline in cls.pipelines.items():
            wait_until(lambda p=pipeline: p.effects() == FIRST, 60, f"the effects of {name}")
        wait_until(lambda: cls.value("sum(pipeline:fencepost_ready:max)") == len(cls.pipelines),
                   60, what="Prometheus to see every pipeline")  # fmt: skip

    @classmethod
    def more(cls, name):
        if name == "dead":
            return "dead_letter: {topic: dead.letters}"
        if name == "dirty":
            return "dead_letter: {topic: dirty.letters}"
        if name not in cls.slow:
            return ""
        service = Service(shared(cls), lambda order: (200, cls.slow[name]))
        return f'handler:\n  http: {{url: "{service.url}", idempotent: true}}'

    def firing(self, alert, pipeline, **labels):
        """The alert as Prometheus has it now, or None."""
        wanted = {"alertname": alert, "pipeline": pipeline, **labels}.items()
        found = [a for a in self.prometheus.alerts() if wanted <= a["labels"].items()]
        return found[0] if found else None

    def expect_alert(self, alert, pipeline, limit=120, says="", **labels):
        """Until it fires and its summary says so: of two workers, one may notice later."""

        def fires():
            found = self.firing(alert, pipeline, **labels)
            return found if found and says in found["annotations"]["summary"] else None

        found = wait_until(fires, limit, f"{alert} to fire")
        self.assertEqual(found["labels"]["severity"], RULES[alert]["labels"]["severity"])
        for text in found["annotations"].values():
            self.assertNotRegex(text, r"<|{{|NaN|%!", "a template that went wrong")
        waited = f'ALERTS{{alertname="{alert}",pipeline="{pipeline}",alertstate="pending"}}'
        seen = self.prometheus.query(f"count_over_time({waited}[1h])")
        self.assertEqual(bool(seen), "for" in RULES[alert], f"{alert}: pending before it fires")
        return found

    def expect_clear(self, alert, pipeline, limit=180, **labels):
        wait_until(lambda: not self.firing(alert, pipeline, **labels), limit, f"{alert} to clear")

    @classmethod
    def value(cls, expr):
        return sum(value for _, value in cls.prometheus.query(expr))

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
        def every():
            groups = self.prometheus.get("/api/v1/rules")["groups"]
            return [rule for group in groups for rule in group["rules"]]

        # Of one that has not been evaluated yet it is "unknown".
        wait_until(lambda: all(r["health"] != "unknown" for r in every()), what="the rules")
        self.assertEqual(len(every()), len(rules(RECORDING) + rules(ALERTS)))
        self.assertEqual([(r["name"], r["lastError"]) for r in every() if r["health"] != "ok"], [])

    @alongside
    def test_a_token_that_the_lock_nodes_forgot_pages_as_a_broken_invariant(self):
        key = f"fencepost:{{forgotten}}:o-{FIRST}"
        self.locks.hold(key)
        self.pipelines["forgotten"].send([FIRST])
        contended = 'fencepost_lock_acquisitions_total{pipeline="forgotten",result="contended"}'
        wait_until(lambda: self.value(contended) >= 1, what="the contention")
        self.locks.command("DEL", key)
        page = self.expect_alert("FencepostInvariantViolated", "forgotten")
        self.assertEqual(page["labels"]["invariant"], "token_regressed")
        self.expect_clear("FencepostInvariantViolated", "forgotten")

    @alongside
    def test_two_of_three_frozen_lock_nodes_page_as_a_lost_quorum(self):
        pipeline, (_, b, c) = self.pipelines["lonely"], self.lonely_locks.nodes
        c.process.send(signal.SIGSTOP)
        said = "node c is down for 2 workers"
        self.expect_alert("FencepostRedisNodeDown", "lonely", says=said, node="c")
        self.assertIsNone(self.firing("FencepostQuorumLost", "lonely"), "two of three are enough")
        b.process.send(signal.SIGSTOP)
        pipeline.send(range(100, 105))
        self.expect_alert("FencepostQuorumLost", "lonely", says="2 workers")
        self.assertEqual(pipeline.effects(), FIRST)
        for node in (b, c):
            node.process.send(signal.SIGCONT)
        self.expect_clear("FencepostQuorumLost", "lonely")
        self.expect_clear("FencepostRedisNodeDown", "lonely")
        wait_until(lambda: pipeline.effects() == FIRST + 5, 40, "the records that waited")

    @alongside
    def test_a_pipeline_whose_last_worker_was_killed_pages_though_it_had_no_lag(self):
        self.last_worker.process.kill()
        page = self.expect_alert("FencepostNoWorkerReady", "gone")
        self.assertIn("gone: no worker is ready", page["annotations"]["summary"])
        self.last_worker.start()
        self.last_worker.wait_ready()
        self.expect_clear("FencepostNoWorkerReady", "gone")

    @alongside
    def test_a_locked_output_pages_as_a_stalled_pipeline(self):
        pipeline, orders = self.pipelines["stuck"], iter(range(105, 1_000_000))
        with pipeline.open() as db:
            db.execute("BEGIN IMMEDIATE")
            pipeline.send(range(100, 105))
            self.expect_alert("FencepostPipelineStalled", "stuck", says="5 records wait")
            self.assertEqual(pipeline.effects(), FIRST)
            ticket = self.expect_alert("FencepostRecordStuck", "stuck")
            self.assertRegex(ticket["annotations"]["summary"], r"stuck/\d+ waits .* offset \d+$")

            def growing():
                pipeline.send([next(orders) for _ in range(10)])
                return self.firing("FencepostLagGrowing", "stuck")

            wait_until(growing, 180, "FencepostLagGrowing to fire")
            self.expect_alert("FencepostLagGrowing", "stuck")
            db.execute("ROLLBACK")
        self.expect_clear("FencepostLagGrowing", "stuck")
        self.expect_clear("FencepostPipelineStalled", "stuck")
        self.expect_clear("FencepostRecordStuck", "stuck")
        sent = FIRST + next(orders) - 100
        wait_until(lambda: pipeline.effects() == sent, 60, "the records that waited")

    @alongside
    def test_a_slow_handler_pages_as_a_burnt_end_to_end_budget(self):
        pipeline, orders = self.pipelines["burning"], iter(range(1000, 1_000_000))
        self.slow["burning"] = 0.8

        def page():
            pipeline.send([next(orders)])
            return self.firing("FencepostEndToEndBudgetBurn", "burning")

        wait_until(page, 120, "FencepostEndToEndBudgetBurn to fire")
        self.expect_alert("FencepostEndToEndBudgetBurn", "burning")
        self.slow["burning"] = 0

        # Only good times make the share small again that the long windows see.
        def clear():
            pipeline.send([next(orders) for _ in range(10)])
            return not self.firing("FencepostEndToEndBudgetBurn", "burning")

        wait_until(clear, 180, "FencepostEndToEndBudgetBurn to clear")

    @alongside
    def test_a_dead_letter_topic_that_takes_nothing_pages(self):
        pipeline = self.pipelines["dead"]
        pipeline.send_text('{"amount": 1}', 0)
        # Patience grows to 5 s, more than two minutes are here: so the second letter is refused in
        # between, and together they never pause for as long as the rule looks back.
        refused = "fencepost_dead_letter_errors_total"
        wait_until(lambda: sum(total(w, refused) for w in self.workers) >= 5, 40, "refusals")
        pipeline.send_text('{"amount": 1}', 1)
        self.expect_alert("FencepostDeadLettersFailing", "dead")
        pipeline.send(range(100, 105))
        self.kafka.set_topic("dead.letters", max_message_bytes=1_000_000)
        self.expect_clear("FencepostDeadLettersFailing", "dead")
        wait_until(lambda: pipeline.effects() == FIRST + 5, 40, "the records that waited")
        published = 'fencepost_dead_letters_total{pipeline="dead",reason="bad_record"}'
        wait_until(lambda: self.value(published) == 2, what="the dead letters")

    @alongside
    def test_dead_letters_open_a_ticket_and_page_where_they_are_many(self):
        pipeline, orders = self.pipelines["dirty"], iter(range(100, 1_000_000))
        pipeline.send([0], amount=6)
        self.expect_alert("FencepostIdConflicts", "dirty")

        def many():
            pipeline.send_text('{"amount": 1}', 0)
            pipeline.send([next(orders)])
            return self.firing("FencepostDeadLettersMany", "dirty")

        wait_until(many, 120, "FencepostDeadLettersMany to fire")
        self.expect_alert("FencepostDeadLettersMany", "dirty")
        self.expect_alert("FencepostDeadLettersNew", "dirty")
        for alert in ("FencepostDeadLettersMany", "FencepostDeadLettersNew", "FencepostIdConflicts"):
            self.expect_clear(alert, "dirty")

    @alongside
    def test_a_lock_node_whose_clock_is_off_opens_a_ticket(self):
        node = self.frail_locks.nodes[2]
        node.shift_clock(0.4)  # more than a tenth of the ttl of 2 s, less than max_skew
        ticket = self.expect_alert("FencepostRedisClockOff", "frail", node="c")
        self.assertRegex(ticket["annotations"]["summary"], r"the clock of c is [2-6]\d\d\.?\d*ms off")
        node.shift_clock(0)
        self.expect_clear("FencepostRedisClockOff", "frail")

    def freeze(self, until, what):
        """The freezer is stalled while it holds leases, until that is so; then it joins again."""

        def partitions():
            return total(self.survivor, "fencepost_partitions_assigned")

        def holds():
            self.pipelines["frail"].send([next(self.frail_orders) for _ in range(4)])
            self.frail_sent += 4
            return total(self.freezer, "fencepost_locks_held") >= 10 and partitions() == 1

        wait_until(holds, 60, "leases")
        self.freezer.process.send(signal.SIGSTOP)
        wait_until(lambda: partitions() == 2 and until(), 60, what)
        self.freezer.process.send(signal.SIGCONT)
        wait_until(lambda: partitions() == 1, 60, "the freezer to join again")

    @alongside
    def test_a_worker_that_freezes_again_and_again_opens_tickets(self):
        self.frail_orders, self.frail_sent = iter(range(100, 1_000_000)), FIRST
        expiring, low, rebalancing = tickets = (
            "FencepostLocksExpiring", "FencepostLockValidityLow", "FencepostRebalancing",
        )  # fmt: skip

        def taken_over():
            return total(self.survivor, "fencepost_lock_takeovers_total")

        def for_long():
            # Where the lease was given back before the freeze, or is forgotten before the survivor
            # asks for it, nothing is taken over, and it freezes once more.
            before, pipeline = taken_over(), self.pipelines["frail"]
            self.freeze(
                lambda: taken_over() > before or pipeline.effects() == self.frail_sent,
                "a takeover, or all effects",
            )
            return self.firing(expiring, "frail") and self.firing(low, "frail")

        def for_short():
            self.freeze(lambda: True, "a rebalance")
            return self.firing(rebalancing, "frail")

        wait_until(for_long, 180, "leases that expire")
        self.expect_alert(expiring, "frail")
        self.expect_alert(low, "frail")
        wait_until(for_short, 180, "rebalances")
        self.expect_alert(rebalancing, "frail")
        for ticket in tickets:
            self.expect_clear(ticket, "frail")

    def test_no_alert_fires_for_a_pipeline_without_its_fault(self):
        wait_for_all(type(self))
        # Of a pipeline whose scrapes failed, on a busy machine, nobody knows whether it was ready:
        # there FencepostNoWorkerReady counts only with more than two states in its own window.
        firing, absent = 'ALERTS{alertstate="firing",alertname', "FencepostNoWorkerReady"
        known = f"on (pipeline) count_over_time(pipeline:fencepost_ready:max[{5 * MINUTE}s]) > 2"
        found = []
        for fired in (f'{firing}!="{absent}"}}[1h]',
                      f'({firing}="{absent}"}} and {known})[1h:1s]'):  # fmt: skip
            counted = f"count by (alertname, pipeline) (count_over_time({fired}))"
            found += [(a["alertname"], a["pipeline"]) for a, _ in self.prometheus.query(counted)]
        self.assertGreater(len(found), 9)
        self.assertEqual([(a, p) for a, p in sorted(found) if p not in MAY_FIRE[a]], [])


if __name__ == "__main__":
    unittest.main()
