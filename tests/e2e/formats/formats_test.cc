// kafka.decode: records as Confluent's own serializers (Python) write them, a schema registry that
// speaks its REST API, a real broker and a real PostgreSQL.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/paths.h"
#include "tests/support/pipeline_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kUser = "reader:secret-of-the-registry";

const std::string& Python() {
  static const std::string python = [] {
    std::string out =
        RunToEnd({.argv = {SourcePath("tests/support/fetch-python")}, .separate_stderr = true},
                 seconds(300))
            .output;
    return out.substr(0, out.find('\n'));
  }();
  return python;
}

class Registry {
 public:
  Registry()
      : process_({.argv = {Python(), SourcePath("tests/support/registry/schema_registry.py"),
                           "--user", kUser, "--proto",
                           "orders.proto=" + SourcePath("tests/support/registry/orders.proto")}}) {
    const bool started = WaitUntil(
        seconds(30), [&] { return process_.Output().find('\n') != std::string::npos; },
        "the registry to start");
    if (!started) throw std::runtime_error(process_.Output());
    port_ = std::stoi(process_.Output().substr(5));
  }
  [[nodiscard]] std::string url() const { return fmt::format("http://127.0.0.1:{}", port_); }
  // Answers everything with this status; 0: as it should.
  void Away(int status) const {
    RunToEnd({.argv = {"curl", "-sf", "-X", "POST", "-d", std::to_string(status),
                       url() + "/test/away"}});
  }
  // An Avro schema under a subject.
  void Register(const std::string& subject, const std::string& schema) const {
    const TempDir folder;
    const std::string body = folder.Write("body.json", nlohmann::json({{"schema", schema}}).dump());
    const Finished done =
        RunToEnd({.argv = {"curl", "-sf", "-u", kUser, "-X", "POST", "-d", "@" + body,
                           fmt::format("{}/subjects/{}/versions", url(), subject)}});
    if (done.exit_code != 0) throw std::runtime_error(done.output);
  }
  [[nodiscard]] std::string Questions() const {
    return RunToEnd({.argv = {"curl", "-sf", url() + "/test/questions"}}).output;
  }

 private:
  Process process_;
  int port_ = 0;
};

class Formats : public PipelineTest {
 protected:
  PipelineText Text(int partitions, const std::string& format) {
    PipelineText text = PipelineTest::Text(partitions);
    text.start_from = "earliest\n  decode:\n    value: " + format + "\n    key: " + format;
    if (format != "json_schema") {
      text.start_from += "\n    registry: {url: \"" + registry_.url() +
                         "\", username: reader, password: secret-of-the-registry}";
    }
    return text;
  }
  // Each order as two records, on two partitions. What the last one's key and value are, as base64.
  std::string Produce(const std::string& format, int partitions, int first, int count) {
    const Finished done =
        RunToEnd({.argv = {Python(), SourcePath("tests/support/registry/produce_orders.py"), format,
                           Kafka().bootstrap(), registry_.url(), name_, std::to_string(partitions),
                           std::to_string(first), std::to_string(count), kUser}},
                 seconds(120));
    if (done.exit_code != 0) throw std::runtime_error(done.output);
    return done.output;
  }
  [[nodiscard]] std::string Rows() const {
    return table_->Value(
        "SELECT count(*) || ' ' || count(DISTINCT order_id) || ' ' || sum(amount) FROM effects");
  }

  Registry registry_;
};

class EachFormat : public Formats, public ::testing::WithParamInterface<const char*> {};

TEST_P(EachFormat, TakesEffectOnceThroughAKillWithRecordsInFlight) {
  const WorkerOptions options = Worker(Text(4, GetParam()));
  Produce(GetParam(), 4, 0, 2500);
  {
    WorkerProcess worker(options);
    EXPECT_TRUE(Effects(200)) << worker.Log();
    const TableLock locked(*table_);
    Produce(GetParam(), 4, 2500, 2500);
    EXPECT_TRUE(WaitUntil(
        seconds(30), [&] { return worker.Now("fencepost_records_in_flight") > 100; },
        "records in flight"));
    worker.Kill();
  }
  WorkerProcess worker(options);
  EXPECT_TRUE(Effects(5000)) << worker.Readiness() << worker.Log();
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_EQ(Rows(), "5000 5000 2502500");
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
}

