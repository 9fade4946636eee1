"""The exemplars that panels ask for, put to a real Prometheus that scraped a page with traces."""

import http.server
import threading
import time
import unittest

import ask
from support.fleet import Prometheus, shared
from support.processes import wait_until

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
HISTOGRAM = """# TYPE fencepost_{name}_duration_seconds histogram
fencepost_{name}_duration_seconds_bucket{{pipeline="orders",le="10.0"}} 4 # {{{trace}}} 7.5 {now}
fencepost_{name}_duration_seconds_bucket{{pipeline="orders",le="+Inf"}} 4
fencepost_{name}_duration_seconds_count{{pipeline="orders"}} 4
fencepost_{name}_duration_seconds_sum{{pipeline="orders"}} 9
"""


def page(now) -> bytes:
    """OpenMetrics, as a worker whose latencies have one trace."""
    text = '# TYPE fencepost_ready gauge\nfencepost_ready{pipeline="orders"} 1\n'
    for name in ("record_end_to_end", "handler"):
        trace = f'trace_id="{TRACE}",span_id="00f067aa0ba902b7"'
        text += HISTOGRAM.format(name=name, trace=trace, now=now)
    return f"{text}# EOF\n".encode()


class Traces(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        start = time.time()

        class Worker(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("content-type", "application/openmetrics-text; version=1.0.0")
                self.end_headers()
                self.wfile.write(page(start))

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Worker)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        cls.addClassCleanup(server.server_close)
        cls.addClassCleanup(server.shutdown)
        prometheus = Prometheus(shared(cls), [f"127.0.0.1:{server.server_port}"],
                                options=["--enable-feature=exemplar-storage"])  # fmt: skip
        wait_until(lambda: prometheus.query("fencepost_ready"), what="the first scrape")
        cls.dashboard = ask.load()
        source = ask.Source(prometheus.url, start - 60, time.time() + 60)
        source.fill_variables(cls.dashboard)
        cls.answers = {
            panel["title"]: prometheus.get(
                "/api/v1/query_exemplars", query=source.resolve(target["expr"]),
                start=source.start, end=source.end)
            for panel in ask.panels(cls.dashboard)
            for target in panel["targets"] if target.get("exemplar")
        }  # fmt: skip

    def test_each_panel_with_exemplars_gets_the_trace_of_its_histogram(self):
        self.assertEqual(set(self.answers), {"End to end", "Handler"})
        for title, (series,) in self.answers.items():
            (exemplar,) = series["exemplars"]
            self.assertEqual(exemplar["labels"]["trace_id"], TRACE, title)
            self.assertEqual(float(exemplar["value"]), 7.5, title)

    def test_the_columns_of_the_table_are_labels_that_an_exemplar_or_its_series_has(self):
        (table,) = (p for p in self.dashboard["panels"] if p["title"] == "Traces")
        kept, named = (one["options"] for one in table["transformations"])
        (series,) = self.answers["End to end"]
        known = {*series["seriesLabels"], *series["exemplars"][0]["labels"]}
        columns = kept["include"]["names"]
        self.assertLessEqual(set(columns) - {"Time", "Value"}, known)
        self.assertIn("trace_id", columns)
        self.assertEqual(list(named["indexByName"]), columns)
        self.assertLessEqual(set(named["renameByName"]), set(columns))
        (sorting,) = table["options"]["sortBy"]
        self.assertEqual(named["renameByName"]["Value"], sorting["displayName"])


if __name__ == "__main__":
    unittest.main()
