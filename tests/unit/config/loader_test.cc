#include "config/loader.h"

#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/paths.h"
#include "tests/unit/config/pipeline_text.h"

namespace fencepost::config {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

consumer::PipelineOptions Loaded(std::string_view text) {
  LoadResult result = LoadText(text, "p.yaml", FakeEnvironment());
  EXPECT_TRUE(result.options) << ::testing::PrintToString(Lines(result.findings));
  return result.options.value_or(consumer::PipelineOptions{});
}

// Each secret, as a text and as a file: what it becomes, and what is told of a file that is away.
TEST(Load, TakesEachSecretAsATextOrAsAFile) {
  constexpr const char* kFile = R"(version: 1
name: orders
kafka:
  brokers: [127.0.0.1:9092]
  topics: [orders]
  sasl: {mechanism: PLAIN, username: u, password: SECRET}
  decode: {value: avro, registry: {url: "https://r", username: u, password: SECRET}}
lock: {redis: {nodes: [127.0.0.1:7001], password: SECRET}}
handler:
  http:
    url: https://s
    idempotent: true
    auth: {bearer: SECRET}
on_bad_record: stop
observe:
  http: 127.0.0.1:1
  auth: {bearer: SECRET, basic: {username: u, password: SECRET}}
  control: token
  control_token: SECRET
output:
  postgres: {host: localhost, password: SECRET, table: t, columns: {a: key}}
)";
  const auto with = [](const std::string& secret) {
    std::string text = kFile;
    for (std::size_t at = 0; (at = text.find("SECRET", at)) != std::string::npos;) {
      text.replace(at, 6, secret);
      at += secret.size();
    }
    return LoadText(text, "p.yaml", FakeEnvironment());
  };
  const auto secrets = [](const consumer::PipelineOptions& o) {
    return std::vector<Secret>{
        o.kafka.sasl_password,   o.kafka.decode.registry.auth.password,
        o.lock.redis.password,   std::get<consumer::HttpHandlerOptions>(o.handler.kind).auth.bearer,
        o.observe.auth.bearer,   o.observe.auth.password,
        o.observe.control_token, std::get<consumer::PostgresOptions>(o.output).password};
  };
  const LoadResult text = with("\"hunter2\"");
  const LoadResult file = with("{file: /none/secret}");
  ASSERT_TRUE(text.options && file.options) << ::testing::PrintToString(Lines(file.findings));
  EXPECT_THAT(secrets(*text.options), ::testing::Each(Secret("hunter2")));
  EXPECT_THAT(secrets(*file.options), ::testing::Each(Secret::OfFile("/none/secret")));
  const std::string away =
      "the file /none/secret: No such file or directory; it is read again at each login [login]";
  std::size_t told = 0;
  for (const std::string& line : Lines(file.findings)) told += line.ends_with(away) ? 1 : 0;
  EXPECT_EQ(told, secrets(*file.options).size());
  for (const auto& [path, shown] : file.options->shown) {
    EXPECT_EQ(shown.find("/none"), std::string::npos) << path;
  }
}

TEST(Load, TakesTheKerberosLoginOfEachCluster) {
  const std::string login = "sasl: {mechanism: GSSAPI, kerberos: {keytab: /w.keytab}}";
  const auto o = Loaded(R"(version: 1
name: orders
guarantee: at-least-once
kafka: {brokers: "a:1", topics: [orders], )" +
                        login + R"(}
record_id: json:/id
on_bad_record: stop
lock: {redis: {nodes: ["a:1"]}}
dead_letter: {topic: d, brokers: "b:1", )" +
                        login + R"(}
output: {stdout: {}}
)");
  for (const consumer::ClusterOptions& cluster :
       {consumer::ClusterOptions(o.kafka), o.dead_letter->cluster}) {
    EXPECT_EQ(cluster.sasl_mechanism, "GSSAPI");
    EXPECT_EQ(cluster.kerberos.keytab, "/w.keytab");
    EXPECT_EQ(cluster.kerberos.service, "kafka");
  }
}

