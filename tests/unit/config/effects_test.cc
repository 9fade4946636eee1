// handler, retry, dead_letter and the outputs: what they load to.
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/schema/schema.h"
#include "consumer/flow/flow.h"
#include "consumer/pipeline/route.h"
#include "tests/unit/config/pipeline_text.h"

namespace fencepost::config {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

// A pipeline whose output and further keys are `tail`.
consumer::PipelineOptions With(const std::string& tail) {
  std::string text = kPipeline;
  text.erase(text.find("output:"));
  if (tail.find("record_id:") != std::string::npos) text.erase(text.find("record_id:"), 26);
  LoadResult result = LoadText(text + tail, "p.yaml", FakeEnvironment());
  EXPECT_TRUE(result.options) << testing::PrintToString(Lines(result.findings));
  return result.options.value_or(consumer::PipelineOptions{});
}

constexpr const char* kStdout = "guarantee: at-least-once\noutput: {stdout: {}}\n";

std::vector<std::string> Names(const std::vector<consumer::Column>& columns) {
  std::vector<std::string> names;
  for (const auto& column : columns) names.push_back(column.name + "=" + column.selector.Text());
  return names;
}

TEST(Handler, OfHttpTakesAllItsKeys) {
  const auto o = With(std::string(kStdout) + R"(
handler:
  http:
    url: https://pay/{json:/@id}/charge?x={header:x?}
    method: PUT
    query: {tenant: "header:tenant?"}
    headers: {Accept: application/json, X-Key: "a ${SECRET}"}
    success: [200, 3xx]
    retry_on: [429, timeout]
    idempotent: true
    auth: {basic: {username: u, password: "${SECRET}"}}
    tls: {ca: /ca.pem, certificate: /c.pem, key: /k.pem}
)");
  const auto& http = std::get<consumer::HttpHandlerOptions>(o.handler.kind);
  EXPECT_EQ(http.url, "https://pay/{json:/@id}/charge?x={header:x?}");
  EXPECT_THAT(Names(http.query), ElementsAre("tenant=header:tenant?"));
  EXPECT_EQ(http.method, "PUT");
  EXPECT_THAT(http.headers,
              ElementsAre(Pair("Accept", "application/json"), Pair("X-Key", "a hunter2")));
  EXPECT_THAT(http.success, ElementsAre("200", "3xx"));
  EXPECT_THAT(http.retry_on, ElementsAre("429", "timeout"));
  EXPECT_EQ(http.auth.username, "u");
  EXPECT_EQ(http.auth.password, "hunter2");
  EXPECT_EQ(http.tls_ca + http.tls_certificate + http.tls_key, "/ca.pem/c.pem/k.pem");
  EXPECT_TRUE(o.handler.idempotent);
}

TEST(Handler, OfHttpHasABodyAndAResultAsAWordOrAMapOfOneKey) {
  using consumer::HttpBody;
  using consumer::HttpResult;
  struct Row {
    const char* keys;
    HttpBody body = HttpBody::kValue;
    HttpResult result = HttpResult::kReplace;
    std::string body_program, pointer, result_program;
  };
  for (const Row& row : {
           Row{""},
           Row{"body: value, result: replace"},
           Row{"body: none, result: keep", HttpBody::kNone, HttpResult::kKeep},
           Row{"body: {jq: \"{id: .id, amount}\"}", HttpBody::kJq, HttpResult::kReplace,
               "{id: .id, amount}"},
           Row{"result: {merge_into: /a~1b}", HttpBody::kValue, HttpResult::kMerge, "", "/a~1b"},
           Row{"result: {jq: .answer}", HttpBody::kValue, HttpResult::kJq, "", "", ".answer"},
           Row{"method: GET, body: none", HttpBody::kNone},
       }) {
    const auto o =
        With(fmt::format("{}handler: {{http: {{url: \"http://pay\", {}}}}}\n", kStdout, row.keys));
    const auto& http = std::get<consumer::HttpHandlerOptions>(o.handler.kind);
    EXPECT_EQ(http.body, row.body) << row.keys;
    EXPECT_EQ(http.result, row.result) << row.keys;
    EXPECT_EQ(http.body_program, row.body_program);
    EXPECT_EQ(http.result_pointer, row.pointer);
    EXPECT_EQ(http.result_program, row.result_program);
  }
}

TEST(Handler, OfHttpTakesAClientOfOauth) {
  const auto o = With(std::string(kStdout) + R"(
handler:
  http:
    url: https://pay/charge
    auth:
      oauth2: {token_url: https://idp/token, client_id: shop, scope: a b,
               client_secret: "${SECRET}"}
)");
  const auto& oauth = std::get<consumer::HttpHandlerOptions>(o.handler.kind).auth.oauth;
  EXPECT_EQ(oauth.token_url, "https://idp/token");
  EXPECT_EQ(oauth.client_id, "shop");
  EXPECT_EQ(oauth.client_secret, "hunter2");
  EXPECT_EQ(oauth.scope, "a b");
}

TEST(Handler, OfHttpHasTheClassesThatTheReferenceNames) {
  const auto o = With(std::string(kStdout) + "handler: {http: {url: \"http://pay\"}}\n");
  const auto& http = std::get<consumer::HttpHandlerOptions>(o.handler.kind);
  EXPECT_EQ(fmt::format("`[{}]`", fmt::join(http.success, ", ")),
            FindKey("handler.http.success")->default_words);
  EXPECT_EQ(fmt::format("`[{}]`", fmt::join(http.retry_on, ", ")),
            FindKey("handler.http.retry_on")->default_words);
}

TEST(Handler, OfHttpAndExecMayTakeBatches) {
  const auto http = With(std::string(kStdout) +
                         "handler: {http: {url: http://a, batch: {max_records: 50, linger: 20ms, "
                         "body: ndjson}}}\n");
  const auto& of_http = std::get<consumer::HttpHandlerOptions>(http.handler.kind);
  EXPECT_EQ(of_http.batch.max_records, 50);
  EXPECT_EQ(of_http.batch.linger, consumer::Millis(20));
  EXPECT_EQ(of_http.batch_form, consumer::HttpBatchForm::kNdjson);
  const auto exec =
      With(std::string(kStdout) + "handler: {exec: {command: [a], batch: {max_records: 100}}}\n");
  const auto& of_exec = std::get<consumer::ExecHandlerOptions>(exec.handler.kind);
  EXPECT_EQ(of_exec.batch.max_records, 100);
  EXPECT_EQ(of_exec.batch.linger, consumer::Millis(0));
}

TEST(Handler, OfExecAndJq) {
  const auto exec =
      With(std::string(kStdout) +
           "handler: {exec: {command: [./a, -x, \"\"], processes: 2, idempotent: true}}\n");
  const auto& options = std::get<consumer::ExecHandlerOptions>(exec.handler.kind);
  EXPECT_THAT(options.command, ElementsAre("./a", "-x", ""));
  EXPECT_EQ(options.value, consumer::ExecValue::kJson);
  EXPECT_EQ(options.processes, 2);
  EXPECT_TRUE(exec.handler.idempotent);
  const auto text = With(std::string(kStdout) + "handler: {exec: {command: [./a], value: text}}\n");
  EXPECT_EQ(std::get<consumer::ExecHandlerOptions>(text.handler.kind).value,
            consumer::ExecValue::kText);
  const auto jq = With(
      "output: {sqlite: {path: a, table: b, columns: {v: value}}}\n"
      "handler:\n  jq: |\n    .a\n    | {b: .c}\n");
  EXPECT_EQ(std::get<consumer::JqHandlerOptions>(jq.handler.kind).program, ".a\n| {b: .c}\n");
  const auto take = With(std::string(kStdout) + "handler: {take: \"json:/after?\"}\n");
  EXPECT_EQ(std::get<consumer::TakeHandlerOptions>(take.handler.kind).part.Text(), "json:/after?");
  EXPECT_FALSE(take.handler.outside());
}

TEST(When, IsAProgramOrAListOfConditions) {
  EXPECT_FALSE(With(kStdout).filter.any());
  const auto program = With(std::string(kStdout) + "when: |\n  .type == \"order\"\n  and .n > 5\n");
  EXPECT_EQ(program.filter.program, ".type == \"order\"\nand .n > 5\n");
  const auto list = With(std::string(kStdout) +
                         "when: [json:/type = order, \"header:h =  b = c\", key exists]\n");
  ASSERT_EQ(list.filter.all.size(), 3u);
  EXPECT_EQ(list.filter.all[0].selector.argument, "/type");
  EXPECT_EQ(list.filter.all[0].text, "order");
  EXPECT_EQ(list.filter.all[1].text, " b = c");
  EXPECT_EQ(list.filter.all[2].text, std::nullopt);
}

TEST(Retry, TakesAllItsKeys) {
  const auto full = With(std::string(kStdout) +
                         "handler: {jq: .}\n"
                         "retry: {attempts: 3, give_up_after: 1h, backoff: {initial: 1s, max: 2m, "
                         "multiplier: 1.5, jitter: none}, never: [4xx, 501, bad_input]}\n")
                        .retry;
  EXPECT_EQ(full.attempts, 3);
  EXPECT_EQ(full.give_up_after, 1h);
  EXPECT_EQ(full.initial, 1s);
  EXPECT_EQ(full.max, 2min);
  EXPECT_EQ(full.multiplier, 1.5);
  EXPECT_EQ(full.jitter, consumer::Jitter::kNone);
  EXPECT_THAT(full.never, ElementsAre("4xx", "501", "bad_input"));
}

TEST(DeadLetter, TakesBadRecordsAndConflictsUnlessToldOtherwise) {
  const auto none = With(kStdout);
  EXPECT_FALSE(none.dead_letter);
  EXPECT_EQ(none.on_id_conflict, consumer::OnBad::kSkip);
  EXPECT_EQ(none.on_bad_record, consumer::OnBad::kStop);
  const std::string section =
      std::string(kStdout) + "dead_letter: {topic: dead, on_publish_failure: pause}\n";
  const auto given = With(section);
  ASSERT_TRUE(given.dead_letter);
  EXPECT_EQ(given.dead_letter->topic, "dead");
  EXPECT_EQ(given.on_id_conflict, consumer::OnBad::kDeadLetter);
  EXPECT_EQ(given.on_bad_record, consumer::OnBad::kDeadLetter);
  EXPECT_EQ(given.max_consecutive(), 10u);
  EXPECT_EQ(none.max_consecutive(), 10u) << "an output is as sure of what it stops for";
  for (const std::size_t most : {0u, 25u}) {
    const auto limited =
        With(fmt::format("{}dead_letter: {{topic: dead, max_consecutive: {}}}\n", kStdout, most));
    EXPECT_EQ(limited.max_consecutive(), most);
  }
  const auto told = With(section + "on_id_conflict: skip\non_bad_record: stop\n");
  EXPECT_EQ(told.on_id_conflict, consumer::OnBad::kSkip);
  EXPECT_EQ(told.on_bad_record, consumer::OnBad::kStop);
}

TEST(Output, OfPostgresTakesItsRowRules) {
  const auto o = With(R"(
record_id: position
output:
  postgres:
    dsn: dbname=shop
    table: shop.effects
    columns: {id: key, body: json:/body, version: "header:v"}
    convert: {id: decimal:3, body: {decimal: 2}}
    on_conflict: update
    key: [id]
    fence_column: version
    fence_by: header:v
    on_null_value: delete
    types: {body: 'numeric(12,2)'}
    create: true
)");
  const auto& postgres = std::get<consumer::PostgresOptions>(o.output);
  EXPECT_EQ(postgres.table, "shop.effects");
  EXPECT_EQ(postgres.columns[0].scale, 3);
  EXPECT_EQ(postgres.columns[1].scale, 2);
  EXPECT_EQ(postgres.columns[1].conversion, consumer::Conversion::kDecimal);
  EXPECT_EQ(postgres.rules.on_conflict, consumer::OnConflict::kUpdate);
  EXPECT_THAT(postgres.rules.key, ElementsAre("id"));
  EXPECT_EQ(postgres.rules.fence_column, "version");
  ASSERT_TRUE(postgres.rules.fence_by);
  EXPECT_EQ(postgres.rules.fence_by->Text(), "header:v");
  EXPECT_EQ(postgres.rules.on_null_value, consumer::OnNull::kDelete);
  EXPECT_EQ(postgres.statement, "");
  EXPECT_EQ(postgres.rules.types.at("body"), "numeric(12,2)");
  EXPECT_TRUE(postgres.create);
}

TEST(Output, OfPostgresTakesAStatementInstead) {
  const auto o = With(R"(
output:
  postgres:
    dsn: dbname=shop
    statement: |
      UPDATE stock SET left = left - $2 -- $7 is no parameter; nor is this a second statement
      WHERE sku = $1 AND note <> '$9;' AND "a$8" <> $tag$ $5; $tag$;
    args: [json:/sku, json:/count]
)");
  const auto& postgres = std::get<consumer::PostgresOptions>(o.output);
  EXPECT_TRUE(postgres.statement.starts_with("UPDATE stock"));
  ASSERT_EQ(postgres.args.size(), 2u);
  EXPECT_EQ(postgres.args[1].Text(), "json:/count");
  EXPECT_EQ(postgres.table, "");
}

TEST(Output, OfADatabaseTakesAMaximumOfRecordsForItsTransactions) {
  const auto flow = [](const std::string& output) {
    const auto o = With("output: " + output + "\nrecord_id: position\n");
    return consumer::FlowOptionsOf(o).write_batch;
  };
  EXPECT_EQ(flow("{postgres: {dsn: dbname=a, table: b, columns: {v: value}}}"), 500u);
  EXPECT_EQ(flow("{postgres: {dsn: dbname=a, table: b, columns: {v: value}, max_records: 9}}"), 9u);
  EXPECT_EQ(flow("{sqlite: {path: a, table: b, columns: {v: value}}}"), 500u);
  EXPECT_EQ(flow("{sqlite: {path: a, table: b, columns: {v: value}, max_records: 10000}}"), 10000u);
}

TEST(Output, OfADatabaseTakesSeveralEffects) {
  for (const char* head :
       {"postgres:\n    host: db", "mysql:\n    host: db\n    user: u\n    database: d",
        "sqlite:\n    path: o.db"}) {
    const auto o = With(fmt::format(R"(
output:
  {}
    effects:
      - table: orders
        on_conflict: update
        key: [id]
        columns: {{id: "json:/id", at: "json:/at?default"}}
        convert: {{at: ms}}
      - {{table: order_lines, each: "json:/lines", columns: {{order_id: record./id, no: index}}}}
      - {{table: audit, when: '.total > 1000', columns: {{id: "json:/id"}}}}
      - table: {{by: "json:/kind", of: {{a: events_a, b: events_b}}, otherwise: skip}}
        when: [topic = orders]
        columns: {{id: "json:/id"}}
)",
                                    head));
    std::vector<consumer::Effect> effects;
    std::visit(
        [&](const auto& output) {
          if constexpr (requires { output.effects; }) effects = EffectsOf(output);
        },
        o.output);
    ASSERT_EQ(effects.size(), 4u) << head;
    EXPECT_EQ(effects[0].table, "orders");
    EXPECT_THAT(effects[0].rules.key, ElementsAre("id"));
    EXPECT_EQ(effects[0].rules.on_conflict, consumer::OnConflict::kUpdate);
    EXPECT_EQ(effects[0].columns[1].conversion, consumer::Conversion::kMillis);
    EXPECT_THAT(Names(effects[1].columns), ElementsAre("order_id=record./id", "no=index"));
    EXPECT_EQ(effects[1].each->Text(), "json:/lines");
    EXPECT_EQ(effects[1].rules, consumer::RowRules());
    EXPECT_EQ(effects[2].when.program, ".total > 1000");
    EXPECT_FALSE(effects[2].route);
    const consumer::Route& route = effects[3].route.value();
    EXPECT_EQ(route.by.Text(), "json:/kind");
    EXPECT_THAT(route.of, ElementsAre(Pair("a", "events_a"), Pair("b", "events_b")));
    EXPECT_EQ(route.otherwise, consumer::Route::Otherwise::kSkip);
    EXPECT_EQ(effects[3].when.all.size(), 1u);
  }
}

