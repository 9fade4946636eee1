"""The container image, without a container engine: what the Dockerfile says, and the worker in a
root that holds nothing but what its last stage installs, read-only, as its user."""

import json
import re
import tempfile
import unittest

from support.dockerfile import Root
from support.processes import SOURCE, free_port, http_get, run, wait_until
from support.stages import stages

PIPELINE = """\
version: 1
name: nowhere
guarantee: at-least-once
kafka: {{brokers: [127.0.0.1:{kafka}], topics: [orders]}}
lock: {{redis: {{nodes: [127.0.0.1:{a}, 127.0.0.1:{b}, 127.0.0.1:{c}]}}}}
output: {{stdout: {{}}}}
shutdown_timeout: 2s
"""


def dev_packages(name: str) -> set[str]:
    text = (SOURCE / "dev").read_text()
    return set(re.search(rf"(?s)^{name}=\((.*?)\)", text, re.M).group(1).split())


class Dockerfile(unittest.TestCase):
    def test_the_build_stage_installs_what_dev_makes_packages_with(self):
        only_for_tests = {"ccache", "git", "libgmock-dev", "libgtest-dev", "lintian", "redis-server"}
        needed = dev_packages("BUILD_PACKAGES") | dev_packages("PACKAGE_PACKAGES")
        self.assertEqual(set(stages()[0].packages()), needed - only_for_tests)

    def test_the_last_stage_installs_the_package_and_leaves_its_libraries_to_it(self):
        self.assertEqual(
            stages()[-1].packages(),
            ["ca-certificates", "libsasl2-modules-gssapi-mit", "redis-server", "tini",
             "/packages/fencepost_*.deb"],
        )

    def test_the_user_is_a_number_other_than_root(self):
        user = stages()[-1].values("USER")
        self.assertRegex(user[-1], r"^[1-9]\d{3,}$")  # what runAsNonRoot can check

    def test_the_worker_is_reached_from_outside_and_asks_itself_for_its_health(self):
        last = stages()[-1]
        self.assertIn("FENCEPOST_HTTP=:9464", last.values("ENV"))
        self.assertEqual(last.values("EXPOSE"), ["9464"])
        command = last.values("HEALTHCHECK")[0].partition("CMD ")[2]
        self.assertEqual(command.split()[:2], ["fencepost", "health"])

    def test_signals_reach_the_worker(self):
        entry = json.loads(stages()[-1].values("ENTRYPOINT")[0])
        self.assertEqual(entry, ["/usr/bin/tini", "--", "/usr/bin/fencepost"])


class Image(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = Root(cls)

    def inside(self, *argv, check=True):
        return run(*self.root.command(*argv), check=check)

    def test_the_worker_finds_all_its_libraries(self):
        self.assertNotIn("not found", self.inside("ldd", "/usr/bin/fencepost").stdout)
        self.assertRegex(self.inside("fencepost", "version").stdout, 
                         r"^fencepost \d+\.\d+\.\d+ \(unknown\)")

    def test_it_holds_certificates_but_no_compiler_and_no_interpreter(self):
        self.inside("test", "-s", "/etc/ssl/certs/ca-certificates.crt")
        for name in ("gcc", "python3", "curl", "git"):
            self.assertNotEqual(self.inside("which", name, check=False).returncode, 0, name)

    def test_the_demo_runs_as_readme_says(self):
        said = run(*self.root.command("fencepost", "demo", "--records", "2000", tmpfs="/tmp"),
                   limit=200).stdout  # fmt: skip
        self.assertIn('"lost":0,"duplicated":0', said.splitlines()[-1])

    def test_the_root_is_read_only_and_the_user_has_no_rights(self):
        refused = self.inside("touch", "/tmp/x", check=False)
        self.assertIn("Read-only file system", refused.stderr)
        self.assertEqual(self.inside("id", "-u").stdout.strip(), "10001")
        status = self.inside("cat", "/proc/self/status").stdout
        self.assertRegex(status, r"CapEff:\s0+\n")

    def test_a_worker_without_its_servers_is_live_not_ready_and_stops_on_sigterm(self):
        ports = {name: free_port() for name in ("kafka", "a", "b", "c")}
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(PIPELINE.format(**ports))
            file.flush()
            self.root.add(file.name, "/etc/fencepost/nowhere.yaml")
        port = free_port()
        address = f"127.0.0.1:{port}"
        entry = json.loads(self.root.stage.values("ENTRYPOINT")[0])
        worker = self.root.start(self, "env", f"FENCEPOST_HTTP=0.0.0.0:{port}", *entry, "run",
                                 "/etc/fencepost/nowhere.yaml")
        wait_until(lambda: http_get(f"http://{address}/live")[0] == 200, what="/live")
        status, why = http_get(f"http://{address}/ready")
        self.assertEqual(status, 503, why)
        check = self.root.stage.values("HEALTHCHECK")[0].partition("CMD ")[2]
        for file in ("", "/etc/fencepost/nowhere.yaml"):
            self.inside("env", f"FENCEPOST_HTTP=0.0.0.0:{port}", f"FENCEPOST_FILE={file}", "sh",
                        "-c", check)  # fmt: skip
        asked = self.inside("fencepost", "health", "--http", address, "--ready", check=False)
        self.assertEqual(asked.returncode, 1)
        self.assertIn("not ready", asked.stderr)
        worker.send()
        self.assertEqual(worker.wait(), 0, worker.output())

    def test_health_fails_where_nobody_listens_and_refuses_what_is_no_address(self):
        asked = self.inside("fencepost", "health", "--http", f"127.0.0.1:{free_port()}",
                            check=False)
        self.assertEqual(asked.returncode, 1, asked.stderr)
        asked = self.inside("fencepost", "health", "--http", "nonsense", check=False)
        self.assertEqual(asked.returncode, 2, asked.stderr)


if __name__ == "__main__":
    unittest.main()
