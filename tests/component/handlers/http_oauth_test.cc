// The http handler with OAuth tokens: a service, and beside it the endpoint that gives tokens.
#include <atomic>

#include <fmt/format.h>

#include "consumer/handlers/http/oauth_client.h"
#include "consumer/json/json_text.h"
#include "tests/component/handlers/runner_fixture.h"
#include "tests/support/stub_server.h"

namespace fencepost::consumer {
namespace {

using fencepost::testing::FreePort;
using fencepost::testing::StubServer;
using fencepost::testing::WaitUntil;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Answer = StubServer::Answer;

class HttpOauth : public RunnerFixture {
 protected:
  // The service takes `good_`, whatever it is at the time, and answers what it got.
  HttpOauth() {
    service_ = std::make_unique<StubServer>([this](const StubServer::Request& request) {
      const std::string good = fmt::format("Bearer t{}", good_.load());
      const auto carried = request.headers.find("authorization");
      const bool taken = carried != request.headers.end() && carried->second == good;
      return taken ? Answer{.body = request.body} : Answer{.status = 401, .body = "no"};
    });
  }
  // t1, t2, … as they are asked for.
  static Answer Next(int number) {
    return {.body = fmt::format(R"({{"access_token":"t{}","token_type":"Bearer"}})", number)};
  }
  void Issue(std::function<Answer(int)> answer = Next) {
    tokens_ = std::make_unique<StubServer>(
        [this, answer](const StubServer::Request&) { return answer(++asked_); });
    StartWith(tokens_->Url("/token?tenant=s3cret"));
  }
  void StartWith(const std::string& url) {
    HttpHandlerOptions options{.url = service_->Url("/charge")};
    options.auth.oauth = {
        .token_url = url, .client_id = "shop: 7", .client_secret = "s3cret&", .scope = "charge"};
    Start({.kind = options});
  }