// As platforms hand lists out: one text with commas, for the key or as an element.
TEST(Load, TakesListsFromOneText) {
  const std::map<std::string, std::string> variables = {
      {"BROKERS", "a:1, b:2 ,[::1]:3"},
      {"NODES", "redis://u:x@a:1,b:2 , rediss://:p,w@c:3,redis://d:4,unix:/run/e.sock"},
      {"TOPICS", "orders,^returns-[a-z]{1,3},^b"},
      {"CODES", "2xx, 404"}};
  Environment environment = FakeEnvironment();
  environment.variable = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? "" : std::optional(found->second);
  };
  for (const auto& [before, after] : {std::pair("[\"", "\"]"), std::pair("", "")}) {
    std::string text = kPipeline;
    const auto replace = [&, before = before, after = after](const std::string& from,
                                                             const std::string& name) {
      text.replace(text.find(from), from.size(), before + ("${" + name + "}") + after);
    };
    replace("[127.0.0.1:9092]", "BROKERS");
    replace("[orders]", "TOPICS");
    replace("[127.0.0.1:7001, 127.0.0.1:7002, 127.0.0.1:7003]", "NODES");
    text +=
        "handler: {http: {url: 'http://s/', success: '${CODES}', retry_on: [ '408,5xx', 429 ]}}\n"
        "guarantee: at-least-once\n";
    const LoadResult result = LoadText(text, "p.yaml", environment);
    ASSERT_TRUE(result.options) << ::testing::PrintToString(Lines(result.findings));
    const consumer::PipelineOptions& o = *result.options;
    EXPECT_THAT(o.kafka.brokers, ElementsAre("a:1", "b:2", "[::1]:3"));
    EXPECT_THAT(o.kafka.topics, ElementsAre("orders", "^returns-[a-z]{1,3}", "^b"));
    EXPECT_THAT(o.lock.redis.nodes, ElementsAre("redis://u:x@a:1", "b:2", "rediss://:p,w@c:3",
                                                "redis://d:4", "unix:/run/e.sock"));
    EXPECT_THAT(std::get<consumer::HttpHandlerOptions>(o.handler.kind).retry_on,
                ElementsAre("408", "5xx", "429"));
    EXPECT_THAT(o.shown, ::testing::Contains(std::pair("kafka.brokers", "${BROKERS}")));
  }
}

TEST(Load, ReadsTheProtocolsOfBrokersAsWhatTheySay) {
  const auto tls = [](const std::string& brokers, const std::string& more) {
    std::string text = kPipeline;
    text.replace(text.find("[127.0.0.1:9092]"), 16, brokers + more);
    const consumer::PipelineOptions o = Loaded(text);
    EXPECT_EQ(o.kafka.brokers.front(), "a:1") << brokers;
    return o.kafka.tls;
  };
  const std::string sasl = "\n  sasl: {mechanism: PLAIN, username: u, password: p}";
  const std::string ca = "\n  tls: {ca: /ca.pem}";
  EXPECT_FALSE(tls("[a:1]", ""));
  EXPECT_FALSE(tls("PLAINTEXT://a:1", ""));
  EXPECT_FALSE(tls("SASL_PLAINTEXT://a:1,SASL_PLAINTEXT://b:2", sasl));
  EXPECT_TRUE(tls("SSL://a:1,b:2", ""));
  EXPECT_TRUE(tls("ssl://a:1", ca));
  EXPECT_TRUE(tls("[SASL_SSL://a:1, SASL_SSL://b:2]", sasl));
  EXPECT_TRUE(tls("SASL_SSL://a:1", sasl + ca));
  EXPECT_TRUE(tls("[a:1]", "\n  tls: {}"));
}

