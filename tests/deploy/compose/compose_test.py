"""deploy/compose.yaml: read by docker-compose itself (which needs no engine for that), and the files
that it mounts checked by the programs that will read them."""

import pathlib
import re
import tempfile
import unittest

import yaml
from support.pipelines import check_lint, seconds, shutdown_timeout
from support.processes import SOURCE, Process, free_port, run, wait_until

DEPLOY = SOURCE / "deploy"
WORKERS = ("worker-1", "worker-2", "worker-3")


def setUpModule():
    global CONFIG, SERVICES
    done = run("docker-compose", "-f", DEPLOY / "compose.yaml", "config")
    CONFIG = yaml.safe_load(done.stdout)
    SERVICES = CONFIG["services"]


def mounts(service: str) -> dict[str, str]:
    """Target → source."""
    found = {}
    for volume in SERVICES[service].get("volumes", []):
        if isinstance(volume, str):
            source, target = volume.split(":")[:2]
        else:
            source, target = volume["source"], volume["target"]
        found[target] = source
    return found


class Compose(unittest.TestCase):
    def test_it_holds_what_it_promises(self):
        others = {"redis", "kafka", "topics", "postgres", "prometheus", "grafana"}
        self.assertEqual(set(SERVICES), {*WORKERS, *others})

    def test_every_file_that_is_mounted_exists_and_every_volume_is_declared(self):
        for service in SERVICES:
            for target, source in mounts(service).items():
                if source.startswith("/"):
                    self.assertTrue(pathlib.Path(source).exists(), f"{service}: {source}")
                else:
                    self.assertIn(source, CONFIG["volumes"], service)

    def test_images_have_a_version(self):
        for name, service in SERVICES.items():
            self.assertRegex(service["image"], r":[^:]+$", name)
            self.assertNotIn(":latest", service["image"])

    def test_what_is_waited_for_exists_and_can_be_waited_for(self):
        for name, service in SERVICES.items():
            needs = service.get("depends_on", {})
            for other, how in (needs.items() if isinstance(needs, dict) else []):
                condition = how["condition"]
                if condition == "service_healthy":
                    self.assertIn("test", SERVICES[other]["healthcheck"], f"{name} {other}")
                if condition == "service_completed_successfully":
                    self.assertEqual(SERVICES[other]["restart"], "no", f"{name} {other}")

    def test_the_pipeline_lints_and_its_servers_are_services(self):
        text = (DEPLOY / "compose/orders.yaml").read_text()
        check_lint(self, {"orders.yaml": text})
        pipeline = yaml.safe_load(text)
        hosts = pipeline["kafka"]["brokers"] + pipeline["lock"]["redis"]["nodes"]
        self.assertEqual([h.split(":")[0] for h in hosts], ["kafka", "redis"])
        self.assertIn("@postgres/", pipeline["output"]["postgres"]["dsn"])
        topics = SERVICES["topics"]["command"]
        for topic in [*pipeline["kafka"]["topics"], pipeline["dead_letter"]["topic"]]:
            self.assertRegex("\n".join(topics), rf" {re.escape(topic)}:\d")

    def test_the_topics_are_created_with_their_partitions(self):
        service = SERVICES["topics"]
        script = service["command"][0].replace("$$", "$")
        script = script.replace("/opt/kafka/bin/kafka-topics.sh", "echo")
        said = run(*service["entrypoint"], script).stdout.splitlines()
        named = [re.search(r"--topic (\S+) --partitions (\d+) ", line).groups() for line in said]
        self.assertEqual(named, [("orders", "12"), ("orders.dead", "1")])

    def test_workers_run_it_without_rights_and_have_time_to_stop(self):
        timeout = shutdown_timeout((DEPLOY / "compose/orders.yaml").read_text())
        for name in WORKERS:
            worker = SERVICES[name]
            self.assertTrue(worker["read_only"])
            self.assertEqual(worker["cap_drop"], ["ALL"])
            self.assertEqual(worker["environment"], {"FENCEPOST_WORKER": name})
            self.assertIn("/etc/fencepost/orders.yaml", mounts(name))
            # `run` ends whatever hangs ten seconds after shutdown_timeout.
            self.assertGreaterEqual(seconds(worker["stop_grace_period"]), timeout + 10 + 5)

    def test_the_acl_is_the_one_that_make_acl_writes(self):
        pipeline = yaml.safe_load((DEPLOY / "compose/orders.yaml").read_text())
        made = run(DEPLOY / "redis/make-acl", input=pipeline["lock"]["redis"]["password"]).stdout
        self.assertEqual((DEPLOY / "compose/users.acl").read_text(), made)

    def test_its_redis_starts_with_this_command_and_its_probe_says_so(self):
        service = SERVICES["redis"]
        command = service["command"]
        command = command if isinstance(command, str) else " ".join(command)
        with tempfile.TemporaryDirectory() as folder:
            command = command.replace("/data", folder)
            command = command.replace("/etc/redis/users.acl", str(DEPLOY / "compose/users.acl"))
            port = free_port()
            shell = f"exec {command} --port {port} --bind 127.0.0.1"
            process = Process(self, ["sh", "-c", shell], cwd=folder)
            self.assertEqual(service["healthcheck"]["test"][0], "CMD-SHELL")
            probe = service["healthcheck"]["test"][1].replace("$$", "$")
            probe = probe.replace("redis-cli", f"redis-cli -p {port}")
            wait_until(lambda: run("sh", "-c", probe, check=False).returncode == 0,
                       what="the health check")
            self.assertTrue(pathlib.Path(folder, "appendonlydir").exists(), process.output())
            process.kill()

    def test_prometheus_reads_its_configuration_and_finds_the_workers(self):
        folder = mounts("prometheus")["/etc/prometheus"]
        path = next(a.partition("=")[2] for a in SERVICES["prometheus"]["command"]
                    if a.startswith("--config.file="))
        config = pathlib.Path(path.replace("/etc/prometheus", folder))
        self.assertIn("SUCCESS", run("promtool", "check", "config", config).stdout)
        jobs = yaml.safe_load(config.read_text())["scrape_configs"]
        names = [n for job in jobs for dns in job.get("dns_sd_configs", []) for n in dns["names"]]
        for worker in WORKERS:
            aliases = SERVICES[worker]["networks"]["default"]["aliases"]
            self.assertTrue(set(names) & set(aliases), f"{names} does not find {worker}")

    def test_grafana_is_given_a_data_source_and_the_dashboard(self):
        files = mounts("grafana")
        provisioning = pathlib.Path(files["/etc/grafana/provisioning"])
        (source,) = map(yaml.safe_load, [
            path.read_text() for path in (provisioning / "datasources").glob("*.yaml")])
        self.assertEqual(source["datasources"][0]["url"], "http://prometheus:9090")
        (provider,) = map(yaml.safe_load, [
            path.read_text() for path in (provisioning / "dashboards").glob("*.yaml")])
        folder = provider["providers"][0]["options"]["path"]
        self.assertEqual(files[f"{folder}/fencepost.json"], str(DEPLOY / "grafana/fencepost.json"))


if __name__ == "__main__":
    unittest.main()
