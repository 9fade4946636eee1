// What is wrong with values, and with what they mean together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/config/bad_file.h"

namespace fencepost::config {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Values, BadFile,
    testing::Values(
        Case{"Version",
             "version: 1",
             "version: 2",
             {"1:10: error: version: \"2\" is more than the most, 1 [range]"}},
        Case{"Octal",
             "version: 1",
             "version: 01",
             {"1:10: error: version: \"01\" is not a whole number such as 64 [value]"}},
        Case{"Name",
             "name: orders",
             "name: Orders",
             {"2:7: error: name: \"Orders\" is not 1 to 63 of a-z, 0-9 and - [value]"}},
        Case{"EmptyName",
             "name: orders",
             "name: ''",
             {"2:7: error: name: \"\" is not 1 to 63 of a-z, 0-9 and - [value]"}},
        Case{"Broker",
             "127.0.0.1:9092",
             "127.0.0.1, a:0, ::1:9092",
             {"4:13: error: kafka.brokers: \"127.0.0.1\" is not HOST:PORT [value]",
              "4:24: error: kafka.brokers: \"a:0\" is not HOST:PORT [value]",
              "4:29: error: kafka.brokers: \"::1:9092\" is not HOST:PORT [value]"}},
        Case{"Topic",
             "[orders]",
             "[^orders]",
             {"5:12: error: kafka.topics: \"^orders\" is not a topic: 1 to 249 of a-z, A-Z, 0-9, "
              "'.', "
              "'_' and '-' [value]"}},
        Case{"Choice",
             "start_from: earliest",
             "start_from: earlist",
             {"6:15: error: kafka.start_from: \"earlist\" is none of earliest | latest; did you "
              "mean "
              "earliest? [value]"}},
        Case{"Duration",
             "lock:\n",
             "lock:\n  ttl: 10\n  wait: 1.5s\n",
             {"9:8: error: lock.ttl: \"10\" is not a duration; write 250ms, 10s, 5m, 24h or 7d "
              "[value]",
              "10:9: error: lock.wait: \"1.5s\" is not a duration; write 250ms, 10s, 5m, 24h or 7d "
              "[value]"}},
        Case{"TtlTooLong",
             "lock:\n",
             "lock:\n  ttl: 11m\n",
             {"9:8: error: lock.ttl: \"11m\" is more than the most, 10m [range]"}},
        Case{"Size",
             "lock:\n",
             "processing: {max_in_flight_bytes: 64MB}\nlock:\n",
             {"8:35: error: processing.max_in_flight_bytes: \"64MB\" is not a size; write 512B, "
              "64KiB, "
              "10MiB or 1GiB [value]"}},
        Case{"Concurrency",
             "lock:\n",
             "processing: {concurrency: 0, max_in_flight: -1}\nlock:\n",
             {"8:27: error: processing.concurrency: \"0\" is less than the least, 1 [range]",
              "8:45: error: processing.max_in_flight: \"-1\" is less than the least, 1 [range]"}},
        Case{"Http",
             "lock:\n",
             "observe: {http: 9464}\nlock:\n",
             {"8:17: error: observe.http: \"9464\" is not HOST:PORT, as in 0.0.0.0:9464 [value]"}},
        Case{"Table",
             "table: effects",
             "table: a;b",
             {"15:12: error: output.sqlite.table: \"a;b\" is not a table: up to 63 of a-z, A-Z, "
              "0-9 and "
              "_, no digit first [value]"}},
        Case{"LedgerAsTable",
             "table: effects",
             "table: fencepost_ledger",
             {"15:12: error: output.sqlite.table: this is the ledger's own table [table]"}},
        Case{"ColumnName",
             "      amount:",
             "      \"a\\\"b\":",
             {"18:7: error: output.sqlite.columns: \"a\"b\" is not a column: 1 to 63 bytes without "
              "quotes, backslashes and controls [value]"}},
        Case{"RecordIdAsJsonPath",
             "record_id: json:/order_id",
             "record_id: $.order.id",
             {"7:12: error: record_id: \"$.order.id\": not a selector; did you mean "
              "json:/order/id? "
              "record_id is one of position, key, header:NAME, json:/POINTER, key:/POINTER, or a "
              "list of those after position [selector]"}},
        Case{
            "ColumnSelector",
            "json:/amount",
            "jason:/amount",
            {"18:15: error: output.sqlite.columns.amount: \"jason:/amount\": not a selector; a "
             "selector "
             "is one of key, value, topic, partition, offset, timestamp, record_id, token, worker, "
             "header:NAME, json:/POINTER, key:/POINTER (each with ? at the end where null is "
             "fine), or \"=text\" [selector]"}},
        Case{"ColumnOfPosition",
             "json:/amount",
             "position",
             {"18:15: error: output.sqlite.columns.amount: position is for record_id only; here it "
              "is "
              "record_id, or topic, partition and offset [selector]"}},
        Case{"MissingVariable",
             "path: orders.db",
             "path: a${NOT_SET}b",
             {"14:11: error: output.sqlite.path: the variable NOT_SET is not set; "
              "${NOT_SET:-default} "
              "gives a default [variable]"}},
        Case{"MissingSecretFile",
             "${SECRET}",
             "${file:/nowhere/x}",
             {"11:15: error: lock.redis.password: ${file:/nowhere/x}: cannot be read: No such file "
              "or "
              "directory [variable]"}},
        Case{"VariableInAKey",
             "name: orders\n",
             "name: orders\n${SECRET}: 1\n",
             {"3:1: error: unknown key \"${SECRET}\" [unknown-key]"}},
        Case{"NulByte",
             "path: orders.db",
             "path: \"a\\0b\"",
             {"14:11: error: output.sqlite.path: the value holds a NUL byte [value]"}}),
    NameOfCase);

