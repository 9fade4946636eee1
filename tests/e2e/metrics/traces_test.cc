// What a real collector is told of two orders: from the producer's span through handler and
// transaction, and to the dead letter of the neighbour.
#include <algorithm>
#include <regex>

#include <gmock/gmock.h>

#include "tests/e2e/metrics/metrics_test.h"
#include "tests/support/collector.h"

namespace fencepost::testing {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr const char* kProducer = "00f067aa0ba902b7";

class Traces : public MetricsTest {
 protected:
  void SetUp() override {
    if (!Collector::WhyNot().empty()) GTEST_SKIP() << Collector::WhyNot();
    collector_ = std::make_unique<Collector>();
  }

  PipelineText Text() {
    PipelineText text = MetricsTest::Text(1);
    text.more = Http() + DeadLetters() +
                fmt::format("observe:\n  traces: {{endpoint: \"{}\", sample: 0}}\n",
                            collector_->endpoint());
    return text;
  }
  // One order, in the trace of a producer that keeps it.
  void SendTraced(const std::string& id) const {
    TestProducer producer(Kafka().bootstrap());
    TestRecord record;
    record.topic = name_;
    record.key = id;
    record.value = fmt::format(R"({{"order_id":"{}","amount":5}})", id);
    record.headers = {{"traceparent", fmt::format("00-{}-{}-01", kTrace, kProducer)}};
    producer.Send(record);
    producer.Flush();
  }
  // The spans of the collector, once it has these of each of the records.
  json SpansOf(const std::vector<std::pair<std::string, std::string>>& awaited) {
    json spans;
    EXPECT_TRUE(WaitUntil(
        seconds(30),
        [&] {
          spans = collector_->Spans();
          return std::ranges::all_of(awaited, [&](const auto& one) {
            return !SpanOf(spans, one.first, one.second).is_null();
          });
        },
        "spans of the records"))
        << spans.dump(1);
    return spans;
  }
  // Of the record, by name; null: there is none.
  static json SpanOf(const json& spans, const std::string& record, const std::string& name) {
    const auto process = std::ranges::find_if(spans, [&](const json& span) {
      return span["attributes"].value("fencepost.record_id", "") == record;
    });
    if (process == spans.end() || (*process)["name"] == name) {
      return process == spans.end() ? json() : *process;
    }
    const auto found = std::ranges::find_if(spans, [&](const json& span) {
      return span["name"] == name && span.value("parentSpanId", "") == (*process)["spanId"];
    });
    return found == spans.end() ? json() : *found;
  }
  // The log's lines of this event that name a trace, as JSON.
  static std::vector<json> LinesOf(const std::string& log, const std::string& event) {
    std::vector<json> lines;
    std::istringstream text(log);
    for (std::string line; std::getline(text, line);) {
      const json parsed = json::parse(line, nullptr, false);
      if (parsed.is_object() && parsed.value("event", "") == event) lines.push_back(parsed);
    }
    return lines;
  }
  static std::string Traceparent(const json& span) {
    return fmt::format("00-{}-{}-01", span["traceId"].get<std::string>(),
                       span["spanId"].get<std::string>());
  }

