// The http handler against a server.
#include <atomic>
#include <ctime>
#include <filesystem>

#include <fmt/format.h>

#include "tests/component/handlers/runner_fixture.h"
#include "tests/support/stub_server.h"

namespace fencepost::consumer {
namespace {

using fencepost::testing::FreePort;
using fencepost::testing::StubServer;
using fencepost::testing::WaitUntil;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;
using Answer = StubServer::Answer;

class HttpHandler : public RunnerFixture {
 protected:
  void Serve(StubServer::Handle handle, HttpHandlerOptions options = {}, int concurrency = 8) {
    server_ = std::make_unique<StubServer>(std::move(handle));
    if (options.url.empty()) options.url = server_->Url("/charge");
    Start({.kind = options}, concurrency);
  }
  void ServeAt(const std::string& path, HttpHandlerOptions options) {
    server_ = std::make_unique<StubServer>(
        [](const StubServer::Request&) { return Answer{.body = "1"}; });
    options.url = server_->Url(path);
    Start({.kind = std::move(options)});
  }
  void Always(const Answer& answer, HttpHandlerOptions options = {}) {
    Serve([answer](const StubServer::Request&) { return answer; }, std::move(options));
  }
  // Answers nothing until Release.
  void HoldAll(int concurrency = 8) {
    Serve(
        [this](const StubServer::Request& request) {
          server_->Hold();
          return Answer{.body = request.body};
        },
        {}, concurrency);
  }
  StubServer::Request OnlyRequest() {
    const auto requests = server_->requests();
    if (requests.size() != 1) throw std::runtime_error("not one request");
    return requests.front();
  }
  bool Arrived(std::size_t count) {
    return WaitUntil(10s, [&] { return server_->requests().size() == count; });
  }