TEST(Output, OfPostgresTakesStatementsAmongItsEffects) {
  const auto o = With(R"yaml(
output:
  postgres:
    host: db
    effects:
      - {table: orders, columns: {id: "json:/id"}}
      - {statement: "select bump($1)", args: ["json:/customer"]}
      - {table: {by: topic, of: {orders: a}, otherwise: rest}, columns: {id: "json:/id"}}
)yaml");
  const auto effects = EffectsOf(std::get<consumer::PostgresOptions>(o.output));
  ASSERT_EQ(effects.size(), 3u);
  EXPECT_EQ(effects[1].statement, "select bump($1)");
  EXPECT_EQ(effects[1].args.front().Text(), "json:/customer");
  EXPECT_EQ(effects[2].route.value().name, "rest");
}

TEST(Output, OfSqliteTakesTheSameRowRules) {
  const auto o = With(
      "output: {sqlite: {path: a, table: b, columns: {v: value, w: key}, on_conflict: ignore, "
      "on_null_value: skip}}\nrecord_id: position\n");
  const auto& rules = std::get<consumer::SqliteOptions>(o.output).rules;
  EXPECT_EQ(rules.on_conflict, consumer::OnConflict::kIgnore);
  EXPECT_EQ(rules.on_null_value, consumer::OnNull::kSkip);
  EXPECT_THAT(rules.key, IsEmpty());
  EXPECT_FALSE(rules.fence_by);
}

