"""The charts, rendered by Helm's own engine over several values files, and what comes out checked
strictly against the schemas of several Kubernetes versions."""

import base64
import json
import pathlib
import re
import tempfile
import unittest
from unittest import mock

import yaml
from support.charts import CHARTS, ChartError, Helm, Rendered, selected, values_files
from support.pipelines import check_lint, seconds, shutdown_timeout
from support.processes import SOURCE, run
from support.rules import runbooks_at

HERE = pathlib.Path(__file__).parent
WORKERS = values_files(HERE / "workers")
LOCKS = values_files(HERE / "locks")
CASES = [("fencepost", WORKERS), ("fencepost-locks", LOCKS)]


def setUpModule():
    global ALL
    ALL = {
        (chart, name): Rendered(chart, values)
        for chart, cases in CASES
        for name, values in cases.items()
    }


def of(chart: str):
    return [(name, rendered) for (which, name), rendered in ALL.items() if which == chart]


class Charts(unittest.TestCase):
    def test_lint_is_content_and_warns_of_nothing(self):
        for chart, _ in CASES:
            said = Helm.lint(CHARTS / chart)
            self.assertNotIn("WARNING", said)
            self.assertNotIn("ERROR", said)

    def test_kubernetes_accepts_every_document_strictly(self):
        for (chart, name), rendered in ALL.items():
            with self.subTest(chart=chart, values=name):
                self.assertGreaterEqual(len(rendered.documents), 3)
                self.assertEqual(rendered.problems(), [])

    def test_the_check_itself_sees_an_unknown_field_and_a_wrong_type(self):
        rendered = Rendered("fencepost", WORKERS["minimal"])
        rendered.one("Deployment")["spec"]["replica"] = 1
        rendered.one("Service")["spec"]["ports"][0]["port"] = "many"
        said = "\n".join(rendered.problems())
        self.assertIn("Deployment", said)
        self.assertIn("Service", said)
        rendered = ALL["fencepost", "keda"]
        with mock.patch.dict(rendered.one("ScaledObject")["spec"], {"polling": 1, "triggers": "x"}):
            said = "\n".join(rendered.problems())
        self.assertIn("'polling' was unexpected", said)
        self.assertIn("ScaledObject $.spec.triggers: 'x' is not of type 'array'", said)

    def test_names_are_unique_and_carry_the_release(self):
        for (chart, name), rendered in ALL.items():
            with self.subTest(chart=chart, values=name):
                names = [(d["kind"], d["metadata"]["name"]) for d in rendered.documents]
                self.assertEqual(len(names), len(set(names)))
                for document in rendered.documents:
                    labels = document["metadata"]["labels"]
                    self.assertEqual(labels["app.kubernetes.io/instance"], "test")
                    self.assertNotIn("namespace", document["metadata"])

    def test_long_release_names_stay_within_the_limits(self):
        for chart, values in (("fencepost", WORKERS["full"]), ("fencepost-locks", LOCKS["five"])):
            rendered = Rendered(chart, values, name="r" * 53)
            for document in rendered.documents:
                limit = 52 if document["kind"] == "StatefulSet" else 75
                self.assertLessEqual(len(document["metadata"]["name"]), limit)
            self.assertEqual(rendered.problems(), [])

    def test_every_pod_runs_without_rights_on_a_read_only_root(self):
        for (chart, name), rendered in ALL.items():
            for pod in rendered.pods():
                with self.subTest(chart=chart, values=name):
                    spec = pod["spec"]
                    self.assertTrue(spec["securityContext"]["runAsNonRoot"])
                    self.assertGreater(spec["securityContext"]["runAsUser"], 0)
                    self.assertFalse(spec["automountServiceAccountToken"])
                    for container in spec["containers"]:
                        self.assertEqual(container["securityContext"], {
                            "allowPrivilegeEscalation": False,
                            "readOnlyRootFilesystem": True,
                            "runAsNonRoot": True,
                            "capabilities": {"drop": ["ALL"]},
                            "seccompProfile": {"type": "RuntimeDefault"},
                        })
                        self.assertIn("memory", container["resources"]["limits"])
                        # A container that is throttled loses its leases.
                        self.assertNotIn("cpu", container["resources"]["limits"])

    def test_every_mount_has_its_volume_and_every_volume_its_mount(self):
        for (chart, name), rendered in ALL.items():
            for pod in rendered.pods():
                with self.subTest(chart=chart, values=name):
                    mounts = [m for c in pod["spec"]["containers"] for m in c["volumeMounts"]]
                    volumes = {v["name"] for v in pod["spec"]["volumes"]}
                    claims = {"data"} if chart.endswith("locks") else set()
                    self.assertEqual({m["name"] for m in mounts} - claims, volumes)
                    paths = [m["mountPath"] for m in mounts]
                    self.assertEqual(len(paths), len(set(paths)))

    def test_secrets_that_are_mounted_are_made_or_named_in_the_values(self):
        for name, rendered in of("fencepost-locks"):
            made = [d["metadata"]["name"] for d in rendered.all("Secret")]
            own = [values["secret"] for values in LOCKS[name].values()
                   if isinstance(values, dict) and "secret" in values]  # fmt: skip
            mounted = {volume["secret"]["secretName"] for pod in rendered.pods()
                       for volume in pod["spec"]["volumes"] if "secret" in volume}  # fmt: skip
            self.assertEqual(mounted, {*made, *own}, name)
            self.assertEqual(made, [] if "auth" in LOCKS[name] else ["test-fencepost-locks"], name)

    def test_config_maps_that_are_mounted_exist(self):
        for (chart, name), rendered in ALL.items():
            made = {d["metadata"]["name"]: d["data"] for d in rendered.all("ConfigMap")}
            for pod in rendered.pods():
                maps = {v["name"]: v["configMap"]["name"] for v in pod["spec"]["volumes"]
                        if "configMap" in v}
                for mount in pod["spec"]["containers"][0]["volumeMounts"]:
                    if mount["name"] in maps:
                        data = made[maps[mount["name"]]]
                        if "subPath" in mount:
                            self.assertIn(mount["subPath"], data, f"{chart} {name}")

    def test_selectors_pick_the_pods_they_mean_and_ports_have_their_names(self):
        for (chart, name), rendered in ALL.items():
            with self.subTest(chart=chart, values=name):
                workloads = rendered.all("Deployment") + rendered.all("StatefulSet")
                labels = [w["spec"]["template"]["metadata"]["labels"] for w in workloads]
                ports = {p["name"]: p["containerPort"] for w in workloads
                         for c in w["spec"]["template"]["spec"]["containers"] for p in c["ports"]}
                for workload in workloads:
                    own = workload["spec"]["selector"]["matchLabels"]
                    self.assertEqual(sum(selected(own, l) for l in labels), 1)
                for service in rendered.all("Service"):
                    picked = sum(selected(service["spec"]["selector"], l) for l in labels)
                    self.assertEqual(picked, 1)
                    for port in service["spec"]["ports"]:
                        self.assertEqual(ports[port["targetPort"]], port["port"])
                for policy in rendered.all("NetworkPolicy"):
                    chosen = policy["spec"]["podSelector"]["matchLabels"]
                    self.assertTrue(all(selected(chosen, l) for l in labels))
                    self.assertIn(policy["spec"]["ingress"][0]["ports"][0]["port"], ports)
                for budget in rendered.all("PodDisruptionBudget"):
                    chosen = budget["spec"]["selector"]["matchLabels"]
                    self.assertTrue(all(selected(chosen, l) for l in labels))
                    self.assertEqual(budget["spec"]["maxUnavailable"], 1)

    def test_a_packaged_chart_holds_the_rules_and_the_dashboard_themselves(self):
        with tempfile.TemporaryDirectory() as folder:
            Helm.package(CHARTS / "fencepost", folder)
            (package,) = pathlib.Path(folder).glob("fencepost-*.tgz")
            run("tar", "-C", folder, "-xzf", package)
            files = pathlib.Path(folder, "fencepost", "files")
            self.assertFalse((files / "prometheus" / "tests").exists())  # of no use there
            sources = {files / "fencepost.json": DASHBOARD}
            sources |= {files / "prometheus" / path.name: path for path in rule_files()}
            for packed, source in sources.items():
                self.assertFalse(packed.is_symlink())
                self.assertEqual(packed.read_bytes(), source.read_bytes())

    def test_the_readmes_list_every_value_with_its_default(self):
        for chart, _ in CASES:
            values = yaml.safe_load((CHARTS / chart / "values.yaml").read_text())
            readme = (CHARTS / chart / "README.md").read_text()
            listed = set(re.findall(r"(?m)^\| `([^`]+)` \|", readme))
            self.assertEqual(listed, set(values), chart)