  std::unique_ptr<StubServer> server_;
};

TEST_F(HttpHandler, SendsTheRecordWithItsIdItsTokenAndItsSource) {
  Always({.body = R"({"ok":true})"},
         {.headers = {{"X-Shop", "7"}, {"x-empty", ""}, {"idempotency-key", "the user's own"}}});
  EXPECT_EQ(ValueOf({.value = R"({"amount":1})",
                     .headers = {{"traceparent", "00-ab-cd-01"}, {"other", "not sent"}},
                     .record_id = "c/orders 1%\xc3\xbc"}),
            R"({"ok":true})");
  const StubServer::Request request = OnlyRequest();
  EXPECT_EQ(request.line, "POST /charge HTTP/1.1");
  EXPECT_EQ(request.body, R"({"amount":1})");
  EXPECT_THAT(request.headers, Contains(Pair("idempotency-key", "c%2Forders%201%25%C3%BC")));
  EXPECT_THAT(request.headers, Contains(Pair("fencing-token", "9007199254740993")));
  EXPECT_THAT(request.headers, Contains(Pair("x-fencepost-source", "orders/3/42")));
  EXPECT_THAT(request.headers, Contains(Pair("traceparent", "00-ab-cd-01")));
  EXPECT_THAT(request.headers, Contains(Pair("content-type", "application/json")));
  EXPECT_THAT(request.headers, Contains(Pair("x-shop", "7")));
  EXPECT_THAT(request.headers, Contains(Pair("x-empty", "")));
  EXPECT_THAT(request.headers, Contains(Pair("user-agent", "fencepost (billing)")));
  EXPECT_THAT(request.headers, Not(Contains(Key("other"))));
  EXPECT_THAT(request.headers, Not(Contains(Key("expect"))));
}

TEST_F(HttpHandler, LeavesOutATraceParentThatWouldBreakTheRequest) {
  Always({});
  ValueOf({.value = "1", .headers = {{"traceparent", "00\r\nX-Evil: 1"}}});
  EXPECT_THAT(OnlyRequest().headers, Not(Contains(Key("traceparent"))));
  EXPECT_THAT(OnlyRequest().headers, Not(Contains(Key("x-evil"))));
}

TEST_F(HttpHandler, SendsTheValueByTheMethodWithItsTypeAndLength) {
  struct Row {
    const char* method;
    std::optional<std::string> value;
    std::string body, type, length;  // of the request; empty: it has no such header
    bool own_type = false;
  };
  const std::string bytes("a\0b\xff", 4);
  for (const Row& row :
       {Row{"POST", bytes, bytes, "application/octet-stream", "4"},
        Row{"POST", "1,2", "1,2", "text/csv", "3", true}, Row{"POST", std::nullopt, "", "", "0"},
        Row{"GET", "{}", "", "", ""}, Row{"DELETE", "{}", "{}", "application/json", "2"},
        Row{"DELETE", std::nullopt, "", "", ""},
        Row{"PUT", "[1]", "[1]", "application/json", "3"}}) {
    HttpHandlerOptions options{.method = row.method};
    if (row.own_type) options.headers = {{"content-type", "text/csv"}};
    Always({.body = "7"}, options);
    EXPECT_EQ(ValueOf({.value = row.value}), "7");
    StubServer::Request request = OnlyRequest();
    EXPECT_EQ(request.line, fmt::format("{} /charge HTTP/1.1", row.method));
    EXPECT_EQ(request.body, row.body) << request.line;
    EXPECT_EQ(request.headers["content-type"], row.type) << request.line;
    EXPECT_EQ(request.headers["content-length"], row.length) << request.line;
  }
}

TEST_F(HttpHandler, TellsAnEmptyBodyFromNoContent) {
  Serve(
      [](const StubServer::Request& request) { return Answer{.status = std::stoi(request.body)}; });
  EXPECT_EQ(ValueOf("200"), "");
  EXPECT_EQ(ValueOf("204"), std::nullopt);
}

TEST_F(HttpHandler, MergesTheAnswerIntoTheRecord) {
  const HttpHandlerOptions merge{.result = HttpResult::kMerge, .result_pointer = "/e"};
  Always({.body = R"({"score":1.50})"}, merge);
  EXPECT_EQ(ValueOf(R"({"id":9007199254740993 })"),
            R"({"id":9007199254740993,"e":{"score":1.50} })");
  const HandlerFailure refused = FailureOf("[]");
  EXPECT_EQ(refused.error_class, "bad_record");
  EXPECT_FALSE(refused.asked);
  EXPECT_EQ(server_->requests().size(), 1u);
  Always({.status = 204}, merge);
  EXPECT_EQ(ValueOf("{}"), R"({"e":null})");
  Always({.body = "<html>the record</html>"}, merge);
  EXPECT_THAT(Told("{}"), StartsWith("bad_answer, again: the answer is not valid JSON: "));
}

TEST_F(HttpHandler, KeepsTheRecordWhateverTheAnswerHolds) {
  const HttpHandlerOptions keep{.result = HttpResult::kKeep};
  for (const Answer& answer :
       {Answer{.body = "<html>"}, Answer{.status = 204}, Answer{.body = std::string(17 << 20, 'x')},
        Answer{.body = "?", .headers = {"Content-Encoding: br"}}}) {
    Always(answer, keep);
    EXPECT_EQ(ValueOf("1.50"), "1.50");
    EXPECT_EQ(ValueOf({.value = std::nullopt}), std::nullopt);
  }
  Always({.status = 404, .body = "no such order"}, keep);
  EXPECT_EQ(Told("1"), "404, for good: HTTP 404: no such order");
}

TEST_F(HttpHandler, SendsAndMakesWhatJqProgramsSay) {
  Always({.body = R"([1,2])"}, {.method = "PUT",
                                .body = HttpBody::kJq,
                                .body_program = "{id: .order_id}",
                                .result = HttpResult::kJq,
                                .result_program = ".record + {n: .answer[]}"});
  EXPECT_THAT(ResultOf(R"({"order_id":"a"})").value(),
              ElementsAre(R"({"order_id":"a","n":1})", R"({"order_id":"a","n":2})"));
  EXPECT_EQ(OnlyRequest().body, R"({"id":"a"})");
  EXPECT_THAT(OnlyRequest().headers, Contains(Pair("content-type", "application/json")));
  const HandlerFailure failure = FailureOf("[]");
  EXPECT_EQ(failure.error_class, "jq");
  EXPECT_FALSE(failure.asked);
  EXPECT_EQ(server_->requests().size(), 1u);
}

TEST_F(HttpHandler, SendsNoBodyWhereNoneIsAskedFor) {
  Always({.body = "7"}, {.method = "PUT", .body = HttpBody::kNone});
  EXPECT_EQ(ValueOf("not JSON"), "7");
  EXPECT_EQ(OnlyRequest().body, "");
  EXPECT_THAT(OnlyRequest().headers, Contains(Pair("content-length", "0")));
  EXPECT_THAT(OnlyRequest().headers, Not(Contains(Key("content-type"))));
}

TEST_F(HttpHandler, StartsWithProgramsThatCompile) {
  const HttpHandlerOptions bad{.url = "http://a", .body = HttpBody::kJq, .body_program = "nothing"};
  EXPECT_THAT(StartError({.kind = bad}),
              AllOf(HasSubstr("handler.http.body.jq"), HasSubstr("nothing/0 is not defined")));
}

TEST_F(HttpHandler, FailsWithTheStatusAndTheStartOfTheBodyInOneLine) {
  Always({.status = 404, .body = "no\r\n\tsuch \x1b[31morder " + std::string(500, 'x')});
  const HandlerFailure failure = FailureOf("{}");
  EXPECT_EQ(failure.error_class, "404");
  EXPECT_THAT(failure.text, StartsWith("HTTP 404: no such [31morder xxx"));
  EXPECT_EQ(failure.text.size(), 200u);
  EXPECT_FALSE(failure.retry);
  EXPECT_EQ(failure.retry_after, std::nullopt);
}

TEST_F(HttpHandler, TakesTheStatusesThatSuccessNames) {
  Serve(
      [](const StubServer::Request& request) {
        return Answer{.status = std::stoi(request.body), .body = "b"};
      },
      {.success = {"2xx", "409"}, .retry_on = {"425"}});
  EXPECT_EQ(ValueOf("409"), "b");
  EXPECT_EQ(ValueOf("201"), "b");
  EXPECT_TRUE(FailureOf("425").retry);
  EXPECT_FALSE(FailureOf("503").retry);
}

TEST_F(HttpHandler, HonoursRetryAfterInSeconds) {
  Always({.status = 429, .headers = {"Retry-After: 7"}});
  const HandlerFailure failure = FailureOf("{}");
  EXPECT_TRUE(failure.retry);
  EXPECT_EQ(failure.retry_after, 7s);
  Always({.status = 429, .headers = {"Retry-After: 999999999"}});
  EXPECT_EQ(FailureOf("{}").retry_after, 24h);
}

TEST_F(HttpHandler, HonoursRetryAfterAsADate) {
  const std::time_t later = std::time(nullptr) + 600;
  std::array<char, 64> date{};
  std::tm broken{};
  std::strftime(date.data(), date.size(), "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&later, &broken));
  Always({.status = 503, .headers = {fmt::format("Retry-After: {}", date.data())}});
  const HandlerFailure failure = FailureOf("{}");
  ASSERT_TRUE(failure.retry_after.has_value());
  EXPECT_LE(*failure.retry_after, 600s);
  EXPECT_GE(*failure.retry_after, 570s);
}

TEST_F(HttpHandler, HonoursNoDateThatHasPassed) {
  Always({.status = 503, .headers = {"Retry-After: Wed, 21 Oct 2015 07:28:00 GMT"}});
  EXPECT_EQ(FailureOf("{}").retry_after, std::nullopt);
}

TEST_F(HttpHandler, FollowsNoRedirects) {
  Always({.status = 302, .headers = {"Location: /elsewhere"}});
  const HandlerFailure failure = FailureOf("{}");
  EXPECT_EQ(failure.error_class, "302");
  EXPECT_TRUE(failure.retry) << "it is no record's own";
  EXPECT_EQ(server_->requests().size(), 1u);
}

TEST_F(HttpHandler, KeepsItsConnection) {
  Always({.status = 200, .body = "1"});
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ValueOf("{}"), "1");
  EXPECT_EQ(server_->requests().size(), 20u);
  EXPECT_EQ(server_->connections(), 1);
  EXPECT_EQ(recorder_.handled(), 20);
}

TEST_F(HttpHandler, SendsARequestOnceWhereAConnectionThatWasUsedBeforeEndsWithoutAnAnswer) {
  std::atomic<int> count = 0;
  Serve([&](const StubServer::Request&) { return Answer{.status = ++count == 1 ? 200 : 0}; });
  EXPECT_TRUE(ValueOf("1"));
  const HandlerFailure failure = FailureOf("2");
  EXPECT_EQ(failure.error_class, "connection");
  EXPECT_EQ(failure.text, "the connection ended without an answer");
  EXPECT_TRUE(failure.reached);
  EXPECT_EQ(server_->requests().size(), 2u);
}

TEST_F(HttpHandler, HasAtMostSoManyRequestsOutAndTheRestInOrder) {
  HoldAll(3);
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 10; ++i) ids.push_back(Call(std::to_string(i)));
  ASSERT_TRUE(Arrived(3));
  std::vector<std::string> first;
  for (const auto& request : server_->requests()) first.push_back(request.body);
  EXPECT_THAT(first, ::testing::UnorderedElementsAre("0", "1", "2"));
  server_->Release();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(AnswerTo(ids[i]).result->front(), std::to_string(i));
  EXPECT_EQ(server_->most_at_once(), 3);
  EXPECT_EQ(server_->connections(), 3);
}

TEST_F(HttpHandler, GivesUpOnAnAnswerThatDoesNotComeInTime) {
  HoldAll();
  EXPECT_THAT(Told({.value = "{}", .timeout = 100ms}),
              AllOf(StartsWith("timeout, again: "), HasSubstr("timed out")));
}

TEST_F(HttpHandler, CountsTheTimeoutFromTheStartOfTheRequest) {
  HoldAll(1);
  const auto first = Call({.value = "1", .timeout = 300ms});
  const auto second = Call({.value = "2", .timeout = 300ms});
  EXPECT_EQ(ClassOf(first), "timeout");
  ASSERT_TRUE(Arrived(2));
  server_->Release();
  EXPECT_EQ(ClassOf(second), "success");
}

TEST_F(HttpHandler, SendsNothingUnderALeaseThatHasEnded) {
  Always({.body = "1"});
  const auto late = Call({.value = "late", .valid_until = Instant()});
  EXPECT_EQ(ClassOf(late), "cancelled");
  EXPECT_EQ(ValueOf("2"), "1");
  EXPECT_EQ(ClassOf(Call({.value = "late", .valid_until = Instant()})), "cancelled");
  EXPECT_EQ(OnlyRequest().body, "2");
}

TEST_F(HttpHandler, BreaksOffARequestThatIsCancelled) {
  HoldAll(1);
  const auto out = Call("1");
  const auto waiting = Call("2");
  ASSERT_TRUE(Arrived(1));
  Cancel(waiting);
  EXPECT_EQ(ClassOf(waiting), "cancelled");
  EXPECT_EQ(recorder_.handled(), 0);
  Cancel(out);
  EXPECT_EQ(ClassOf(out), "cancelled");
  EXPECT_EQ(recorder_.handled(), 1);
  server_->Release();
  EXPECT_EQ(ValueOf("3"), "3");
  EXPECT_EQ(server_->connections(), 2);
  Cancel(out);  // long over
  EXPECT_EQ(ValueOf("4"), "4");
  EXPECT_EQ(recorder_.answers().size(), 4u);
}

TEST_F(HttpHandler, SaysThatNobodyListens) {
  Start({.kind = HttpHandlerOptions{.url = fmt::format("http://127.0.0.1:{}/", FreePort())}});
  EXPECT_THAT(Told("{}"), AllOf(StartsWith("connection, again: "),
                                HasSubstr("Failed to connect to 127.0.0.1")));
}

TEST_F(HttpHandler, TakesAnAnswerThatBreaksOffAndWhatIsNotHttpForNone) {
  for (const char* raw :
       {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", "SSH-2.0-OpenSSH\r\n"}) {
    Always({.raw = raw});
    EXPECT_THAT(Told("{}"), StartsWith("connection, again: ")) << raw;
  }
}

TEST_F(HttpHandler, RefusesAnAnswerOverSixteenMebibytes) {
  Serve([](const StubServer::Request& request) {
    return Answer{.body = std::string(std::stoul(request.body), 'x')};
  });
  EXPECT_EQ(ValueOf(std::to_string(16 << 20))->size(), 16u << 20);
  EXPECT_EQ(Told(std::to_string((16 << 20) + 1)),
            "too_large, for good: the answer (HTTP 200) is larger than 16 MiB");
  EXPECT_EQ(ValueOf("3"), "xxx");
}

TEST_F(HttpHandler, SendsNothingUnderAContentTypeOfJsonThatIsNotJson) {
  Serve([](const StubServer::Request& request) { return Answer{.body = request.body}; },
        {.headers = {{"Content-Type", "application/json; charset=utf-8"}}}, 1);
  EXPECT_EQ(Told(R"({"score":NaN})"),
            "bad_record, for good: the value is not valid JSON: NaN is not JSON "
            "(handler.http.headers has a Content-Type of JSON)");
  EXPECT_EQ(ValueOf("{}"), "{}");
  EXPECT_EQ(ValueOf(CallSpec{}), "") << "a null value is an empty body";
  EXPECT_EQ(server_->requests().size(), 2u);
}

TEST_F(HttpHandler, SendsTheUrlTheQueryAndTheHeadersThatTheRecordMakes) {
  const Selector tenant = Selector::Parse("header:tenant?").value();
  ServeAt(
      "/a/../o//{json:/id}/x-{key}?v=1",
      {.method = "PATCH",
       .query = {{.name = "tenant", .selector = tenant}},
       .headers = {{"Accept", "text/plain"}, {"X-Trace", "header:trace?"}, {"X-B", "{json:/id}"}}});
  const std::pair<const char*, const char*> ids[] = {
      {"7", "7"},
      {"a/../b", "a%2F..%2Fb"},
      {"?a#b&c=%2e", "%3Fa%23b%26c%3D%252e"},
      {"\xc3\xbc \\\\", "%C3%BC%20%5C"},
      {"http://evil:1@x", "http%3A%2F%2Fevil%3A1%40x"}};
  for (const auto& [id, segment] : ids) {
    EXPECT_EQ(ValueOf({.value = fmt::format(R"({{"id":"{}"}})", id),
                       .key = std::string("\0\xff", 2),
                       .headers = {{"tenant", "t 1"}, {"trace", "00-1"}}}),
              "1");
    const StubServer::Request request = server_->requests().back();
    EXPECT_EQ(request.line,
              fmt::format("PATCH /a/../o//{}/x-%00%FF?v=1&tenant=t%201 HTTP/1.1", segment));
    EXPECT_THAT(request.headers, Contains(Pair("accept", "text/plain")));
    EXPECT_THAT(request.headers, Contains(Pair("x-trace", "00-1")));
  }
  EXPECT_EQ(server_->connections(), 1);
}

TEST_F(HttpHandler, MakesNoCallForARecordThatLacksAPartOfTheRequest) {
  ServeAt("/o/{json:/id}", {.headers = {{"X-A", "header:a"}}});
  const auto bad = [this](const std::string& value, const std::string& header, const char* why) {
    const HandlerFailure failure =
        FailureOf({.value = value, .headers = {{header, "x\r\nX-Evil: 1"}}});
    EXPECT_EQ(failure.error_class, "bad_record");
    EXPECT_EQ(failure.text, why);
    EXPECT_EQ(failure.shown, why);
    EXPECT_FALSE(failure.retry || failure.asked);
  };
  bad("{}", "a", "handler.http.url: json:/id finds nothing in the value");
  bad(R"({"id":".."})", "a", "handler.http.url: json:/id would make a segment of the path . or ..");
  bad(R"({"id":1})", "b", "handler.http.headers.X-A: header:a finds nothing in the record");
  bad(R"({"id":1})", "a",
      "handler.http.headers.X-A: header:a has a control character, such as a line end, which no "
      "header can carry");
  EXPECT_EQ(ValueOf({.value = R"({"id":1})", .headers = {{"a", ""}}}), "1");
  EXPECT_EQ(OnlyRequest().line, "POST /o/1 HTTP/1.1");
  EXPECT_THAT(OnlyRequest().headers, Contains(Pair("x-a", "")));
}

TEST_F(HttpHandler, TakesTheHeadersOfTheUserForItsOwnAlsoWhereARecordMakesThem) {
  ServeAt("/", {.headers = {{"Content-Type", "header:type?"}, {"Traceparent", "header:trace?"}}});
  const auto headers = [this](const std::string& type) {
    ValueOf({.value = "{}", .headers = {{type, "text/x"}, {"traceparent", "00-1"}}});
    return server_->requests().back().headers;
  };
  EXPECT_THAT(headers("type"), Contains(Pair("content-type", "text/x")));
  EXPECT_THAT(headers("none"), AllOf(Contains(Pair("content-type", "application/json")),
                                     Not(Contains(Key("traceparent")))));
  EXPECT_THAT(Told({.value = "x", .headers = {{"type", "a/b+json"}}}),
              StartsWith("bad_record, for good: the value is not valid JSON: "));
}

TEST_F(HttpHandler, SaysWhoCalls) {
  const std::pair<HttpAuthOptions, const char*> rows[] = {
      {{.username = "app", .password = "p:\n\xc3\xbc"}, "Basic YXBwOnA6CsO8"},
      {{.username = "app"}, "Basic YXBwOg=="},
      {{.bearer = "t0ken"}, "Bearer t0ken"}};
  for (const auto& [auth, header] : rows) {
    ServeAt("/{key}", {.auth = auth});
    for (const char* key : {"1", "2"}) ValueOf({.key = key});
    for (const auto& request : server_->requests()) {
      EXPECT_THAT(request.headers, Contains(Pair("authorization", header)));
    }
  }
}

TEST_F(HttpHandler, ReadsASecretInAFileForEachCallAndFailsUnreachedWithoutOne) {
  const testing::TempDir folder;
  const std::string path = folder.File("secret");
  const std::string away = ": the file " + path + ": No such file or directory";
  struct Row {
    HttpAuthOptions auth;
    const char *key, *one, *two;
  };
  for (const Row& row :
       {Row{{.bearer = Secret::OfFile(path)}, "bearer", "Bearer one", "Bearer two"},
        Row{{.username = "app", .password = Secret::OfFile(path)},
            "password",
            "Basic YXBwOm9uZQ==",
            "Basic YXBwOnR3bw=="}}) {
    std::filesystem::remove(path);
    ServeAt("/", {.auth = row.auth});
    const HandlerAnswer none = AnswerTo(Call("0"));
    ASSERT_FALSE(none.result);
    EXPECT_EQ(none.result.error().shown, row.key + away);
    EXPECT_EQ(none.result.error().error_class, "connection");
    EXPECT_FALSE(none.result.error().reached);
    for (const char* secret : {"one\n", "two\n"}) {
      (void)folder.Write("secret", secret);
      ValueOf("1");
    }
    const auto requests = server_->requests();
    ASSERT_EQ(requests.size(), 2u);
    EXPECT_THAT(requests[0].headers, Contains(Pair("authorization", row.one)));
    EXPECT_THAT(requests[1].headers, Contains(Pair("authorization", row.two)));
  }
}

TEST_F(HttpHandler, StopsWithRequestsOut) {
  HoldAll(1);
  Call("1");
  Call("2");
  ASSERT_TRUE(Arrived(1));
  runner_->Stop();
  EXPECT_TRUE(recorder_.answers().empty());
}

TEST_F(HttpHandler, RefusesToStartWithWhatCannotBeAsked) {
  const auto error = [this](HttpHandlerOptions options) { return StartError({.kind = options}); };
  EXPECT_EQ(error({.url = "ftp://host/x"}),
            "handler.http: the url's scheme is ftp; write http://HOST:PORT/PATH or "
            "https://HOST/PATH");
  EXPECT_THAT(error({.url = "http://host:notaport/"}), HasSubstr("the url does not parse"));
  EXPECT_THAT(error({.url = ""}), HasSubstr("the url does not parse"));
  for (const char* url : {"ftp://app:s3cret@h/", "http://app:s3cret@h:x/", "app:s3cret@h",
                          "http://app:s3/cret@h/", "s3cret://app@h", "http://h:s3cret/"}) {
    EXPECT_THAT(error({.url = url}), AllOf(HasSubstr("the url"), Not(HasSubstr("s3"))));
  }
  EXPECT_THAT(error({.url = "http://h/", .method = "PO ST"}), HasSubstr("the method is not one"));
  EXPECT_THAT(error({.url = "http://h/", .headers = {{"a", "b\r\nc: d"}}}),
              HasSubstr("the header a is not one"));
  EXPECT_EQ(error({.url = "http://h/{json:/s3cret?}"}),
            "handler.http: the url has {…}: it is optional, and no part of the path can be left "
            "out: leave the ? out");
  EXPECT_EQ(error({.url = "http://h/", .headers = {{"a", "x}"}}}),
            "handler.http: the header a has a } that closes nothing; for the character write }} "
            "(in a url %7D)");
  EXPECT_THAT(
      error({.url = "http://h/", .headers = {{"AUTHORIZATION", "x"}}, .auth = {.bearer = "t"}}),
      HasSubstr("auth and the header Authorization both say who calls"));
  for (const HttpAuthOptions& auth :
       {HttpAuthOptions{.bearer = "s3\r\ncret"}, HttpAuthOptions{.username = "s3:cret"}}) {
    EXPECT_THAT(error({.url = "http://h/", .auth = auth}),
                AllOf(HasSubstr("auth holds what no request can have"), Not(HasSubstr("s3"))));
  }
}

}  // namespace
}  // namespace fencepost::consumer
