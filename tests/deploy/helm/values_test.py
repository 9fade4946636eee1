"""Values as companies have them: what the charts make of them, and what they refuse in words."""

import pathlib
import re
import unittest

import yaml
from support.charts import CHARTS, KUBERNETES, ChartError, Helm, Rendered, values_files
from support.pipelines import check_lint
from support.processes import SOURCE, run

HERE = pathlib.Path(__file__).parent
MINIMAL = values_files(HERE / "workers")["minimal"]
TEXT = MINIMAL["pipelines"]["orders"]
FIVE = values_files(HERE / "locks")["five"]


def workers(**values) -> Rendered:
    return Rendered("fencepost", {**MINIMAL, **values})


def locks(**values) -> Rendered:
    return Rendered("fencepost-locks", {**FIVE, **values})


class Refusals(unittest.TestCase):
    def check(self, render, values, words):
        with self.subTest(values=values):
            with self.assertRaises(ChartError) as refused:
                render(**values)
            self.assertIn(words, str(refused.exception))

    def test_a_secret_that_is_written_into_a_pipeline_is_refused(self):
        redis = "locks-c:6379\"], password: {}}}"
        sasl = "topics: [orders], sasl: {{mechanism: PLAIN, username: u, password: {}}}}}"
        oauth = ("topics: [orders], sasl: {{mechanism: OAUTHBEARER, oauth: {{token_url: 'http://i/t',"
                 " client_id: c, client_secret: {}}}}}}}")  # fmt: skip
        registry = ("topics: [orders], decode: {{value: avro, registry: {{url: 'http://r',"
                    " username: u, password: {}}}}}}}")  # fmt: skip
        bearer = ("topics: [orders], decode: {{value: avro, registry: {{url: 'http://r',"
                  " bearer: {}}}}}}}")  # fmt: skip
        encode = ("kafka: {{topic: out, encode: {{value: {{format: avro}}, registry: {{url:"
                  " 'http://r', username: u, password: {}}}}}, ")  # fmt: skip
        mysql = "mysql: {{host: db, user: app, password: {}, database: shop, "
        for before, after, key in (
            ('locks-c:6379"]}', redis, "lock.redis.password"),
            ("topics: [orders]}", sasl, "kafka.sasl.password"),
            ("topics: [orders]}", oauth, "kafka.sasl.oauth.client_secret"),
            ("topics: [orders]}", registry, "kafka.decode.registry.password"),
            ("topics: [orders]}", bearer, "kafka.decode.registry.bearer"),
            ('postgres: {dsn: "postgresql://app@db/shop", ', mysql, "output.mysql.password"),
            ('postgres: {dsn: "postgresql://app@db/shop", ', encode,
             "output.kafka.encode.registry.password"),
            ("app@db/shop", "app:{}@db/shop", "output.postgres.dsn"),
            ("postgresql://app@db/shop", "host=db password={}", "output.postgres.dsn"),
        ):
            self.assertIn(before, TEXT)
            for secret, good in (("hunter2", False), ('"${SECRET:-hunter2}"', False),
                                 ('"$${SECRET}"', False), ('"${SECRET}"', True),
                                 ('"${SECRET:-}"', True), ("{file: /run/x}", True)):  # fmt: skip
                if "dsn" in key and secret.startswith("{"):
                    continue
                secret = secret.strip('"') if "dsn" in key else secret
                text = TEXT.replace(before, after.format(secret))
                values = {"pipelines": {"orders": text}}
                if good:
                    workers(**values)
                else:
                    self.check(workers, values, f"pipelines.orders: {key}")

    def test_a_secret_in_a_header_a_url_or_a_setting_of_librdkafka_is_refused(self):
        def pipeline(**sections):
            made = yaml.safe_load(TEXT)
            made["kafka"] |= sections.pop("kafka", {})
            return {"pipelines": {"orders": yaml.safe_dump(made | sections)}}

        def headers(**named):
            return {"handler": {"http": {"url": "https://api/x", "headers": named}}}

        def auth(**ways):
            return {"handler": {"http": {"url": "https://api/x", "auth": ways}}}

        def port(**ways):
            return {"observe": {"auth": {**ways, "open": ["live", "ready"]}}}

        def nodes(url):
            return {"lock": {"redis": {"nodes": [url]}}}

        pem = "-----BEGIN PRIVATE KEY-----\nMIIE\n"
        for sections, words in (
            (auth(basic={"username": "u", "password": "hunter2"}),
             "handler.http.auth.basic.password is"),
            (auth(bearer="hunter2"), "handler.http.auth.bearer is"),
            (auth(oauth2={"client_secret": "hunter2"}), "handler.http.auth.oauth2.client_secret is"),
            (port(bearer="hunter2"), "observe.auth.bearer is"),
            (port(basic={"username": "u", "password": "hunter2"}),
             "observe.auth.basic.password is"),
            ({"observe": {"control_token": "hunter2"}}, "observe.control_token is"),
            ({"dead_letter": {"topic": "t", "sasl": {"password": "hunter2"}}},
             "dead_letter.sasl.password is"),
            ({"output": {"kafka": {"sasl": {"oauth": {"client_secret": "hunter2"}}}}},
             "output.kafka.sasl.oauth.client_secret is"),
            (headers(Authorization="Bearer hunter2"), "handler.http.headers.Authorization is"),
            (headers(**{"x-api-key": "hunter2"}), "handler.http.headers.x-api-key is"),
            (headers(Cookie="${COOKIE:-s=hunter2}"), "handler.http.headers.Cookie is"),
            ({"handler": {"http": {"url": "https://me:hunter2@api/x"}}}, "a URL at https://"),
            ({"handler": {"http": {"url": "https://api/x?v=1&token=hunter2"}}}, "query of a URL"),
            (nodes("redis://:hunter2@locks-a:6379"), "a URL at redis://"),
            (nodes("rediss://me:${P:-hunter2}@locks-a:6379"), "a URL at rediss://"),
            ({"kafka": {"librdkafka": {"ssl.key.password": "hunter2"}}},
             "kafka.librdkafka.ssl.key.password is"),
            ({"kafka": {"librdkafka": {"ssl.key.pem": pem}}}, "kafka.librdkafka.ssl.key.pem is"),
            ({"kafka": {"librdkafka": {"sasl.password": "${P:-hunter2}"}}},
             "kafka.librdkafka.sasl.password is"),
        ):
            self.check(workers, pipeline(**sections), words)
        for sections in (
            headers(Authorization="Bearer ${TOKEN}", Accept="text/plain"),
            {"handler": {"http": {"url": "https://me:${PASSWORD}@api:443/x?token=${TOKEN}&v=1"}}},
            {"handler": {"http": {"url": "https://api:443/@me"}}},
            nodes("redis://me:${PASSWORD}@locks-a:6379"),
            {"kafka": {"librdkafka": {"ssl.key.password": "${P}", "session.timeout.ms": "9000"}}},
            {"tests": [{"name": "a", "given": [{"headers": {"authorization": "x"},
                                                "value": "http://a:b@c"}]}]},
        ):  # fmt: skip
            with self.subTest(sections=sections):
                workers(**pipeline(**sections))

    def test_what_the_api_server_or_the_kubelet_would_refuse_is_refused_in_words(self):
        mount = {"name": "x", "mountPath": "/etc/fencepost/ca"}
        for values, words in (
            ({"podLabels": {"app.kubernetes.io/component": "x"}}, "is the chart's own"),
            ({"secrets": {"files": [{"secret": "ca", "path": "/etc/fencepost/ca"}]}},
             "nothing can be mounted below"),
            ({"extraVolumeMounts": [mount]}, "nothing can be mounted below"),
            ({"secrets": {"files": [{"secret": s, "path": "/run/x"} for s in "ab"]}},
             "two mounts at one path"),
            ({"env": {"A": "1"}, "extraEnv": [{"name": "A", "value": "2"}]}, "A is there twice"),
            ({"extraEnv": [{"name": "FENCEPOST_HTTP", "value": "x"}]}, "is there twice"),
        ):
            self.check(workers, values, words)
        self.check(locks, {"podLabels": {"fencepost/node": "a"}}, "is the chart's own")

    def test_keda_without_a_login_for_brokers_that_want_one_is_refused(self):
        for broker, more in (("kafka:9092", ", tls: {ca: /run/ca.crt}"), ("kafka:9092", ", tls: {}"),
                             ("SSL://kafka:9092", ""),
                             ("kafka:9092", ", librdkafka: {security.protocol: ssl}")):  # fmt: skip
            text = TEXT.replace("topics: [orders]}", f"topics: [orders]{more}}}")
            text = text.replace("kafka:9092", broker)
            values = {"pipelines": {"orders": text}, "autoscaling": {"mode": "keda"}}
            self.check(workers, values, "TriggerAuthentication")
        workers(**{**values, "autoscaling": {"mode": "keda", "keda": {"authenticationRef": "k"}}})
        own = {"triggers": [{"type": "prometheus", "metadata": {}}]}
        workers(**{**values, "autoscaling": {"mode": "keda", "keda": own}})

    def test_a_lock_node_without_room_for_its_maxmemory_is_refused(self):
        roomy = {"limits": {"memory": "1536Mi"}}
        self.check(locks, {"maxmemory": "1gb"}, "resources.limits.memory: 512Mi is below")
        self.check(locks, {"maxmemory": "1gb", "resources": {"limits": {"memory": "1.5G"}},
                           "persistence": {"size": "1Gi"}}, "persistence.size: 1Gi is below")
        locks(maxmemory="1gb", resources=roomy)