  std::atomic<int> good_ = 1;
  std::atomic<int> asked_ = 0;
  std::unique_ptr<StubServer> service_;
  std::unique_ptr<StubServer> tokens_;
};

TEST_F(HttpOauth, AsksForATokenOnceForAllThatWait) {
  Issue([this](int number) {
    tokens_->Hold();
    return Next(number);
  });
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(Call(std::to_string(i)));
  ASSERT_TRUE(WaitUntil(10s, [&] { return asked_ == 1; }));
  EXPECT_TRUE(service_->requests().empty());
  tokens_->Release();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(AnswerTo(ids[i]).result->front(), std::to_string(i));
  EXPECT_EQ(ValueOf("5"), "5");
  ASSERT_EQ(tokens_->requests().size(), 1u);
  StubServer::Request request = tokens_->requests().front();
  EXPECT_EQ(request.line, "POST /token?tenant=s3cret HTTP/1.1");
  EXPECT_EQ(request.headers["authorization"], "Basic " + ToBase64("shop%3A+7:s3cret%26"));
  EXPECT_EQ(request.headers["content-type"], "application/x-www-form-urlencoded");
  EXPECT_EQ(request.body, "grant_type=client_credentials&scope=charge");
}

TEST_F(HttpOauth, AsksAnewOnceWhereTheServiceRefusesTheTokenAndSendsTheCallAgain) {
  Issue();
  EXPECT_EQ(ValueOf("1"), "1");
  good_ = 2;
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(Call(std::to_string(i)));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(AnswerTo(ids[i]).result->front(), std::to_string(i));
  EXPECT_EQ(asked_, 2);
  EXPECT_EQ(recorder_.handled(), 6);
}

TEST_F(HttpOauth, FailsWithTheRefusalWhereANewTokenIsRefusedToo) {
  Issue();
  good_ = 0;
  EXPECT_EQ(Told("1"), "401, again: HTTP 401: no");
  EXPECT_EQ(asked_, 2);
  EXPECT_EQ(service_->requests().size(), 2u);
  EXPECT_EQ(recorder_.handled(), 1);
}

TEST_F(HttpOauth, SaysWhoItIsInTheBodyWhereTheEndpointTakesItThereAlone) {
  tokens_ = std::make_unique<StubServer>([this](const StubServer::Request& request) {
    const bool in_body =
        request.body.find("&client_id=shop%3A+7&client_secret=s3cret%26") != std::string::npos;
    if (!in_body || request.headers.contains("authorization")) {
      return Answer{.status = 401, .body = R"({"error":"invalid_client"})"};
    }
    return Next(++asked_);
  });
  HttpHandlerOptions options;
  options.auth.oauth = {.token_url = tokens_->Url("/token"),
                        .client_id = "shop: 7",
                        .client_secret = "s3cret&",
                        .scope = "charge",
                        .extensions = ""};
  const auto token = AskForToken(options, "test", std::chrono::hours(1));
  ASSERT_TRUE(token) << token.error();
  EXPECT_EQ(token->text, "t1");
  EXPECT_EQ(tokens_->requests().size(), 2u);
  good_ = 2;
  StartWith(tokens_->Url("/token"));
  EXPECT_THAT(Told("1"), HasSubstr("HTTP 401 (invalid_client)"));
  EXPECT_EQ(ValueOf("1"), "1");
  good_ = 3;
  EXPECT_EQ(ValueOf("2"), "2");
  EXPECT_EQ(tokens_->requests().size(), 5u) << "it is asked as it has answered before";
}

TEST_F(HttpOauth, IsNotWaitedForOnceWhoAsksEnds) {
  std::atomic<bool> ends = false;
  StubServer held([&](const StubServer::Request&) {
    ends = true;
    held.Hold();
    return Answer{};
  });
  HttpHandlerOptions options;
  options.auth.oauth = {.token_url = held.Url("/token"),
                        .client_id = "shop",
                        .client_secret = "s3cret",
                        .scope = "",
                        .extensions = ""};
  const auto token =
      AskForToken(options, "test", std::chrono::hours(1), [&] { return ends.load(); });
  held.Release();
  ASSERT_FALSE(token);
  EXPECT_EQ(token.error(), "it is not waited for any more");
}

TEST_F(HttpOauth, ReadsASecretInAFileForEachTokenAndAsksNobodyWithoutOne) {
  const testing::TempDir folder;
  const std::string path = folder.File("secret");
  tokens_ =
      std::make_unique<StubServer>([this](const StubServer::Request&) { return Next(++asked_); });
  HttpHandlerOptions options{.url = service_->Url("/charge")};
  options.auth.oauth = {.token_url = tokens_->Url("/token"),
                        .client_id = "shop",
                        .client_secret = Secret::OfFile(path),
                        .scope = "",
                        .extensions = ""};
  Start({.kind = options});
  EXPECT_THAT(Told("1"), HasSubstr("client_secret: the file " + path + ": No such file"));
  EXPECT_EQ(asked_, 0);
  (void)folder.Write("secret", "one\n");
  EXPECT_EQ(ValueOf("1"), "1");
  (void)folder.Write("secret", "two\n");
  good_ = 2;
  EXPECT_EQ(ValueOf("2"), "2");
  const auto asked = tokens_->requests();
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_EQ(asked[0].headers.at("authorization"), "Basic " + ToBase64("shop:one"));
  EXPECT_EQ(asked[1].headers.at("authorization"), "Basic " + ToBase64("shop:two"));
}

TEST_F(HttpOauth, SaysWhyThereIsNoTokenAndThatTheServiceWasNotReached) {
  struct Row {
    Answer answer;
    const char* why;
  };
  for (const Row& row : {
           Row{{.status = 503}, "HTTP 503"},
           Row{{.status = 401, .body = R"({"error":"invalid_client"})"},
               "HTTP 401 (invalid_client); check client_id, client_secret and scope"},
           Row{{.body = "<html>"}, "its answer is not JSON"},
           Row{{.body = "{}"}, "its answer has no access_token"},
           Row{{.status = 302, .headers = {"Location: /elsewhere"}}, "HTTP 302"},
           Row{{.body = std::string((1 << 20) + 1, ' ')}, "its answer is larger than 1 MiB"},
           Row{{.status = 0}, "Empty reply from server"},
       }) {
    Issue([&](int) { return row.answer; });
    const HandlerFailure failure = FailureOf("1");
    const std::string url = tokens_->Url("/token");
    EXPECT_EQ(failure.error_class, "connection");
    EXPECT_EQ(failure.shown, fmt::format("the token endpoint {} gave no token: {}", url, row.why));
    EXPECT_FALSE(failure.reached);
    EXPECT_THAT(failure.text, Not(HasSubstr("s3")));
  }
  EXPECT_TRUE(service_->requests().empty());
  EXPECT_EQ(recorder_.handled(), 0);
}

TEST_F(HttpOauth, AsksAgainForTheNextCallOnceTheEndpointIsBack) {
  Issue([](int number) { return number == 1 ? Answer{.status = 503} : Next(1); });
  EXPECT_FALSE(FailureOf("1").reached);
  EXPECT_EQ(ValueOf("1"), "1");
}

TEST_F(HttpOauth, WaitsForASlowEndpointNoLongerThanForACall) {
  Issue([this](int number) {
    tokens_->Hold();
    return Next(number);
  });
  const HandlerFailure failure = FailureOf({.value = "1", .timeout = 100ms});
  EXPECT_THAT(failure.text, AllOf(HasSubstr(tokens_->Url("/token")), HasSubstr("timed out")));
  EXPECT_FALSE(failure.reached);
}

TEST_F(HttpOauth, SaysThatNobodyListensWhereTokensComeFrom) {
  StartWith(fmt::format("http://127.0.0.1:{}/token", FreePort()));
  EXPECT_THAT(Told("1"), AllOf(StartsWith("connection, again: the token endpoint http://127"),
                               HasSubstr("Failed to connect")));
}

TEST_F(HttpOauth, CancelsACallThatWaitsForItsTokenAndStopsWithOneThatDoes) {
  Issue([this](int number) {
    tokens_->Hold();
    return Next(number);
  });
  const auto waiting = Call("1");
  ASSERT_TRUE(WaitUntil(10s, [&] { return asked_ == 1; }));
  Cancel(waiting);
  EXPECT_EQ(ClassOf(waiting), "cancelled");
  Call("2");
  runner_->Stop();
  EXPECT_EQ(recorder_.answers().size(), 1u);
}

TEST_F(HttpOauth, RefusesToStartWithAnEndpointThatIsNoAddress) {
  HttpHandlerOptions options{.url = "http://h/"};
  options.auth.oauth = {.token_url = "http://h:s3cret/", .client_id = "a", .client_secret = "b"};
  EXPECT_EQ(StartError({.kind = options}),
            "handler.http.auth.oauth2: the token_url does not parse; write https://HOST/PATH");
}

}  // namespace
}  // namespace fencepost::consumer
