"""A company's values, and what they render really run: lock nodes and init job of one chart, a
worker of the other, TLS and passwords everywhere, against a real broker and a real PostgreSQL."""

import signal
import threading
import unittest

from support.certificates import Authority
from support.charts import Rendered
from support.databases import postgres
from support.fleet import Service, folder, shared
from support.kafka import Kafka
from support.pods import Cluster, Pod
from support.processes import free_port, require_namespaces, run, wait_until

SECURE = """\
listeners=PLAINTEXT://127.0.0.1:{{port}},CONTROLLER://127.0.0.1:{{controller}},S://127.0.0.1:{tls}
advertised.listeners=PLAINTEXT://127.0.0.1:{{port}},S://kafka.kafka.svc:{tls}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,S:SASL_SSL
sasl.enabled.mechanisms=PLAIN
listener.name.s.plain.sasl.jaas.config={module} required user_billing="kafka-secret";
listener.name.s.ssl.keystore.type=PEM
listener.name.s.ssl.keystore.location={pem}
"""

PIPELINE = """version: 1
name: {name}
guarantee: exactly-once
kafka:
  brokers: ["kafka.kafka.svc:{kafka}"]
  topics: [{name}]
  start_from: earliest
  tls: {{ca: /run/secrets/ca/ca.crt}}
  sasl: {{mechanism: PLAIN, username: "${{KAFKA_USER}}", password: "${{KAFKA_PASSWORD}}"}}
record_id: json:/order_id
lock:
  redis:
    nodes: {nodes}
    username: fencepost
    password: ${{REDIS_PASSWORD}}
    tls: {{ca: /run/secrets/locks-tls/ca.crt}}
{more}
dead_letter: {{topic: {name}.dead}}
output: {{postgres: {{dsn: "${{SHOP_DSN}}", table: {name}, columns: {{order_id: json:/order_id}}}}}}
observe: {{log: {{level: "${{LOG_LEVEL}}"}}}}
"""