TEST(Output, OfKafkaHasTheOrderOfThePartitionAndRoomForTwoTransactions) {
  const auto o = With("record_id: position\noutput: {kafka: {topic: out}}\n");
  EXPECT_EQ(o.processing.order, consumer::Order::kPartition);
  EXPECT_EQ(o.processing.max_in_flight, 20000);
  const auto small = With("record_id: position\noutput: {kafka: {topic: out, max_records: 500}}\n");
  EXPECT_EQ(small.processing.max_in_flight, 1000);
}

TEST(Output, DecidesWhetherNeighbouringOffsetsShareALock) {
  const auto block = [](consumer::PipelineOptions options) {
    EXPECT_EQ(consumer::LockBlock(options), 1) << "each record has a lock of its own by default";
    options.lock.block = 1024;
    return consumer::LockBlock(options);
  };
  EXPECT_EQ(
      block(With(
          "record_id: position\noutput: {sqlite: {path: a, table: t, columns: {a: value}}}\n")),
      1024);
  EXPECT_EQ(block(With("record_id: position\noutput: {kafka: {topic: out}}\n")), 1024);
  EXPECT_EQ(block(With("record_id: json:/id\noutput: {kafka: {topic: out}}\n")), 1);
  EXPECT_EQ(
      block(With("record_id: position\nguarantee: at-least-once\noutput: {file: {path: a}}\n")), 1);
}