TEST(Load, FindsTheRegionOfMskInTheFileThenTheBrokersNamesThenTheEnvironment) {
  using Variables = std::map<std::string, std::string>;
  const auto region = [](const std::string& given, const Variables& variables,
                         const std::string& broker) {
    std::string text = kPipeline;
    text.replace(text.find("[127.0.0.1:9092]"), 16,
                 "[" + broker + "]\n  tls: {}\n  sasl: {mechanism: AWS_MSK_IAM" + given + "}");
    Environment environment = FakeEnvironment();
    environment.variable = [&](const std::string& name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      if (found != variables.end()) return found->second;
      return FakeEnvironment().variable(name);
    };
    const LoadResult result = LoadText(text, "p.yaml", environment);
    return result.options ? result.options->kafka.sasl_region : "";
  };
  const std::string broker = "b-1.shop.x1.c2.kafka.eu-north-1.amazonaws.com:9098";
  const Variables both{{"AWS_REGION", "eu-west-1"}, {"AWS_DEFAULT_REGION", "eu-west-2"}};
  EXPECT_EQ(region(", region: us-east-1", both, broker), "us-east-1");
  EXPECT_EQ(region("", both, broker), "eu-north-1") << "the pod is elsewhere";
  EXPECT_EQ(region("", both, "k:1"), "eu-west-1");
  for (const char* none : {"", "eu west", "EU-WEST-1", "eu.example/"}) {
    EXPECT_EQ(region("", {{"AWS_REGION", none}, {"AWS_DEFAULT_REGION", "eu-west-2"}}, "k:1"),
              "eu-west-2")
        << none;
  }
  EXPECT_EQ(region("", {}, "k:1, " + broker), "eu-north-1");
  EXPECT_EQ(region("", {}, "boot-x.c1.kafka-serverless.us-east-1.amazonaws.com:9098"), "us-east-1");
  EXPECT_EQ(region("", {}, "b-1.x.kafka.cn-north-1.amazonaws.com.cn:9098"), "cn-north-1");
  for (const char* none : {"k:9098", "b.kafka.amazonaws.com:1", "kafka.eu-west-1.example.com:1",
                           "kafka.eu-west-1.amazonaws.com:1", "b.s3.eu-west-1.amazonaws.com:1"}) {
    EXPECT_EQ(region("", {}, none), "") << none;
  }
}

TEST(Load, ReadsTheClustersOfOutputsBesideKafkas) {
  std::string text = kPipeline;
  text.replace(text.find("output:"), std::string::npos, R"(guarantee: at-least-once
output:
  kafka:
    topic: orders
    brokers: SASL_SSL://b:1,SASL_SSL://c:2
    sasl: {mechanism: PLAIN, username: u, password: "${SECRET}"}
dead_letter: {topic: orders, brokers: [d:1], tls: {ca: /ca.pem}}
)");
  const std::string begin = "  start_from: earliest\n";
  text.insert(text.find(begin), "  librdkafka: {ssl.ca.location: /own.pem, linger.ms: \"50\"}\n");
  const consumer::PipelineOptions o = Loaded(text);
  EXPECT_EQ(FinalityOf(o.output), consumer::Finality::kWrite);
  EXPECT_FALSE(LettersInTransaction(o));
  EXPECT_THAT(o.kafka.brokers, ElementsAre("127.0.0.1:9092"));
  EXPECT_FALSE(o.kafka.tls);
  const consumer::KafkaOptions output = OutputCluster(o);
  EXPECT_THAT(output.brokers, ElementsAre("b:1", "c:2"));
  EXPECT_TRUE(output.tls);
  EXPECT_EQ(output.sasl_password, "hunter2");
  EXPECT_THAT(output.librdkafka, ElementsAre(::testing::Pair("linger.ms", "50")))
      << "what it says of TLS is kafka's";
  const consumer::KafkaOptions letters = LetterCluster(o);
  EXPECT_THAT(letters.brokers, ElementsAre("d:1"));
  EXPECT_EQ(letters.tls_ca, "/ca.pem");
  EXPECT_EQ(letters.sasl_mechanism, "") << "the login is the output's";
  EXPECT_THAT(o.shown, ::testing::Contains(std::pair("output.kafka.sasl.password", "(not shown)")));
}

