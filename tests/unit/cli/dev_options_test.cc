// From a pipeline's file to what `fencepost dev` runs.
#include "consumer/cli/dev/dev_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/ranges.h>

#include "config/loader.h"

namespace fencepost::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// With ${ANY} and a file for each path.
config::Environment Everything() {
  config::Environment environment;
  environment.variable = [](const std::string&) { return "value"; };
  environment.read_file = [](const std::string&) { return "text"; };
  return environment;
}

consumer::PipelineOptions Load(std::string_view text) {
  const auto loaded = config::LoadText(text, "orders.yaml", Everything());
  for (const auto& finding : loaded.findings) ADD_FAILURE() << config::FormatFinding(finding);
  return loaded.options.value();
}

DevPipeline Dev(std::string_view text, bool keep_output = false) {
  return ForDev(Load(text), {.brokers = {"127.0.0.1:1"},
                             .lock_node = "unix:/tmp/x/socket",
                             .folder = "/tmp/x",
                             .keep_output = keep_output});
}

std::string With(std::string_view kafka, std::string_view output) {
  return fmt::format(
      R"(version: 1
name: orders
guarantee: {}
kafka: {{brokers: [kafka:9093], topics: [orders]{}}}
record_id: json:/id
on_bad_record: stop
lock:
  redis: {{nodes: ["a:1", "b:2", "c:3"], username: u, password: p, tls: {{ca: /ca.pem}}}}
output: {}
)",
      output.find("stdout") == 1 || output.find("file") == 1 ? "at-least-once" : "exactly-once",
      kafka, output);
}
constexpr std::string_view kPostgres =
    "{postgres: {dsn: 'postgresql://app@db/shop', table: shop.effects, columns: {id: json:/id}}}";

TEST(DevOptions, NameATopicForEachPattern) {
  const auto named = [](std::vector<std::string> topics) {
    consumer::KafkaOptions kafka;
    kafka.topics = std::move(topics);
    const auto done = NameTopics(kafka);
    return done ? kafka.topics : std::vector<std::string>{"!" + done.error()};
  };
  EXPECT_THAT(named({"orders", "^returns-.*", "^eu\\.[a-z]+", "^b"}),
              ElementsAre("orders", "returns-1", "eu.a", "b"));
  EXPECT_THAT(named({"orders1", "^orders.*"}), ElementsAre("orders1"));
  EXPECT_THAT(named({"orders", "^(eu|us)-x"}), ElementsAre("!^(eu|us)-x"));
}

TEST(DevOptions, ReachNoServerOfTheFile) {
  const auto dev =
      Dev(With(", start_from: latest, static_members: true, tls: {ca: /c.pem}, sasl: "
               "{mechanism: PLAIN, username: u, password: p}, librdkafka: "
               "{ssl.cipher.suites: x, fetch.wait.max.ms: 50}",
               kPostgres));
  EXPECT_THAT(dev.options.kafka.brokers, ElementsAre("127.0.0.1:1"));
  EXPECT_THAT(dev.options.kafka.topics, ElementsAre("orders"));
  EXPECT_FALSE(dev.options.kafka.tls || dev.options.kafka.static_members);
  EXPECT_EQ(dev.options.kafka.tls_ca + dev.options.kafka.sasl_mechanism, "");
  EXPECT_TRUE(dev.options.kafka.sasl_password.empty());
  EXPECT_EQ(dev.options.kafka.start_from, consumer::StartFrom::kEarliest);
  EXPECT_EQ(fmt::format("{}", dev.options.kafka.librdkafka),
            R"({"fetch.wait.max.ms": "50", "heartbeat.interval.ms": "500", )"
            R"("session.timeout.ms": "6000"})");
  EXPECT_THAT(dev.options.lock.redis.nodes, ElementsAre("unix:/tmp/x/socket"));
  EXPECT_TRUE(dev.options.lock.redis.password.empty());
  EXPECT_EQ(dev.options.lock.redis.username + dev.options.lock.redis.tls_ca, "");
  EXPECT_THAT(dev.notes, IsEmpty());
}

