"""The page on a bad day: no quorum, everything paused, two hundred partitions, long names."""

import json
import re
import signal
import unittest

from support.browser import WIDTHS, Chrome
from support.fleet import LockStore, Pipeline, Worker, shared
from support.kafka import Kafka
from support.processes import long_run, run, wait_until

NAME = "orders-of-the-whole-world-and-of-some-other-places-far-from-it0"
PARTITIONS = 200


@long_run
class BadDay(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        owner = shared(cls)
        cls.kafka = Kafka(owner)
        cls.locks = LockStore(owner, 5, "10s")
        cls.pipeline = Pipeline(owner, cls.kafka, cls.locks, NAME, PARTITIONS)
        cls.worker = Worker(owner, [cls.pipeline], "worker-1")
        cls.worker.wait_ready()
        cls.refused, cls.silent, cls.locked = cls.locks.nodes[:3]
        cls.refused.process.kill()
        cls.silent.process.send(signal.SIGSTOP)
        owner.addCleanup(cls.silent.process.send, signal.SIGCONT)
        cli = ["redis-cli", "-p", cls.locked.port]
        run(*cli, "CONFIG", "SET", "requirepass", "x")
        run(*cli, "-a", "x", "--no-auth-warning", "CLIENT", "KILL", "TYPE", "normal")
        cls.pipeline.send(range(2 * PARTITIONS))
        wait_until(lambda: sum(not node["up"] for node in cls.nodes()) == 3, 40, "three lost nodes")
        wait_until(lambda: all(row["paused"] for row in cls.status()["partitions"]), 40, "a pause")
        cls.chrome = Chrome(owner)

    @classmethod
    def status(cls):
        return json.loads(cls.worker.get("/status")[1])["pipelines"][0]

    @classmethod
    def nodes(cls):
        return cls.status()["nodes"]

    def open(self, **options):
        window = self.chrome.open(**options)
        window.go(f"http://{self.worker.address}/")
        return window

    def test_every_node_that_is_away_says_why_in_one_line(self):
        why = [node["problem"] for node in self.nodes()]
        self.assertRegex(why[0], "(?i)connection refused")
        self.assertRegex(why[1], "timeout")
        self.assertRegex(why[2], "NOAUTH|WRONGPASS|login")
        self.assertEqual(why[3:], ["", ""])
        for text in why:
            self.assertNotIn("\n", text)

    def test_the_page_says_what_it_costs_and_what_to_do_about_each_node(self):
        page = re.sub(r"<[^>]*>", "", self.worker.get("/")[1])
        for text in ("(2 of 5 count, 3 are needed)",
                     "Start its redis-server, as it was", "whether its redis-server answers PING",
                     "Correct the login", "FencepostQuorumLost", "1 of 1 pipeline needs attention",
                     f"{PARTITIONS} of {PARTITIONS} paused",
                     f"The 24 with the most lag, of {PARTITIONS}"):  # fmt: skip
            self.assertIn(text, page)

    def test_a_lost_node_is_among_the_last_events_as_a_warning(self):
        last = self.status()["last_errors"]
        lost = [one for one in last if one["event"] == "redis_node_away"]
        self.assertGreaterEqual(len(lost), 3)
        self.assertEqual({one["level"] for one in lost}, {"warn"})
        for one in last:
            self.assertGreaterEqual(one["count"], 1)
            self.assertLessEqual(one["first_time"], one["time"])
        texts = [(one["event"], one["text"]) for one in last]
        self.assertEqual(len(texts), len(set(texts)), "repeats are counted, not listed")

    def test_nothing_is_wider_than_the_smallest_phone(self):
        for script in (True, False):
            window = self.open(width=360, height=740, script=script)
            window.run("document.querySelectorAll('details').forEach(d => d.open = true)")
            self.assertEqual(window.run(WIDTHS), [360, 360, []])

    def test_all_text_stands_out_in_light_and_in_dark(self):
        for dark in (False, True):
            window = self.open(dark=dark)
            low = {name: round(r, 2) for name, r in window.contrasts().items() if r < 4.5}
            self.assertEqual(low, {}, f"dark={dark}")

    def test_the_verdict_is_told_to_a_screen_reader_and_the_title_shows_it(self):
        window = self.open()
        verdict = window.text("[role=status].verdict")
        self.assertEqual(verdict, "1 of 1 pipeline needs attention.")
        wait_until(lambda: window.run("return document.title").startswith("\u2716"), what="a title")
        rows = "return document.querySelectorAll('tbody tr:not(.more)').length"
        heads = "return document.querySelectorAll('tbody tr > th[scope=row]').length"
        self.assertEqual(window.run(rows), window.run(heads))


if __name__ == "__main__":
    unittest.main()