LINKS = {"prometheus": "deploy/prometheus", "fencepost.json": "deploy/grafana/fencepost.json"}
DASHBOARD = SOURCE / LINKS["fencepost.json"]


def rule_files() -> dict[str, list]:
    """The files of deploy/prometheus that hold rules, and their groups."""
    files = {p: yaml.safe_load(p.read_text()) for p in
             sorted((SOURCE / LINKS["prometheus"]).glob("*.yaml"))}
    return {path: content["groups"] for path, content in files.items() if "groups" in content}


def workers_of(rendered: Rendered) -> dict:
    """The workload of the workers: a StatefulSet of static members, else a Deployment."""
    return (rendered.all("StatefulSet") or rendered.all("Deployment"))[0]


class Workers(unittest.TestCase):
    def test_lint_accepts_every_pipeline_that_is_rendered(self):
        for name, rendered in of("fencepost"):
            with self.subTest(values=name):
                map_name = workers_of(rendered)["metadata"]["name"]
                check_lint(self, rendered.one("ConfigMap", map_name)["data"])

    def test_a_pod_runs_every_pipeline_of_the_config_map_and_no_other(self):
        for _, rendered in of("fencepost"):
            deployment = workers_of(rendered)
            data = rendered.one("ConfigMap", deployment["metadata"]["name"])["data"]
            arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
            self.assertEqual(arguments[0], "run")
            self.assertEqual(arguments[1:], [f"/etc/fencepost/{file}" for file in sorted(data)])

    def test_a_pod_has_longer_to_stop_than_a_worker_needs_to_give_up(self):
        for name, rendered in of("fencepost"):
            deployment = workers_of(rendered)
            data = rendered.one("ConfigMap", deployment["metadata"]["name"])["data"]
            longest = max(shutdown_timeout(text) for text in data.values())
            grace = deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
            # `run` ends whatever hangs ten seconds after shutdown_timeout: run.cc, kLastResort.
            self.assertGreaterEqual(grace, longest + 10 + 5, name)

    def test_a_changed_pipeline_rolls_the_pods_and_a_changed_label_of_the_chart_does_not(self):
        def checksum(values):
            rendered = Rendered("fencepost", values)
            template = rendered.one("Deployment")["spec"]["template"]
            return template["metadata"]["annotations"]["checksum/pipelines"]

        before = WORKERS["minimal"]
        after = {"pipelines": {"orders": before["pipelines"]["orders"] + "# changed\n"}}
        self.assertEqual(checksum(before), checksum({**before, "replicas": 9}))
        self.assertNotEqual(checksum(before), checksum(after))
        for _, rendered in of("fencepost"):
            labels = rendered.pods()[0]["metadata"]["labels"]
            self.assertNotIn("helm.sh/chart", labels)

    def test_a_rollout_and_a_drain_never_take_all_workers(self):
        for name, rendered in of("fencepost"):
            spec = workers_of(rendered)["spec"]
            if "updateStrategy" in spec:  # a StatefulSet's: one pod after the other
                self.assertEqual(spec["updateStrategy"], {"type": "RollingUpdate"})
                continue
            self.assertEqual(spec["strategy"]["type"], "RollingUpdate")
            rolling = spec["strategy"]["rollingUpdate"]
            self.assertGreater(rolling["maxSurge"] + rolling["maxUnavailable"], 0)
            if spec.get("replicas", 2) > 1:
                self.assertLess(rolling["maxUnavailable"], spec.get("replicas", 2), name)

    def test_the_user_is_the_images(self):  # what else a pod needs to run: pods_test.py
        for _, rendered in of("fencepost"):
            user = rendered.pods()[0]["spec"]["securityContext"]["runAsUser"]
            self.assertIn(f"\nUSER {user}\n", (SOURCE / "deploy/Dockerfile").read_text())

    def test_secrets_are_referred_to_and_never_made(self):
        rendered = ALL["fencepost", "full"]
        self.assertEqual(rendered.all("Secret"), [])
        worker = rendered.pods()[0]["spec"]["containers"][0]
        environment = {e["name"]: e for e in worker["env"]}
        self.assertEqual(environment["REDIS_PASSWORD"]["valueFrom"],
                         {"secretKeyRef": {"name": "fencepost-locks", "key": "password"}})
        mounts = {m["mountPath"]: m["name"] for m in worker["volumeMounts"]}
        volumes = {v["name"]: v for v in rendered.pods()[0]["spec"]["volumes"]}
        volume = volumes[mounts["/run/secrets/shop-db"]]
        self.assertEqual(volume["secret"], {"secretName": "shop-db", "defaultMode": 0o440})

    def test_autoscaling_targets_the_deployment_and_owns_its_replicas(self):
        for name, kind in (("keda", "ScaledObject"), ("hpa", "HorizontalPodAutoscaler")):
            rendered = ALL["fencepost", name]
            deployment, scaler = rendered.one("Deployment"), rendered.one(kind)
            self.assertNotIn("replicas", deployment["spec"])
            target = scaler["spec"]["scaleTargetRef"]
            self.assertEqual(target["name"], deployment["metadata"]["name"])
            self.assertEqual(target["kind"], "Deployment")
        for name in ("minimal", "full", "bare"):
            rendered = ALL["fencepost", name]
            self.assertIn("replicas", rendered.one("Deployment")["spec"])
            self.assertFalse(rendered.all("ScaledObject"))
            self.assertFalse(rendered.all("HorizontalPodAutoscaler"))

    def test_static_members_are_pods_that_keep_their_names(self):
        rendered = ALL["fencepost", "static"]
        self.assertEqual(rendered.all("Deployment"), [])
        workers, service = rendered.one("StatefulSet"), rendered.one("Service")
        self.assertEqual(workers["spec"]["serviceName"], service["metadata"]["name"])
        self.assertEqual(service["spec"]["clusterIP"], "None")
        self.assertEqual(workers["spec"]["podManagementPolicy"], "Parallel")
        target = rendered.one("HorizontalPodAutoscaler")["spec"]["scaleTargetRef"]
        self.assertEqual(target["kind"], "StatefulSet")
        self.assertEqual(target["name"], workers["metadata"]["name"])
        long = Rendered("fencepost", WORKERS["static"], name="r" * 53)
        self.assertLessEqual(len(long.one("StatefulSet")["metadata"]["name"]), 52)
        self.assertEqual(long.problems(), [])

    def test_keda_looks_at_the_lag_of_every_topic_of_every_pipeline(self):
        scaling = {"mode": "keda", "keda": {"authenticationRef": "kafka"}}
        rendered = Rendered("fencepost", {**WORKERS["full"], "autoscaling": scaling})
        self.assertEqual(rendered.problems(), [])
        triggers = rendered.one("ScaledObject")["spec"]["triggers"]
        seen = [(t["metadata"]["bootstrapServers"], t["metadata"]["consumerGroup"],
                 t["metadata"]["topic"]) for t in triggers]
        self.assertEqual(seen, [("kafka-1:9092,kafka-2:9092", "billing", "orders"),
                                ("kafka-1:9092,kafka-2:9092", "billing", "refunds"),
                                ("kafka-1:9092", "payments-eu", "payments")])
        for trigger in triggers:
            self.assertEqual(trigger["type"], "kafka")
            # One record that fails holds the committed offset: it is no work for more workers.
            for limit in ("excludePersistentLag", "limitToPartitionsWithLag"):
                self.assertEqual(trigger["metadata"][limit], "true")
        one = ALL["fencepost", "keda"].one("ScaledObject")["spec"]["triggers"][0]
        self.assertEqual(one["authenticationRef"], {"name": "kafka"})
        text = WORKERS["minimal"]["pipelines"]["orders"].replace(
            '["kafka:9092"], topics: [orders]', '"PLAINTEXT://a:1, b:2", topics: "orders, refunds"')
        rendered = Rendered("fencepost", {"pipelines": {"orders": text}, "autoscaling": scaling})
        seen = [(t["metadata"]["bootstrapServers"], t["metadata"]["topic"])
                for t in rendered.one("ScaledObject")["spec"]["triggers"]]  # fmt: skip
        self.assertEqual(seen, [("a:1,b:2", "orders"), ("a:1,b:2", "refunds")])

    def test_keda_with_a_prometheus_looks_at_the_unfinished_records_of_every_pipeline(self):
        scaling = {"mode": "keda", "keda": {"prometheus": "http://prometheus:9090",
                                            "lagThreshold": 500}}
        rendered = Rendered("fencepost", {**WORKERS["full"], "autoscaling": scaling})
        self.assertEqual(rendered.problems(), [])
        triggers = rendered.one("ScaledObject")["spec"]["triggers"]
        self.assertEqual({t["type"] for t in triggers}, {"prometheus"})
        for trigger, pipeline in zip(triggers, ("orders", "payments-eu"), strict=True):
            self.assertEqual(trigger["metadata"], {
                "serverAddress": "http://prometheus:9090", "threshold": "500",
                "query": "sum(fencepost_consumer_lag_records"
                         f'{{namespace="prod", pipeline="{pipeline}"}})',
                "ignoreNullValues": "false"})

    def test_prometheus_finds_the_pods_that_are_not_ready_too(self):
        rendered = ALL["fencepost", "full"]
        service, monitor = rendered.one("Service"), rendered.one("ServiceMonitor")
        self.assertTrue(service["spec"]["publishNotReadyAddresses"])
        spec = monitor["spec"]
        self.assertTrue(selected(spec["selector"]["matchLabels"], service["metadata"]["labels"]))
        self.assertEqual(spec["namespaceSelector"], {"matchNames": ["prod"]})
        (endpoint,) = spec["endpoints"]
        self.assertEqual(endpoint, {
            "port": "http", "path": "/metrics", "scheme": "http", "interval": "30s",
            "relabelings": [{"sourceLabels": ["__meta_kubernetes_pod_name"],
                             "targetLabel": "instance"}]})
        self.assertEqual(service["spec"]["ports"][0]["name"], endpoint["port"])
        self.assertEqual(monitor["metadata"]["labels"]["release"], "prometheus")
        values = {**WORKERS["minimal"], "podMonitor": {"enabled": True, "interval": "30s"}}
        rendered = Rendered("fencepost", values)
        self.assertEqual((rendered.problems(), rendered.all("ServiceMonitor")), ([], []))
        by_pod = rendered.one("PodMonitor")["spec"]
        self.assertEqual(by_pod.pop("podMetricsEndpoints"), spec.pop("endpoints"))
        self.assertEqual(by_pod, {**spec, "selector": by_pod["selector"]})
        (pod,) = rendered.pods()
        self.assertTrue(selected(by_pod["selector"]["matchLabels"], pod["metadata"]["labels"]))

    def test_tls_of_the_port_is_known_to_probes_and_to_prometheus(self):
        good = WORKERS["minimal"]
        text = good["pipelines"]["orders"]
        port = ("observe: {tls: {certificate: /t.crt, key: /t.key}, "
                "auth: {bearer: '${T}', open: [live, ready]}}\n")
        more = {"tlsConfig": {"insecureSkipVerify": True},
                "authorization": {"credentials": {"name": "port", "key": "token"}}}
        for pipelines, scheme in (({"orders": text}, "http"), ({"orders": text + port}, "https")):
            for kind, endpoints in (("ServiceMonitor", "endpoints"),
                                    ("PodMonitor", "podMetricsEndpoints")):
                monitor = kind[0].lower() + kind[1:]
                rendered = Rendered("fencepost", {**good, "pipelines": pipelines,
                                                  monitor: {"enabled": True, "endpoint": more}})
                self.assertEqual(rendered.problems(), [])
                (endpoint,) = rendered.one(kind)["spec"][endpoints]
                self.assertEqual(endpoint["scheme"], scheme)
                self.assertEqual({key: endpoint[key] for key in more}, more)
                (container,) = rendered.pods()[0]["spec"]["containers"]
                for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                    self.assertEqual(container[probe]["httpGet"]["scheme"], scheme.upper())

    def test_the_rules_are_those_of_deploy_prometheus_and_promtool_accepts_them(self):
        rule = ALL["fencepost", "full"].one("PrometheusRule")
        groups = [group for groups in rule_files().values() for group in groups]
        self.assertTrue(any("alert" in r for group in groups for r in group["rules"]))
        self.assertEqual(rule["spec"]["groups"], groups)
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            yaml.safe_dump(rule["spec"], file)
            file.flush()
            self.assertIn("SUCCESS", run("promtool", "check", "rules", file.name).stdout)

    def test_the_dashboard_is_the_one_of_deploy_grafana_and_fits_a_config_map(self):
        config = ALL["fencepost", "full"].one("ConfigMap", "test-fencepost-dashboard")
        text = config["data"]["fencepost.json"]
        self.assertEqual(text, DASHBOARD.read_text())
        self.assertLess(len(text.encode()), 1 << 20)
        self.assertEqual(config["metadata"]["labels"]["grafana_dashboard"], "1")

    def test_the_address_of_the_runbooks_takes_the_place_of_the_links_within(self):
        url = "https://wiki/ops/RUN.md?ref=main"
        without = Rendered("fencepost", WORKERS["full"])
        if not runbooks_at():
            self.assertNotRegex(without.text, r"https?://[^\s\"]*RUNBOOKS")
        linked = Rendered("fencepost", {**WORKERS["full"], "runbookUrl": url})
        plain = without.one("PrometheusRule")["spec"]["groups"]
        for group in plain:
            for rule in group["rules"]:
                if "alert" in rule:
                    within = (runbooks_at() or "deploy/RUNBOOKS.md") + f"#{rule['alert'].lower()}"
                    self.assertEqual(rule["annotations"].pop("runbook_url"), within)
        groups = linked.one("PrometheusRule")["spec"]["groups"]
        alerts = [r for group in groups for r in group["rules"] if "alert" in r]
        self.assertGreater(len(alerts), 10)
        for alert in alerts:
            found = alert["annotations"].pop("runbook_url")
            self.assertEqual(found, f"{url}#{alert['alert'].lower()}")
        self.assertEqual(groups, plain, "nothing else changed")

        made = linked.one("ConfigMap", "test-fencepost-dashboard")["data"]["fencepost.json"]
        dashboard, ours = json.loads(made), json.loads(DASHBOARD.read_text())
        self.assertEqual([link["url"] for link in dashboard.pop("links")], [url])
        ours.pop("links")
        for panel, own in zip(dashboard["panels"], ours["panels"], strict=True):
            if own.get("targets"):
                anchor = own["description"].rpartition("#")[2]
                self.assertEqual([link["url"] for link in panel.pop("links")], [f"{url}#{anchor}"])
                own.pop("links")
        self.assertEqual(dashboard, ours, "nothing else changed")

    def test_the_chart_points_at_the_rules_and_the_dashboard_and_copies_nothing(self):
        for name, source in LINKS.items():
            link = CHARTS / "fencepost" / "files" / name
            self.assertTrue(link.is_symlink(), link)
            self.assertEqual(link.resolve(), (SOURCE / source).resolve())

    def test_wrong_values_are_refused_in_words_that_help(self):
        good = WORKERS["minimal"]
        text = good["pipelines"]["orders"]
        for change, words in (
            ({"pipelines": {}}, "give at least one file: --set-file"),
            ({"replica": 3}, "replica is not allowed"),
            ({"replicas": 0}, "replicas: Must be greater than or equal to 1"),
            ({"replicas": "3"}, "replicas: Invalid type"),
            ({"image": {"name": "x"}}, "image: Additional property name is not allowed"),
            ({"image": {"digest": "latest"}}, "image.digest: Does not match pattern"),
            ({"autoscaling": {"mode": "on"}}, "must be one of the following"),
            ({"autoscaling": {"mode": "hpa", "minReplicas": 20}}, "minReplicas is above"),
            ({"spread": {"hosts": "yes"}}, "spread.hosts must be one of the following"),
            ({"env": {"FENCEPOST_WORKER": "a"}}, "env"),
            ({"runbookUrl": "https://wiki/RUN.md#part"}, "runbookUrl: Does not match pattern"),
            ({"secrets": {"env": [{"name": "A", "value": "b"}]}}, "secret is required"),
            ({"pipelines": {"Orders": text}}, "pipelines"),
            ({"pipelines": {"orders": "a: ["}}, "pipelines.orders is no YAML"),
            ({"pipelines": {"orders": "a: 1"}}, "pipelines.orders has no name:"),
            ({"pipelines": {"orders": text, "other": text}}, "have the same name: orders"),
            ({"pipelines": {"orders": text + "shutdown_timeout: 26s\n"}},
             "shutdown_timeout 26s is above shutdownTimeoutSeconds: 25"),
            ({"rollout": {"maxSurge": 0}}, "no pod could ever be replaced"),
            ({"rollout": {"maxUnavailable": 3}}, "would let a rollout take all 3 workers"),
            ({"podDisruptionBudget": {"maxUnavailable": 3}}, "would let a drain take all 3 workers"),
            ({"podDisruptionBudget": {"maxUnavailable": 2}, "autoscaling": {"mode": "hpa"}},
             "would let a drain take all 2 workers"),
            ({"autoscaling": {"mode": "keda"},
              "pipelines": {"orders": text.replace("kafka:9092", "${BROKERS}")}},
             "which KEDA cannot see"),
            ({"autoscaling": {"mode": "keda"},
              "pipelines": {"orders": text.replace("topics: [orders]", "topics: [a, '^b.*']")}},
             "kafka.topics has a pattern"),
            ({"pipelines": {"orders": text + "observe: {auth: {bearer: '${T}', open: [live]}}\n"}},
             "shuts out the kubelet"),
            ({"pipelines": {"orders": text + "observe: {tls: {client_ca: /ca.crt}}\n"}},
             "write observe.auth.open: [live, ready]"),
            ({"serviceMonitor": {"enabled": True},
              "pipelines": {"orders": text + "observe: {tls: {certificate: /c, key: /k}}\n"}},
             "write serviceMonitor.endpoint.tlsConfig"),
            ({"podMonitor": {"enabled": True}, "pipelines": {
                "orders": text + "observe: {auth: {bearer: '${T}', open: [live, ready]}}\n"}},
             "write podMonitor.endpoint.authorization or basicAuth"),
            ({name: {"enabled": True} for name in ("serviceMonitor", "podMonitor")},
             "would count each worker twice"),
        ):
            with self.subTest(change=change):
                with self.assertRaises(ChartError) as refused:
                    Rendered("fencepost", {**good, **change})
                self.assertIn(words, str(refused.exception))

    def test_shutdown_timeouts_are_read_in_all_their_units(self):
        text = WORKERS["minimal"]["pipelines"]["orders"]
        for timeout in ("900ms", "25s", "25001ms", "1m", "1h"):
            values = {"pipelines": {"orders": text + f"shutdown_timeout: {timeout}\n"},
                      "shutdownTimeoutSeconds": -(-int(seconds(timeout) * 1000) // 1000)}
            Rendered("fencepost", values)
            if values["shutdownTimeoutSeconds"] > 1:
                values["shutdownTimeoutSeconds"] -= 1
                with self.assertRaises(ChartError, msg=timeout):
                    Rendered("fencepost", values)


class Locks(unittest.TestCase):
    def test_each_node_is_a_stateful_set_of_its_own_that_an_upgrade_does_not_touch(self):
        for name, rendered in of("fencepost-locks"):
            sets = rendered.all("StatefulSet")
            self.assertEqual(len(sets), LOCKS[name].get("nodes", 5))
            for node in sets:
                spec = node["spec"]
                self.assertEqual(spec["replicas"], 1)
                self.assertEqual(spec["updateStrategy"], {"type": "OnDelete"})
                self.assertEqual(spec["serviceName"], node["metadata"]["name"])
                rendered.one("Service", spec["serviceName"])
                (claim,) = spec["volumeClaimTemplates"]
                self.assertEqual(claim["spec"]["accessModes"], ["ReadWriteOnce"])

    def test_a_secret_of_no_name_is_made_once_and_kept(self):
        def made(secret=None) -> dict[str, str]:
            secret = secret and {k: base64.b64encode(v.encode()).decode() for k, v in secret.items()}
            found = Rendered("fencepost-locks", {}, secret=secret).one("Secret")
            self.assertEqual(found["metadata"]["annotations"], {"helm.sh/resource-policy": "keep"})
            return {k: base64.b64decode(v).decode() for k, v in found["data"].items()}

        def acl(*passwords: str) -> str:
            return run(SOURCE / "deploy/redis/make-acl", input="\n".join(passwords)).stdout

        first, other = made(), made()
        self.assertRegex(first["password"], r"^[A-Za-z0-9]{48}$")
        self.assertNotEqual(first["password"], other["password"])
        for found, kept in (
            (first, first),
            ({**first, "users.acl": first["users.acl"].replace(" +publish", "")}, first),
            ({"password": first["password"]}, first),
            # While it is being changed to "new", and afterwards.
            ({**first, "users.acl": acl(first["password"], "new")},
             {**first, "users.acl": acl(first["password"], "new")}),
            ({"password": "new", "users.acl": acl("new")},
             {"password": "new", "users.acl": acl("new")}),
            ({"password": "new", "users.acl": acl("old")},
             {"password": "new", "users.acl": acl("old", "new")}),
        ):  # fmt: skip
            self.assertEqual(made(found), kept, found)
        self.assertEqual(first["users.acl"], acl(first["password"]))

    def test_an_upgrade_of_the_chart_alone_leaves_no_node_waiting_for_a_restart(self):
        for _, rendered in of("fencepost-locks"):
            for pod in rendered.pods():
                self.assertNotIn("helm.sh/chart", pod["metadata"]["labels"])

    def test_one_budget_stands_over_all_nodes(self):
        for _, rendered in of("fencepost-locks"):
            chosen = rendered.one("PodDisruptionBudget")["spec"]["selector"]["matchLabels"]
            nodes = rendered.all("StatefulSet")
            self.assertTrue(all(selected(chosen, n["spec"]["template"]["metadata"]["labels"])
                                for n in nodes))

    def test_no_two_nodes_share_a_host(self):
        for name, rendered in of("fencepost-locks"):
            soft = LOCKS[name].get("antiAffinity") == "soft"
            for node in rendered.all("StatefulSet"):
                pod = node["spec"]["template"]
                rules = pod["spec"]["affinity"]["podAntiAffinity"]
                required = rules.get("requiredDuringSchedulingIgnoredDuringExecution", [])
                preferred = [r["podAffinityTerm"] for r in
                             rules["preferredDuringSchedulingIgnoredDuringExecution"]]
                hosts = [t for t in (preferred if soft else required)
                         if t["topologyKey"] == "kubernetes.io/hostname"]
                self.assertEqual(bool(required), not soft)
                self.assertEqual(len(hosts), 1)
                for other in rendered.all("StatefulSet"):
                    labels = other["spec"]["template"]["metadata"]["labels"]
                    self.assertTrue(selected(hosts[0]["labelSelector"]["matchLabels"], labels))

    def test_only_workers_and_the_init_job_reach_a_node(self):
        workers = ALL["fencepost", "minimal"].pods()[0]["metadata"]["labels"]
        for name in ("one", "five", "tls"):
            policy = ALL["fencepost-locks", name].one("NetworkPolicy")["spec"]
            self.assertEqual(policy["policyTypes"], ["Ingress", "Egress"])
            self.assertNotIn("egress", policy)
            peers = [p["podSelector"]["matchLabels"] for p in policy["ingress"][0]["from"]]
            job = ALL["fencepost-locks", name].one("Job")
            init = job["spec"]["template"]["metadata"]["labels"]
            self.assertEqual([selected(p, init) for p in peers], [True, False])
            self.assertEqual([selected(p, workers) for p in peers], [False, True])

    def test_the_store_is_created_after_the_install_and_not_on_upgrade(self):
        for name, rendered in of("fencepost-locks"):
            if not LOCKS[name].get("init", {}).get("enabled", True):
                self.assertFalse(rendered.all("Job"))
                continue
            job = rendered.one("Job")
            self.assertEqual(job["metadata"]["annotations"]["helm.sh/hook"], "post-install")
            words = job["spec"]["template"]["spec"]["containers"][0]["args"]
            self.assertEqual(words[:3], ["locks", "init", "/etc/fencepost/init.yaml"])
            self.assertIn("--if-missing", words)
            self.assertEqual(words[words.index("--max-ttl") + 1], "30s")
            timeout = int(words[words.index("--timeout") + 1])
            self.assertLess(timeout, job["spec"]["activeDeadlineSeconds"])

    def test_the_file_of_the_init_job_names_every_node_and_lint_accepts_it(self):
        for name, rendered in of("fencepost-locks"):
            if not rendered.all("Job"):
                continue
            text = rendered.one("ConfigMap")["data"]["init.yaml"]
            check_lint(self, {"init.yaml": text})
            redis = yaml.safe_load(text)["lock"]["redis"]
            services = {s["metadata"]["name"]: s for s in rendered.all("Service")}
            hosts = [node.split(".")[0] for node in redis["nodes"]]
            self.assertEqual(hosts, sorted(services))
            port = next(iter(services.values()))["spec"]["ports"][0]["port"]
            self.assertTrue(all(n.endswith(f".prod.svc:{port}") for n in redis["nodes"]))
            self.assertEqual("tls" in redis, "tls" in LOCKS[name])
            mounts = [m["mountPath"] for m in rendered.one("Job")["spec"]["template"]["spec"]
                      ["containers"][0]["volumeMounts"]]
            self.assertIn("/run/secrets/locks", mounts)
            for path in re.findall(r"/run/secrets/[a-z-]+", text):
                self.assertIn(path, mounts)

    def test_wrong_values_are_refused_in_words_that_help(self):
        good = LOCKS["five"]
        for change, words in (
            ({"nodes": 4}, "nodes must be one of the following: 1, 3, 5, 7"),
            ({"maxmemory": "lots"}, "maxmemory: Does not match pattern"),
            ({"password": "x"}, "password is not allowed"),
            ({"antiAffinity": "no"}, "antiAffinity must be one of the following"),
            ({"maxSkew": "5"}, "maxSkew: Does not match pattern"),
        ):
            with self.subTest(change=change):
                with self.assertRaises(ChartError) as refused:
                    Rendered("fencepost-locks", {**good, **change})
                self.assertIn(words, str(refused.exception))


if __name__ == "__main__":
    unittest.main()
