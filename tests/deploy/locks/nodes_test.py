"""Real Redis servers with exactly the configuration that the chart renders and the ACL that make-acl
writes: the store can be created and used, the probes tell, and nobody else can do anything."""

import pathlib
import re
import shlex
import tempfile
import unittest

import yaml
from support.charts import Rendered
from support.processes import FENCEPOST, SOURCE, Process, free_port, run, wait_until

PASSWORD = "correct horse battery staple"


class Nodes:
    """The nodes of one rendering, on ports of this machine; paths and hosts are all that differs."""

    def __init__(self, test: unittest.TestCase, values: dict):
        values = {"auth": {"secret": "locks"}, "nodes": 3, **values}
        self.rendered = Rendered("fencepost-locks", values)
        self.test = test
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fencepost-nodes-"))
        test.addCleanup(run, "rm", "-rf", self.folder)
        self.ports = [free_port() for _ in range(values["nodes"])]
        self.tls = self.folder / "tls"
        if "tls" in values:
            self._make_certificates()
        acl = run(SOURCE / "deploy/redis/make-acl", input=PASSWORD + "\n").stdout
        (self.folder / "users.acl").write_text(acl)
        (self.folder / "password").write_text(PASSWORD)
        data = self.rendered.all("ConfigMap")[0]["data"]
        self.config, self.init_yaml = data["redis.conf"], data["init.yaml"]
        self.processes = [self.start(i) for i in range(len(self.ports))]
        wait_until(lambda: all(self.probe(i) == 0 for i in range(len(self.ports))), what="PONG")

    def _make_certificates(self):
        self.tls.mkdir()
        run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
            "-subj", "/CN=locks", "-addext", "subjectAltName=IP:127.0.0.1",
            "-keyout", self.tls / "tls.key", "-out", self.tls / "tls.crt")
        run("cp", self.tls / "tls.crt", self.tls / "ca.crt")

    def start(self, i: int) -> Process:
        data = self.folder / f"data-{i}"
        data.mkdir(exist_ok=True)
        text = self.config.replace("dir /data", f"dir {data}")
        text = text.replace("bind * -::*", "bind 127.0.0.1")
        text = re.sub(r"(?m)^(port|tls-port) 6379$", rf"\1 {self.ports[i]}", text)
        text = text.replace("/etc/redis/acl", str(self.folder))
        text = text.replace("/etc/redis/tls", str(self.tls))
        path = self.folder / f"redis-{i}.conf"
        path.write_text(text)
        return Process(self.test, ["redis-server", path])

    def probe(self, i: int) -> int:
        """The exit code of the readiness probe's own command."""
        probes = self.rendered.all("StatefulSet")[i]["spec"]["template"]["spec"]["containers"][0]
        command = probes["readinessProbe"]["exec"]["command"]
        script = command[2].replace("-p 6379", f"-p {self.ports[i]}")
        script = script.replace("/etc/redis/tls", str(self.tls))
        return run(*command[:2], script, check=False).returncode

    def pipeline_file(self) -> pathlib.Path:
        """What the init job reads."""
        pipeline = yaml.safe_load(self.init_yaml)
        redis = pipeline["lock"]["redis"]
        redis["nodes"] = [f"127.0.0.1:{port}" for port in self.ports]
        redis["password"] = f"${{file:{self.folder}/password}}"
        if "tls" in redis:
            redis["tls"]["ca"] = str(self.tls / "ca.crt")
        path = self.folder / "init.yaml"
        path.write_text(yaml.safe_dump(pipeline))
        return path

    def init(self):
        """Carries out the init job's own command."""
        job = self.rendered.one("Job")["spec"]["template"]["spec"]["containers"][0]
        self.test.assertNotIn("command", job)  # the image's own: tini and fencepost
        path = str(self.pipeline_file())
        words = [word.replace("/etc/fencepost/init.yaml", path) for word in job["args"]]
        return run(FENCEPOST, *words, check=False)

    def keys(self, i: int) -> int:
        info = self.redis(i, "--no-auth-warning", "--user", "fencepost", "--pass", PASSWORD, "info")
        return int(re.search(r"db0:keys=(\d+)", info).group(1))

    def redis(self, i: int, *argv: str) -> str:
        done = run("redis-cli", "-p", str(self.ports[i]), *argv, check=False)
        return done.stdout + done.stderr