INSTANTIATE_TEST_SUITE_P(
    Meaning, BadFile,
    testing::Values(
        Case{
            "RecordIdOfTheToken",
            "record_id: json:/order_id",
            "record_id: token",
            {"7:12: error: record_id: this does not identify a record; it is one of position, key, "
             "header:NAME, json:/POINTER, key:/POINTER [record-id]"}},
        Case{"PositionAmongOthers",
             "record_id: json:/order_id",
             "record_id: [json:/order_id, position]",
             {"7:29: error: record_id: position identifies a record alone [record-id]"}},
        Case{"IdContentThatIsNoRule",
             "record_id: json:/order_id",
             "record_id: json:/order_id\nid_content: all",
             {"8:13: error: id_content: \"all\" is none of value | none [value]"}},
        Case{"IdContentThatIsNoSelector",
             "record_id: json:/order_id",
             "record_id: json:/order_id\nid_content: [amount]",
             {"8:14: error: id_content: \"amount\": not a selector; did you mean "
              "json:/amount? Or \"=amount\", for that text? a selector is one of key, "
              "value, topic, partition, offset, timestamp, record_id, token, worker, "
              "header:NAME, json:/POINTER, key:/POINTER (each with ? at the end where null is "
              "fine), or \"=text\" [selector]"}},
        Case{"IdContentThatIsAMap",
             "record_id: json:/order_id",
             "record_id: json:/order_id\nid_content: {a: b}",
             {"8:13: error: id_content needs a single value or a list, here is a map [type]"}},
        Case{
            "RecordIdOfAConstant",
            "record_id: json:/order_id",
            "record_id: \"=x\"",
            {"7:12: error: record_id: this does not identify a record; it is one of position, key, "
             "header:NAME, json:/POINTER, key:/POINTER [record-id]"}},
        Case{
            "OptionalRecordId",
            "record_id: json:/order_id",
            "record_id: json:/order_id?",
            {"7:12: error: record_id: a record without an id is bad: leave the ? out [record-id]"}},
        Case{"EvenNodes",
             ", 127.0.0.1:7003",
             "",
             {"10:5: error: lock.redis.nodes: 2 nodes; a quorum needs 1, 3, 5 or 7 [nodes]"}},
        Case{"SameNodeTwice",
             "7003",
             "7001",
             {"10:45: error: lock.redis.nodes: \"127.0.0.1:7001\" is given twice; each "
              "node "
              "is an independent primary [nodes]"}},
        Case{"NoNodes",
             "nodes: [127.0.0.1:7001, 127.0.0.1:7002, 127.0.0.1:7003]\n    password",
             "password",
             {"9:3: error: lock.redis.nodes is missing [missing]"}},
        Case{"NodeName",
             "127.0.0.1:7003",
             "\"unix:sock\"",
             {"10:45: error: lock.redis.nodes: \"unix:sock\" is no lock node: the path of a Unix "
              "socket must be absolute; write HOST:PORT, unix:/PATH, "
              "redis://USER:PASSWORD@HOST:PORT, or rediss:// for TLS [value]"}},
        Case{"NodeDatabase",
             "127.0.0.1:7003",
             "\"redis://u:hunter2@127.0.0.1:7003/5\"",
             {"10:45: error: lock.redis.nodes: \"redis://127.0.0.1:7003/5\" is no lock node: locks "
              "are kept in database 0 only; end the URL after the port, or by /0 [value]"}},
        Case{"SameNodeInAnotherSpelling",
             "127.0.0.1:7003",
             "\"redis://u:hunter2@127.0.0.1:7001\"",
             {"10:45: error: lock.redis.nodes: \"redis://127.0.0.1:7001\" is given twice, "
              "as \"127.0.0.1:7001\"; each node is an independent primary [nodes]"}},
        Case{"NodeUserWithoutPassword",
             "127.0.0.1:7003]\n    password: ${SECRET}",
             "\"redis://u@127.0.0.1:7003\"]",
             {"10:45: error: lock.redis.nodes: \"redis://127.0.0.1:7003\" has a user and no "
              "password: write it into the URL, or give lock.redis.password [login]"}},
        Case{"LockCertificateWithoutKey",
             "    password:",
             "    tls: {certificate: b}\n    password:",
             {"11:11: error: lock.redis.tls.key is missing: lock.redis.tls.certificate needs it "
              "[missing]"}},
        Case{
            "NodeWithoutTls",
            "127.0.0.1:7003]",
            "\"redis://127.0.0.1:7003\"]\n    tls: {}",
            {"10:45: warning: lock.redis.nodes: \"redis://127.0.0.1:7003\" is reached without TLS, "
             "though there is lock.redis.tls; rediss:// is with it [tls]"}},
        Case{"MinValidityAgainstTtl",
             "lock:\n",
             "lock:\n  ttl: 1s\n",
             {"9:8: error: lock.min_validity (2s) must be less than lock.ttl (1s) without the "
              "clock drift "
              "of 1% and 2ms, or no lease is ever long enough [min-validity]"}},
        Case{"MinValidityWithinTheDrift",
             "lock:\n",
             "lock:\n  ttl: 10s\n  min_validity: 9950ms\n",
             {"10:17: error: lock.min_validity (9950ms) must be less than lock.ttl (10s) without "
              "the "
              "clock drift of 1% and 2ms, or no lease is ever long enough [min-validity]"}},
        Case{"NodeTimeout",
             "    password:",
             "    timeout: 10s\n    password:",
             {"11:14: error: lock.redis.timeout (10s) must be less than lock.ttl (10s) "
              "[node-timeout]"}},
        Case{"UsernameAlone",
             "password: ${SECRET}",
             "username: u",
             {"11:5: error: lock.redis.password is missing or empty: a username needs one "
              "[missing]"}},
        Case{"RememberDoneBesideALedger",
             "output:\n",
             "  remember_done: 5m\noutput:\n",
             {"12:3: error: lock.remember_done is for outputs without a ledger (output.kafka, "
              "output.file, output.stdout): here the ledger remembers what is done; remove it "
              "[remember-done]"}},
        Case{"LedgerKeepByPosition",
             "record_id: json:/order_id\n",
             "record_id: position\nledger: {keep: 5m}\n",
             {"8:10: warning: ledger.keep has no effect: by position the ledger has one row a "
              "partition, which does not grow [ledger-keep]"}},
        Case{
            "LedgerKeepOfAWrongRecordId",
            "record_id: json:/order_id\n",
            "record_id: $.order_id\nledger: {keep: 5m}\n",
            {"7:12: error: record_id: \"$.order_id\": not a selector; did you mean json:/order_id? "
             "record_id is one of position, key, header:NAME, json:/POINTER, key:/POINTER, or a "
             "list of those after position [selector]"}},
        Case{"MarksByPosition",
             "record_id: json:/order_id\nlock:\n  redis:\n    nodes: [127.0.0.1:7001, "
             "127.0.0.1:7002, 127.0.0.1:7003]\n    password: ${SECRET}\noutput:\n  sqlite:\n    "
             "path: orders.db\n    table: effects\n    columns:\n",
             "record_id: position\nlock:\n  redis: {nodes: [127.0.0.1:7001]}\n  "
             "remember_done: 5m\noutput:\n  kafka:\n    topic: x\n    headers:\n",
             {"10:18: warning: lock.remember_done has no effect: by position the Kafka transaction "
              "decides, and no record is marked [remember-done]"}},
        Case{"BlockOfIds",
             "record_id: json:/order_id\nlock:\n",
             "record_id: json:/order_id\nlock:\n  block: 64\n",
             {"9:3: warning: lock.block has no effect: only with record_id: position, and a ledger "
              "or output.kafka without accept_replay_ids, do records share a lock [block]"}},
        Case{"CertificateWithoutKey",
             "  topics:",
             "  tls: {ca: a, certificate: b}\n  topics:",
             {"5:16: error: kafka.tls.key is missing: kafka.tls.certificate needs it [missing]"}},
        Case{"TlsWithoutCa",
             "  topics:",
             "  tls: {}\n  topics:",
             {"5:3: error: kafka.tls.ca is missing [missing]"}},
        Case{"SettingsThatLibrdkafkaDoesNotKnow",
             "  topics:",
             "  librdkafka: {sesion.timeout.ms: 6000, fetch.wait.max.ms: soon, "
             "ssl.key.password: x}\n  topics:",
             {"5:16: error: kafka.librdkafka: librdkafka has no setting 'sesion.timeout.ms'; did "
              "you mean session.timeout.ms? [librdkafka]",
              "5:60: error: kafka.librdkafka: librdkafka refuses 'fetch.wait.max.ms': Invalid "
              "value for configuration property \"fetch.wait.max.ms\" [librdkafka]"}},
        Case{"RememberDoneNotAtAll",
             "output:\n  sqlite:\n    path: orders.db\n    table: effects\n    columns:\n",
             "  remember_done: 0s\nguarantee: at-least-once\noutput:\n  file:\n    path: "
             "o.jsonl\n    columns:\n",
             {"12:18: error: lock.remember_done: \"0s\" is less than the least, 1s [range]"}},
        Case{"RememberDoneForLessThanALease",
             "output:\n  sqlite:\n    path: orders.db\n    table: effects\n    columns:\n",
             "  remember_done: 30s\nguarantee: at-least-once\noutput:\n  file:\n    path: "
             "o.jsonl\n    columns:\n",
             {"12:18: warning: lock.remember_done (30s) is raised to 40s, the store's max_ttl and "
              "twice lock.max_skew: a mark must outlive every lease [remember-done]"}},
        Case{"ProceedWithoutALedger",
             "output:\n  sqlite:\n    path: orders.db\n    table: effects\n    columns:\n",
             "  on_unavailable: proceed\nguarantee: at-least-once\noutput:\n  file:\n    path: "
             "o.jsonl\n    columns:\n",
             {"12:19: error: lock.on_unavailable: proceed needs a ledger, which decides without a "
              "lock: only output.postgres, output.mysql and output.sqlite have one [unavailable]"}},
        Case{"ProceedWithAHandlerThatIsNotIdempotent",
             "output:",
             "  on_unavailable: proceed\nguarantee: at-least-once\n"
             "handler: {http: {url: \"http://a\"}}\noutput:",
             {"14:11: error: lock.on_unavailable: proceed may run handler.http for one record in "
              "two workers at the same time: only with handler.http.idempotent: true "
              "[unavailable]"}},
        Case{"ProceedWithTokens",
             "output:\n  sqlite:\n    path: orders.db\n    table: effects\n    columns:\n",
             "  on_unavailable: proceed\noutput:\n  sqlite:\n    path: orders.db\n    table: "
             "effects\n    columns:\n      fence: token\n",
             {"17:5: error: lock.on_unavailable: proceed makes tokens without a lease, which say "
              "nothing of who came first: leave the selector token out of output.sqlite.columns "
              "[unavailable]"}},
        Case{"ControlWithoutItsToken",
             "output:",
             "observe: {control: token}\noutput:",
             {"12:11: error: observe.control_token is missing or empty: observe.control: token "
              "needs it [missing]"}},
        Case{"ATokenWithoutControl",
             "output:",
             "observe: {control_token: s3cret}\noutput:",
             {"12:11: error: observe.control_token is of no use without observe.control: token "
              "[control]"}},
        Case{"RefusedSettings",
             "  topics:",
             "  sasl: {mechanism: PLAIN, username: u, password: p}\n"
             "  librdkafka:\n    enable.auto.commit: true\n    group.id: x\n    sasl.password: y\n"
             "    group.instance.id: z\n    security.protocol: SSL\n    ssl.ca.location: /ca\n  "
             "topics:",
             {"7:5: error: kafka.librdkafka: enable.auto.commit is refused: offsets are committed "
              "only "
              "once the effect is committed [librdkafka]",
              "8:5: error: kafka.librdkafka: group.id is refused: write it as kafka.group "
              "[librdkafka]",
              "9:5: error: kafka.librdkafka: sasl.password is refused: write it as "
              "kafka.sasl.password "
              "[librdkafka]",
              "10:5: error: kafka.librdkafka: group.instance.id is refused: it is the worker's "
              "name: write kafka.static_members: true [librdkafka]",
              "11:5: error: kafka.librdkafka: security.protocol is refused: it follows from "
              "kafka.tls "
              "and kafka.sasl [librdkafka]"}},
        Case{"ScramWithoutItsPassword",
             "  topics:",
             "  sasl: {mechanism: SCRAM-SHA-256, username: u}\n  topics:",
             {"5:21: error: kafka.sasl.password is missing: SCRAM-SHA-256 needs it [missing]"}},
        Case{"OauthOfAPassword",
             "  topics:",
             "  sasl: {mechanism: PLAIN, username: u, password: p, oauth: {token_url: http://i/t, "
             "client_id: c, client_secret: s}}\n  topics:",
             {"5:54: error: kafka.sasl.oauth is not for PLAIN: it is for OAUTHBEARER [sasl]"}},
        Case{"ARefusedSettingInAnotherForm",
             "  topics:",
             "  librdkafka: {topic.auto.offset.reset: latest}\n  topics:",
             {"5:16: error: kafka.librdkafka: topic.auto.offset.reset is refused: a start that was "
              "not committed would lose or repeat records; see kafka.start_from [librdkafka]"}},
        Case{"TheNewGroupProtocol",
             "  topics:",
             "  librdkafka: {group.protocol: consumer}\n  topics:",
             {"5:16: error: kafka.librdkafka: group.protocol is refused: only the classic one is "
              "supported: offsets and transactions speak for one generation of the group, and the "
              "new one has none [librdkafka]"}},
        Case{"NoRegistry",
             "  topics:",
             "  decode: {value: avro, key: bytes}\n  topics:",
             {"5:12: error: kafka.decode.registry is missing: kafka.decode.value: avro needs the "
              "schemas [registry]"}},
        Case{"DecodeOfNothing",
             "  topics:",
             "  decode: {value: json, registry: {url: http://r}}\n  topics:",
             {"5:3: warning: kafka.decode has no effect: json and bytes are taken as they are; "
              "give kafka.decode.value or kafka.decode.key as avro, protobuf or json_schema "
              "[decode]"}},
        Case{"RegistryForNothing",
             "  topics:",
             "  decode: {value: json_schema, registry: {url: http://r}}\n  topics:",
             {"5:32: warning: kafka.decode.registry has no effect: only avro and protobuf need a "
              "registry [registry]"}},
        Case{"RegistryUrl",
             "  topics:",
             "  decode: {value: avro, registry: {url: r:8081}}\n  topics:",
             {"5:41: error: kafka.decode.registry.url: \"r:8081\" is not http://HOST… or "
              "https://HOST… [value]"}},
        Case{"RegistryUrlWithAPassword",
             "  topics:",
             "  decode: {value: avro, registry: {url: \"http://u:hunter2@r\"}}\n  topics:",
             {"5:41: error: kafka.decode.registry.url: give user and password by "
              "kafka.decode.registry.username and .password, not in the URL [registry]"}},
        Case{"RegistryUrlWithAQuery",
             "  topics:",
             "  decode: {key: protobuf, registry: {url: \"http://r/?a=b\"}}\n  topics:",
             {"5:43: error: kafka.decode.registry.url: give the address alone, without ? and # "
              "[registry]"}},
        Case{"RegistryTlsWithoutTls",
             "  topics:",
             "  decode: {value: avro, registry: {url: http://r, tls: {ca: /ca}}}\n  topics:",
             {"5:41: error: kafka.decode.registry.url is http://, which has no TLS: write "
              "https://, or leave kafka.decode.registry.tls out [registry]"}},
        Case{"RegistryUserAlone",
             "  topics:",
             "  decode: {value: avro, registry: {url: http://r, username: u}}\n  topics:",
             {"5:51: error: kafka.decode.registry.password is missing: "
              "kafka.decode.registry.username needs it [missing]"}},
        Case{"DecodeFormat",
             "  topics:",
             "  decode: {value: avo}\n  topics:",
             {"5:19: error: kafka.decode.value: \"avo\" is none of avro | protobuf | json_schema | "
              "json | bytes; did you mean avro? [value]"}},
        Case{"NoOutput",
             "  sqlite:\n    path: orders.db\n    table: effects\n    columns:\n      order_id: "
             "json:/order_id\n      amount: json:/amount\n",
             "  {}\n",
             {"12:1: error: output is empty; give one of postgres, mysql, sqlite, kafka, file, "
              "stdout [one-output]"}},
        Case{"NoDsn",
             "  sqlite:\n    path: orders.db",
             "  postgres:\n    dsn: hunter2",
             {"14:10: error: output.postgres.dsn: the value is neither postgresql://… nor "
              "key=value … "
              "[value]"}},
        Case{"DsnWithAnUnknownOption",
             "  sqlite:\n    path: orders.db",
             "  postgres:\n    dsn: postgresql://app@db/shop?sslmod=require",
             {"14:10: error: output.postgres.dsn: libpq has no option sslmod; did you mean "
              "sslmode? [dsn]"}},
        Case{"DsnWhosePasswordHasASpace",
             "  sqlite:\n    path: orders.db",
             "  postgres:\n    dsn: host=db password=hunter2 hunter3=x",
             {"14:10: error: output.postgres.dsn: it has an option that libpq does not know "
              "[dsn]"}},
        Case{"DsnWithoutAnEqualsSign",
             "  sqlite:\n    path: orders.db",
             "  postgres:\n    dsn: host=db password=hunter2 s3cret",
             {"14:10: error: output.postgres.dsn: libpq cannot read it: missing … [dsn]"}},
        Case{"DsnWithAPortThatIsNone",
             "  sqlite:\n    path: orders.db",
             "  postgres:\n    dsn: postgresql://app@db:99999/shop",
             {"14:10: error: output.postgres.dsn: its port is none from 1 to 65535 [dsn]"}},
        Case{"DsnWithSeveralHosts",
             "  sqlite:\n    path: orders.db",
             "  postgres:\n    dsn: postgresql://app@db-1:5432,db-2:5432/shop",
             {"14:10: warning: output.postgres.dsn names several hosts: a standby that is not "
              "synchronous lacks the newest commits when it is promoted (the workers then stop and "
              "name the offsets to go back to); set synchronous_standby_names on the primary "
              "[failover]"}},
        Case{"InFlightBelowConcurrency",
             "lock:\n",
             "processing: {max_in_flight: 8}\nlock:\n",
             {"8:29: warning: processing.max_in_flight (8) keeps processing.concurrency (64) from "
              "being "
              "used [in-flight]"}},
        Case{"ShutdownBelowDrain",
             "lock:\n",
             "shutdown_timeout: 5s\nlock:\n",
             {"8:19: warning: shutdown_timeout (5s) ends before processing.revoke_drain (10s) "
              "[shutdown]"}}),
    NameOfCase);

}  // namespace
}  // namespace fencepost::config