// The other defaults are those of the options, as REFERENCE.md shows them.
TEST(Load, TakesTheExampleAndFillsInWhatFollowsFromOtherKeys) {
  const LoadResult result =
      Load(testing::SourcePath("config/examples/orders.yaml"), FakeEnvironment());
  EXPECT_THAT(Lines(result.findings), IsEmpty());
  ASSERT_TRUE(result.options);
  const consumer::PipelineOptions& o = *result.options;
  EXPECT_EQ(o.name, "orders");
  EXPECT_EQ(o.kafka.group, "orders");
  EXPECT_EQ(o.identity.record_id.front().Text(), "json:/order_id");
  EXPECT_EQ(o.on_id_conflict, consumer::OnBad::kSkip);
  EXPECT_EQ(o.on_bad_record, consumer::OnBad::kStop);
  EXPECT_EQ(o.lock.lock.remember_done, 1h);
  EXPECT_EQ(o.lock.lock.contact, locking::Contact::kQuorum);
  const auto& postgres = std::get<consumer::PostgresOptions>(o.output);
  EXPECT_EQ(postgres.dsn, "postgresql://app@127.0.0.1/shop");
  EXPECT_EQ(postgres.table, "effects");
  ASSERT_EQ(postgres.columns.size(), 2u);
  EXPECT_EQ(postgres.columns[1].selector.Text(), "json:/amount");
  EXPECT_EQ(o.ledger_keep, std::chrono::hours(30 * 24));
  EXPECT_EQ(o.config_hash.size(), 64u);
}

