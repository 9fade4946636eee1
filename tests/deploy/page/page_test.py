"""The status page of a real worker in a real browser.

`orders` has lost a lock node, and has dead letters and contention; `mails` is well.
FENCEPOST_WRITE_SCREENSHOTS=1 writes deploy/screenshots again.
"""

import json
import os
import signal
import threading
import unittest
import urllib.parse

from support.browser import ENTER, TAB, WIDTHS, Chrome
from support.fleet import LockStore, Pipeline, Service, Worker, shared
from support.kafka import Kafka
from support.processes import FENCEPOST, SOURCE, run, wait_until

SCREENSHOTS = SOURCE / "deploy" / "screenshots"
WRITE_SCREENSHOTS = os.environ.get("FENCEPOST_WRITE_SCREENSHOTS") == "1"
SECRET = "hunter2-very-secret"
LARGEST_PICTURE = 100_000

class StatusPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        owner = shared(cls)
        cls.kafka = Kafka(owner)
        cls.locks = LockStore(owner, 5, "10s")
        cls.service = Service(owner, lambda order: (200, 0.15))
        cls.kafka.create_topic("dead.letters", 1)
        handler = (
            f'handler:\n  http: {{url: "{cls.service.url}", idempotent: true,'
            f' headers: {{x-api-key: "{SECRET}"}}}}\n'
        )
        dead = "dead_letter: {topic: dead.letters}"
        cls.orders = Pipeline(owner, cls.kafka, cls.locks, "orders", 6, handler + dead)
        cls.mails = Pipeline(owner, cls.kafka, cls.locks, "mails", 2, dead)
        cls.worker = Worker(owner, [cls.orders, cls.mails], "worker-1")
        cls.worker.wait_ready()
        cls._next, cls._stop = 0, threading.Event()
        cls._make_history(owner)
        cls.feeder = threading.Thread(target=cls._feed, daemon=True)
        cls.feeder.start()
        owner.addCleanup(cls.feeder.join)
        owner.addCleanup(cls._stop.set)
        cls.chrome, cls.windows = Chrome(owner), {}
        wait_until(lambda: cls.counts("orders")["lock_contended"] > 0, what="contention")
        wait_until(lambda: cls.counts("orders")["dead_lettered"] == 2, what="the dead letters")
        wait_until(lambda: not cls.status("orders")["nodes"][2]["up"], what="the lost node")

    @classmethod
    def _make_history(cls, owner):
        """Somebody else works on the first orders; two records are no orders; a node goes."""
        holder = threading.Thread(
            target=lambda: run(FENCEPOST, "lock", "exec", "--redis", cls.locks.list,
                               "--namespace", "orders", "o-0", "--", "sleep", "1.5"))
        holder.start()
        owner.addCleanup(holder.join)
        inspect = ["locks", "inspect", "--redis", cls.locks.list, "--namespace", "orders"]
        wait_until(lambda: ": held" in run(FENCEPOST, *inspect, "o-0").stdout, what="the holder")
        cls.orders.send(range(30))
        for partition in (0, 1):
            cls.orders.send_text('{"amount": 1}', partition)
        cls.locks.nodes[2].process.kill()
        cls._next = 30

    @classmethod
    def _feed(cls):
        while not cls._stop.wait(0.2):
            cls.orders.send(range(cls._next, cls._next + 12))
            cls.mails.send(range(cls._next, cls._next + 3))
            cls._next += 12

    @classmethod
    def status(cls, pipeline):
        all_of_them = json.loads(cls.worker.get("/status")[1])["pipelines"]
        return next(one for one in all_of_them if one["pipeline"] == pipeline)

    @classmethod
    def counts(cls, pipeline):
        return cls.status(pipeline)["counts"]

    def open(self, **options):
        """The page, loaded again; a browser for each set of options serves all tests."""
        key = tuple(sorted(options.items()))
        if key not in self.windows:
            self.windows[key] = self.chrome.open(**options)
        window = self.windows[key]
        window.listen()
        window.requests, window.complaints = [], []
        window.go(f"http://{self.worker.address}/")
        return window

    def live(self, **options):
        window = self.open(**options)
        self.wait_live(window)
        return window

    def wait_live(self, window):
        try:
            wait_until(lambda: window.text("#live") == "live", what="the page to be live")
        except AssertionError:
            window.listen()
            self.fail(f"not live: {window.text('.state')} {window.complaints}")

    def check_essentials(self, text):
        for word in ("worker-1", "orders", "mails", "ready", "orders/0", "mails/1", "lag",
                     "in flight", "Lock node c", "is away", self.locks.nodes[2].address,
                     "onnection refused", "4 of 5 nodes count", "redis_node_away", "warning",
                     "contention", "leases expired", "fenced", "invariant violations",
                     "2 records became dead letters", "fencepost dlq list FILE",
                     "2 of 2 pipelines need attention"):  # fmt: skip
            self.assertIn(word, text)

    # --- what it says -----------------------------------------------------------------------------

    def test_the_essentials_are_shown_without_javascript(self):
        window = self.open(script=False)
        text = window.text()
        self.check_essentials(text)
        self.assertIn("reload for newer numbers", text)

    def test_what_is_wrong_comes_first_and_says_what_to_do(self):
        text = self.live().text("main")
        first = text[: text.index("finished")]
        self.assertIn("Nothing is lost: 4 of 5 nodes count, 3 are enough", first)
        self.assertIn("Start its redis-server, as it was", first)
        self.assertIn("FencepostRedisNodeDown", first)

    def test_a_secret_of_the_file_is_nowhere(self):
        for path in ("/", "/status", "/metrics"):
            self.assertNotIn(SECRET, self.worker.get(path)[1], path)
        self.assertIn("(not shown)", self.worker.get("/")[1])

    # --- that it is live --------------------------------------------------------------------------

    def test_the_numbers_move_without_a_reload(self):
        window = self.live()
        window.run("window.same = true")
        watermarks = ("return [...document.querySelectorAll('#orders td:nth-child(4)')]"
                      ".map(e => e.innerText).join()")  # fmt: skip
        before = window.run(watermarks)
        wait_until(lambda: window.run(watermarks) != before, what="other watermarks")
        self.assertTrue(window.run("return window.same"), "the page was not loaded again")
        self.assertIn("worker-1", window.run("return document.title"))

    def test_it_says_when_the_worker_is_frozen_and_when_it_is_back(self):
        window = self.live()
        self.worker.process.send(signal.SIGSTOP)
        try:
            wait_until(lambda: "nothing new" in window.text("#live"), what="the word for it")
            age = window.text("#age")
            self.assertRegex(age, r"what is shown is \d+ s old")
            wait_until(lambda: window.text("#age") != age, what="the seconds to be counted")
        finally:
            self.worker.process.send(signal.SIGCONT)
        wait_until(lambda: window.text("#live") == "live", what="the page to be live again")
        self.assertEqual(window.text("#age"), "")

    def test_it_says_when_the_worker_has_gone(self):
        other = Worker(self, [self.mails], "worker-2")
        wait_until(lambda: other.get("/")[0] == 200, what="the page")
        window = self.open()
        window.go(f"http://{other.address}/")
        self.wait_live(window)
        other.process.kill()
        wait_until(lambda: "no answer" in window.text("#live"), what="the word for it")
        self.assertEqual(window.run("return document.body.className"), "gone")

    def test_it_asks_nothing_while_it_is_hidden_and_asks_again_when_it_is_seen(self):
        def asked(window):
            window.listen()
            return sum(url.endswith("/fragment") for url in window.requests)

        window, other = self.live(), self.live(dark=True)
        window.see(False)
        before, others = asked(window), asked(other)
        wait_until(lambda: asked(other) >= others + 5, what="the page that is seen to ask")
        self.assertLessEqual(asked(window), before + 1, "one may have been on its way")
        watermark = "return document.querySelector('#orders td:nth-child(4)').innerText"
        kept = window.run(watermark)
        window.see(True)
        wait_until(lambda: window.run(watermark) != kept, what="other watermarks")
        self.assertEqual(window.text("#live"), "live")

    def test_only_a_change_of_state_is_told_to_a_screen_reader(self):
        window = self.live()
        window.run("""
            window.told = 0;
            const all = document.querySelectorAll('[aria-live],[role=status],[role=alert]');
            for (const e of all) new MutationObserver(() => ++window.told).observe(
                e, {childList: true, characterData: true, subtree: true});
            window.moved = 0;
            new MutationObserver(l => window.moved += l.length).observe(
                document.querySelector('main'), {characterData: true, subtree: true});""")
        wait_until(lambda: window.run("return window.moved") > 30, what="numbers to move")
        self.assertEqual(window.run("return window.told"), 0)

    # --- that it keeps to itself ------------------------------------------------------------------

    def test_nothing_is_asked_of_another_host_and_the_console_stays_empty(self):
        window = self.live()
        moved = "return document.querySelector('#orders dd').innerText"
        before = window.run(moved)
        wait_until(lambda: window.run(moved) != before, what="some life")
        window.listen()
        self.assertEqual(window.complaints, [])
        own = f"http://{self.worker.address}"
        paths = {urllib.parse.urlsplit(url).path for url in window.requests if url.startswith(own)}
        self.assertEqual(paths, {"/", "/fragment"})
        # chrome: is the browser's own first page, inside of it.
        others = [u for u in window.requests if not u.startswith((own, "data:", "chrome:"))]
        self.assertEqual(others, [])

    def test_the_policy_of_the_page_keeps_foreign_code_and_hosts_out(self):
        window = self.live()
        window.run("""
            const s = document.createElement('script'); s.textContent = 'window.foreign = 1';
            document.body.append(s);
            const i = new Image(); i.src = 'http://127.0.0.1:9/x.png'; document.body.append(i);""")
        wait_until(lambda: (window.listen(), len(window.complaints) >= 2)[1], what="complaints")
        self.assertIsNone(window.run("return window.foreign || null"))
        for line in window.complaints:
            self.assertIn("Content Security Policy", line)

    # --- that everybody can read it ---------------------------------------------------------------

    def test_all_text_stands_out_in_light_and_in_dark(self):
        backgrounds = set()
        for dark in (False, True):
            window = self.live(dark=dark)
            window.run("document.querySelectorAll('details').forEach(d => d.open = true)")
            ratios = window.contrasts()
            self.assertGreater(len(ratios), 50)
            low = {name: round(ratio, 2) for name, ratio in ratios.items() if ratio < 4.5}
            self.assertEqual(low, {}, f"dark={dark}")
            backgrounds.add(window.run("return getComputedStyle(document.body).backgroundColor"))
        self.assertEqual(len(backgrounds), 2)

    def test_axe_core_has_no_findings(self):
        for options in ({}, {"dark": True}, {"width": 390, "height": 844}):
            window = self.live(**options)
            window.run("document.querySelectorAll('details').forEach(d => d.open = true)")
            self.assertEqual(window.axe(), [], options)

    def test_a_phone_needs_no_sideways_scrolling(self):
        for script in (True, False):
            window = self.open(width=360, height=740, script=script)
            window.run("document.querySelectorAll('details').forEach(d => d.open = true)")
            self.assertEqual(window.run(WIDTHS), [360, 360, []])

    def test_its_structure_is_that_of_a_document(self):
        window = self.live()
        self.assertEqual(window.run("return document.documentElement.lang"), "en")
        self.assertEqual(window.run("return document.querySelectorAll('h1').length"), 1)
        self.assertEqual(window.run("""
            return [...document.querySelectorAll('table')].filter(t => !t.caption ||
              !t.querySelector('thead th[scope=col]')).length"""), 0)
        self.assertEqual(window.run("""
            const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
            return ids.length - new Set(ids).size"""), 0)
        levels = window.run("return [...document.querySelectorAll('h1,h2,h3')].map(h => h.tagName)")
        self.assertEqual(levels[:3], ["H1", "H2", "H3"])

    def test_details_are_opened_by_keyboard_and_stay_open_and_focused(self):
        window = self.live()
        focused = "return document.activeElement.parentElement.id"
        for _ in range(40):
            window.press(TAB)
            if window.run(focused) == "settings-orders":
                break
        self.assertEqual(window.run(focused), "settings-orders", "reached by Tab")
        window.press(ENTER)
        opened = "return document.getElementById('settings-orders').open"
        self.assertTrue(window.run(opened))
        self.assertIn("lock.ttl", window.text("#settings-orders"))
        moved = "return document.querySelector('#orders dd').innerText"
        before = window.run(moved)
        wait_until(lambda: window.run(moved) != before, what="an update")
        self.assertTrue(window.run(opened))
        self.assertEqual(window.run(focused), "settings-orders")

    # --- how it looks -----------------------------------------------------------------------------

    def test_screenshots_are_of_a_decent_size(self):
        pictures = {
            "light": {}, "dark": {"dark": True}, "phone": {"width": 390, "height": 844},
        }  # fmt: skip
        for name, options in pictures.items():
            path = SCREENSHOTS / f"status-{name}.webp"
            if WRITE_SCREENSHOTS:
                # A minute of life, so that the line is one.
                seconds = "return document.querySelector('#orders svg path').getAttribute('d')"
                window = self.live(**options)
                wait_until(lambda w=window: w.run(seconds).count("L") > 50, 90, "a minute")
                window.screenshot(path)
            self.assertTrue(path.exists(), f"{path.name}: FENCEPOST_WRITE_SCREENSHOTS=1 makes it")
            self.assertLess(path.stat().st_size, LARGEST_PICTURE)


if __name__ == "__main__":
    unittest.main()
