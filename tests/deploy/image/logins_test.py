"""The image's worker logs in at a real Kafka in each way that it offers, and over TLS."""

import json
import unittest

from support.certificates import Authority
from support.dockerfile import Root
from support.fleet import LockStore, folder, shared
from support.kafka import Kafka
from support.processes import free_port, http_get, run, wait_until
from support.token_provider import TokenProvider

PACKAGE = "org.apache.kafka.common.security"
# The broker closes a connection whose token is older than it says, unless the client logs in again.
LISTENER = f"""
listeners=PLAINTEXT://127.0.0.1:{{{{port}}}},CONTROLLER://127.0.0.1:{{{{controller}}}},S://127.0.0.1:{{port}}
advertised.listeners=PLAINTEXT://127.0.0.1:{{{{port}}}},S://localhost:{{port}}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,S:SASL_SSL
sasl.enabled.mechanisms=SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER
listener.name.s.scram-sha-256.sasl.jaas.config={PACKAGE}.scram.ScramLoginModule required;
listener.name.s.scram-sha-512.sasl.jaas.config={PACKAGE}.scram.ScramLoginModule required;
listener.name.s.oauthbearer.sasl.jaas.config={PACKAGE}.oauthbearer.OAuthBearerLoginModule required;
listener.name.s.oauthbearer.sasl.server.callback.handler.class={PACKAGE}.oauthbearer.OAuthBearerValidatorCallbackHandler
listener.name.s.oauthbearer.sasl.oauthbearer.jwks.endpoint.url={{jwks}}
listener.name.s.oauthbearer.sasl.oauthbearer.expected.audience={TokenProvider.AUDIENCE}
listener.name.s.oauthbearer.connections.max.reauth.ms=3600000
listener.name.s.ssl.keystore.type=PEM
listener.name.s.ssl.keystore.location={{pem}}
"""  # noqa: E501

PIPELINE = """version: 1
name: {name}
guarantee: at-least-once
kafka:
  brokers: ["localhost:{kafka}"]
  topics: [{name}]
  start_from: earliest
  tls: {{ca: /etc/fencepost/ca.crt}}
  sasl: {{{sasl}}}
record_id: json:/id
lock: {{redis: {{nodes: [{nodes}]}}}}
dead_letter: {{topic: {name}.dead}}
output: {{stdout: {{}}}}
"""

SCRAM = "mechanism: {}, username: billing, password: {}"
OAUTH = ('mechanism: OAUTHBEARER, oauth: {{token_url: "{}", client_id: billing,'
         ' client_secret: {}, scope: "kafka write"}}')
LIFE = 8  # seconds


class Login(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        test, home = shared(cls), folder(shared(cls))
        authority = Authority(home)
        certificate, key = authority.sign("kafka", ["localhost"])
        pem = home / "kafka.pem"
        pem.write_text(key.read_text() + certificate.read_text())
        cls.provider = TokenProvider(test, "token-secret", LIFE)
        cls.port = free_port()
        allowed = f"{cls.provider.token_url},{cls.provider.jwks_url}"
        cls.kafka = Kafka(
            test, LISTENER.format(port=cls.port, jwks=cls.provider.jwks_url, pem=pem),
            scram=[f"{m}=[name=billing,password={m}-secret]"
                   for m in ("SCRAM-SHA-256", "SCRAM-SHA-512")],
            java=[f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={allowed}"])  # fmt: skip
        cls.locks = LockStore(test, 3, "30s")
        cls.root = Root(cls)
        cls.root.add(authority.ca, "/etc/fencepost/ca.crt")

    def start(self, name, sasl):
        for topic in (name, f"{name}.dead"):
            self.kafka.create_topic(topic, 1)
        file = folder(self) / "p.yaml"
        file.write_text(PIPELINE.format(name=name, kafka=self.port, sasl=sasl,
                                        nodes=self.locks.list))  # fmt: skip
        inside = f"/etc/fencepost/{name}.yaml"
        self.root.add(file, inside)
        self.http = f"http://127.0.0.1:{free_port()}"
        return self.root.start(self, "fencepost", "run", inside, "--http", self.http[7:])

    def send(self, name, *ids):
        for one in ids:
            self.kafka.send(name, 0, json.dumps({"id": one}) if one else "not JSON")
        self.kafka.flush()

    def effects(self, worker) -> list:
        lines = [line for line in worker.output().splitlines() if line.startswith('{"record_id"')]
        return [json.loads(line)["record_id"] for line in lines]

    def shows(self, worker, *ids):
        try:
            wait_until(lambda: self.effects(worker) == list(ids), 60, "the effects")
        except AssertionError as late:
            raise AssertionError(f"{late}\n{worker.output()}") from late

    def works(self, name, sasl):
        """Reads, and writes a dead letter: consumer and producer are logged in."""
        worker = self.start(name, sasl)
        self.send(name, "a", "", "b")
        self.shows(worker, "a", "b")
        counted = lambda: json.loads(http_get(self.http + "/status")[1])  # noqa: E731
        wait_until(lambda: counted()["pipelines"][0]["counts"]["dead_lettered"] == 1, 30, "a letter")
        return worker

    def refused(self, name, sasl, *words):
        worker = self.start(name, sasl)
        wait_until(lambda: all(w in http_get(self.http + "/ready")[1] for w in words), 60,
                   f"a refusal that names {words}")
        self.assertTrue(worker.running())
        for text in (worker.output(), http_get(self.http + "/status")[1]):
            self.assertNotIn("wrong-secret", text)

    def test_scram_sha_256(self):
        self.works("scram256", SCRAM.format("SCRAM-SHA-256", "SCRAM-SHA-256-secret"))

    def test_scram_sha_512(self):
        self.works("scram512", SCRAM.format("SCRAM-SHA-512", "SCRAM-SHA-512-secret"))

    def test_a_wrong_password_is_named_by_ready_and_waited_for(self):
        self.refused("wrong", SCRAM.format("SCRAM-SHA-512", "wrong-secret"), "uthentication failed")

    def test_oauthbearer_renews_its_token_and_stays_logged_in(self):
        worker = self.works("oauth", OAUTH.format(self.provider.token_url, "token-secret"))
        before = self.provider.issued
        # Of the consumer and of the producer, each more than twice.
        wait_until(lambda: self.provider.issued >= before + 5, 60, "newer tokens")
        self.send("oauth", "c")
        self.shows(worker, "a", "b", "c")
        self.assertNotIn("token-secret", worker.output())

    def test_a_client_that_the_provider_refuses_is_named_by_ready_and_waited_for(self):
        self.refused("wrongoauth", OAUTH.format(self.provider.token_url, "wrong-secret"), "token")

    def test_this_worker_s_library_is_one_that_can(self):
        said = run(*self.root.command("fencepost", "version")).stdout
        version = said.partition("librdkafka ")[2].split()[0].strip(",;")
        self.assertGreaterEqual(tuple(map(int, version.split("."))), (2, 6, 1), said)


if __name__ == "__main__":
    unittest.main()