class Shapes(unittest.TestCase):
    def test_off_without_quotes_means_off(self):
        # YAML 1.1 reads it as false.
        rendered = workers(autoscaling={"mode": False}, spread={"hosts": False, "zones": False})
        deployment = rendered.one("Deployment")
        self.assertEqual(deployment["spec"]["replicas"], 3)
        self.assertNotIn("topologySpreadConstraints", deployment["spec"]["template"]["spec"])
        zones = workers(spread={"hosts": False}).one("Deployment")["spec"]["template"]["spec"]
        keys = [c["topologyKey"] for c in zones["topologySpreadConstraints"]]
        self.assertEqual(keys, ["topology.kubernetes.io/zone"])

    def test_keys_of_a_secret_and_variables_of_any_kind_reach_the_pod(self):
        host = {"name": "HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}
        files = [{"secret": "tls", "path": "/run/secrets/tls", "keys": ["ca.crt"]}]
        rendered = workers(secrets={"files": files}, extraEnv=[host])
        self.assertEqual(rendered.problems(), [])
        spec = rendered.pods()[0]["spec"]
        self.assertIn(host, spec["containers"][0]["env"])
        (volume,) = [v["secret"] for v in spec["volumes"] if "secret" in v]
        self.assertEqual(volume["items"], [{"key": "ca.crt", "path": "ca.crt"}])

    def test_workers_that_are_not_ready_keep_no_host_from_being_drained(self):
        def policy(version):
            rendered = Rendered("fencepost", MINIMAL, kubernetes=version)
            self.assertEqual(rendered.problems([v for v in KUBERNETES if v >= version]), [])
            return rendered.one("PodDisruptionBudget")["spec"].get("unhealthyPodEvictionPolicy")

        self.assertIsNone(policy("1.25.0"))
        self.assertEqual(policy("1.29.0"), "AlwaysAllow")
        self.assertEqual(policy("1.37.0"), "AlwaysAllow")

    def test_without_the_lag_keda_keeps_a_number_between_the_bounds(self):
        for least, most, expected in ((1, 2, 2), (1, 9, 3), (5, 9, 5)):
            scaling = {"mode": "keda", "minReplicas": least, "maxReplicas": most}
            spec = workers(autoscaling=scaling).one("ScaledObject")["spec"]
            self.assertEqual(spec["fallback"]["replicas"], expected)

    def test_no_pod_gets_the_variables_of_other_services(self):
        for rendered in (workers(), locks()):
            for pod in rendered.pods():
                self.assertIs(pod["spec"]["enableServiceLinks"], False)

    def test_a_lock_node_is_ready_only_some_time_after_its_quarantine(self):
        # So that the disruption budget counts it as away until then; 40 s to load and to be seen.
        for max_ttl, max_skew, quarantine in (("30s", "5s", 40), ("1500ms", "200ms", 2),
                                              ("2m", "1m", 240)):  # fmt: skip
            rendered = locks(init={"maxTtl": max_ttl}, maxSkew=max_skew)
            for node in rendered.all("StatefulSet"):
                (redis,) = node["spec"]["template"]["spec"]["containers"]
                delay = redis["readinessProbe"]["initialDelaySeconds"]
                self.assertEqual(delay, quarantine + 40, max_ttl)
                self.assertNotIn("initialDelaySeconds", redis["livenessProbe"])
            for service in rendered.all("Service"):
                self.assertTrue(service["spec"]["publishNotReadyAddresses"])

    def test_the_job_that_makes_the_store_anew_is_one_that_no_upgrade_runs(self):
        usual = locks().one("Job")
        for enabled in (True, False):
            rendered = locks(init={"force": True, "maxTtl": "45s", "enabled": enabled})
            self.assertEqual(rendered.problems(), [])
            job = rendered.one("Job")
            self.assertEqual(job["metadata"]["name"], usual["metadata"]["name"] + "-force")
            self.assertEqual(job["metadata"]["annotations"], usual["metadata"]["annotations"])
            words = job["spec"]["template"]["spec"]["containers"][0]["args"]
            self.assertIn("--force", words)
            self.assertNotIn("--if-missing", words)
            self.assertEqual(words[words.index("--max-ttl") + 1], "45s")
            self.assertEqual(job["spec"]["template"]["spec"]["volumes"],
                             usual["spec"]["template"]["spec"]["volumes"])  # fmt: skip
            # What it mounts is there in every release, so that nothing has to be upgraded for it.
            off = locks(init={"enabled": False})
            self.assertEqual(rendered.one("ConfigMap"), off.one("ConfigMap"))
            self.assertFalse(off.all("Job"))

    def test_the_init_job_goes_where_the_nodes_may(self):
        place = {"nodeSelector": {"pool": "locks"}, "podLabels": {"team": "platform"},
                 "tolerations": [{"key": "dedicated", "operator": "Exists"}]}  # fmt: skip
        rendered = locks(**place)
        self.assertEqual(rendered.problems(), [])
        for pod in rendered.pods():
            self.assertEqual(pod["spec"]["nodeSelector"], place["nodeSelector"])
            self.assertEqual(pod["spec"]["tolerations"], place["tolerations"])
            self.assertEqual(pod["metadata"]["labels"]["team"], "platform")


class Notes(unittest.TestCase):
    def test_the_nodes_are_restarted_in_the_same_words_in_the_notes_and_in_the_document(self):
        loops = [
            Helm.notes(CHARTS / "fencepost-locks", FIVE, name="locks"),
            (SOURCE / "deploy" / "operations" / "lock-nodes.md").read_text(),
        ]
        loops = [re.search(r"(?ms)^ *for node in a b c d e.*?^ *done\n", text)[0] for text in loops]
        for loop in loops:
            run("bash", "-n", "-c", loop)
        words = {" ".join(loop.replace("-n prod ", "").split()) for loop in loops}
        self.assertEqual(len(words), 1, words)
        self.assertIn("until kubectl wait", *words)
        self.assertIn("= 5;", *words)
        seven = Helm.notes(CHARTS / "fencepost-locks", {**FIVE, "nodes": 7}, name="locks")
        self.assertIn("in a b c d e f g;", seven)
        self.assertIn("= 7;", seven)

    def test_the_lock_section_that_the_lock_nodes_print_is_one_that_lint_accepts(self):
        values = {"nodes": 3, "auth": {"secret": "pw"}, "tls": {"secret": "tls", "caKey": "ca.pem"}}
        said = Helm.notes(CHARTS / "fencepost-locks", values, name="locks", namespace="infra")
        lines = said.splitlines()
        start = lines.index("  lock:")
        section = "\n".join(line[2:] for line in lines[start : lines.index("", start)])
        self.assertIn("locks-fencepost-locks-c.infra.svc:6379", section)
        self.assertIn("keys: [ca.pem]", section)  # not the key of the nodes
        head = TEXT[: TEXT.index("lock:")]
        check_lint(self, {"orders.yaml": head + section + "\n" + TEXT[TEXT.index("output:") :]})
        self.assertIn("with fewer than 3 hosts some stay Pending", said)
        for change in ({"antiAffinity": "soft"}, {"nodes": 1}):
            said = Helm.notes(CHARTS / "fencepost-locks", {**values, **change})
            self.assertNotIn("Pending", said)

    def test_commands_of_the_notes_name_what_is_rendered(self):
        said = Helm.notes(CHARTS / "fencepost-locks", FIVE, name="locks")
        pods = {f"{s['metadata']['name']}-0" for s in
                Rendered("fencepost-locks", FIVE, name="locks").all("StatefulSet")}  # fmt: skip
        self.assertEqual(set(re.findall(r"pod/(locks-fencepost-locks)-\$node-0", said)),
                         {name.rpartition("-")[0].rpartition("-")[0] for name in pods})  # fmt: skip
        self.assertIn("ready (80 seconds after its start", said)
        for scaling in ("off", False, "keda"):
            values = {**MINIMAL, "autoscaling": {"mode": scaling}}
            said = Helm.notes(CHARTS / "fencepost", values, name="orders")
            self.assertEqual(" on 3 workers" in said, scaling != "keda")
        deployment = Rendered("fencepost", MINIMAL, name="orders").one("Deployment")
        worker = deployment["spec"]["template"]["spec"]["containers"][0]
        self.assertIn(f"exec deployment/{deployment['metadata']['name']} -- fencepost locks status "
                      + worker["args"][1], said)  # fmt: skip


if __name__ == "__main__":
    unittest.main()