TEST(Output, WithoutALedgerAsksAllLockNodesUnlessPositionsGoToKafka) {
  const auto contact = [](const char* text) { return With(text).lock.lock.contact; };
  EXPECT_EQ(contact("record_id: position\noutput: {kafka: {topic: out}}\n"),
            locking::Contact::kQuorum);
  EXPECT_EQ(contact("record_id: json:/id\noutput: {kafka: {topic: out}}\n"),
            locking::Contact::kAll);
  const LoadResult replays = LoadText(
      "version: 1\nname: orders\nguarantee: exactly-once\n"
      "kafka: {brokers: [a:1], topics: [t], accept_replay_ids: true}\n"
      "lock: {redis: {nodes: [a:1, b:1, c:1]}}\noutput: {kafka: {topic: out}}\n",
      "p.yaml", FakeEnvironment());
  ASSERT_TRUE(replays.options);
  EXPECT_EQ(replays.options->lock.lock.contact, locking::Contact::kAll);
  EXPECT_EQ(contact("guarantee: at-least-once\noutput: {file: {path: a}}\n"),
            locking::Contact::kAll);
}

// A fencing token comes in order by the lock alone, so one that is written needs a quorum.
TEST(Output, WithATokenNeedsMoreThanOneLockNodeWhereverItIsWritten) {
  const auto decides = [](const std::string& columns) {
    return LedgerDecides(
        With(fmt::format("record_id: position\noutput:\n  sqlite:\n    path: a\n"
                         "    effects:\n      - {{table: a, columns: {{a: key}}}}\n"
                         "      - {{table: b, columns: {{b: {}}}}}\n",
                         columns)));
  };
  EXPECT_TRUE(decides("offset"));
  EXPECT_FALSE(decides("token"));
}