TEST(Load, TakesEveryKeyThatIsSupported) {
  const consumer::PipelineOptions o = Loaded(R"(
version: 1
name: all-of-it
guarantee: at-least-once
kafka:
  brokers: [kafka-1:9092, "[::1]:9092"]
  topics: [a, b.c_d-e]
  group: ${GROUP:-billing}
  start_from: latest
  commit_interval: 250ms
  static_members: true
  accept_replay_ids: true
  tls: {ca: /ca.pem, certificate: /c.pem, key: /k.pem}
  sasl: {mechanism: SCRAM-SHA-512, username: u, password: "${SECRET}"}
  librdkafka: {fetch.wait.max.ms: 50}
  decode:
    value: protobuf
    key: json_schema
    registry: {url: "https://r:8081", username: u, password: "${SECRET}", tls: {ca: /ca.pem}}
record_id: header:id
on_id_conflict: skip
on_bad_record: stop
lock:
  redis:
    nodes:
      - unix:/run/redis.sock
      - rediss://own:${SECRET}@redis-b:7000
      - redis-c:6379
    username: fencepost
    password: ${file:/run/secrets/redis}
    tls: {ca: /ca.pem, certificate: /c.pem, key: /k.pem, server_name: redis}
    timeout: 100ms
  ttl: 20s
  min_validity: 3s
  on_unavailable: proceed
  wait: 1m
  max_skew: 2s
processing: {order: none, concurrency: 8, max_in_flight: 16, max_in_flight_bytes: 1MiB,
             timeout: 1s, revoke_drain: 2s, stall_after: 30s}
output:
  sqlite:
    path: "/var/lib/${GROUP:-x}.db"
    table: effects
    columns: {"order id": key, note: "json:/note?", kind: "=order", raw: value}
ledger: {keep: 30d}
observe: {http: "0.0.0.0:0", advertise: "orders-1.example:9464", log: {level: debug, format: text},
          traces: {endpoint: "https://otel", sample: 0.25, slow: 250ms,
                   headers: {Authorization: "Bearer ${SECRET}"}}}
shutdown_timeout: 5s
)");
  EXPECT_EQ(o.guarantee, consumer::Guarantee::kAtLeastOnce);
  EXPECT_THAT(o.kafka.brokers, ElementsAre("kafka-1:9092", "[::1]:9092"));
  EXPECT_EQ(o.kafka.group, "billing");
  EXPECT_EQ(o.kafka.start_from, consumer::StartFrom::kLatest);
  EXPECT_EQ(o.kafka.commit_interval, 250ms);
  EXPECT_TRUE(o.kafka.static_members);
  EXPECT_TRUE(o.identity.accept_replay_ids);
  EXPECT_EQ(o.kafka.tls_ca + o.kafka.tls_certificate + o.kafka.tls_key, "/ca.pem/c.pem/k.pem");
  EXPECT_EQ(o.kafka.decode.value, consumer::RecordFormat::kProtobuf);
  EXPECT_EQ(o.kafka.decode.key, consumer::RecordFormat::kJsonSchema);
  EXPECT_EQ(o.kafka.decode.registry.url, "https://r:8081");
  EXPECT_EQ(o.kafka.decode.registry.auth.username, "u");
  EXPECT_EQ(o.kafka.decode.registry.auth.password, "hunter2");
  EXPECT_EQ(o.kafka.decode.registry.tls_ca, "/ca.pem");
  EXPECT_EQ(o.kafka.sasl_mechanism, "SCRAM-SHA-512");
  EXPECT_EQ(o.kafka.sasl_username, "u");
  EXPECT_EQ(o.kafka.sasl_password, "hunter2");
  EXPECT_EQ(o.kafka.librdkafka.at("fetch.wait.max.ms"), "50");
  EXPECT_EQ(o.identity.record_id.front().Text(), "header:id");
  EXPECT_EQ(o.on_id_conflict, consumer::OnBad::kSkip);
  EXPECT_THAT(o.lock.redis.nodes, ElementsAre("unix:/run/redis.sock",
                                              "rediss://own:hunter2@redis-b:7000", "redis-c:6379"));
  EXPECT_EQ(o.lock.redis.username, "fencepost");
  EXPECT_EQ(o.lock.redis.password, "filed");
  const locking::RedisOptions& redis = o.lock.redis;
  EXPECT_TRUE(redis.tls);
  EXPECT_EQ(redis.tls_ca + redis.tls_certificate + redis.tls_key, "/ca.pem/c.pem/k.pem");
  EXPECT_EQ(redis.tls_server_name, "redis");
  EXPECT_EQ(o.lock.lock.node_timeout, 100ms);
  EXPECT_EQ(o.lock.lock.ttl, 20s);
  EXPECT_EQ(o.lock.lock.min_validity, 3s);
  EXPECT_EQ(o.lock.wait, 1min);
  EXPECT_EQ(o.lock.on_unavailable, consumer::OnUnavailable::kProceed);
  EXPECT_EQ(o.lock.lock.max_skew, 2s);
  EXPECT_EQ(o.lock.lock.contact, locking::Contact::kQuorum);
  EXPECT_EQ(o.processing.order, consumer::Order::kNone);
  EXPECT_EQ(o.processing.concurrency, 8);
  EXPECT_EQ(o.processing.max_in_flight, 16);
  EXPECT_EQ(o.processing.max_in_flight_bytes, 1u << 20);
  EXPECT_EQ(o.processing.timeout, 1s);
  EXPECT_EQ(o.processing.revoke_drain, 2s);
  EXPECT_EQ(o.processing.stall_after, 30s);
  const auto& sqlite = std::get<consumer::SqliteOptions>(o.output);
  EXPECT_EQ(sqlite.path, "/var/lib/x.db");
  EXPECT_EQ(sqlite.table, "effects");
  ASSERT_EQ(sqlite.columns.size(), 4u);
  EXPECT_EQ(sqlite.columns[0].name, "order id");
  EXPECT_EQ(sqlite.columns[1].selector.Text(), "json:/note?");
  EXPECT_EQ(o.ledger_keep, 30 * 24h);
  EXPECT_EQ(o.observe.http, "0.0.0.0:0");
  EXPECT_EQ(o.observe.advertise, "orders-1.example:9464");
  EXPECT_EQ(o.observe.log_level, "debug");
  EXPECT_EQ(o.observe.log_format, "text");
  const consumer::TraceOptions& traces = o.observe.traces;
  EXPECT_EQ(traces.endpoint, "https://otel");
  EXPECT_EQ(traces.sample, 0.25);
  EXPECT_EQ(traces.slow, 250ms);
  EXPECT_THAT(traces.headers, ElementsAre(std::pair("Authorization", "Bearer hunter2")));
  EXPECT_EQ(o.shutdown_timeout, 5s);
}

TEST(Loader, ReadsWhoMayAskThePort) {
  const std::string text = std::string(kPipeline) + R"(observe:
  tls: {certificate: a.crt, key: a.key, client_ca: ca.crt}
  auth: {bearer: "${SECRET}", basic: {username: ops, password: "${SECRET}"}, open: [live, ready]}
)";
  const LoadResult loaded = LoadText(text, "p.yaml", FakeEnvironment());
  ASSERT_TRUE(loaded.options);
  const consumer::ObserveOptions& port = loaded.options->observe;
  EXPECT_EQ(port.tls, (consumer::PortTls{"a.crt", "a.key", "ca.crt"}));
  EXPECT_EQ(port.auth, (consumer::PortAuth{"hunter2", "ops", "hunter2", {"live", "ready"}}));
  for (const auto& [key, shown] : loaded.options->shown) {
    if (key.starts_with("observe.auth.b") && !key.ends_with("username")) {
      EXPECT_EQ(shown, "(not shown)") << key;
    }
  }
}