// In by one serializer, out by ours, read by the same library: each order is what it was.
TEST_P(EachFormat, IsWrittenAsItsOwnDeserializersReadItOnceThroughAKill) {
  const std::string format = GetParam();
  PipelineText text = Text(4, format);
  Kafka().CreateTopic(name_ + "-out", 2);
  const bool json = format == "json_schema";
  const auto part = [&](const std::string& which, const std::string& message) {
    const std::string subject = fmt::format("{}-{}", name_, which);
    return fmt::format("      {}: {{format: {}, {}}}\n", which, format,
                       json ? R"(schema: '{"type":"object"}', register: true)"
                            : "subject: " + subject + (format == "protobuf" ? message : ""));
  };
  text.record_id = "position";
  text.output =
      fmt::format("output:\n  kafka:\n    topic: {0}-out\n    encode:\n{1}{2}", name_,
                  part("value", ", message: shop.Order"), part("key", ", message: shop.Customer"));
  if (json) {
    text.output += fmt::format(
        "      registry: {{url: \"{}\", username: reader, password: secret-of-the-registry}}\n",
        registry_.url());
  }
  const WorkerOptions options = Worker(text);
  Produce(format, 4, 0, 1000);
  {
    WorkerProcess worker(options);
    EXPECT_TRUE(WaitUntil(
        seconds(60), [&] { return worker.Now("fencepost_records_processed_total") > 0; },
        "the first orders"))
        << worker.Log();
    worker.Kill();
  }
  WorkerProcess worker(options);
  EXPECT_TRUE(AllCommitted()) << worker.Readiness() << worker.Log();
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  const Finished read =
      RunToEnd({.argv = {Python(), SourcePath("tests/support/registry/read_orders.py"), format,
                         Kafka().bootstrap(), registry_.url(), name_ + "-out", "1000", kUser}},
               seconds(120));
  EXPECT_EQ(read.output, "1000 orders, 0 of them not twice\n");
  EXPECT_THAT(worker.Log(), Not(HasSubstr("secret-of-the-registry")));
}

INSTANTIATE_TEST_SUITE_P(Of, EachFormat, ::testing::Values("avro", "protobuf", "json_schema"),
                         [](const auto& format) { return std::string(format.param); });

TEST_F(Formats, AvrosLogicalTypesReachTheirColumnsExactly) {
  table_->Exec(
      "CREATE TABLE decoded (key text, order_id text, price numeric, at timestamptz, day date,"
      " trace uuid, raw text, state text, n bigint)");
  PipelineText text = Text(1, "avro");
  text.output = fmt::format(
      "output:\n  postgres:\n    dsn: {}\n    table: decoded\n"
      "    columns: {{key: \"key:\", order_id: json:/order_id, price: json:/price, at: json:/at,"
      " day: json:/day, trace: json:/trace, raw: json:/raw, state: \"json:/state?\","
      " n: json:/tags/n}}\n",
      text.dsn);
  Produce("avro", 1, 0, 2);
  WorkerProcess worker(Worker(text));
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_EQ(table_->Value("SELECT string_agg(concat_ws(' ', key, price, at AT TIME ZONE 'UTC', day,"
                          " trace, raw, coalesce(state, 'NULL'), n), E'\\n' ORDER BY order_id)"
                          " FROM decoded"),
            "order-0 -100000000000000.0000 2026-11-22 13:05:00 2026-11-22 "
            "00000000-0000-0000-0000-000000000000 AP8= PAID 4611686018427387904\n"
            "order-1 -98765432109876.5433 2026-11-22 13:05:00.000001 2026-11-22 "
            "00000000-0000-0000-0000-000000000001 AP8= NULL 4611686018427387905");
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
}