TEST(Output, OfKafkaTakesAllItsKeys) {
  const auto o = With(R"(
record_id: position
processing: {order: partition, max_in_flight: 5000}
output:
  kafka: {topic: out, key: json:/a, value: "value?",
          headers: {h: header:h, c: "=x", gone: drop},
          transaction_timeout: 30s, linger: 20ms, max_records: 1000}
)");
  const auto& kafka = std::get<consumer::KafkaOutputOptions>(o.output);
  EXPECT_EQ(kafka.key.Text(), "json:/a");
  EXPECT_THAT(Names(kafka.headers.set), ElementsAre("h=header:h", "c==x"));
  EXPECT_THAT(kafka.headers.dropped, ElementsAre("gone"));
  EXPECT_EQ(kafka.transaction_timeout, 30s);
  EXPECT_EQ(kafka.linger, 20ms);
  EXPECT_EQ(kafka.max_records, 1000);
  EXPECT_EQ(o.processing.max_in_flight, 5000);
}

TEST(Output, OfKafkaMayMakeSeveralRecords) {
  const auto o = With(R"(
record_id: position
output:
  kafka:
    records:
      - {topic: shipped, key: json:/id, value: "value?"}
      - {topic: {by: topic, of: {orders: orders.done, b: rest.done}, otherwise: rest.done},
         when: .flag, value: {jq: '{id}'}}
      - {topic: {by: key, of: {a: shipped}, otherwise: skip}, when: [key exists]}
)");
  const auto& kafka = std::get<consumer::KafkaOutputOptions>(o.output);
  ASSERT_EQ(kafka.records.size(), 3U);
  EXPECT_EQ(kafka.records[0].topic, "shipped");
  EXPECT_EQ(kafka.records[0].key.Text(), "json:/id");
  EXPECT_FALSE(kafka.records[0].route || kafka.records[0].when.any());
  EXPECT_EQ(kafka.records[1].route->by.Text(), "topic");
  EXPECT_EQ(kafka.records[1].route->name, "rest.done");
  EXPECT_EQ(kafka.records[1].when.program, ".flag");
  EXPECT_EQ(kafka.records[1].program, "{id}");
  EXPECT_EQ(kafka.records[2].route->otherwise, consumer::Route::Otherwise::kSkip);
  EXPECT_EQ(kafka.records[2].when.all.size(), 1U);
  EXPECT_EQ(kafka.records[2].value.Text(), "value?");
  EXPECT_THAT(consumer::TopicsOf(kafka), ElementsAre("shipped", "orders.done", "rest.done"));
}

