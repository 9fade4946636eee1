"""What the page changes: asked twice, by its own origin alone, and logged with who did it."""

import http.server
import json
import threading
import unittest

from support.browser import ENTER, ESCAPE, TAB, WIDTHS, Chrome
from support.fleet import LockStore, Pipeline, Worker, shared
from support.kafka import Kafka
from support.processes import free_port, wait_until

PAUSE, LEVEL = "pipelines/orders/pause", "log/level"


class Control(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        owner = shared(cls)
        kafka, locks = Kafka(owner), LockStore(owner, 1, "10s")
        orders = Pipeline(owner, kafka, locks, "orders")
        cls.worker = Worker(owner, [orders], "worker-1", control="loopback")
        cls.guarded = Worker(owner, [orders], "worker-2", control="token", control_token="t0k3n")
        for worker in (cls.worker, cls.guarded):
            worker.wait_ready()
        cls.chrome = Chrome(owner)

    def open(self, worker=None, **options):
        window = self.chrome.open(**options)
        self.addCleanup(window.close)
        window.go(f"http://{(worker or self.worker).address}/")
        if options.get("script", True):
            wait_until(lambda: window.text("#live") == "live", what="the page to be live")
        return window

    def paused(self, worker=None):
        status = json.loads((worker or self.worker).get("/status")[1])["pipelines"][0]
        return "paused" in status["reason"]

    def press(self, window, path):
        """By mouse; the text that it has then."""
        return window.run("""
            const button = document.querySelector(`[data-path="${arguments[0]}"]`);
            button.click();
            return button.innerText;""", path)

    def press_twice(self, window, path):
        self.press(window, path)
        self.wait_half_a_second(window)
        self.press(window, path)

    def wait_half_a_second(self, window):
        """By the page's own clock."""
        window.run("window.from = Date.now()")
        wait_until(lambda: window.run("return Date.now() - window.from") > 600, what="its clock")

    def pauses(self):
        """As many as the log says."""
        return self.worker.process.output().count(f"POST /{PAUSE}")

    def resume(self, worker=None):
        window = self.open(worker)
        if worker is self.guarded:
            window.run("document.getElementById('_token').value = 't0k3n'")
        self.press_twice(window, PAUSE.replace("pause", "resume"))
        wait_until(lambda: not self.paused(worker), what="the pipeline to go on")

    def test_a_second_press_pauses_and_the_log_says_who(self):
        window = self.open()
        self.assertEqual(self.press(window, PAUSE), "Pause orders?")
        self.assertIn("press it again within ten seconds", window.text("#_told"))
        self.assertFalse(self.paused())
        self.wait_half_a_second(window)
        self.press(window, PAUSE)
        wait_until(lambda: window.text("#_told") == "pipeline orders: paused", what="the answer")
        wait_until(self.paused, what="the pause")
        self.assertIn(f"POST /{PAUSE} from 127.0.0.1, by the page", self.worker.process.output())
        self.resume()

    def test_a_double_click_a_key_that_is_held_and_another_button_are_no_second_press(self):
        before = self.pauses()
        window = self.open()
        window.run("""
            const button = document.querySelector(`[data-path="${arguments[0]}"]`);
            button.click(); button.click(); button.focus();""", PAUSE)
        window.press(ESCAPE)
        window.press(*[ENTER] * 20)
        self.assertEqual(window.text(f'[data-path="{PAUSE}"]'), "Pause orders?")
        self.wait_half_a_second(window)
        self.press(window, LEVEL)
        self.wait_half_a_second(window)
        self.assertEqual(self.press(window, PAUSE), "Pause orders?")
        window.press(ESCAPE)
        self.assertEqual(window.text(f'[data-path="{PAUSE}"]'), "Pause orders")
        self.assertEqual(self.pauses(), before)

    def test_after_ten_seconds_it_is_a_first_press_again(self):
        window = self.open()
        self.assertEqual(self.press(window, LEVEL), "Set log level?")
        wait_until(lambda: window.text(f'[data-path="{LEVEL}"]') == "Set log level", 30, "its end")
        self.assertEqual(self.press(window, LEVEL), "Set log level?")

    def test_it_is_reached_and_pressed_by_keyboard(self):
        window = self.open()
        focused = "return document.activeElement.dataset.path || document.activeElement.id"
        for _ in range(10):
            window.press(TAB)
            if window.run(focused) == "_level":
                break
        self.assertEqual(window.run(focused), "_level")
        window.press("w")  # warn
        window.press(TAB)
        self.assertEqual(window.run(focused), LEVEL)
        window.press(ENTER)
        self.wait_half_a_second(window)
        window.press(ENTER)
        wait_until(lambda: window.text("#_told") == "the log level is warn", what="the answer")
        self.assertEqual(window.run(focused), LEVEL)

    def test_with_a_token_it_asks_for_it(self):
        window = self.open(self.guarded)
        self.press_twice(window, PAUSE)
        wait_until(lambda: "Authorization: Bearer" in window.text("#_told"), what="the refusal")
        window.run("document.getElementById('_token').value = 't0k3n'")
        self.press_twice(window, PAUSE)
        wait_until(lambda: self.paused(self.guarded), what="the pause")
        self.resume(self.guarded)

    def test_a_record_is_explained_at_once(self):
        window = self.open()
        window.run("document.getElementById('_record').value = 'orders/0/17'")
        self.press(window, "pipelines/orders/explain")
        wait_until(lambda: "There is no such record yet" in window.text("#_told"), what="its story")
        self.assertIn("\n", window.text("#_told"))

    def test_another_sites_page_can_neither_post_nor_read_the_token(self):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("content-type", "text/html")
                self.end_headers()
                self.wfile.write(b"<!DOCTYPE html><title>evil</title>")

            def log_message(self, *_):
                pass

        before = self.pauses()
        site = http.server.ThreadingHTTPServer(("127.0.0.1", free_port()), Handler)
        threading.Thread(target=site.serve_forever, args=(0.05,), daemon=True).start()
        self.addCleanup(site.server_close)
        self.addCleanup(site.shutdown)
        window = self.chrome.open()
        self.addCleanup(window.close)
        window.go(f"http://127.0.0.1:{site.server_port}/")
        for path in (PAUSE, "log/level", ""):
            for mode in ("no-cors", "cors"):
                seen = window.run("""
                    const [url, mode, post] = arguments;
                    return fetch(url, {method: post ? "POST" : "GET", mode}).then(
                      a => a.text()).catch(() => "");""",
                    f"http://{self.worker.address}/{path}", mode, path != "")  # fmt: skip
                self.assertEqual(seen, "", path)
        self.assertFalse(self.paused())
        self.assertEqual(self.pauses(), before)

    def test_it_is_shown_to_who_may_use_it(self):
        self.assertNotIn("<button", self.worker.get("/fleet")[1])
        window = self.open(script=False)
        self.assertEqual(window.run(
            "return document.getElementById('_control').getClientRects().length"), 0)

    def test_everybody_can_use_it(self):
        for options in ({}, {"dark": True}, {"width": 360, "height": 740}):
            window = self.open(self.guarded, **options)
            self.press(window, PAUSE)
            self.assertEqual(window.axe(), [], options)
            low = {name: round(r, 2) for name, r in window.contrasts().items() if r < 4.5}
            self.assertEqual(low, {}, options)
            if "width" in options:
                self.assertEqual(window.run(WIDTHS), [360, 360, []])


if __name__ == "__main__":
    unittest.main()