TEST(Load, ScalarsAreTextWhateverTheyLookLike) {
  std::string text = kPipeline;
  text.replace(text.find("name: orders"), 12, "name: 010   ");
  EXPECT_EQ(Loaded(text).name, "010");
}

TEST(Load, ShowsTheSettingsOfTheFileWithoutSecrets) {
  const auto shown =
      Loaded(std::string(kPipeline) +
             "handler: {http: {url: http://s, headers: {A: hunter2}, idempotent: true}}\n")
          .shown;
  const auto find = [&](std::string_view path) {
    for (const auto& [key, text] : shown) {
      if (key == path) return text;
    }
    return std::string("(not there)");
  };
  EXPECT_EQ(find("name"), "orders");
  EXPECT_EQ(find("lock.redis.password"), "(not shown)");
  EXPECT_EQ(find("handler.http.headers"), "A: (not shown)");
  EXPECT_EQ(find("kafka.topics"), "orders");
  EXPECT_EQ(find("output.sqlite.columns"), "order_id: json:/order_id, amount: json:/amount");
  EXPECT_EQ(find("lock.ttl"), "(not there)");
}

TEST(Load, TheHashIsThatOfTheText) {
  const std::string text = kPipeline;
  EXPECT_EQ(Loaded(text).config_hash, Loaded(text).config_hash);
  EXPECT_NE(Loaded(text).config_hash, Loaded(text + "# more\n").config_hash);
}

TEST(Load, AFileThatCannotBeReadIsAFinding) {
  const LoadResult result = Load("/nowhere/p.yaml", Environment::Process());
  EXPECT_FALSE(result.options);
  EXPECT_THAT(
      Lines(result.findings),
      ElementsAre("/nowhere/p.yaml:1:1: error: cannot be read: No such file or directory [file]"));
}

TEST(Load, TheIdAndItsContentMayHaveSeveralParts) {
  std::string text = kPipeline;
  text.replace(text.find("json:/order_id\n"), 14,
               "[json:/tenant, key:/id]\nid_content: [json:/amount, \"json:/currency?\"]");
  const consumer::PipelineOptions several = Loaded(text);
  ASSERT_EQ(several.identity.record_id.size(), 2u);
  EXPECT_EQ(several.identity.record_id[1].Text(), "key:/id");
  EXPECT_EQ(several.identity.content.kind, consumer::ContentRule::Kind::kSelectors);
  ASSERT_EQ(several.identity.content.selectors.size(), 2u);
  EXPECT_EQ(several.identity.content.selectors[1].Text(), "json:/currency?");
  text.replace(text.find("[json:/amount"), 33, "none");
  EXPECT_EQ(Loaded(text).identity.content.kind, consumer::ContentRule::Kind::kNone);
}

TEST(CheckTogether, RefusesTheSamePipelineNameTwice) {
  std::string other = kPipeline;
  other.replace(other.find("name: orders"), 12, "name: others");
  const std::vector<LoadResult> files = {LoadText(kPipeline, "a.yaml", FakeEnvironment()),
                                         LoadText(other, "b.yaml", FakeEnvironment()),
                                         LoadText("x", "c.yaml", FakeEnvironment()),
                                         LoadText(kPipeline, "d.yaml", FakeEnvironment())};
  EXPECT_THAT(Lines(CheckTogether(files)),
              ElementsAre("d.yaml:2:7: error: the pipeline name \"orders\" is that of a.yaml too; "
                          "one process runs a name once [duplicate-pipeline]"));
}

