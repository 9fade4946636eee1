// The exporter against a server that does what a test says, and against a real collector.
#include "metrics/traces/span_exporter.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/ostream_sink.h>

#include "tests/support/collector.h"
#include "tests/support/stub_server.h"
#include "tests/unit/traces/otlp_fields.h"

namespace fencepost::metrics {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using consumer::Nanos;
using consumer::Span;
using consumer::SpanKind;
using ::testing::AllOf;
using testing::Collector;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::StubServer;
using testing::WaitUntil;
using Answer = StubServer::Answer;
using Request = StubServer::Request;

constexpr auto kLimit = 20s;

std::vector<Span> Spans(std::size_t count) {
  std::vector<Span> spans;
  for (std::size_t i = 1; i <= count; ++i) {
    spans.push_back({.context = {1, 2, i, true},
                     .name = "orders process",
                     .start = Nanos(1'000),
                     .end = Nanos(2'000)});
  }
  return spans;
}

std::size_t SpansIn(const Request& request) {
  return Fields(request.body).Sub(1).Sub(2).All(2).size();
}

// Of the log while it is written.
class SinkOfFullQueue : public spdlog::sinks::base_sink<std::mutex> {
 public:
  std::atomic<bool> told = false;

 private:
  void sink_it_(const spdlog::details::log_msg& line) override {
    const std::string_view text(line.payload.data(), line.payload.size());
    if (text.find("traces_dropped") != text.npos) told = true;
  }
  void flush_() override {}
};

// A collector that answers by its number of requests so far, from 0 on.
class Exporter : public ::testing::Test {
 protected:
  using ByNumber = std::function<Answer(int)>;

  void Serve(ByNumber answer) {
    server_ = std::make_unique<StubServer>(
        [this, answer = std::move(answer)](const Request&) { return answer(answered_++); });
    options_.traces.endpoint = server_->Url("/v1/traces");
  }
  void Start() { exporter_ = SpanExporter::Start(options_, "1.2.3", "w-1", cells_, log_.get()); }
  [[nodiscard]] std::int64_t Dropped(SpanDrop why) const {
    return cells_.dropped.Value(static_cast<int>(why));
  }
  [[nodiscard]] std::int64_t Exported() const { return cells_.exported.Value(0); }
  ::testing::AssertionResult Requests(std::size_t count) {
    return WaitUntil(kLimit, "requests", [&] { return server_->requests().size() >= count; });
  }
  // Ends the exporter and the log: all that was written.
  std::string LogText() {
    exporter_.reset();
    log_.reset();
    return text_.str();
  }

  std::ostringstream text_;
  std::unique_ptr<Log> log_ = std::make_unique<Log>(
      LogOptions{.worker = "w-1", .sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)});
  SpanCells cells_;
  ExportOptions options_{.delay = 1ms, .backoff = 1ms};
  std::atomic<int> answered_{0};
  std::unique_ptr<StubServer> server_;
  std::unique_ptr<SpanExporter> exporter_;
};

TEST_F(Exporter, PostsABatchWithItsHeaders) {
  Serve([](int) { return Answer(); });
  options_.traces.headers = {{"Authorization", "Bearer s3cret"}, {"x-empty", ""}};
  Start();
  exporter_->Put(Spans(3));
  ASSERT_TRUE(WaitUntil(kLimit, "the spans", [&] { return Exported() == 3; }));
  const Request request = server_->requests().front();
  EXPECT_EQ(request.line, "POST /v1/traces HTTP/1.1");
  EXPECT_EQ(request.headers.at("content-type"), "application/x-protobuf");
  EXPECT_EQ(request.headers.at("user-agent"), "fencepost/1.2.3");
  EXPECT_EQ(request.headers.at("authorization"), "Bearer s3cret");
  EXPECT_EQ(request.headers.at("x-empty"), "");
  EXPECT_FALSE(request.headers.contains("content-encoding"));
  EXPECT_EQ(SpansIn(request), 3U);
  EXPECT_THAT(Fields(request.body).Sub(1).Sub(1).Attributes(1),
              HasSubstr("service.instance.id=w-1"));
  EXPECT_THAT(LogText(), Not(HasSubstr("traces_")));
}

TEST_F(Exporter, SendsWhatIsThereOnceTheDelayIsOverAndWholeBatchesBefore) {
  Serve([](int) { return Answer(); });
  options_.max_batch = 4;
  options_.delay = 1h;
  Start();
  exporter_->Put(Spans(3));
  exporter_->Put(Spans(6));
  ASSERT_TRUE(WaitUntil(kLimit, "two batches", [&] { return Exported() == 8; }));
  EXPECT_EQ(server_->requests().size(), 2U);
  exporter_->Stop();  // sends the one that waits for three others
  EXPECT_EQ(Exported(), 9);
  EXPECT_EQ(SpansIn(server_->requests().back()), 1U);
}

TEST_F(Exporter, SendsAgainWhereTheServerCannotTakeItNow) {
  Serve([](int number) {
    constexpr std::array kStatus = {429, 502, 503, 504, 0};  // 0: it closes the connection
    return Answer{.status = number < 5 ? kStatus[static_cast<std::size_t>(number)] : 200};
  });
  Start();
  exporter_->Put(Spans(2));
  ASSERT_TRUE(WaitUntil(kLimit, "the spans", [&] { return Exported() == 2; }));
  const auto requests = server_->requests();
  ASSERT_GE(requests.size(), 6U);
  for (const Request& request : requests) EXPECT_EQ(request.body, requests.front().body);
  EXPECT_EQ(Dropped(SpanDrop::kFailed), 0);
}

TEST_F(Exporter, WaitsAsLongAsRetryAfterAsks) {
  using Clock = std::chrono::steady_clock;
  std::atomic<Clock::time_point> asked, came;
  Serve([&](int number) {
    (number == 0 ? asked : came) = Clock::now();
    return number == 0 ? Answer{.status = 503, .headers = {"Retry-After: 1"}} : Answer();
  });
  Start();
  exporter_->Put(Spans(1));
  ASSERT_TRUE(WaitUntil(kLimit, "the spans", [&] { return Exported() == 1; }));
  EXPECT_GE(came.load() - asked.load(), 1s);
}

TEST_F(Exporter, DropsWhatIsRefusedAtOnceAndSaysSoOnce) {
  Serve([](int) { return Answer{.status = 401}; });
  options_.traces.headers = {{"Authorization", "Bearer s3cret"}};
  Start();
  exporter_->Put(Spans(2));
  ASSERT_TRUE(WaitUntil(kLimit, "the drop", [&] { return Dropped(SpanDrop::kRefused) == 2; }));
  exporter_->Put(Spans(3));
  ASSERT_TRUE(WaitUntil(kLimit, "the drop", [&] { return Dropped(SpanDrop::kRefused) == 5; }));
  EXPECT_EQ(server_->requests().size(), 2U);
  EXPECT_EQ(Exported(), 0);
  const std::string log = LogText();
  EXPECT_THAT(log, AllOf(HasSubstr("traces_refused"), HasSubstr("answered HTTP 401"),
                         Not(HasSubstr("s3cret"))));
  EXPECT_EQ(log.find("traces_refused"), log.rfind("traces_refused"));
}

TEST_F(Exporter, FollowsNoRedirect) {
  Serve([this](int) {
    return Answer{.status = 307, .headers = {"Location: " + server_->Url("/other")}};
  });
  Start();
  exporter_->Put(Spans(1));
  ASSERT_TRUE(WaitUntil(kLimit, "the drop", [&] { return Dropped(SpanDrop::kRefused) == 1; }));
  EXPECT_EQ(server_->requests().size(), 1U);
}

TEST_F(Exporter, CountsThePartThatACollectorRejects) {
  Serve([](int) { return Answer{.body = "\x0a\x08\x08\x02\x12\x04many"s}; });
  Start();
  exporter_->Put(Spans(5));
  ASSERT_TRUE(WaitUntil(kLimit, "the spans", [&] { return Exported() == 3; }));
  EXPECT_EQ(Dropped(SpanDrop::kRefused), 2);
  EXPECT_THAT(LogText(), HasSubstr("took a part of the spans: many"));
}

TEST_F(Exporter, LogsWhatACollectorSaysOfSpansThatItTook) {
  Serve([](int) { return Answer{.body = "\x0a\x04\x12\x02hm"s}; });
  Start();
  exporter_->Put(Spans(2));
  ASSERT_TRUE(WaitUntil(kLimit, "the spans", [&] { return Exported() == 2; }));
  EXPECT_THAT(LogText(), AllOf(HasSubstr("traces_warning"), HasSubstr("and says: hm")));
}

TEST_F(Exporter, TakesFor200OnlyWhatIsAnAnswerOfOtlp) {
  struct Row {
    const char* what;
    Answer answer;
    bool taken;
    const char* said = "";
  };
  const std::string cut = "Content-Length: 9\r\n\r\n";  // of which nothing comes
  const std::vector<Row> rows = {
      {"protobuf", {.headers = {"Content-Type: application/x-protobuf"}}, true},
      {"with capitals and a parameter",
       {.headers = {"Content-Type: Application/X-Protobuf; v=1"}},
       true},
      {"of no type, and empty", {}, true},
      {"a page",
       {.headers = {"Content-Type: text/html; charset=utf-8"}},
       false,
       "HTTP 200 with text/html; charset=utf-8 in place of protobuf"},
      {"of no type, and a page", {.body = "<html>"}, false, "with what is no answer of OTLP"},
      {"cut after a good status", {.raw = "HTTP/1.1 200 Fine\r\n" + cut}, true},
      {"cut after a bad status", {.raw = "HTTP/1.1 400 Bad\r\n" + cut}, false, "HTTP 400"}};
  for (const Row& row : rows) {
    Serve([&row](int) { return row.answer; });
    const std::int64_t exported = Exported(), refused = Dropped(SpanDrop::kRefused);
    Start();
    exporter_->Put(Spans(3));
    exporter_.reset();
    EXPECT_EQ(Exported() - exported, row.taken ? 3 : 0) << row.what;
    EXPECT_EQ(Dropped(SpanDrop::kRefused) - refused, row.taken ? 0 : 3) << row.what;
    EXPECT_EQ(server_->requests().size(), 1U) << row.what;
  }
  EXPECT_EQ(Dropped(SpanDrop::kFailed), 0);
  const std::string log = LogText();
  for (const Row& row : rows) EXPECT_THAT(log, HasSubstr(row.said)) << row.what;
}

TEST_F(Exporter, TellsOfAFullQueueWhileItWaitsAsRetryAfterAsks) {
  const auto sink = std::make_shared<SinkOfFullQueue>();
  log_ = std::make_unique<Log>(LogOptions{.worker = "w-1", .sink = sink});
  Serve([](int) { return Answer{.status = 503, .headers = {"Retry-After: 600"}}; });
  options_.max_queue = options_.max_batch = 4;
  Start();
  exporter_->Put(Spans(4));
  ASSERT_TRUE(Requests(1));
  exporter_->Put(Spans(9));  // more than there is room for
  EXPECT_TRUE(WaitUntil(kLimit, "the line", [&] { return sink->told.load(); }));
  EXPECT_EQ(server_->requests().size(), 1U);
  EXPECT_EQ(Dropped(SpanDrop::kFailed), 0);  // the batch is kept
  (void)LogText();                           // the log uses `told`
}

TEST_F(Exporter, DropsAllThatWaitsOnceTheTimeOfAStopIsOver) {
  Serve([this](int) {
    server_->Hold();
    return Answer();
  });
  options_.max_queue = 100'000;
  options_.max_batch = 1;
  options_.traces.timeout = 1h;
  Start();
  exporter_->Put(Spans(100'000));
  ASSERT_TRUE(Requests(1));
  const auto begun = std::chrono::steady_clock::now();
  exporter_->Stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, kLimit);
  EXPECT_EQ(Dropped(SpanDrop::kFailed), 100'000);
  EXPECT_EQ(server_->connections(), 1);  // none is tried after it
}

TEST_F(Exporter, PutsAllSpansOfARecordOrNoneWithoutWaitingWhileTheCollectorHangs) {
  Serve([this](int) {
    server_->Hold();
    return Answer();
  });
  options_.max_queue = 8;
  options_.max_batch = 4;
  Start();
  exporter_->Put(Spans(4));
  ASSERT_TRUE(Requests(1));
  for (int i = 0; i < 1000; ++i) exporter_->Put(Spans(3));  // would never end if it waited
  EXPECT_EQ(Dropped(SpanDrop::kQueueFull), 3000 - 6);
  server_->Release();
  ASSERT_TRUE(WaitUntil(kLimit, "the rest", [&] { return Exported() == 4 + 6; }));
  EXPECT_THAT(LogText(), HasSubstr("traces_dropped"));
}

TEST_F(Exporter, EndsInTimeWhileTheCollectorHangs) {
  Serve([this](int) {
    server_->Hold();
    return Answer();
  });
  options_.max_batch = 4;
  options_.traces.timeout = 1h;
  Start();
  exporter_->Put(Spans(10));
  ASSERT_TRUE(Requests(1));
  exporter_->Stop();  // would never end if it waited
  EXPECT_EQ(Dropped(SpanDrop::kFailed), 10);
  exporter_->Put(Spans(1));
  EXPECT_EQ(Dropped(SpanDrop::kQueueFull), 1);
  EXPECT_THAT(LogText(), HasSubstr("took no spans, which are dropped: the time is up"));
}

TEST_F(Exporter, EndsInTimeWhereNobodyListens) {
  options_.traces.endpoint = "http://u:s3cret@127.0.0.1:1/v1/traces?key=s3cret";
  options_.delay = 1h;
  Start();
  exporter_->Put(Spans(10));
  exporter_->Stop();
  EXPECT_EQ(Dropped(SpanDrop::kFailed), 10);
  EXPECT_THAT(LogText(),
              AllOf(HasSubstr("http://127.0.0.1:1 took no spans"), Not(HasSubstr("s3cret"))));
}

TEST_F(Exporter, GivesUpARequestThatIsNotAnsweredInTime) {
  Serve([this](int number) {
    if (number == 0) server_->Hold();
    return Answer();
  });
  options_.traces.timeout = 50ms;
  Start();
  exporter_->Put(Spans(2));
  ASSERT_TRUE(WaitUntil(kLimit, "the second try", [&] { return Exported() == 2; }));
}

// --- a real collector ----------------------------------------------------------------------------

TEST_F(Exporter, GivesACollectorIdsAttributesEventsAndLinks) {
  if (!Collector::WhyNot().empty()) GTEST_SKIP() << Collector::WhyNot();
  const Collector collector;
  for (const bool gzip : {false, true}) {
    options_.traces.endpoint = collector.endpoint() + "/v1/traces";
    options_.traces.service = "orders";
    options_.traces.resource = {{"zone", "a"}};
    options_.gzip = gzip;
    Start();
    Span span{
        .context = {0x0102030405060708, 0x090a0b0c0d0e0f10, 0xf1f2f3f4f5f6f7f8, true},
        .parent = 0xab,
        .name = "orders process",
        .kind = SpanKind::kConsumer,
        .start = Nanos(1'700'000'000'000'000'001),
        .end = Nanos(1'700'000'000'000'000'002),
        .attributes = {{"messaging.system", "kafka"s}, {"messaging.kafka.offset", std::int64_t{0}}},
        .events = {{.at = Nanos(1'700'000'000'000'000'001),
                    .name = "lease lost",
                    .attributes = {{"reason", "clock"s}}}},
        .links = {{1, 2, 3, true}},
        .error = "the service answered 500"};
    exporter_->Put({span});
    exporter_->Stop();
    EXPECT_EQ(Exported(), gzip ? 2 : 1);
  }
  ASSERT_TRUE(WaitUntil(kLimit, "the spans", [&] { return collector.Spans().size() == 2; }));
  for (const auto& span : collector.Spans()) {
    EXPECT_EQ(span["traceId"], "0102030405060708090a0b0c0d0e0f10");
    EXPECT_EQ(span["spanId"], "f1f2f3f4f5f6f7f8");
    EXPECT_EQ(span["parentSpanId"], "00000000000000ab");
    EXPECT_EQ(span["name"], "orders process");
    EXPECT_EQ(span["kind"], 5);
    EXPECT_EQ(span["flags"], 1);
    EXPECT_EQ(span["startTimeUnixNano"], "1700000000000000001");
    EXPECT_EQ(span["endTimeUnixNano"], "1700000000000000002");
    EXPECT_EQ(span["attributes"],
              nlohmann::json({{"messaging.system", "kafka"}, {"messaging.kafka.offset", 0}}));
    EXPECT_EQ(span["events"][0]["name"], "lease lost");
    EXPECT_EQ(span["events"][0]["attributes"]["reason"], "clock");
    EXPECT_EQ(span["links"][0]["traceId"], "00000000000000010000000000000002");
    EXPECT_EQ(span["links"][0]["spanId"], "0000000000000003");
    EXPECT_EQ(span["status"],
              nlohmann::json({{"code", 2}, {"message", "the service answered 500"}}));
    EXPECT_EQ(span["resource"], nlohmann::json({{"zone", "a"},
                                                {"service.name", "orders"},
                                                {"service.version", "1.2.3"},
                                                {"service.instance.id", "w-1"}}));
    EXPECT_EQ(span["scope"], nlohmann::json({{"name", "fencepost"}, {"version", "1.2.3"}}));
  }
}

TEST_F(Exporter, IsToldByACollectorThatItsPathIsWrong) {
  if (!Collector::WhyNot().empty()) GTEST_SKIP() << Collector::WhyNot();
  const Collector collector;
  options_.traces.endpoint = collector.endpoint() + "/v2/traces";
  Start();
  exporter_->Put(Spans(1));
  ASSERT_TRUE(WaitUntil(kLimit, "the drop", [&] { return Dropped(SpanDrop::kRefused) == 1; }));
  EXPECT_THAT(LogText(), HasSubstr("answered HTTP 404"));
}

}  // namespace
}  // namespace fencepost::metrics