class LockNodes(unittest.TestCase):
    def test_the_job_creates_the_store_once_and_again_changes_nothing(self):
        nodes = Nodes(self, {})
        first = nodes.init()
        self.assertEqual(first.returncode, 0, first.stdout + first.stderr)
        self.assertIn("it counts at once", first.stdout)
        status = run(FENCEPOST, "locks", "status", nodes.pipeline_file())
        stores = set(re.findall(r"store (\w+)", status.stdout))
        self.assertEqual(len(stores), 1)
        again = nodes.init()
        self.assertEqual(again.returncode, 0, again.stdout + again.stderr)
        self.assertIn("exists already", again.stdout)
        status = run(FENCEPOST, "locks", "status", nodes.pipeline_file())
        self.assertEqual(set(re.findall(r"store (\w+)", status.stdout)), stores)
        self.assertIn("quorum: available", status.stdout)

    def test_the_acl_suffices_for_locks_and_for_nothing_else(self):
        nodes = Nodes(self, {})
        self.assertEqual(nodes.init().returncode, 0)
        redis = ",".join(f"127.0.0.1:{port}" for port in nodes.ports)
        user = ["--no-auth-warning", "--user", "fencepost", "--pass", PASSWORD]
        bench = run(FENCEPOST, "bench", "locks", "--redis", redis, "--username", "fencepost",
                    "--password-file", nodes.folder / "password", "--seconds", "1", "--json",
                    check=False)  # 1 where a cycle timed out: a busy machine's affair
        self.assertRegex(bench.stdout, r'"cycles_per_s": ?[1-9]', bench.stderr)
        for i in range(len(nodes.ports)):
            info = nodes.redis(i, *user, "info", "errorstats")
            self.assertIn("# Errorstats", info)
            self.assertNotRegex(info, "errorstat_(NOPERM|NOAUTH|WRONGPASS)", f"node {i}")
        self.assertIn("NOAUTH", nodes.redis(0, "get", "fencepost:x"))
        self.assertIn("errorstat_NOAUTH", nodes.redis(0, *user, "info", "errorstats"))
        for command in ("flushall", "keys *", "config get *", "get other", "shutdown", "acl list"):
            self.assertIn("NOPERM", nodes.redis(0, *user, *shlex.split(command)), command)
        self.assertIn("NOPERM", nodes.redis(0, *user, "scan", "0"))
        for command in ("del fencepost:x", "eval 'return 1' 0", "pexpire fencepost:x 1"):
            self.assertIn("NOPERM", nodes.redis(0, *user, *shlex.split(command)), command)
        probe = ["--no-auth-warning", "--user", "probe", "--pass", "any"]
        self.assertIn("PONG", nodes.redis(0, *probe, "ping"))
        self.assertIn("NOPERM", nodes.redis(0, *probe, "get", "fencepost:x"))
        self.assertIn("NOPERM", nodes.redis(0, *probe, "info"))

    def test_a_node_keeps_store_and_marks_over_a_restart_and_a_full_one_evicts_nothing(self):
        nodes = Nodes(self, {"maxmemory": "64mb"})
        self.assertEqual(nodes.init().returncode, 0)
        # In batches: what a script writes to several keys is a transaction in the append-only file.
        run(FENCEPOST, "bench", "locks", nodes.pipeline_file(), "--seconds", "1", "--done")
        marks = nodes.keys(1)
        self.assertGreater(marks, 100)
        nodes.processes[1].send()
        nodes.processes[1].wait()
        self.assertNotEqual(nodes.probe(1), 0)
        nodes.processes[1] = nodes.start(1)
        wait_until(lambda: nodes.probe(1) == 0, what="the node to be back")
        self.assertEqual(nodes.keys(1), marks)
        status = run(FENCEPOST, "locks", "status", nodes.pipeline_file())
        self.assertEqual(len(re.findall(r"store \w+ node \d of 3", status.stdout)), 3)
        self.assertEqual(status.stdout.count(" ok, "), 2)  # its run id is another one
        user = ["--no-auth-warning", "--user", "fencepost", "--pass", PASSWORD]
        info = nodes.redis(0, *user, "info")
        self.assertIn("maxmemory_policy:noeviction", info)
        self.assertIn("aof_enabled:1", info)
        self.assertIn(f"maxmemory:{64 << 20}", info)

    def test_with_tls_nothing_is_in_the_clear(self):
        nodes = Nodes(self, {"tls": {"secret": "locks-tls"}, "nodes": 1})
        done = nodes.init()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        plain = nodes.redis(0, "--user", "probe", "--pass", "x", "ping")
        self.assertNotIn("PONG", plain)

    def test_a_wiped_node_is_taken_back_with_the_rights_of_a_client(self):
        nodes = Nodes(self, {})
        self.assertEqual(nodes.init().returncode, 0)
        redis = ",".join(f"127.0.0.1:{port}" for port in nodes.ports)
        words = ["--redis", redis, "--password-file", nodes.folder / "password"]
        user = [*words, "--username", "fencepost"]
        status = [FENCEPOST, "locks", "status", *user]
        # A client that works all the time: it saw the node in the store, and takes it back.
        holder = [FENCEPOST, "lock", "exec", *user, "work", "--", "sleep", "60"]
        Process(self, holder)
        inspect = [FENCEPOST, "locks", "inspect", *user, "work"]
        wait_until(lambda: "work: held" in run(*inspect, check=False).stdout, what="the holder")
        nodes.processes[1].kill()
        run("rm", "-rf", nodes.folder / "data-1")
        nodes.processes[1] = nodes.start(1)
        wait_until(lambda: "quarantined" in run(*status).stdout, what="the node to be taken back")

    def test_make_acl_takes_two_passwords_and_refuses_none(self):
        script = SOURCE / "deploy/redis/make-acl"
        both = run(script, input="one\ntwo\n").stdout
        (line,) = re.findall(r"(?m)^user fencepost .*", both)
        self.assertEqual(len(re.findall(r"#[0-9a-f]{64}", line)), 2)
        self.assertNotIn("one", both.replace("none", ""))
        self.assertEqual(run(script, input="", check=False).returncode, 2)


if __name__ == "__main__":
    unittest.main()