TEST(Output, OfKafkaIsEncodedByTheSchemasOfItsSubjects) {
  const auto o = With(R"(
record_id: position
output:
  kafka:
    topic: out
    encode:
      value: {format: protobuf, version: 3, message: shop.Order}
      key: {format: avro, subject: keys, schema: '"string"', register: true}
      registry: {url: "https://r:8081", username: u, password: hunter2, tls: {ca: /ca.pem}}
)");
  const auto& encode = std::get<consumer::KafkaOutputOptions>(o.output).encode;
  EXPECT_EQ(encode.value.format, consumer::RecordFormat::kProtobuf);
  EXPECT_EQ(encode.value.subject, "out-value");
  EXPECT_EQ(encode.value.version, 3);
  EXPECT_EQ(encode.value.message, "shop.Order");
  EXPECT_EQ(encode.value.schema, "");
  EXPECT_FALSE(encode.value.register_schema);
  EXPECT_EQ(encode.key.format, consumer::RecordFormat::kAvro);
  EXPECT_EQ(encode.key.subject, "keys");
  EXPECT_EQ(encode.key.version, 0);
  EXPECT_EQ(encode.key.schema, R"("string")");
  EXPECT_TRUE(encode.key.register_schema);
  EXPECT_EQ(encode.registry.url, "https://r:8081");
  EXPECT_EQ(encode.registry.auth.password, "hunter2");
  EXPECT_EQ(encode.registry.tls_ca, "/ca.pem");
}

TEST(Output, OfFileAndStdoutMayHaveColumns) {
  const auto file =
      With("guarantee: at-least-once\noutput: {file: {path: a, columns: {v: value}}}");
  EXPECT_EQ(std::get<consumer::FileOptions>(file.output).path, "a");
  EXPECT_THAT(Names(std::get<consumer::FileOptions>(file.output).columns), ElementsAre("v=value"));
  const auto out = With(kStdout);
  EXPECT_THAT(std::get<consumer::StdoutOptions>(out.output).columns, IsEmpty());
}

}  // namespace
}  // namespace fencepost::config