TEST(CheckTogether, RefusesTwoPipelinesThatShareTheRecordsOfATopic) {
  const auto file = [](const std::string& name, const std::string& brokers,
                       const std::string& topics, const std::string& group) {
    std::string text = kPipeline;
    text.replace(text.find("name: orders"), 12, "name: " + name);
    text.replace(text.find("[127.0.0.1:9092]"), 16, brokers);
    text.replace(text.find("[orders]"), 8, topics + "\n  group: " + group);
    return LoadText(text, name + ".yaml", FakeEnvironment());
  };
  const std::vector<LoadResult> files = {
      file("a", "[k:1, k:2]", "[x, y]", "shop"), file("b", "[k:2]", "[y]", "other"),
      file("c", "[k:2]", "[z]", "shop"),         file("d", "[l:1]", "[x]", "shop"),
      file("e", "SSL://k:2", "z,y", "shop"),     file("f", "[k:2]", "[^w.*]", "shop"),
      file("g", "[k:2]", "[^z.*]", "shop"),      file("h", "[k:2]", "[w-1]", "shop"),
      file("i", "[k:2]", "['^[^v].*']", "last"), file("j", "[k:2]", "['^v.*']", "last")};
  const auto shares = [](const std::string& one, const std::string& other) {
    return fmt::format(
        "{}.yaml:6:10: error: {}.yaml reads one of kafka.topics in the same group \"shop\": each "
        "would get a part of the records; give each a kafka.group of its own [duplicate-pipeline]",
        one, other);
  };
  EXPECT_THAT(Lines(CheckTogether(files)),
              ElementsAre(shares("e", "a"), shares("g", "c"), shares("h", "f")));
}

TEST(CheckTogether, RefusesASecondKeytab) {
  const auto file = [](const std::string& name, const std::string& keytab) {
    std::string text = kPipeline;
    text.replace(text.find("name: orders"), 12, "name: " + name);
    text.replace(text.find("  start_from: earliest\n"), 23,
                 "  sasl: {mechanism: GSSAPI, kerberos: {keytab: " + keytab + "}}\n");
    return LoadText(text, name + ".yaml", FakeEnvironment());
  };
  const std::vector<LoadResult> files = {LoadText(kPipeline, "a.yaml", FakeEnvironment()),
                                         file("b", "/b"), file("c", "/c"), file("d", "/b")};
  ASSERT_TRUE(files[2].options) << ::testing::PrintToString(Lines(files[2].findings));
  EXPECT_THAT(Lines(CheckTogether(files)),
              ElementsAre("c.yaml:6:48: error: kafka.sasl.kerberos.keytab: a process has "
                          "one keytab, and another one is /b [sasl]"));
}

TEST(FormatFindings, AsJsonIsOneArrayWithALineForEach) {
  const std::vector<Finding> findings =
      LoadText("a: \"1\nb: 2\n", "p\".yaml", FakeEnvironment()).findings;
  const auto json = nlohmann::json::parse(FormatFindingsJson(findings));
  ASSERT_EQ(json.size(), findings.size());
  EXPECT_EQ(json[0]["file"], "p\".yaml");
  EXPECT_EQ(json[0]["line"], findings[0].line);
  EXPECT_EQ(json[0]["column"], findings[0].col);
  EXPECT_EQ(json[0]["severity"], "error");
  EXPECT_EQ(json[0]["rule"], "yaml");
  EXPECT_EQ(FormatFindingsJson({}), "[]");
}

TEST(Secrets, AreInNoFinding) {
  std::string text = kPipeline;
  text += "observe: {http: \"${SECRET}\", log: {level: \"${SECRET}\"}}\n";
  text +=
      "processing: {concurrency: \"${SECRET}\", order: \"${SECRET}\", timeout: \"${SECRET}\"}\n";
  text += "ledger: {keep: \"x\"}\n";
  text.replace(text.find("orders.db"), 9, "\"${SECRET}${MISSING}\"");
  text.replace(text.find("json:/amount"), 12, "\"${SECRET}\"");
  text.replace(text.find("start_from: earliest"), 20,
               "librdkafka: {isolation.level: hunter2, sasl.password: [hunter2]}");
  const std::vector<std::string> lines =
      Lines(LoadText(text, "p.yaml", FakeEnvironment()).findings);
  EXPECT_EQ(lines.size(), 10u) << ::testing::PrintToString(lines);
  for (const std::string& line : lines) EXPECT_EQ(line.find("hunter2"), std::string::npos) << line;
}

}  // namespace
}  // namespace fencepost::config
