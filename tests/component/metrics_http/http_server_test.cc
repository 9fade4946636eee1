#include "metrics/http/http_server.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#include "metrics/page.h"
#include "tests/component/metrics_http/raw_client.h"

namespace fencepost::metrics {
namespace {

using namespace std::chrono_literals;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Http : public ::testing::Test {
 protected:
  void SetUp() override {
    Endpoints endpoints;
    endpoints.metrics = [] { return std::string("# HELP a b\na 1\n"); };
    endpoints.open_metrics = [] { return std::string("# HELP a b\na 1\n# EOF\n"); };
    endpoints.live = [this] {
      return ProbeResult{live_.load(), live_ ? "" : "the loop is stalled"};
    };
    endpoints.ready = [this] { return ProbeResult{ready_.load(), reason_}; };
    endpoints.status = [this]() -> std::string {
      if (throws_) throw std::runtime_error("boom");
      return "{\"ready\":true}";
    };
    endpoints.page = [] { return std::string("<!DOCTYPE html><p>page</p>"); };
    endpoints.fragment = [] { return std::string("<p>news</p>"); };
    auto server = HttpServer::Start("127.0.0.1:0", endpoints);
    ASSERT_TRUE(server) << server.error().Line();
    server_ = std::move(*server);
  }
  std::string Get(const std::string& path) { return Ask(server_->port(), "GET", path); }

  std::atomic<bool> live_{true}, ready_{true}, throws_{false};
  std::string reason_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(Http, ReportsThePortThatWasTaken) {
  EXPECT_GT(server_->port(), 0);
  EXPECT_EQ(server_->bound(), "127.0.0.1:" + std::to_string(server_->port()));
}

TEST_F(Http, ServesEachPathWithItsType) {
  const std::string metrics = "text/plain; version=0.0.4; charset=utf-8\r\n";
  struct Row {
    const char *path, *body;
    std::string type, policy = "default-src 'none'\r\n";
  };
  for (const Row& row : {Row{"/metrics", "# HELP a b\na 1\n", metrics},
                         Row{"/metrics?collect=all", "# HELP a b\na 1\n", metrics},
                         Row{"/status", "{\"ready\":true}", "application/json\r\n"},
                         Row{"/", "<!DOCTYPE html><p>page</p>", "text/html; charset=utf-8\r\n",
                             "default-src 'none'; style-src 'sha256-"},
                         Row{"/fragment", "<p>news</p>", "text/html; charset=utf-8\r\n"}}) {
    const std::string answer = Get(row.path);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n")) << row.path;
    for (const std::string& header :
         {"Content-Type: " + row.type, "Content-Security-Policy: " + row.policy,
          "Content-Length: " + std::to_string(std::strlen(row.body)) + "\r\n",
          std::string("Cache-Control: no-store\r\n"), std::string("Connection: close\r\n"),
          std::string("X-Content-Type-Options: nosniff\r\n")}) {
      EXPECT_THAT(answer, HasSubstr("\r\n" + header)) << row.path;
    }
    EXPECT_EQ(BodyOf(answer), row.body);
  }
}

TEST_F(Http, ServesOpenMetricsWhereItIsAskedFor) {
  const auto accepting = [this](const std::string& what) {
    return Exchange("127.0.0.1", server_->port(),
                    "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: " + what + "\r\n\r\n");
  };
  const std::string open = accepting("application/openmetrics-text;version=1.0.0,*/*;q=0.1");
  EXPECT_THAT(open, HasSubstr("\r\nContent-Type: application/openmetrics-text; version=1.0.0; "
                              "charset=utf-8\r\n"));
  EXPECT_EQ(BodyOf(open), "# HELP a b\na 1\n# EOF\n");
  const std::string text = accepting("text/plain,application/openmetrics-text;q=0.5");
  EXPECT_THAT(text, HasSubstr("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  EXPECT_EQ(BodyOf(text), "# HELP a b\na 1\n");
}

TEST_F(Http, IsReadyAndNamesWhatIsToBeKnownAllTheSame) {
  EXPECT_EQ(BodyOf(Get("/ready")), "ready\n");
  reason_ = "orders: stalled: t/0/17: handling for 301 s";
  const std::string answer = Get("/ready");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_EQ(BodyOf(answer), "ready; orders: stalled: t/0/17: handling for 301 s\n");
}

TEST_F(Http, SaysWhyItIsNotReadyOrNotLive) {
  EXPECT_THAT(Get("/ready"), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(Get("/live"), StartsWith("HTTP/1.1 200 OK\r\n"));
  ready_ = false;
  reason_ = "orders: clock";
  const std::string answer = Get("/ready");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_EQ(BodyOf(answer), "not ready: orders: clock\n");
  EXPECT_THAT(Get("/live"), StartsWith("HTTP/1.1 200 OK\r\n"));
  live_ = false;
  EXPECT_THAT(Get("/live"), StartsWith("HTTP/1.1 503 "));
}

TEST_F(Http, AnswersHeadLikeGetWithoutTheBody) {
  const std::string answer = Ask(server_->port(), "HEAD", "/metrics");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 15\r\n"));
  EXPECT_EQ(BodyOf(answer), "");
}

TEST_F(Http, KnowsNoOtherPaths) {
  for (const char* path : {"/metric", "/metrics/", "/etc/passwd", "/../etc/passwd", "/%2e%2e/x"}) {
    EXPECT_THAT(Get(path), StartsWith("HTTP/1.1 404 Not Found\r\n")) << path;
  }
}

TEST_F(Http, AllowsNoOtherMethods) {
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH"}) {
    const std::string answer = Ask(server_->port(), method, "/metrics");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 405 Method Not Allowed\r\n")) << method;
    EXPECT_THAT(answer, HasSubstr("Allow: GET, HEAD\r\n")) << method;
  }
}

class HttpControl : public ::testing::Test {
 protected:
  void Start(consumer::ControlAccess access, const std::string& token = "") {
    Endpoints endpoints;
    endpoints.page = [] { return std::string("plain"); };
    endpoints.note = [this](locking::Severity, std::string_view, std::string_view text) {
      const std::lock_guard lock(mutex_);
      notes_.emplace_back(text);
    };
    endpoints.control = {.access = access,
                         .token = token,
                         .post = [](std::string_view path, std::string_view body) -> ControlAnswer {
                           if (path == "/none") return {404, "no such thing"};
                           return {200, fmt::format("{} {}", path, body)};
                         },
                         .page = [] { return std::string("buttons"); },
                         .page_token = "0123abcd"};
    endpoints.auth = auth_;
    auto server = HttpServer::Start("127.0.0.1:0", endpoints);
    ASSERT_TRUE(server) << server.error().Line();
    server_ = std::move(*server);
  }
  std::string Post(const std::string& path, const std::string& headers = "",
                   const std::string& body = "debug") {
    return Exchange(
        "127.0.0.1", server_->port(),
        fmt::format("POST {} HTTP/1.1\r\nHost: localhost:9464\r\nContent-Length: {}\r\n{}\r\n{}",
                    path, body.size(), headers, body));
  }
  std::string Page(const std::string& headers, const char* from = nullptr) {
    return BodyOf(
        Exchange("127.0.0.1", server_->port(), "GET / HTTP/1.1\r\n" + headers + "\r\n", from));
  }

  std::mutex mutex_;
  std::vector<std::string> notes_;  // guarded by mutex_
  consumer::PortAuth auth_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpControl, IsOffUnlessItIsAskedFor) {
  Start(consumer::ControlAccess::kOff);
  EXPECT_THAT(Post("/log/level"), StartsWith("HTTP/1.1 405 "));
}

TEST_F(HttpControl, OfThisMachineTakesNoProxyAndNoPageInABrowser) {
  Start(consumer::ControlAccess::kLoopback);
  const std::string answer = Post("/log/level");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(BodyOf(answer), "/log/level debug\n");
  EXPECT_THAT(Post("/none"), StartsWith("HTTP/1.1 404 "));
  for (const char* header :
       {"Origin: http://evil.example", "X-Forwarded-For: 10.0.0.1", "Forwarded: for=10.0.0.1",
        "X-Real-IP: 10.0.0.1", "Via: 1.1 proxy", "Sec-Fetch-Site: cross-site"}) {
    EXPECT_THAT(Post("/log/level", std::string(header) + "\r\n"), StartsWith("HTTP/1.1 403 "))
        << header;
  }
}

// Another site's page is of another Origin, and cannot read the token; nor can what was loaded from
// the worker before it was started again.
TEST_F(HttpControl, OfThisMachineTakesItsOwnPageAlone) {
  Start(consumer::ControlAccess::kLoopback);
  const std::string origin = "Origin: http://localhost:9464\r\n";
  const std::string token = "X-Fencepost-Page: 0123abcd\r\n";
  const std::string site = "Sec-Fetch-Site: same-origin\r\n";
  struct Row {
    std::string headers, status;
  };
  for (const Row& row : {Row{origin + token + site, "200"}, Row{origin + token, "200"},
                         Row{origin + token + site + "Referer: http://localhost:9464/\r\n", "200"},
                         Row{origin + site, "403"}, Row{token + site, "403"},
                         Row{origin + site + "X-Fencepost-Page: 0123abce\r\n", "403"},
                         Row{origin + site + "X-Fencepost-Page: \r\n", "403"},
                         Row{origin + token + "Sec-Fetch-Site: same-site\r\n", "403"},
                         Row{origin + token + "Sec-Fetch-Site: cross-site\r\n", "403"},
                         Row{origin + token + "Sec-Fetch-Site:\r\n", "403"},
                         Row{"Origin: https://localhost:9464\r\n" + token + site, "403"},
                         Row{"Origin: http://localhost:9465\r\n" + token + site, "403"},
                         Row{"Origin: http://127.0.0.1:9464\r\n" + token + site, "403"},
                         Row{"Origin: null\r\n" + token + site, "403"},
                         Row{origin + token + site + "X-Forwarded-For: 10.0.0.1\r\n", "403"}}) {
    EXPECT_EQ(StatusOf(Post("/x", row.headers)), row.status) << row.headers;
  }
  // A name that an attacker's page resolves to this machine.
  EXPECT_EQ(StatusOf(Exchange("127.0.0.1", server_->port(),
                              "POST /x HTTP/1.1\r\nHost: evil.example\r\n"
                              "Origin: http://evil.example\r\n" +
                                  token + site + "\r\n")),
            "403");
}

TEST_F(HttpControl, ShowsButtonsToThoseWhoMayPressThem) {
  const std::string host = "Host: localhost\r\n";
  Start(consumer::ControlAccess::kLoopback);
  EXPECT_EQ(Page(host), "buttons");
  EXPECT_EQ(Page(host, "127.0.0.2"), "plain");
  EXPECT_EQ(Page(host + "X-Forwarded-For: 10.0.0.1\r\n"), "plain");
  Start(consumer::ControlAccess::kToken, "s3cret");
  EXPECT_EQ(Page(host, "127.0.0.2"), "buttons");
  Start(consumer::ControlAccess::kOff);
  EXPECT_EQ(Page(host), "plain");
}

TEST_F(HttpControl, IsLoggedWithWhoHasDoneIt) {
  auth_ = {.username = "ops", .password = "a:b c"};
  Start(consumer::ControlAccess::kLoopback);
  const std::string basic = "Authorization: Basic b3BzOmE6YiBj\r\n";
  EXPECT_EQ(StatusOf(Post("/x", basic)), "200");
  EXPECT_EQ(StatusOf(Post("/y", basic + "Origin: http://localhost:9464\r\n"
                                        "X-Fencepost-Page: 0123abcd\r\n")),
            "200");
  EXPECT_EQ(StatusOf(Post("/none", basic)), "404");
  EXPECT_THAT(notes_, ::testing::ElementsAre("POST /x from 127.0.0.1, user ops",
                                             "POST /y from 127.0.0.1, user ops, by the page"));
}

// As a proxy hands it on that adds no header of its own: for another host, or from another of the
// machine's own addresses, as sidecars do.
TEST_F(HttpControl, OfThisMachineTakesNothingForAnotherHostOrFromAnotherAddress) {
  Start(consumer::ControlAccess::kLoopback);
  const auto post = [&](const std::string& host, const char* from) {
    return Exchange("127.0.0.1", server_->port(),
                    "POST /log/level HTTP/1.1\r\nHost: " + host + "\r\nContent-Length: 0\r\n\r\n",
                    from);
  };
  EXPECT_THAT(post("localhost", "127.0.0.1"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(post("fencepost.example", "127.0.0.1"), StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(post("localhost", "127.0.0.2"), StartsWith("HTTP/1.1 403 "));
}

TEST_F(HttpControl, WithATokenTakesThatTokenAlone) {
  Start(consumer::ControlAccess::kToken, "s3cret");
  EXPECT_THAT(Post("/log/level"), StartsWith("HTTP/1.1 403 "));
  for (const char* wrong : {"", "s3cre", "s3crets", "S3cret"}) {
    EXPECT_THAT(Post("/log/level", fmt::format("Authorization: Bearer {}\r\n", wrong)),
                StartsWith("HTTP/1.1 403 "))
        << wrong;
  }
  EXPECT_THAT(Post("/log/level", "Authorization: Bearer s3cret\r\nOrigin: http://x\r\n"),
              StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpControl, TakesNoLongBody) {
  Start(consumer::ControlAccess::kLoopback);
  EXPECT_THAT(Post("/log/level", "", std::string(1025, 'x')), StartsWith("HTTP/1.1 413 "));
  EXPECT_EQ(BodyOf(Post("/x", "", "")), "/x \n");
}

TEST_F(Http, SurvivesNonsenseAndExceptions) {
  EXPECT_THAT(Exchange("127.0.0.1", server_->port(), "nonsense\r\n\r\n"), Not(HasSubstr("200 OK")));
  throws_ = true;
  EXPECT_THAT(Get("/status"), StartsWith("HTTP/1.1 500 Internal Server Error\r\n"));
  EXPECT_THAT(Get("/live"), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(Http, RefusesATakenPortAsAValue) {
  const auto second = HttpServer::Start(server_->bound(), Endpoints{});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, "http_bind");
  EXPECT_EQ(second.error().where, server_->bound());
  EXPECT_THAT(second.error().Line(), HasSubstr("in use"));
  EXPECT_THAT(second.error().Line(), Not(HasSubstr("\n")));
  EXPECT_THAT(Get("/live"), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(Http, StopsSoonThoughAClientStaysConnected) {
  const int idle = Connect("127.0.0.1", server_->port());
  ASSERT_GE(idle, 0);
  const std::string half = "GET /metr";
  send(idle, half.data(), half.size(), MSG_NOSIGNAL);
  EXPECT_THAT(Get("/live"), StartsWith("HTTP/1.1 200 OK\r\n"));
  const auto from = std::chrono::steady_clock::now();
  server_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - from, 5s);
  close(idle);
}

TEST_F(Http, StopsAtOnceWhenNobodyIsConnected) {
  const auto from = std::chrono::steady_clock::now();
  server_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - from, 1500ms);
}

TEST_F(Http, AnswersSeveralClientsAtATime) {
  std::atomic<int> good{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&] {
      for (int k = 0; k < 20; ++k) good += Get("/ready").starts_with("HTTP/1.1 200 OK\r\n") ? 1 : 0;
    });
  }
  for (auto& client : clients) client.join();
  EXPECT_EQ(good, 160);
}

bool HasIpv6() {
  const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in6 own{.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
  const bool bound = bind(fd, reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0;
  close(fd);
  return bound;
}

TEST(HttpAddress, MayBeOfIpv6) {
  if (!HasIpv6()) GTEST_SKIP() << "this machine has no IPv6";
  Endpoints endpoints;
  endpoints.live = [] { return ProbeResult{true, ""}; };
  for (const char* address : {"[::1]:0", "[::]:0", ":0"}) {
    const auto server = HttpServer::Start(address, endpoints);
    ASSERT_TRUE(server) << server.error().Line();
    const std::string host = std::string(address) == "[::1]:0" ? "[::1]" : "[::]";
    EXPECT_EQ((*server)->bound(), host + ":" + std::to_string((*server)->port()));
    EXPECT_EQ(StatusOf(Exchange("::1", (*server)->port(), "GET /live HTTP/1.0\r\n\r\n")), "200");
    const std::string over_ipv4 = std::string(address) == "[::1]:0" ? "no connection" : "200";
    EXPECT_EQ(StatusOf(Ask((*server)->port(), "GET", "/live")), over_ipv4) << address;
  }
}

// A name may have several addresses; another process at one of them is no reason to take the next.
TEST(HttpAddress, OfANameIsTheOneThatWasTaken) {
  const auto first = HttpServer::Start("localhost:0", Endpoints{});
  ASSERT_TRUE(first) << first.error().Line();
  const std::string port = std::to_string((*first)->port());
  EXPECT_EQ((*first)->bound(), "127.0.0.1:" + port);
  const auto second = HttpServer::Start("localhost:" + port, Endpoints{});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, "http_bind");
}

// What comes over IPv4 is from this machine also where the port is one of IPv6.
TEST(HttpAddress, OfBothKindsKnowsThisMachineByBoth) {
  if (!HasIpv6()) GTEST_SKIP() << "this machine has no IPv6";
  Endpoints endpoints;
  endpoints.control = {.access = consumer::ControlAccess::kLoopback, .post = [](auto, auto) {
                         return ControlAnswer{200, "done"};
                       }};
  const auto server = HttpServer::Start(":0", endpoints);
  ASSERT_TRUE(server) << server.error().Line();
  const std::string post = "POST /x HTTP/1.1\r\nHost: localhost\r\n\r\n";
  for (const char* host : {"127.0.0.1", "::1"}) {
    EXPECT_EQ(StatusOf(Exchange(host, (*server)->port(), post)), "200") << host;
  }
}

// What a name that an attacker's page resolves to this machine would reach.
TEST(HttpAddress, OfLoopbackTakesRequestsForThisMachineOnly) {
  Endpoints endpoints;
  endpoints.live = [] { return ProbeResult{true, ""}; };
  for (const char* address : {"127.0.0.1:0", "localhost:0", "0.0.0.0:0"}) {
    const auto server = HttpServer::Start(address, endpoints);
    ASSERT_TRUE(server);
    const auto status = [&](const std::string& host) {
      return Exchange("127.0.0.1", (*server)->port(), "GET /live HTTP/1.1\r\n" + host + "\r\n")
          .substr(9, 3);
    };
    for (const char* own : {"Host: localhost\r\n", "Host: localhost:9464\r\n",
                            "Host: 127.0.0.1:9464\r\n", "Host: [::1]:9464\r\n"}) {
      EXPECT_EQ(status(own), "200") << own;
    }
    const std::string all = std::string(address) == "0.0.0.0:0" ? "200" : "403";
    for (const char* other :
         {"Host: evil.example\r\n", "Host: orders-fencepost:9464\r\n", "Host: 10.0.0.7:9464\r\n",
          "Host: localhost.evil.example\r\n", "Host: 127.evil.example\r\n"}) {
      EXPECT_EQ(status(other), all) << other;
    }
    EXPECT_THAT(Exchange("127.0.0.1", (*server)->port(), "GET /live HTTP/1.0\r\n\r\n"),
                HasSubstr("200 OK"))
        << "without a Host, as no browser asks";
  }
}

TEST(HttpAddress, MayBeANameOrAllAddresses) {
  Endpoints endpoints;
  endpoints.live = [] { return ProbeResult{true, ""}; };
  for (const char* address : {"localhost:0", ":0", "0.0.0.0:0"}) {
    const auto server = HttpServer::Start(address, endpoints);
    ASSERT_TRUE(server) << address << ": " << server.error().Line();
    EXPECT_THAT(Ask((*server)->port(), "GET", "/live"), StartsWith("HTTP/1.1 200 OK")) << address;
  }
}

TEST(HttpAddress, RefusesWhatIsNone) {
  for (const char* address :
       {"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:70000", "127.0.0.1:-1", "127.0.0.1:80s",
        "127.0.0.1:1,127.0.0.1:2", "a b:0", "[::1:0", "203.0.113.7:0", "no-such-host.invalid:0"}) {
    const auto server = HttpServer::Start(address, Endpoints{});
    ASSERT_FALSE(server) << address;
    EXPECT_THAT(server.error().code, AnyOf("http_bind", "http_bad_address")) << address;
    EXPECT_THAT(server.error().Line(), Not(HasSubstr("no reason")));
  }
}

}  // namespace
}  // namespace fencepost::metrics