class Company(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        require_namespaces()
        test, home = shared(cls), folder(shared(cls))
        cls.redis_port, cls.http_port = free_port(), free_port()
        letters = "abc"
        cls.nodes = {f"locks-fencepost-locks-{c}.locks.svc": f"127.77.0.{i + 1}"
                     for i, c in enumerate(letters)}  # fmt: skip
        authority = Authority(home)
        # Of the nodes' names alone: 127.0.0.1, where the probes ask, is not among them.
        locks, kafka, db = (authority.sign(name, hosts) for name, hosts in (
            ("locks", list(cls.nodes)), ("kafka", ["kafka.kafka.svc"]), ("db", ["db.db.svc"])))
        cls._start_database(test, home, db)
        cls._start_kafka(test, home, kafka)
        dsn = (f"postgresql://app:secret@db.db.svc:{cls.database_port}/postgres"
               "?sslmode=verify-full&sslrootcert=/run/secrets/ca/ca.crt")  # fmt: skip
        cls.cluster = Cluster(cls, hosts={**cls.nodes, "kafka.kafka.svc": "127.0.0.1",
                                          "db.db.svc": "127.0.0.1"}, secrets={
            "locks-tls": {"ca.crt": authority.ca.read_text(), "tls.crt": locks[0].read_text(),
                          "tls.key": locks[1].read_text()},
            "ca": {"ca.crt": authority.ca.read_text()},
            "kafka-billing": {"user": "billing", "password": "kafka-secret"},
            "shop-db": {"dsn": dsn},
        })  # fmt: skip
        for program in ("/usr/bin/redis-server", "/usr/bin/redis-cli"):
            cls.cluster.add_program(program)
        # The lock nodes have an image of their own, without what Debian's package keeps there.
        cls.cluster.image.change("rm", "-rf", "/etc/redis")
        cls._start_locks(test)
        cls._start_worker(test)

    @classmethod
    def _start_database(cls, test, home, files):
        place = home / "pg"
        place.mkdir()
        run("cp", *files, place)
        home.chmod(0o711)  # the way to `place` for another user
        cls.database_folder = place
        cls.database_port, _ = postgres(test, place, [
            "-c", "ssl=on", "-c", f"ssl_cert_file={place}/db.crt",
            "-c", f"ssl_key_file={place}/db.key"])  # fmt: skip
        wait_until(lambda: cls.sql("SELECT 1", check=False).returncode == 0, 60, "PostgreSQL")
        cls.sql("CREATE ROLE app LOGIN PASSWORD 'secret'; GRANT CREATE ON SCHEMA public TO app;"
                "CREATE TABLE orders (order_id text); CREATE TABLE refunds (order_id text);"
                "GRANT INSERT ON orders, refunds TO app")  # fmt: skip

    @classmethod
    def sql(cls, text, check=True):
        return run("psql", "-XAtq", "-h", cls.database_folder, "-p", cls.database_port, "-U",
                   "postgres", "-c", text, check=check)  # fmt: skip

    @classmethod
    def _start_kafka(cls, test, home, files):
        pem = home / "kafka.pem"
        pem.write_text(files[1].read_text() + files[0].read_text())
        cls.kafka_port = free_port()
        cls.kafka = Kafka(test, SECURE.format(
            tls=cls.kafka_port, pem=pem,
            module="org.apache.kafka.common.security.plain.PlainLoginModule"))  # fmt: skip
        for topic in ("orders", "refunds", "orders.dead", "refunds.dead"):
            cls.kafka.create_topic(topic, 2)

    @classmethod
    def _start_locks(cls, test):
        rendered = Rendered("fencepost-locks", {
            "nodes": 3, "tls": {"secret": "locks-tls"}, "port": cls.redis_port, "maxmemory": "64mb",
        }, name="locks", namespace="locks")  # fmt: skip
        cls.cluster.apply(rendered)
        cls.redis = []
        for node, address in zip(rendered.all("StatefulSet"), cls.nodes.values(), strict=True):
            pod = Pod(test, cls.cluster, node["metadata"]["name"] + "-0", node)
            # All pods share one network here, so each node has an address of its own.
            cls.redis.append((pod, address, pod.start("--bind", address)))
        for pod, address, process in cls.redis:
            wait_until(lambda: cls.ask(pod, address, "startupProbe")[0] or not process.running(),
                       60, "a lock node")  # fmt: skip
            assert process.running(), process.output()
        job = Pod(test, cls.cluster, "locks-init", rendered.one("Job"))
        cls.init = run(*job.command(), check=False, limit=400)

    @staticmethod
    def ask(pod, address, kind):
        here = f"redis-cli -h {address}"
        return pod.probe(kind, lambda script: script.replace("redis-cli", here))

    @classmethod
    def _start_worker(cls, test):
        nodes = [f"{name}:{cls.redis_port}" for name in cls.nodes]
        cls.asked, cls.answer = threading.Event(), threading.Event()

        def wait(_):
            cls.asked.set()
            return (200 if cls.answer.wait(60) else 500), 0

        url = Service(test, wait).url
        handler = f'handler: {{http: {{url: "{url}", idempotent: true}}}}'
        pipelines = {name: PIPELINE.format(name=name, kafka=cls.kafka_port, nodes=nodes, more=more)
                     for name, more in (("orders", ""), ("refunds", handler))}  # fmt: skip
        rendered = Rendered("fencepost", {
            "pipelines": pipelines, "http": {"port": cls.http_port}, "env": {"LOG_LEVEL": "info"},
            "secrets": {
                "env": [
                    {"name": "KAFKA_USER", "secret": "kafka-billing", "key": "user"},
                    {"name": "KAFKA_PASSWORD", "secret": "kafka-billing", "key": "password"},
                    {"name": "REDIS_PASSWORD", "secret": "locks-fencepost-locks", "key": "password"},
                    {"name": "SHOP_DSN", "secret": "shop-db", "key": "dsn"},
                ],
                "files": [
                    {"secret": "ca", "path": "/run/secrets/ca"},
                    {"secret": "locks-tls", "path": "/run/secrets/locks-tls", "keys": ["ca.crt"]},
                ],
            },
        }, name="orders", namespace="billing")  # fmt: skip
        cls.cluster.apply(rendered)
        cls.pod = Pod(test, cls.cluster, "orders-fencepost-x1", rendered.one("Deployment"))
        cls.worker = cls.pod.start()

    def wait_ready(self):
        try:
            wait_until(lambda: self.pod.probe("readinessProbe")[0], 90, "the worker to be ready")
        except AssertionError as late:
            raise AssertionError(f"{late}\n{self.worker.output()}") from late

    def start_again(self):
        self.worker.kill()
        type(self).worker = self.pod.start()

    def test_the_init_job_made_the_store_and_every_probe_of_the_nodes_succeeds(self):
        self.assertEqual(self.init.returncode, 0, self.init.stdout + self.init.stderr)
        self.assertIn("it counts at once", self.init.stdout)
        for pod, address, _ in self.redis:
            for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
                self.assertEqual(self.ask(pod, address, kind)[0], True, pod.name)

    def test_the_worker_is_ready_and_takes_records_to_the_database(self):
        self.wait_ready()
        for kind in ("startupProbe", "livenessProbe"):
            self.assertEqual(self.pod.probe(kind), (True, "live\n"))
        for i in range(20):
            self.kafka.send("orders", i % 2, f'{{"order_id": "o-{i // 2}"}}')
        self.kafka.flush()
        wait_until(lambda: self.sql("SELECT count(*) FROM orders").stdout == "10\n", 60, "rows")
        workers = self.sql("SELECT DISTINCT worker FROM fencepost_ledger").stdout
        self.assertEqual(workers, "orders-fencepost-x1\n")

    def test_commands_run_inside_the_pod_as_the_documents_say(self):
        for file in self.cluster.config_maps["orders-fencepost"]:
            run(*self.pod.words("fencepost", "lint", f"/etc/fencepost/{file}"))
        status = run(*self.pod.words("fencepost", "locks", "status", "/etc/fencepost/orders.yaml"))
        self.assertEqual(status.stdout.count(" ok, "), 3, status.stdout)
        nodes = ",".join(f"{name}:{self.redis_port}" for name in self.nodes)
        for user, code in (("fencepost", 0), ("probe", 1)):
            script = (f"FENCEPOST_REDIS_PASSWORD=$REDIS_PASSWORD exec fencepost locks status "
                      f"--redis {nodes} --username {user} "
                      f"--tls-ca /run/secrets/locks-tls/ca.crt")  # fmt: skip
            done = run(*self.pod.words("sh", "-c", script), check=False)
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)

    def test_of_a_secret_with_keys_no_other_key_is_in_the_pod(self):
        found = run(*self.pod.words("ls", "/run/secrets/locks-tls")).stdout
        self.assertEqual(found, "ca.crt\n")

    def test_a_drain_waits_for_the_handler_and_the_worker_lives_meanwhile(self):
        self.wait_ready()
        self.kafka.send("refunds", 0, '{"order_id": "r-1"}')
        self.kafka.flush()
        wait_until(self.asked.is_set, 60, "the handler to be called")
        self.addCleanup(self.start_again)
        self.worker.send()
        wait_until(lambda: "draining" in self.pod.probe("readinessProbe")[1] or
                   not self.worker.running(), what="the drain")  # fmt: skip
        self.assertTrue(self.worker.running(), self.worker.output())
        self.assertEqual(self.pod.probe("livenessProbe"), (True, "live\n"))
        self.answer.set()
        self.assertEqual(self.worker.wait(self.pod.spec["terminationGracePeriodSeconds"]), 0)
        self.assertEqual(self.sql("SELECT order_id FROM refunds").stdout, "r-1\n")

    def test_without_the_quorum_a_worker_is_not_ready_and_lives(self):
        self.wait_ready()
        for _, _, process in self.redis[:2]:
            process.send(signal.SIGSTOP)
            self.addCleanup(process.send, signal.SIGCONT)
        wait_until(lambda: "quorum" in self.pod.probe("readinessProbe")[1], 60, "not ready")
        self.assertEqual(self.pod.probe("livenessProbe"), (True, "live\n"))


if __name__ == "__main__":
    unittest.main()
