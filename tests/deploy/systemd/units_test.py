"""The systemd units: what systemd's own tools say of them, and the programs under their filters."""

import os
import pathlib
import re
import tempfile
import unittest

from support.pipelines import seconds
from support.processes import FENCEPOST, SOURCE, Process, free_port, http_get, run, sanitized, wait_until

UNITS = SOURCE / "deploy" / "systemd"
WORKER, NODE = UNITS / "fencepost@.service", UNITS / "redis-lock@.service"
HERE = pathlib.Path(__file__).parent
# systemd-analyze's exposure, of 10, as Debian 12's systemd counts it: it may only go down.
EXPOSURE = {WORKER: 1.2, NODE: 1.4}


def setting(unit: pathlib.Path, key: str) -> list[str]:
    text = unit.read_text().replace("\\\n", " ")
    return re.findall(rf"(?m)^{key}=(.*)$", text)


def under_filter(unit: pathlib.Path, *argv) -> list[str]:
    """As systemd would run it, as far as filters and rights go."""
    return ["setpriv", "--no-new-privs", "/usr/bin/python3", str(HERE / "under_filter.py"),
            str(unit), *[str(a) for a in argv]]


class Units(unittest.TestCase):
    def verify(self, unit: pathlib.Path, text: str):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, unit.name.replace("@.", "@orders."))
            path.write_text(text)
            return run("systemd-analyze", "verify", "--man=no", path, check=False)

    def test_systemd_accepts_them_without_a_word(self):
        for unit in (WORKER, NODE):
            text = unit.read_text().replace("/usr/bin/fencepost", FENCEPOST)
            done = self.verify(unit, text)
            ours = [line for line in done.stderr.splitlines() if "orders" in line]
            self.assertEqual((done.returncode, ours), (0, []), unit.name)

    def test_the_check_itself_sees_a_misspelt_setting(self):
        text = WORKER.read_text().replace("NoNewPrivileges=", "NoNewPrivilege=")
        self.assertIn("NoNewPrivilege", self.verify(WORKER, text).stderr)

    def test_they_leave_no_core_files(self):
        for unit in (WORKER, NODE):
            self.assertEqual(setting(unit, "LimitCORE"), ["0"], unit.name)

    def test_they_are_as_closed_as_they_were(self):
        for unit, most in EXPOSURE.items():
            done = run("systemd-analyze", "security", "--offline=true", "--no-pager", unit)
            level = float(re.search(r"exposure level for \S+ (\d+\.\d)", done.stdout).group(1))
            self.assertLessEqual(level, most, unit.name)

    def test_the_worker_has_time_to_drain_and_a_wrong_file_is_not_tried_again(self):
        (stop,) = setting(WORKER, "TimeoutStopSec")
        default = re.search(r"`shutdown_timeout` \| duration \| `(\w+)`",
                            (SOURCE / "config/REFERENCE.md").read_text()).group(1)
        # `run` ends whatever hangs ten seconds after shutdown_timeout.
        self.assertGreaterEqual(int(stop), seconds(default) + 10 + 5)
        self.assertEqual(setting(WORKER, "KillSignal"), ["SIGTERM"])
        self.assertEqual(setting(WORKER, "Restart"), ["on-failure"])
        self.assertEqual(setting(WORKER, "RestartPreventExitStatus"), ["2"])
        self.assertEqual(run(FENCEPOST, "run", "/nonexistent.yaml", check=False).returncode, 2)

    @unittest.skipIf(sanitized(), "a sanitizer makes code")
    def test_the_examples_run_under_the_filters_of_the_worker(self):
        examples = sorted((SOURCE / "config/examples").glob("*.yaml"))
        tested = [e for e in examples if "\ntests:" in e.read_text()]
        self.assertIn("python.yaml", [e.name for e in tested])
        with tempfile.TemporaryDirectory() as folder:
            files = [pathlib.Path(folder, e.name) for e in tested]
            for source, copy in zip(tested, files):
                # A real program of the exec handler may be slow to start on a busy machine.
                copy.write_text(re.sub(r"(?m)^  timeout: \ds", "  timeout: 60s", source.read_text()))
            module = SOURCE / "consumer/handlers/exec/python"
            done = run(*under_filter(WORKER, FENCEPOST, "test", *files), cwd=SOURCE,
                       env={**os.environ, "PYTHONPATH": str(module)})  # fmt: skip
        self.assertIn(", 0 failed", done.stdout)

    @unittest.skipIf(sanitized(), "a sanitizer makes code")
    def test_a_worker_runs_and_stops_under_them(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "nowhere.yaml")
            path.write_text(f"""\
version: 1
name: nowhere
guarantee: at-least-once
kafka: {{brokers: ["localhost:{free_port()}"], topics: [orders]}}
lock: {{redis: {{nodes: ["localhost:{free_port()}"]}}}}
output: {{stdout: {{}}}}
shutdown_timeout: 2s
""")
            address = f"127.0.0.1:{free_port()}"
            worker = Process(self, under_filter(WORKER, FENCEPOST, "run", path, "--http", address))
            wait_until(lambda: http_get(f"http://{address}/live")[0] == 200, what="/live")
            wait_until(lambda: "nowhere" in http_get(f"http://{address}/metrics")[1],
                       what="/metrics")
            self.assertEqual(http_get(f"http://{address}/ready")[0], 503)
            worker.send()
            self.assertEqual(worker.wait(), 0, worker.output())

    def test_the_filters_are_in_force(self):
        for argv, words in (
            (["unshare", "--mount", "true"], "Operation not permitted"),
            (["python3", "-c", "import mmap; mmap.mmap(-1, 4096, prot=7)"], "PermissionError"),
            (["python3", "-c", "import socket; socket.socket(socket.AF_NETLINK)"],
             "Address family not supported"),
        ):
            done = run(*under_filter(WORKER, *argv), check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words, done.stderr)

    def test_a_lock_node_starts_with_the_units_own_command_under_its_filters(self):
        (command,) = setting(NODE, "ExecStart")
        port = free_port()
        with tempfile.TemporaryDirectory() as folder:
            acl = pathlib.Path(folder, "users.acl")
            acl.write_text(run(SOURCE / "deploy/redis/make-acl", input="secret\n").stdout)
            data = pathlib.Path(folder, "redis-lock", str(port))
            data.mkdir(parents=True)
            text = command.replace("%i", str(port)).replace("%S", folder)
            text = text.replace("/etc/redis-lock/users.acl", str(acl))
            text = text.replace("--bind * -::*", "--bind 127.0.0.1")
            words = [w.strip('"') for w in text.split() if w != "$REDIS_LOCK_OPTIONS"]
            node = Process(self, under_filter(NODE, *words))
            nodes = f"127.0.0.1:{port}"
            secret = pathlib.Path(folder, "password")
            secret.write_text("secret")
            user = ["--redis", nodes, "--username", "fencepost", "--password-file", secret]
            wait_until(lambda: run(FENCEPOST, "locks", "init", *user, check=False).returncode == 0,
                       what="the lock store")
            status = run(FENCEPOST, "locks", "status", *user)
            self.assertIn("quorum: available", status.stdout)
            self.assertTrue((data / "appendonlydir").exists())
            node.send()
            self.assertEqual(node.wait(), 0, node.output())


if __name__ == "__main__":
    unittest.main()