TEST(DevOptions, WriteToAFileOfTheirOwn) {
  struct Case {
    std::string_view output;
    std::string dev, kept;
  };
  const Case kCases[] = {
      {kPostgres, "SQLite, effects", "PostgreSQL, shop.effects"},
      {"{mysql: {host: db, user: u, password: p, database: d, table: d.t, columns: {id: "
       "json:/id}}}",
       "SQLite, t", "MySQL, d.t"},
      {"{sqlite: {path: /var/lib/o.db, table: t, columns: {id: json:/id}}}", "SQLite, t",
       "SQLite, t"},
      {"{file: {path: /var/o.jsonl}}", "file /tmp/x/effects.jsonl", "file /var/o.jsonl"},
      {"{stdout: {}}", "file /tmp/x/effects.jsonl", "stdout"},
      {"{kafka: {topic: out, key: key, value: value}}", "topic out", "topic out"},
      {"{postgres: {dsn: 'postgresql://app@db/shop', statement: 'SELECT $1', args: [json:/id]}}",
       R"(SQLite, "statement 1")", "PostgreSQL, its statement"},
  };
  for (const Case& one : kCases) {
    const bool by_id = one.output.find("kafka") != 1;
    std::string text = With("", one.output);
    if (!by_id) text.replace(text.find("record_id: json:/id"), 19, "record_id: position");
    const auto dev = Dev(text);
    EXPECT_EQ(OutputText(dev.options.output), one.dev) << one.output;
    if (const auto* table = std::get_if<consumer::SqliteOptions>(&dev.options.output)) {
      EXPECT_EQ(table->path, "/tmp/x/effects.db");
    }
    const auto kept = Dev(text, true);
    EXPECT_EQ(OutputText(kept.options.output), one.kept);
    const auto* table = std::get_if<consumer::PostgresOptions>(&kept.options.output);
    EXPECT_TRUE(table == nullptr || table->create) << "what is missing is made";
  }
}

TEST(DevOptions, SayWhatIsNotAsInTheFile) {
  const auto notes = [](std::string_view kafka, std::string_view output) {
    return fmt::format("{}", fmt::join(Dev(With(kafka, output)).notes, "; "));
  };
  EXPECT_THAT(notes(", decode: {value: avro, registry: {url: 'http://r:1'}}", kPostgres),
              HasSubstr("kafka.decode: records are not decoded"));
  EXPECT_THAT(notes("",
                    "{postgres: {dsn: 'postgresql://app@db/shop', statement: 'SELECT $1', "
                    "args: [json:/id]}}"),
              HasSubstr("statement does not run"));
}

TEST(DevOptions, HaveOneClusterAndItsOwnTopicsThereForThoseOfAnother) {
  std::string text = With("", "{kafka: {topic: orders, brokers: [b:1]}}");
  text.replace(text.find("exactly-once"), 12, "at-least-once");
  text.replace(text.find("on_bad_record: stop"), 19,
               "dead_letter: {topic: orders, brokers: [c:1], tls: {}}");
  auto file = Load(text);
  const auto notes = UseOneCluster(file);
  EXPECT_THAT(OutputCluster(file).brokers, ElementsAre("kafka:9093"));
  EXPECT_THAT(LetterCluster(file).brokers, ElementsAre("kafka:9093"));
  EXPECT_EQ(OutputText(file.output), "topic orders.out");
  EXPECT_EQ(file.dead_letter->topic, "orders.dead");
  EXPECT_THAT(notes, ElementsAre(HasSubstr("output.kafka: its topic is orders.out"),
                                 HasSubstr("dead_letter: its topic is orders.dead")));

  text.replace(text.find("{topic: orders, brokers: [b:1]}"), 31,
               "{brokers: [b:1], records: [{topic: orders}, "
               "{topic: {by: key, of: {a: orders}, otherwise: skip}}]}");
  file = Load(text);
  EXPECT_EQ(UseOneCluster(file).size(), 3U);
  EXPECT_EQ(OutputText(file.output), "topic orders.out");
}

TEST(DevOptions, NeedNoVariableOfWhatIsReplaced) {
  for (const char* key :
       {"kafka.brokers", "kafka.sasl.password", "kafka.sasl.oauth.client_secret", "kafka.tls.ca",
        "kafka.decode.registry.password", "lock.redis.nodes", "lock.redis.password",
        "output.kafka.encode.registry.url", "output.kafka.brokers", "dead_letter.sasl.password",
        "observe.control_token"}) {
    EXPECT_TRUE(IsReplaced(key, true)) << key;
    EXPECT_TRUE(IsReplaced(key, false)) << key;
  }
  for (const char* key : {"output.postgres.dsn", "output.mysql.password", "output.mysql.tls.ca",
                          "output.sqlite.path", "output.file.path"}) {
    EXPECT_TRUE(IsReplaced(key, false)) << key;
    EXPECT_FALSE(IsReplaced(key, true)) << key;
  }
  for (const char* key : {"kafka.topics", "kafka.group", "handler.http.url", "output.kafka.topic",
                          "output.postgres.columns", "output.postgres.table", "name"}) {
    EXPECT_FALSE(IsReplaced(key, false)) << key;
  }
}

TEST(DevOptions, MakeTheTopicsThatAreReadAndWritten) {
  std::string text = With("", "{kafka: {topic: out, key: key, value: value}}");
  text.replace(text.find("record_id: json:/id"), 19, "record_id: position");
  text.replace(text.find("on_bad_record: stop"), 19, "dead_letter: {topic: dead}");
  std::string made;
  for (const auto& [name, partitions] : TopicsOf(Load(text))) {
    made += fmt::format("{} {}; ", name, partitions);
  }
  EXPECT_EQ(made, "orders 4; dead 1; out 1; ");
}

}  // namespace
}  // namespace fencepost::cli
