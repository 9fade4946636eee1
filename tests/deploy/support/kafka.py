"""A real Kafka broker of one node, and a little of librdkafka by ctypes to fill its topics.

The broker is as in tests/support/kafka_broker.cc; librdkafka is there because the worker needs it.
"""

import ctypes
import pathlib
import tempfile

from support.processes import SOURCE, Process, free_port, run, wait_until

VERSION = "4.2.0"
PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={logs}
auto.create.topics.enable=true
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
"""

PRODUCER, COPY, TOPIC_RESOURCE = 0, 2, 2  # of rdkafka.h
_P, _I, _S = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
_SIGNATURES = {  # name: (result, arguments...)
    "rd_kafka_conf_new": (_P,),
    "rd_kafka_conf_set": (_I, _P, _S, _S, _S, ctypes.c_size_t),
    "rd_kafka_new": (_P, _I, _P, _S, ctypes.c_size_t),
    "rd_kafka_destroy": (None, _P),
    "rd_kafka_flush": (_I, _P, _I),
    "rd_kafka_last_error": (_I,),
    "rd_kafka_err2str": (_S, _I),
    "rd_kafka_topic_new": (_P, _P, _S, _P),
    "rd_kafka_topic_destroy": (None, _P),
    "rd_kafka_produce": (
        _I, _P, ctypes.c_int32, _I, _S, ctypes.c_size_t, _S, ctypes.c_size_t, _P,
    ),
    "rd_kafka_metadata": (_I, _P, _I, _P, ctypes.POINTER(_P), _I),
    "rd_kafka_metadata_destroy": (None, _P),
    "rd_kafka_queue_new": (_P, _P),
    "rd_kafka_queue_poll": (_P, _P, _I),
    "rd_kafka_queue_destroy": (None, _P),
    "rd_kafka_event_error": (_I, _P),
    "rd_kafka_event_destroy": (None, _P),
    "rd_kafka_NewTopic_new": (_P, _S, _I, _I, _S, ctypes.c_size_t),
    "rd_kafka_NewTopic_set_config": (_I, _P, _S, _S),
    "rd_kafka_NewTopic_destroy": (None, _P),
    "rd_kafka_CreateTopics": (None, _P, ctypes.POINTER(_P), ctypes.c_size_t, _P, _P),
    "rd_kafka_ConfigResource_new": (_P, _I, _S),
    "rd_kafka_ConfigResource_set_config": (_I, _P, _S, _S),
    "rd_kafka_ConfigResource_destroy": (None, _P),
    "rd_kafka_AlterConfigs": (None, _P, ctypes.POINTER(_P), ctypes.c_size_t, _P, _P),
}  # fmt: skip


def _load():
    library = ctypes.CDLL("librdkafka.so.1")
    for name, (result, *arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class Client:
    """Makes topics, changes their settings and fills their partitions."""

    def __init__(self, test, bootstrap):
        self._lib = _load()
        conf, why = self._lib.rd_kafka_conf_new(), ctypes.create_string_buffer(256)
        for name, value in {
            "bootstrap.servers": bootstrap, "linger.ms": "2", "log_level": "0",
            "reconnect.backoff.ms": "50", "reconnect.backoff.max.ms": "200",
        }.items():  # fmt: skip
            self._lib.rd_kafka_conf_set(conf, name.encode(), value.encode(), why, 256)
        self._handle = self._lib.rd_kafka_new(PRODUCER, conf, why, 256)
        if not self._handle:
            raise AssertionError(why.value.decode())
        self._topics = {}
        test.addCleanup(self._close)

    def _close(self):
        for topic in self._topics.values():
            self._lib.rd_kafka_topic_destroy(topic)
        self._lib.rd_kafka_destroy(self._handle)

    def answers(self) -> bool:
        found = _P()
        error = self._lib.rd_kafka_metadata(self._handle, 0, None, ctypes.byref(found), 500)
        if error == 0:
            self._lib.rd_kafka_metadata_destroy(found)
        return error == 0

    def create_topic(self, topic, partitions, **config):
        made = self._lib.rd_kafka_NewTopic_new(topic.encode(), partitions, 1, None, 0)
        for name, value in config.items():
            self._lib.rd_kafka_NewTopic_set_config(
                made, name.replace("_", ".").encode(), str(value).encode()
            )
        self._ask(self._lib.rd_kafka_CreateTopics, made)
        self._lib.rd_kafka_NewTopic_destroy(made)

    def set_topic(self, topic, **config):
        """Exactly these settings from now on, defaults for all others."""
        resource = self._lib.rd_kafka_ConfigResource_new(TOPIC_RESOURCE, topic.encode())
        for name, value in config.items():
            self._lib.rd_kafka_ConfigResource_set_config(
                resource, name.replace("_", ".").encode(), str(value).encode()
            )
        self._ask(self._lib.rd_kafka_AlterConfigs, resource)
        self._lib.rd_kafka_ConfigResource_destroy(resource)

    def _ask(self, call, what):
        queue = self._lib.rd_kafka_queue_new(self._handle)
        call(self._handle, (_P * 1)(what), 1, None, queue)
        event = self._lib.rd_kafka_queue_poll(queue, 20_000)
        error = self._lib.rd_kafka_event_error(event) if event else -185  # timed out
        if event:
            self._lib.rd_kafka_event_destroy(event)
        self._lib.rd_kafka_queue_destroy(queue)
        if error:
            raise AssertionError(self._lib.rd_kafka_err2str(error).decode())

    def send(self, topic, partition, value, key="k"):
        if topic not in self._topics:
            self._topics[topic] = self._lib.rd_kafka_topic_new(self._handle, topic.encode(), None)
        value, key = value and value.encode(), key.encode()
        if self._lib.rd_kafka_produce(
            self._topics[topic], partition, COPY, value, len(value or b""), key, len(key), None
        ):
            error = self._lib.rd_kafka_last_error()
            raise AssertionError(self._lib.rd_kafka_err2str(error).decode())

    def flush(self):
        if error := self._lib.rd_kafka_flush(self._handle, 20_000):
            raise AssertionError(self._lib.rd_kafka_err2str(error).decode())


class Kafka(Client):
    def __init__(self, test, more="", scram=(), java=()):
        """With `more` properties, in which {port} and {controller} stand; with users for SCRAM, as
        `SCRAM-SHA-256=[name=NAME,password=PASSWORD]`; with more arguments for `java`."""
        libs = run(SOURCE / "tests/support/fetch-kafka", VERSION, limit=600).stdout.strip()
        folder = tempfile.TemporaryDirectory()
        test.addCleanup(folder.cleanup)
        port, controller = free_port(), free_port()
        self.bootstrap = f"127.0.0.1:{port}"
        properties = pathlib.Path(folder.name, "server.properties")
        properties.write_text(
            (PROPERTIES + more).format(
                port=port, controller=controller, logs=f"{folder.name}/logs"
            )
        )
        java = [
            "java",
            *java,
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            "-Xmx512m",
            "-cp",
            f"{libs}/*",
        ]
        users = [word for user in scram for word in ("--add-scram", user)]
        run(*java, "kafka.tools.StorageTool", "format", "-t", f"{port:0>22}", "-c", properties, *users)
        broker = Process(test, [*java, "kafka.Kafka", properties], cwd=folder.name)
        super().__init__(test, self.bootstrap)
        wait_until(lambda: self.answers() or not broker.running(), limit=60, what="Kafka to answer")
        if not broker.running():
            raise AssertionError(f"Kafka did not start:\n{broker.output()}")