  std::unique_ptr<Collector> collector_;
};

TEST_F(Traces, OfAnOrderGoFromItsProducerThroughHandlerAndTransactionToItsNeighboursDeadLetter) {
  Answers("o-bad", {422});
  WorkerProcess worker(Worker(Text()));
  SendTraced("o-good");
  ASSERT_TRUE(Effects(1)) << worker.Log();
  SendTraced("o-bad");
  ASSERT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  const json spans = SpansOf({{"o-good", "commit " + name_},
                              {"o-good", "write"},
                              {"o-good", "handle http"},
                              {"o-bad", "handle http"},
                              {"o-bad", "dead letter"},
                              {"o-bad", "commit " + name_}});

  const json good = SpanOf(spans, "o-good", "process " + name_);
  ASSERT_FALSE(good.is_null()) << spans.dump(1);
  EXPECT_EQ(good["traceId"], kTrace);
  EXPECT_EQ(good["parentSpanId"], kProducer);
  EXPECT_EQ(good["attributes"]["fencepost.result"], "done");
  EXPECT_EQ(good["resource"]["service.name"], "fencepost");
  const std::vector<std::string> steps{"lock", "look up", "handle http", "write",
                                       "commit " + name_};
  for (const std::string& name : steps) {
    EXPECT_EQ(SpanOf(spans, "o-good", name)["traceId"], kTrace) << name << spans.dump(1);
  }
  const json write = SpanOf(spans, "o-good", "write");
  const auto transaction =
      std::ranges::find_if(spans, [](const json& span) { return span["name"] == "transaction"; });
  ASSERT_NE(transaction, spans.end());
  EXPECT_EQ(write["links"][0]["spanId"], (*transaction)["spanId"]);
  EXPECT_EQ((*transaction)["links"][0]["spanId"], write["spanId"]);
  EXPECT_EQ((*transaction)["attributes"]["db.system.name"], "postgresql");

  // The service was called in the span of its call.
  ASSERT_EQ(service_.requests().size(), 2U);
  for (const auto& request : service_.requests()) {
    const std::string id = request.headers.at("idempotency-key");
    const std::string record = id.find("o-good") != std::string::npos ? "o-good" : "o-bad";
    EXPECT_EQ(request.headers.at("traceparent"), Traceparent(SpanOf(spans, record, "handle http")))
        << id;
  }

  const json bad = SpanOf(spans, "o-bad", "process " + name_);
  ASSERT_FALSE(bad.is_null());
  EXPECT_EQ(bad["attributes"]["fencepost.result"], "dead_lettered");
  EXPECT_THAT(bad["status"]["message"].get<std::string>(), HasSubstr("422"));
  const auto letters = Letters();
  ASSERT_EQ(letters.size(), 1U);
  EXPECT_EQ(letters[0].Header("traceparent"), Traceparent(SpanOf(spans, "o-bad", "dead letter")));
  const auto lines = LinesOf(worker.Log(), "dead_lettered");
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0]["trace_id"], bad["traceId"]);
  EXPECT_EQ(lines[0]["span_id"], bad["spanId"]);
}

// As an operator goes: the histogram's exemplar, its trace, the record's position, its story.
TEST_F(Traces, LeadFromTheExemplarOfASlowRecordToItsStory) {
  Answers("o-slow", {503, 503, 200});
  PipelineText text = Text();
  text.more += "  control: loopback\n";
  WorkerProcess worker(Worker(text));
  for (const char* id : {"o-1", "o-slow", "o-2"}) SendOrder(0, id, id);
  ASSERT_TRUE(AllCommitted()) << worker.Log();

  const std::string page =
      RunToEnd({.argv = {"curl", "-s", "-H", "Accept: application/openmetrics-text",
                         fmt::format("http://127.0.0.1:{}/metrics", worker.port())}})
          .output;
  std::smatch exemplar;
  ASSERT_TRUE(std::regex_search(page, exemplar,
                                std::regex("record_end_to_end_duration_seconds_bucket[^\n]* # "
                                           "\\{trace_id=\"([0-9a-f]{32})\"")))
      << page;

  const json spans = SpansOf({{"o-slow", "process " + name_}});
  const auto process = std::ranges::find_if(spans, [&](const json& span) {
    return span["traceId"] == exemplar[1].str() && span["name"] == "process " + name_;
  });
  ASSERT_NE(process, spans.end()) << exemplar[1] << spans.dump(1);
  const json& at = (*process)["attributes"];
  const std::string record =
      fmt::format("{}/{}/{}", at["messaging.destination.name"].get<std::string>(),
                  at["messaging.destination.partition.id"].get<std::string>(),
                  at["messaging.kafka.offset"].get<std::int64_t>());

  const HttpResponse story =
      HttpPost("127.0.0.1", worker.port(), fmt::format("/pipelines/{}/explain", name_), record);
  EXPECT_EQ(story.status, 200);
  EXPECT_THAT(story.body, AllOf(HasSubstr("id o-slow"), HasSubstr("what happened: Done")));
}

}  // namespace
}  // namespace fencepost::testing
