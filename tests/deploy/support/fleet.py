"""Workers and what they need: lock nodes, a handler's service, SQLite files, a Prometheus."""

import http.server
import json
import pathlib
import re
import shutil
import sqlite3
import struct
import tempfile
import threading
import time
import types
import urllib.parse

from support.processes import FENCEPOST, SOURCE, Process, free_port, http_get, run, wait_until

EPOCH = 1_704_067_200_000  # of tokens: 2024, in milliseconds


def shared(cls):
    """What ends with the class cls, for constructors that want a test."""
    return types.SimpleNamespace(addCleanup=cls.addClassCleanup)


def folder(test) -> pathlib.Path:
    made = tempfile.TemporaryDirectory(prefix="fencepost-test-")
    test.addCleanup(made.cleanup)
    return pathlib.Path(made.name)


class Redis:
    """One lock node: noeviction, nothing on disk, so that a restart is a wipe."""

    def __init__(self, test, own_clock=False):
        self._test, self._dir, self.port = test, folder(test), free_port()
        self.address = f"127.0.0.1:{self.port}"
        self._clock, self._env = self._dir / "clock", {}
        if own_clock:
            shim = self._dir / "clock_shim.so"
            run("cc", "-shared", "-fPIC", "-o", shim, SOURCE / "tests/support/clock_shim.c")
            self._clock.write_bytes(struct.pack("q", 0))
            self._env = {"LD_PRELOAD": shim, "FENCEPOST_CLOCK_FILE": self._clock}
        self.start()

    def shift_clock(self, seconds):
        """How far the wall clock of a node with its own_clock is off from now on."""
        with open(self._clock, "r+b") as file:
            file.write(struct.pack("q", round(seconds * 1e9)))

    def start(self):
        self.process = Process(
            self._test,
            ["redis-server", "--port", self.port, "--bind", "127.0.0.1", "--save", "",
             "--appendonly", "no", "--maxmemory-policy", "noeviction", "--dir", self._dir],
            env=self._env,
        )  # fmt: skip
        wait_until(
            lambda: run("redis-cli", "-p", self.port, "ping", check=False).stdout == "PONG\n",
            what="redis-server",
        )


class LockStore:
    """Some nodes, a store by `locks init`; the last one with a clock of its own, if wanted."""

    def __init__(self, test, nodes, max_ttl, own_clock=False):
        self.nodes = [Redis(test, own_clock and i == nodes - 1) for i in range(nodes)]
        self.list = ",".join(node.address for node in self.nodes)
        run(FENCEPOST, "locks", "init", "--redis", self.list, "--max-ttl", max_ttl)

    def command(self, *words):
        """On each node."""
        for node in self.nodes:
            run("redis-cli", "-p", node.port, *words)

    def hold(self, key):
        """Under a token that is to be drawn in an hour; the value is that of locking/redis/wire.h."""
        until = round(time.time() * 1000) + 3_600_000
        self.command("SET", key, f"H{until:011x}{until - EPOCH << 20:016x}{'7' * 16}", "PX", 600_000)