TEST_F(Formats, WaitForARegistryThatIsAwayAndNothingIsLostOrGivenUp) {
  PipelineText text = Text(2, "avro");
  Kafka().CreateTopic(name_ + ".dead", 1);
  text.more = fmt::format("dead_letter: {{topic: {}.dead}}\n", name_);
  WorkerTeam team(Worker(text));
  Produce("avro", 2, 0, 500);
  registry_.Away(503);
  team.Start(1);
  const auto waits = [&] {
    return team[0].Readiness().find(
               "kafka: the schema registry is unavailable: "
               "/schemas/ids/100001: HTTP 503") != std::string::npos;
  };
  EXPECT_TRUE(WaitUntil(seconds(30), waits, "the worker to say so")) << team.Tails();
  registry_.Away(401);
  const auto refused = [&] { return team[0].Readiness().find("HTTP 401") != std::string::npos; };
  EXPECT_TRUE(WaitUntil(seconds(30), refused, "the worker to say so")) << team.Tails();
  // A partition goes to another worker, with the records that waited.
  team.Add("worker-2");
  const auto shared_out = [&] {
    return team[0].Now("fencepost_partitions_assigned") == 1 &&
           team[1].Now("fencepost_partitions_assigned") == 1;
  };
  EXPECT_TRUE(WaitUntil(seconds(30), shared_out, "each to have its share")) << team.Tails();
  EXPECT_EQ(table_->Count(), 0);
  registry_.Away(0);
  EXPECT_TRUE(Effects(500)) << team.Tails();
  EXPECT_TRUE(AllCommitted()) << team.Tails();
  EXPECT_TRUE(WaitUntil(
      seconds(30), [&] { return team.AllReady(); }, "them to be ready"));
  EXPECT_EQ(Rows(), "500 500 125250");
  EXPECT_TRUE(ReadTopic(Kafka().bootstrap(), name_ + ".dead").empty());
  const std::string log = team[0].Log();
  EXPECT_THAT(log, HasSubstr("schema_registry_unavailable"));
  EXPECT_THAT(log, Not(HasSubstr("secret-of-the-registry")));
  EXPECT_EQ(team.StopAll(), "");
}

TEST_F(Formats, OutputWaitsForItsSubjectAndDeadLettersWhatDoesNotFitIt) {
  PipelineText text = PipelineTest::Text(1);
  Kafka().CreateTopic(name_ + "-out", 1);
  Kafka().CreateTopic(name_ + ".dead", 1);
  text.record_id = "position";
  text.output = fmt::format(
      "output:\n  kafka:\n    topic: {0}-out\n    encode:\n"
      "      value: {{format: avro, subject: orders-of-{0}}}\n"
      "      registry: {{url: \"{1}\", username: reader, password: secret-of-the-registry}}\n",
      name_, registry_.url());
  text.more = fmt::format("dead_letter: {{topic: {}.dead}}\n", name_);
  Send(0, R"({"id":"a","amount":"1.50"})");
  Send(0, R"({"id":"b","amount":1.505})");
  Send(0, R"({"id":"c","amount":2})");
  WorkerProcess worker(Worker(text));
  EXPECT_TRUE(WaitUntil(
      seconds(60),
      [&] {
        return worker.Readiness().find("the schema registry has no version of subject 'orders-of-" +
                                       name_) != std::string::npos;
      },
      "the worker to say what it waits for"))
      << worker.Readiness() << worker.Log();
  registry_.Register("orders-of-" + name_,
                     R"({"type":"record","name":"O","fields":[{"name":"id","type":"string"},)"
                     R"({"name":"amount","type":{"type":"bytes","logicalType":"decimal",)"
                     R"("precision":9,"scale":2}}]})");
  EXPECT_TRUE(AllCommitted()) << worker.Readiness() << worker.Log();
  const auto written = ReadTopic(Kafka().bootstrap(), name_ + "-out");
  ASSERT_EQ(written.size(), 2u) << worker.Log();
  EXPECT_EQ(written[0].value->substr(5), std::string("\2a\4\0\x96", 5));
  EXPECT_EQ(written[1].value->substr(5), std::string("\2c\4\0\xc8", 5));
  const auto letters = ReadTopic(Kafka().bootstrap(), name_ + ".dead");
  ASSERT_EQ(letters.size(), 1u);
  EXPECT_EQ(
      *letters[0].Header("fencepost-error"),
      "the value does not fit its schema: at /amount has more than 2 digits behind the point");
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
}

