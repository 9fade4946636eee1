// What is wrong with handler, retry, dead_letter and output, alone and together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/config/bad_file.h"

namespace fencepost::config {
namespace {

constexpr const char* kOutput =
    "  sqlite:\n    path: orders.db\n    table: effects\n    columns:\n      order_id: "
    "json:/order_id\n      amount: json:/amount\n";
constexpr const char* kAll = "order_id: json:/order_id\n      amount: json:/amount\n";

INSTANTIATE_TEST_SUITE_P(
    Convert, BadFile,
    testing::Values(
        Case{"AColumnThatIsNotThere",
             "    columns:",
             "    convert: {at: ms}\n    columns:",
             {"16:15: error: output.sqlite.convert: at is not among "
              "output.sqlite.columns [convert]"}},
        Case{"AnUnknownUnit",
             "    columns:",
             "    convert: {amount: minutes}\n    columns:",
             {"16:23: error: output.sqlite.convert: \"minutes\" is none of s, ms, us, ns "
              "(of a number that counts since 1970), base64, hex (of a text) "
              "[convert]"}}),
    NameOfCase);

INSTANTIATE_TEST_SUITE_P(
    Handler, BadFile,
    testing::Values(
        Case{"None",
             "lock:\n",
             "handler: {}\nlock:\n",
             {"8:1: error: handler is empty; give one of http, exec, jq, or leave it out "
              "[one-handler]"}},
        Case{"Two",
             "lock:\n",
             "handler: {jq: ., exec: {command: [a], idempotent: true}}\nlock:\n",
             {"8:1: error: handler: at most one is possible, here are handler.exec, handler.jq "
              "[one-handler]"}},
        Case{"HttpNotIdempotent",
             "lock:\n",
             "handler: {http: {url: \"http://a\"}}\nlock:\n",
             {"8:11: error: guarantee: exactly-once speaks of the output, and handler.http may run "
              "more than once for a record; with idempotent: true you promise that a second call "
              "with the same Idempotency-Key has no second effect; otherwise write guarantee: "
              "at-least-once [guarantee]"}},
        Case{"ExecNotIdempotent",
             "lock:\n",
             "handler: {exec: {command: [a], idempotent: false}}\nlock:\n",
             {"8:44: error: guarantee: exactly-once speaks of the output, and handler.exec may run "
              "more than once for a record; with idempotent: true you promise that a second run "
              "with the same record_id has no second effect; otherwise write guarantee: "
              "at-least-once [guarantee]"}},
        Case{"Url",
             "lock:\n",
             "handler: {http: {url: \"ftp://a\", idempotent: true}}\nlock:\n",
             {"8:23: error: handler.http.url: \"ftp://a\" is not http://HOST… or https://HOST… "
              "[value]"}},
        Case{"UrlWithoutAHost",
             "lock:\n",
             "handler: {http: {url: \"http:///a\", idempotent: true}}\nlock:\n",
             {"8:23: error: handler.http.url: \"http:///a\" is not http://HOST… or https://HOST… "
              "[value]"}},
        Case{"UrlWithAPassword",
             "lock:\n",
             "handler: {http: {url: \"ftp://app:s3c@ret@a/b\", idempotent: true}}\nlock:\n",
             {"8:23: error: handler.http.url: \"ftp://***@a/b\" is not http://HOST… or "
              "https://HOST… [value]"}},
        Case{"UrlWithAPasswordAndNoScheme",
             "lock:\n",
             "handler: {http: {url: \"app:s3cret@a\", idempotent: true}}\nlock:\n",
             {"8:23: error: handler.http.url: \"***@a\" is not http://HOST… or https://HOST… "
              "[value]"}},
        Case{"NoUrl",
             "lock:\n",
             "handler: {http: {idempotent: true, method: post}}\nlock:\n",
             {"8:11: error: handler.http.url is missing [missing]",
              "8:44: error: handler.http.method: \"post\" is none of POST | PUT | PATCH | DELETE | "
              "GET [value]"}},
        Case{
            "Classes",
            "lock:\n",
            "handler: {http: {url: \"http://a\", idempotent: true, success: [ok, 2x],\n"
            "  retry_on: [600, \"5XX\", Timeout]}}\nlock:\n",
            {"8:63: error: handler.http.success: \"ok\" is not an HTTP status such as 404 or 4xx "
             "[value]",
             "8:67: error: handler.http.success: \"2x\" is not an HTTP status such as 404 or 4xx "
             "[value]",
             "9:14: error: handler.http.retry_on: \"600\" is no class of errors; write 404, 4xx or "
             "a word such as timeout [value]",
             "9:19: error: handler.http.retry_on: \"5XX\" is no class of errors; write 404, 4xx or "
             "a word such as timeout [value]",
             "9:26: error: handler.http.retry_on: \"Timeout\" is no class of errors; write 404, "
             "4xx or a word such as timeout [value]"}},
        Case{
            "Headers",
            "lock:\n",
            "handler: {http: {url: \"http://a\", idempotent: true,\n"
            "  headers: {a b: x, fencing-token: \"1\", c: \"d\\r\\ne: f\"}}}\nlock:\n",
            {"9:13: error: handler.http.headers: \"a b\" is not the name of an HTTP header [value]",
             "9:21: error: handler.http.headers: fencing-token is set by fencepost: leave it out "
             "[handler]",
             "9:44: error: handler.http.headers.c: a header is one line [handler]"}},
        Case{"Command",
             "lock:\n",
             "handler: {exec: {command: [\"\", x], idempotent: true}}\nlock:\n",
             {"8:28: error: handler.exec.command: the program's name is empty [handler]"}},
        Case{"NoCommand",
             "lock:\n",
             "handler: {exec: {command: [], idempotent: true}}\nlock:\n",
             {"8:18: error: handler.exec.command is empty [value]"}},
        Case{"EmptyProgram",
             "lock:\n",
             "handler: {jq: ''}\nlock:\n",
             {"8:15: error: handler.jq: \"\" is empty [value]"}},
        Case{"TimeoutBeyondTheDrain",
             "lock:\n",
             "handler: {jq: .}\nprocessing: {timeout: 10s}\nlock:\n",
             {"9:23: warning: processing.timeout (10s) is not less than processing.revoke_drain "
              "(10s): a rebalance cancels calls that would have ended [drain]"}}),
    NameOfCase);

INSTANTIATE_TEST_SUITE_P(
    Failures, BadFile,
    testing::Values(
        Case{
            "RetryWithoutHandler",
            "lock:\n",
            "retry: {attempts: 2}\nlock:\n",
            {"8:1: warning: retry has nothing to try again: there is no handler; outputs are tried "
             "again by themselves [retry]"}},
        Case{
            "Backoff",
            "lock:\n",
            "handler: {jq: .}\nretry: {backoff: {initial: 1m, jitter: half, multiplier: "
            "1.5.1}}\nlock:\n",
            {"9:28: error: retry.backoff.initial (1m) is more than retry.backoff.max (10s) [retry]",
             "9:40: error: retry.backoff.jitter: \"half\" is none of full | none [value]",
             "9:58: error: retry.backoff.multiplier: \"1.5.1\" is not a number such as 2 or 1.5 "
             "[value]"}},
        Case{"MultiplierBelowOne",
             "lock:\n",
             "handler: {jq: .}\nretry: {attempts: 0, backoff: {multiplier: 0.9}, never: "
             "[\"\"]}\nlock:\n",
             {"9:19: error: retry.attempts: \"0\" is less than the least, 1 [range]",
              "9:44: error: retry.backoff.multiplier: \"0.9\" is less than the least, 1 [range]",
              "9:58: error: retry.never: \"\" is no class of errors; write 404, 4xx or a word such "
              "as timeout [value]"}},
        Case{"DeadLetterWithoutSection",
             "lock:\n",
             "on_bad_record: dead_letter\non_id_conflict: dead_letter\nlock:\n",
             {"8:16: error: on_bad_record: dead_letter needs a dead_letter section, as in "
              "dead_letter: {topic: orders.dead} [dead-letter]",
              "9:17: error: on_id_conflict: dead_letter needs a dead_letter section, as in "
              "dead_letter: {topic: orders.dead} [dead-letter]"}},
        Case{"DeadLetterWithoutTopic",
             "lock:\n",
             "dead_letter: {}\nlock:\n",
             {"8:1: error: dead_letter.topic is missing [missing]"}},
        Case{"DeadLetterThatIsRead",
             "lock:\n",
             "dead_letter: {topic: orders}\nlock:\n",
             {"8:22: error: dead_letter.topic: \"orders\" is one of kafka.topics: its dead letters "
              "would "
              "come back for ever; take a topic of their own [loop]"}},
        Case{"TtlAboveThatOfMostStores",
             "lock:\n",
             "lock:\n  ttl: 31s\n",
             {"9:8: warning: lock.ttl (31s) is above 30s, the max_ttl of a lock store unless it "
              "was made with `fencepost locks init --max-ttl 31s` or more [ttl]"}}),
    NameOfCase);

INSTANTIATE_TEST_SUITE_P(
    Rows, BadFile,
    testing::Values(
        Case{"KeyWithoutUse",
             kAll,
             "a: key\n    key: [a]\n",
             {"18:5: warning: output.sqlite.key has no effect without on_conflict: update or "
              "on_null_value: delete [rows]"}},
        Case{"KeyThatIsNoColumn",
             kAll,
             "a: json:/a\n    on_conflict: update\n    key: [b, a, a]\n",
             {"19:11: error: output.sqlite.key: \"b\" is none of columns [rows]",
              "19:17: error: output.sqlite.key: \"a\" is given twice [rows]"}},
        Case{"HalfAFence",
             kAll,
             "a: json:/a\n    on_conflict: update\n    key: [a]\n    fence_column: v\n",
             {"20:19: error: output.sqlite.fence_column: needs fence_by: what is compared, as in "
              "fence_by: offset [rows]"}},
        Case{"TheOtherHalf",
             kAll,
             "a: json:/a\n    on_conflict: update\n    key: [a]\n    fence_by: offset?\n",
             {"20:15: error: output.sqlite.fence_by: needs fence_column: the column that it is "
              "compared with [rows]",
              "20:15: error: output.sqlite.fence_by: a null cannot be compared: leave the ? out "
              "[rows]"}},
        Case{"FenceWithoutUpdate",
             kAll,
             "a: json:/a\n    fence_column: v\n    fence_by: position\n",
             {"18:19: error: output.sqlite.fence_column: nothing is overwritten without "
              "on_conflict: update [rows]",
              "19:15: error: output.sqlite.fence_by: position is for record_id only; here it is "
              "record_id, or topic, partition and offset [selector]"}},
        Case{"FenceOnTheKey",
             kAll,
             "a: offset\n    on_conflict: update\n    key: [a]\n    fence_column: a\n    fence_by: "
             "offset\n",
             {"20:19: error: output.sqlite.fence_column: a column of key never changes [rows]"}},
        Case{"FenceThatIsNotWritten",
             kAll,
             "a: key\n      v: json:/v\n    on_conflict: update\n    key: [a]\n    fence_column: "
             "v\n    fence_by: offset\n",
             {"22:15: error: output.sqlite.fence_by: columns writes \"json:/v\" into v, and the "
              "fence "
              "compares \"offset\"; make them one [rows]"}},
        Case{
            "TokenOfAnotherLock",
            kAll,
            "a: json:/a\n    on_conflict: update\n    key: [a]\n    fence_column: v\n    fence_by: "
            "token\n",
            {"21:15: warning: output.sqlite.fence_by: tokens are ordered within one lock only, and "
             "here record_id is not what key names; take offset or a version of the record's own "
             "[rows]"}},
        Case{"TokenOfTheRowsOwnLock",
             kAll,
             "a: json:/order_id\n    on_conflict: update\n    key: [a]\n    fence_column: v\n    "
             "fence_by: token\n",
             {}},
        Case{"TombstoneWithoutAnId",
             kAll,
             "a: json:/a\n    on_null_value: skip\n",
             {"18:20: warning: output.sqlite.on_null_value: skip never happens: a tombstone has no "
              "\"json:/order_id\" for record_id, and is bad; take position, key or header:NAME "
              "[rows]"}}),
    NameOfCase);

INSTANTIATE_TEST_SUITE_P(
    Output, BadFile,
    testing::Values(
        Case{"FileExactlyOnce",
             kOutput,
             "  file: {path: x}\n",
             {"13:3: error: guarantee: output.file cannot keep exactly-once: it has no transaction "
              "that holds the effect and the ledger; output.postgres, output.mysql and "
              "output.sqlite do; "
              "otherwise "
              "write guarantee: at-least-once [guarantee]"}},
        Case{"StdoutExactlyOnce",
             kOutput,
             "  stdout: {}\n",
             {"13:3: error: guarantee: output.stdout cannot keep exactly-once: it has no "
              "transaction that holds the effect and the ledger; output.postgres, output.mysql and "
              "output.sqlite do; otherwise write guarantee: at-least-once [guarantee]"}},
        Case{"Two",
             "output:\n",
             "output:\n  kafka: {topic: x}\n",
             {"7:12: warning: guarantee: output.kafka keeps exactly-once for each input position; "
              "duplicates of this record_id at other positions are suppressed only as long as the "
              "lock nodes remember (best effort) [guarantee]",
              "12:1: error: output: exactly one is needed, here are output.sqlite, output.kafka "
              "[one-output]"}},
        Case{
            "PostgresWithoutATable",
            kOutput,
            "  postgres: {dsn: host=b, args: [key]}\n",
            {"13:3: error: output.postgres.table is missing (or give statement and args) [missing]",
             "13:3: error: output.postgres.columns is missing (or give statement and args) "
             "[missing]",
             "13:27: error: output.postgres.args are those of a statement, and there is none "
             "[statement]"}},
        Case{
            "StatementAndTable",
            kOutput,
            "  postgres: {dsn: host=b, statement: SELECT 1, table: t, on_conflict: error}\n",
            {"13:48: error: output.postgres.table: output.postgres.statement says all of it: leave "
             "one of the two out [statement]",
             "13:58: error: output.postgres.on_conflict: output.postgres.statement says all of it: "
             "leave one of the two out [statement]"}},
        Case{
            "Parameters",
            kOutput,
            "  postgres: {dsn: host=b, statement: \"SELECT $1, $3; SELECT 2\", args: [key, "
            "position]}\n",
            {"13:38: error: output.postgres.statement: there is something after a ;, and it is one "
             "statement; WITH joins several into one [statement]",
             "13:38: error: output.postgres.statement: $3 is none of the 2 args [statement]",
             "13:72: error: output.postgres.args: the statement does not use $2, so it has no type "
             "[statement]",
             "13:77: error: output.postgres.args: position is for record_id only; here it is "
             "record_id, or topic, partition and offset [selector]"}},
        Case{"Args",
             kOutput,
             "  postgres: {dsn: host=b, statement: SELECT 1, args: [jason]}\n",
             {"13:55: error: output.postgres.args: \"jason\": not a selector; did you mean "
              "json:/jason? Or \"=jason\", for that text? a selector is one of "
              "key, value, topic, partition, offset, timestamp, record_id, token, worker, "
              "header:NAME, json:/POINTER, key:/POINTER (each with ? at the end where null is "
              "fine), or "
              "\"=text\" "
              "[selector]"}},
        Case{
            "KafkaIntoItself",
            kOutput,
            "  kafka: {topic: orders, key: position, headers: {h: position}}\ndead_letter: {topic: "
            "orders}\nguarantee: at-least-once\n",
            {"13:18: error: output.kafka.topic: \"orders\" is one of kafka.topics: the pipeline "
             "would "
             "feed itself for ever [loop]",
             "13:31: error: output.kafka.key: position is for record_id only; here it is "
             "record_id, or topic, partition and offset [selector]",
             "13:54: error: output.kafka.headers.h: position is for record_id only; here it is "
             "record_id, or topic, partition and offset [selector]",
             "14:22: error: dead_letter.topic: \"orders\" is one of kafka.topics: its dead letters "
             "would come back for ever; take a topic of their own [loop]",
             "14:22: error: dead_letter.topic: \"orders\" is output.kafka.topic too; take a topic "
             "of "
             "their own [loop]"}},
        Case{"KafkaTimes",
             kOutput,
             "  kafka: {topic: x, linger: 2s, transaction_timeout: 2s}\nguarantee: "
             "at-least-once\nledger: {keep: 30d}\nprocessing: {order: key, max_in_flight: 100}\n",
             {"13:29: error: output.kafka.linger (2s) must be less than "
              "output.kafka.transaction_timeout (2s), or no transaction ends in time [transaction]",
              "15:10: warning: ledger.keep has no effect: only output.postgres, output.mysql and "
              "output.sqlite have a ledger [ledger-keep]",
              "16:21: warning: processing.order: output.kafka always keeps the order of the "
              "partition; write partition, or leave it out [order]",
              "16:41: warning: processing.max_in_flight (100) keeps transactions from reaching "
              "output.kafka.max_records (10000) [in-flight]"}},
        Case{"EncodeOfParts",
             kOutput,
             "  kafka:\n    topic: x\n    encode:\n"
             "      value: {format: avro, message: shop.Order, version: 2, schema: '\"int\"'}\n"
             "      key: {format: protobuf, register: true}\nguarantee: at-least-once\n",
             {"15:5: error: output.kafka.encode.registry is missing: output.kafka.encode needs the "
              "schemas [registry]",
              "16:29: error: output.kafka.encode.value.message is of protobuf only [encode]",
              "16:50: error: output.kafka.encode.value.version and "
              "output.kafka.encode.value.schema: give one of them [encode]",
              "17:31: error: output.kafka.encode.key.schema is missing: "
              "output.kafka.encode.key.register needs it [missing]"}},
        Case{"EncodeOfNothing",
             kOutput,
             "  kafka: {topic: x, encode: {registry: {url: \"http://u:hunter2@r\"}}}\n"
             "guarantee: at-least-once\n",
             {"13:21: error: output.kafka.encode: value or key is missing [missing]",
              "13:46: error: output.kafka.encode.registry.url: give user and password by "
              "output.kafka.encode.registry.username and .password, not in the URL [registry]"}},
        Case{"FileWithoutAPath",
             kOutput,
             "  file: {columns: {}}\nguarantee: at-least-once\n",
             {"13:3: error: output.file.path is missing [missing]",
              "13:10: error: output.file.columns is empty [value]"}}),
    NameOfCase);

// Cases that need two changes at once.
TEST(BadRows, OfADeleteThatReadsTheValue) {
  std::string text = kPipeline;
  text.replace(text.find("json:/order_id\n"), 14, "position");
  const LoadResult result = LoadText(text + "    key: [order_id]\n    on_null_value: delete\n",
                                     "p.yaml", FakeEnvironment());
  EXPECT_THAT(
      Lines(result.findings),
      testing::ElementsAre(
          "p.yaml:17:17: error: output.sqlite.columns.order_id: a tombstone has no "
          "\"json:/order_id\", and on_null_value: delete needs the columns of key; take key or "
          "header:NAME [rows]"));
}

TEST(BadRows, OfAFencedDeleteWhoseFenceReadsTheValue) {
  std::string text = kPipeline;
  text.replace(text.find("json:/order_id\n"), 14, "position");
  text.replace(text.find("json:/order_id\n"), 14, "key");
  const LoadResult result =
      LoadText(text +
                   "    key: [order_id]\n    on_null_value: delete\n    on_conflict: update\n"
                   "    fence_column: version\n    fence_by: json:/version\n",
               "p.yaml", FakeEnvironment());
  EXPECT_THAT(Lines(result.findings),
              testing::ElementsAre(
                  "p.yaml:23:15: error: output.sqlite.fence_by: a tombstone has no "
                  "\"json:/version\", and on_null_value: delete is fenced too; take offset, "
                  "timestamp or header:NAME [rows]"));
}

TEST(BadRows, WithoutAKeyCannotBeUpdatedOrDeleted) {
  std::string text = kPipeline;
  text.replace(text.find("json:/order_id\n"), 14, "position");
  const LoadResult result = LoadText(text + "    on_conflict: update\n    on_null_value: delete\n",
                                     "p.yaml", FakeEnvironment());
  EXPECT_THAT(Lines(result.findings),
              testing::ElementsAre(
                  "p.yaml:19:18: error: output.sqlite.on_conflict: update needs key: the columns "
                  "that name a row, as in key: [order_id] [rows]",
                  "p.yaml:20:20: error: output.sqlite.on_null_value: delete needs key: the columns "
                  "that name a row, as in key: [order_id] [rows]"));
}

}  // namespace
}  // namespace fencepost::config
