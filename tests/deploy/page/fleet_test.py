"""The page of all workers, in a real browser: one of them is frozen, and one has another pipeline."""

import json
import signal
import unittest
import urllib.parse

from support.browser import TAB, WIDTHS, Chrome
from support.fleet import LockStore, Pipeline, Worker, shared
from support.kafka import Kafka
from support.processes import wait_until


class FleetPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        owner = shared(cls)
        cls.kafka = Kafka(owner)
        cls.locks = LockStore(owner, 1, "10s")
        # A frozen one stays a member for so long.
        cls.orders = Pipeline(owner, cls.kafka, cls.locks, "orders", 6, session=300_000)
        cls.worker = Worker(owner, [cls.orders], "worker-1", advertise=True)
        cls.frozen = Worker(owner, [cls.orders], "worker-2", advertise=True)
        cls.orders.send(range(60))
        for worker in (cls.worker, cls.frozen):
            worker.wait_ready()
        wait_until(lambda: [one["state"] for one in cls.fleet()["workers"]] == ["ready"] * 2,
                   what="both workers in the group")  # fmt: skip
        cls.frozen.process.send(signal.SIGSTOP)
        owner.addCleanup(cls.frozen.process.send, signal.SIGCONT)
        cls.chrome, cls.windows = Chrome(owner), {}

    @classmethod
    def fleet(cls):
        return json.loads(cls.worker.get("/fleet.json", 20)[1])["pipelines"][0]

    def open(self, **options):
        key = tuple(sorted(options.items()))
        if key not in self.windows:
            self.windows[key] = self.chrome.open(**options)
        window = self.windows[key]
        window.listen()
        window.requests, window.complaints = [], []
        window.go(f"http://{self.worker.address}/fleet")
        return window

    def live(self, **options):
        window = self.open(**options)
        wait_until(lambda: window.text("#live") == "live", what="the page to be live")
        return window

    def test_who_does_not_answer_is_a_row_that_says_why_within_seconds(self):
        first, second = self.fleet()["workers"]
        self.assertEqual((first["worker"], first["state"]), ("worker-1", "ready"))
        self.assertEqual((second["worker"], second["state"]), ("worker-2", "no answer"))
        self.assertIn(f"{self.frozen.address}: no answer: Timeout", second["trouble"])
        self.assertEqual(self.fleet()["without_worker"], {"orders": [3, 4, 5]})

    def test_all_of_it_is_shown_without_javascript(self):
        text = self.open(script=False).text()
        for word in ("1 of 2 workers needs attention.", "worker-1", "worker-2", "no answer",
                     self.frozen.address, "No worker that answered has orders 3-5.", "0-2",
                     "group orders", "reload for newer numbers"):  # fmt: skip
            self.assertIn(word, text)

    def test_the_numbers_move_without_a_reload(self):
        window = self.live()
        window.run("window.same = true")
        lag = "return document.querySelector('#orders tbody td.num').innerText"
        other = "return document.querySelector('#orders tbody').innerText"
        before = window.run(other)
        self.orders.send(range(1000, 1600))
        wait_until(lambda: window.run(other) != before, what="other numbers")
        wait_until(lambda: window.run(lag) == "0", 60, "no lag")
        self.assertTrue(window.run("return window.same"), "the page was not loaded again")

    def test_nothing_is_asked_of_another_host_and_the_console_stays_empty(self):
        window = self.live()
        window.listen()
        self.assertEqual(window.complaints, [])
        own = f"http://{self.worker.address}"
        paths = {urllib.parse.urlsplit(url).path for url in window.requests if url.startswith(own)}
        self.assertEqual(paths, {"/fleet", "/fleet-fragment"})

    def test_axe_core_has_no_findings_and_all_text_stands_out(self):
        for options in ({}, {"dark": True}, {"width": 390, "height": 844}):
            window = self.live(**options)
            self.assertEqual(window.axe(), [], options)
            low = {name: round(r, 2) for name, r in window.contrasts().items() if r < 4.5}
            self.assertEqual(low, {}, options)

    def test_a_phone_needs_no_sideways_scrolling(self):
        for script in (True, False):
            window = self.open(width=360, height=740, script=script)
            self.assertEqual(window.run(WIDTHS), [360, 360, []])
            self.assertIn("partitions: 0-2", window.text("#orders"))

    def test_table_and_links_are_reached_by_keyboard(self):
        window = self.live()
        focused = "return document.activeElement.ariaLabel || document.activeElement.innerText"
        seen = []
        for _ in range(10):
            window.press(TAB)
            seen.append(window.run(focused))
        for name in ("orders", "Workers of orders", "this worker", "as JSON"):
            self.assertIn(name, seen)


if __name__ == "__main__":
    unittest.main()