TEST_F(Formats, MakeDeadLettersWithTheOriginalBytesOfWhatCannotBeDecoded) {
  PipelineText text = Text(1, "avro");
  Kafka().CreateTopic(name_ + ".dead", 1);
  text.more = fmt::format("dead_letter: {{topic: {}.dead}}\n", name_);
  Produce("avro", 1, 0, 1);
  const std::string key("\0\0\1\x86\xa1\x02k", 7);
  const std::string unknown("\0\0\0\0\7\x02x", 7);
  const std::string cut_off("\0\0\1\x86\xa0\x02x", 7);
  {
    TestProducer producer(Kafka().bootstrap());
    producer.Send(name_, 0, key, unknown);
    producer.Send(name_, 0, key, cut_off);
    producer.Send(name_, 0, key, R"({"order_id":"plain","amount":1})");
    producer.Flush();
  }
  Produce("avro", 1, 1, 1);
  WorkerProcess worker(Worker(text));
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_EQ(Rows(), "2 2 3");
  const auto letters = ReadTopic(Kafka().bootstrap(), name_ + ".dead");
  ASSERT_EQ(letters.size(), 3u) << worker.Log();
  EXPECT_EQ(letters[0].key, key);
  EXPECT_EQ(letters[0].value, unknown);
  EXPECT_EQ(letters[1].key, key);
  EXPECT_EQ(letters[1].value, cut_off);
  EXPECT_THAT(*letters[0].Header("fencepost-error"), HasSubstr("does not know schema id 7"));
  EXPECT_THAT(*letters[1].Header("fencepost-error"),
              HasSubstr("the value (schema 100000) is cut off, or is not of this schema"));
  EXPECT_THAT(*letters[2].Header("fencepost-error"),
              HasSubstr("the value does not begin with the magic byte"));
  // Asked again before it was believed; what is known is asked for once.
  EXPECT_THAT(registry_.Questions(), ::testing::ContainsRegex("/schemas/ids/7\": [2-5]"));
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
}

// The record decodes, and the database refuses its row: what is published is what came, so that a
// replay is the record that it was.
TEST_F(Formats, KeepTheOriginalBytesOfWhatTheDatabaseRefusesAndReplayIt) {
  table_->Exec("ALTER TABLE effects ADD CONSTRAINT not_yet CHECK (order_id <> 'order-0')");
  PipelineText text = Text(1, "protobuf");
  Kafka().CreateTopic(name_ + ".dead", 1);
  text.more = fmt::format("dead_letter: {{topic: {}.dead}}\n", name_);
  Produce("protobuf", 1, 0, 1);
  Produce("protobuf", 1, 1, 1);
  const WorkerOptions options = Worker(text);
  WorkerProcess worker(options);
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  const auto letters = ReadTopic(Kafka().bootstrap(), name_ + ".dead");
  ASSERT_FALSE(letters.empty()) << worker.Log();
  const auto sent = ReadTopic(Kafka().bootstrap(), name_);
  EXPECT_EQ(letters[0].value, sent[0].value);
  EXPECT_EQ(letters[0].key, sent[0].key);
  EXPECT_EQ(letters[0].Header("fencepost-record-id"), "order-0");
  EXPECT_EQ(Rows(), "1 1 2");
  const std::string explained =
      RunFencepost({"explain", options.files[0], name_, "0", "0"}, {}, seconds(60)).output;
  EXPECT_THAT(explained, HasSubstr("order-0"));
  table_->Exec("ALTER TABLE effects DROP CONSTRAINT not_yet");
  const Finished replayed =
      RunFencepost({"dlq", "replay", options.files[0], "--execute"}, {}, seconds(60));
  EXPECT_EQ(replayed.exit_code, 0) << replayed.output << replayed.error_output;
  EXPECT_TRUE(Effects(2)) << worker.Log();
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_EQ(Rows(), "2 2 3");
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
}

TEST_F(Formats, AreSkippedByTheTestsOfAPipelineWhichGiveJson) {
  PipelineText text = Text(1, "avro");
  text.more =
      "tests:\n  - name: an order is a row\n    given:\n"
      "      - {key: k, value: {order_id: o-1, amount: 5}}\n"
      "    expect: {rows: [{order_id: o-1, amount: 5}]}\n";
  const Finished done = RunFencepost({"test", Worker(text).files[0]});
  EXPECT_EQ(done.exit_code, 0) << done.output << done.error_output;
  EXPECT_THAT(done.output, HasSubstr("1 test, 0 failed"));
}

TEST_F(Formats, AreNamedByAPipelineThatWasNotToldOfThem) {
  const PipelineText text = PipelineTest::Text(1);
  Produce("avro", 1, 0, 1);
  WorkerProcess worker(Worker(text));
  EXPECT_EQ(worker.Wait(seconds(60)), 1) << worker.Log();
  EXPECT_THAT(worker.Log(), HasSubstr("the value begins with the magic byte of a schema registry "
                                      "(schema id 100000): set kafka.decode.value"));
}

}  // namespace
}  // namespace fencepost::testing