class Service:
    """What an HTTP handler asks: `answer(order)` says (status, seconds to wait first)."""

    def __init__(self, test, answer):
        service = self
        self.answer, self._stop = answer, threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                status, wait = service.answer(json.loads(body))
                service._stop.wait(wait)
                try:
                    self.send_response(status)
                    self.send_header("content-length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    pass  # the worker has hung up or was killed

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads, block_on_close = True, False
            request_queue_size = 128

            def handle_error(self, *_):
                pass

        server = Server(("127.0.0.1", free_port()), Handler)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://127.0.0.1:{server.server_port}/charge"
        for clean in (server.server_close, server.shutdown, self._stop.set):
            test.addCleanup(clean)


PIPELINE = """version: 1
name: {name}
guarantee: exactly-once
kafka:
  brokers: [{kafka}]
  topics: [{name}]
  start_from: earliest
  commit_interval: 200ms
  librdkafka: {{session.timeout.ms: {session}, heartbeat.interval.ms: 300}}
record_id: json:/order_id
lock:
  redis: {{nodes: [{nodes}]}}
  ttl: {ttl}
  min_validity: {min_validity}
  max_skew: 500ms
processing: {{order: none, concurrency: 64, timeout: 5s}}
{more}
output:
  sqlite:
    path: {database}
    table: effects
    columns: {{order_id: json:/order_id, amount: json:/amount, fence: token}}
"""


class Pipeline:
    """A pipeline file, its topic and its SQLite file."""

    def __init__(self, test, kafka, locks, name, partitions=2, more="", ttl="10s", session=6000):
        self._kafka, self.name, self.partitions = kafka, name, partitions
        home = folder(test)
        self.database, self.file = home / "effects.db", home / f"{name}.yaml"
        with self.open() as db:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("CREATE TABLE effects (order_id text, amount integer CHECK (amount >= 0),"
                       " fence integer)")  # fmt: skip
        self.file.write_text(
            PIPELINE.format(
                name=name, kafka=kafka.bootstrap, nodes=locks.list, ttl=ttl, session=session,
                min_validity="500ms" if ttl == "2s" else "2s", more=more, database=self.database,
            )
        )  # fmt: skip
        kafka.create_topic(name, partitions)

    def open(self):
        return sqlite3.connect(self.database, isolation_level=None, timeout=10)

    def effects(self) -> int:
        with self.open() as db:
            return db.execute("SELECT count(*) FROM effects").fetchone()[0]

    def send_order(self, order, partition, amount=5):
        value = json.dumps({"order_id": f"o-{order}", "amount": amount})
        self._kafka.send(self.name, partition, value, key=f"c-{order}")

    def send(self, orders, amount=5):
        """Each to its own partition."""
        for order in orders:
            self.send_order(order, order % self.partitions, amount)
        self._kafka.flush()

    def send_text(self, text, partition=0):
        self._kafka.send(self.name, partition, text)
        self._kafka.flush()


class Worker:
    def __init__(self, test, pipelines, name, advertise=False, **settings):
        """`advertise`: others find it; `settings`: of observe."""
        self.address = f"127.0.0.1:{free_port()}"
        self._test, self._name, self._files = test, name, [p.file for p in pipelines]
        if advertise:
            settings["advertise"] = self.address
        self._set = [f"--set=observe.{key}={value}" for key, value in settings.items()]
        self.start()

    def start(self):
        self.process = Process(
            self._test,
            [FENCEPOST, "run", *self._files, *self._set, "--http", self.address,
             "--worker", self._name],
        )

    def get(self, path, limit=5.0):
        return http_get(f"http://{self.address}{path}", limit)

    def wait_ready(self):
        wait_until(lambda: self.get("/ready")[0] == 200, 40, "the worker to be ready")


def samples(page: str):
    """(name, labels, value) of every sample of a metrics page."""
    for line in page.splitlines():
        if line and not line.startswith("#"):
            name, labels, value = re.fullmatch(
                r"([a-z_A-Z0-9:]+)(?:\{(.*)\})? (\S+)", line
            ).groups()
            yield name, dict(re.findall(r'(\w+)="([^"]*)"', labels or "")), float(value)


def total(worker, metric) -> float:
    """What the worker itself shows now, over all labels; 0 where it does not answer."""
    return sum(value for name, _, value in samples(worker.get("/metrics")[1]) if name == metric)


class Prometheus:
    """Debian's, with its data in a temporary folder."""

    def __init__(self, test, targets, rules=(), interval="1s", options=()):
        home, port = folder(test), free_port()
        for rule in rules:
            shutil.copy(rule, home)
        config = {
            "global": {"scrape_interval": interval, "evaluation_interval": interval,
                       "scrape_timeout": interval},
            "rule_files": [pathlib.Path(rule).name for rule in rules],
            "scrape_configs": [
                {"job_name": "fencepost", "static_configs": [{"targets": list(targets)}]}
            ],
        }  # fmt: skip
        (home / "prometheus.yaml").write_text(json.dumps(config))  # JSON is YAML
        self.url = f"http://127.0.0.1:{port}"
        self.process = Process(
            test,
            ["prometheus", "--config.file", home / "prometheus.yaml", "--web.listen-address",
             f"127.0.0.1:{port}", "--storage.tsdb.path", home / "data", "--log.level", "warn",
             *options],
        )  # fmt: skip
        wait_until(lambda: http_get(f"{self.url}/-/ready")[0] == 200, what="Prometheus")

    def get(self, path, **arguments):
        status, text = http_get(f"{self.url}{path}?{urllib.parse.urlencode(arguments)}")
        answer = json.loads(text) if text else {}
        if answer.get("status") != "success":
            raise AssertionError(f"{path} {arguments}: {status} {text}")
        return answer["data"]

    def query(self, expr, **arguments):
        """The samples of an instant query: [(labels, value)]."""
        data = self.get("/api/v1/query", query=expr, **arguments)
        if data["resultType"] == "scalar":
            return [({}, float(data["result"][1]))]
        return [(one["metric"], float(one["value"][1])) for one in data["result"]]

    def alerts(self, state="firing"):
        return [a for a in self.get("/api/v1/alerts")["alerts"] if a["state"] == state]
