"""/metrics of a real worker as OpenMetrics: a strict parser reads all of it, and Debian's
Prometheus its exemplars, which lead to the traces of records.
"""

import time
import unittest
import urllib.request

from confluent_kafka import Producer
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from support.fleet import LockStore, Pipeline, Prometheus, Service, Worker, samples, shared
from support.kafka import Kafka
from support.processes import free_port, wait_until

TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
TRACE = "4bf92f3577b34da6a3ce929d0e0e47{:02}"
TRACES = [TRACE.format(i) for i in range(3)]
DURATIONS = {"fencepost_handler_duration_seconds", "fencepost_record_end_to_end_duration_seconds"}
MORE = """handler:
  http: {{url: "{url}", idempotent: true}}
observe:
  traces: {{endpoint: "http://127.0.0.1:{port}", sample: 0}}"""  # the header says what is kept


def without_values(page):
    """The series of (name, labels, value), in which a bound may be 1 or 1.0."""
    for name, labels, _ in page:
        yield name, frozenset((k, float(v) if k == "le" else v) for k, v in labels.items())


class OpenMetricsOfARealWorker(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        owner = shared(cls)
        kafka = Kafka(owner)
        service = Service(owner, lambda order: (200, 0))
        more = MORE.format(url=service.url, port=free_port())
        orders = Pipeline(owner, kafka, LockStore(owner, 3, "10s"), "orders", more=more)
        cls.worker = Worker(owner, [orders], "worker-1")
        cls.worker.wait_ready()
        producer = Producer({"bootstrap.servers": kafka.bootstrap})
        for i, trace in enumerate(TRACES):
            header = ("traceparent", f"00-{trace}-00f067aa0ba902b7-01".encode())
            producer.produce("orders", f'{{"order_id": "o-{i}", "amount": 5}}', headers=[header])
        producer.flush()
        wait_until(lambda: orders.effects() == len(TRACES), 60, "the effects")

    def open_page(self):
        url = f"http://{self.worker.address}/metrics"
        request = urllib.request.Request(url, headers={"Accept": TYPE})
        with urllib.request.urlopen(request) as answer:
            self.assertEqual(answer.headers["content-type"], TYPE)
            return answer.read().decode()

    def traced(self):
        """Which histograms have exemplars."""
        return {n.split("_bucket{")[0] for n in self.open_page().splitlines() if " # {" in n}

    def test_a_strict_parser_reads_the_page_with_the_traces_of_both_durations(self):
        wait_until(lambda: self.traced() == DURATIONS, what="the exemplars of both durations")
        families = list(text_string_to_metric_families(self.open_page()))
        text = self.worker.get("/metrics")[1]
        self.assertNotIn("trace_id", text)
        self.assertEqual(
            set(without_values((s.name, s.labels, 0) for f in families for s in f.samples)),
            set(without_values(samples(text))),
        )
        units = {f.name: f.unit for f in families}
        self.assertEqual(units["fencepost_backpressure_seconds"], "seconds")
        self.assertEqual(units["fencepost_queue_size_bytes"], "bytes")
        traced = [s for f in families for s in f.samples if s.exemplar]
        self.assertEqual({s.name for s in traced}, {f"{name}_bucket" for name in DURATIONS})
        for sample in traced:
            self.assertIn(sample.exemplar.labels["trace_id"], TRACES)
            self.assertLessEqual(sample.exemplar.value, float(sample.labels["le"]))
            self.assertLess(abs(float(sample.exemplar.timestamp) - time.time()), 600)

    def test_prometheus_finds_the_trace_of_a_record_by_its_duration(self):
        prometheus = Prometheus(self, [self.worker.address],
                                options=["--enable-feature=exemplar-storage"])  # fmt: skip

        def traces(name):
            now = time.time()
            found = prometheus.get("/api/v1/query_exemplars", query=f"{name}_bucket",
                                   start=now - 600, end=now + 60)  # fmt: skip
            return {e["labels"]["trace_id"] for series in found for e in series["exemplars"]}

        for name in DURATIONS:
            found = wait_until(lambda name=name: traces(name), what=f"the exemplars of {name}")
            self.assertLessEqual(found, set(TRACES))
        bounds = prometheus.query('fencepost_record_end_to_end_duration_seconds_bucket{le="10.0"}')
        self.assertEqual(len(bounds), 1)


if __name__ == "__main__":
    unittest.main()
