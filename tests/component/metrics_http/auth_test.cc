// Who may ask the port: observe.auth.
#include <mutex>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "metrics/http/http_server.h"
#include "tests/component/metrics_http/raw_client.h"
#include "tests/support/process.h"

namespace fencepost::metrics {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class PortAuth : public ::testing::Test {
 protected:
  void Start(consumer::PortAuth auth, Control control = {}) {
    Endpoints endpoints;
    endpoints.metrics = [] { return std::string("a 1\n"); };
    endpoints.live = [] { return ProbeResult{true, ""}; };
    endpoints.ready = [] { return ProbeResult{true, ""}; };
    endpoints.status = endpoints.page = endpoints.fragment = endpoints.metrics;
    endpoints.auth = std::move(auth);
    endpoints.control = std::move(control);
    endpoints.note = [this](locking::Severity, std::string_view event, std::string_view text) {
      const std::lock_guard lock(mutex_);
      notes_.push_back(fmt::format("{}: {}", event, text));
    };
    auto server = HttpServer::Start("127.0.0.1:0", endpoints);
    ASSERT_TRUE(server) << server.error().Line();
    server_ = std::move(*server);
  }
  // `authorization`: with its end of line; empty: none.
  std::string Asked(const std::string& path, const std::string& authorization,
                    const std::string& method = "GET") {
    return Ask(server_->port(), method, path, "Host: localhost\r\n" + authorization);
  }

  std::mutex mutex_;
  std::vector<std::string> notes_;  // guarded by mutex_
  std::unique_ptr<HttpServer> server_;
};

TEST_F(PortAuth, ByATokenTakesThatTokenAlone) {
  Start({.bearer = "s3%63ret"});
  struct Row {
    const char *authorization, *status;
  };
  for (const Row& row :
       {Row{"", "401"}, Row{"Authorization: Bearer s3%63ret\r\n", "200"},
        Row{"authorization:bearer   s3%63ret\r\n", "200"},
        Row{"Authorization: Bearer s3cret\r\n", "401"},
        Row{"Authorization: Bearer s3%63re\r\n", "401"},
        Row{"Authorization: Bearer s3%63rets\r\n", "401"},
        Row{"Authorization: Bearer S3%63RET\r\n", "401"}, Row{"Authorization: Bearer \r\n", "401"},
        Row{"Authorization: Bearers3%63ret\r\n", "401"}, Row{"Authorization: s3%63ret\r\n", "401"},
        Row{"Authorization: Basic czMlNjNyZXQ=\r\n", "401"},
        Row{"X-Authorization: Bearer s3%63ret\r\n", "401"}}) {
    for (const char* path : {"/metrics", "/status", "/", "/fragment", "/live", "/none"}) {
      const std::string answer = Asked(path, row.authorization);
      const bool none = std::string(path) == "/none" && std::string(row.status) == "200";
      EXPECT_EQ(StatusOf(answer), none ? "404" : row.status) << row.authorization << path;
      if (std::string(row.status) != "401") continue;
      EXPECT_THAT(answer, AllOf(HasSubstr("\r\nWWW-Authenticate: Bearer realm=\"fencepost\"\r\n"),
                                Not(HasSubstr("Basic"))));
      EXPECT_EQ(BodyOf(answer), "the request needs the credentials of observe.auth\n");
    }
  }
}

TEST_F(PortAuth, ByNameAndPasswordTakesThemAlone) {
  Start({.username = "ops", .password = "a:b c"});  // b3BzOmE6YiBj
  struct Row {
    const char *authorization, *status;
  };
  for (const Row& row : {Row{"", "401"}, Row{"Authorization: Basic b3BzOmE6YiBj\r\n", "200"},
                         Row{"Authorization: BASIC b3BzOmE6YiBj\r\n", "200"},
                         Row{"Authorization: Basic b3BzOmE6YiB\r\n", "401"},
                         Row{"Authorization: Basic b3BzOg==\r\n", "401"},
                         Row{"Authorization: Basic ops:a:b c\r\n", "401"},
                         Row{"Authorization: Bearer b3BzOmE6YiBj\r\n", "401"}}) {
    const std::string answer = Asked("/metrics", row.authorization);
    EXPECT_EQ(StatusOf(answer), row.status) << row.authorization;
    if (std::string(row.status) != "401") continue;
    EXPECT_THAT(answer,
                AllOf(HasSubstr("\r\nWWW-Authenticate: Basic realm=\"fencepost\", charset="),
                      Not(HasSubstr("Bearer"))));
  }
}

TEST_F(PortAuth, OfBothKindsTakesEither) {
  Start({.bearer = "token", .username = "ops", .password = ""});
  EXPECT_EQ(StatusOf(Asked("/metrics", "Authorization: Bearer token\r\n")), "200");
  EXPECT_EQ(StatusOf(Asked("/metrics", "Authorization: Basic b3BzOg==\r\n")), "200");
  EXPECT_THAT(Asked("/metrics", ""),
              AllOf(HasSubstr("WWW-Authenticate: Bearer"), HasSubstr("WWW-Authenticate: Basic")));
}

TEST_F(PortAuth, LeavesOpenWhatIsNamed) {
  Start({.bearer = "token", .open = {"live"}},
        {.access = consumer::ControlAccess::kLoopback, .post = [](auto, auto) {
           return ControlAnswer{200, "done"};
         }});
  EXPECT_EQ(StatusOf(Asked("/live", "")), "200");
  EXPECT_EQ(StatusOf(Asked("/live?a=b", "", "HEAD")), "200");
  EXPECT_EQ(StatusOf(Asked("/live", "Authorization: Bearer wrong\r\n")), "200");
  for (const char* path : {"/ready", "/live/", "/live/../metrics", "/live%2f", "/", "//live"}) {
    EXPECT_EQ(StatusOf(Asked(path, "")), "401") << path;
  }
  EXPECT_EQ(StatusOf(Asked("/live", "", "POST")), "401");
}

// The token for control is the better one.
TEST_F(PortAuth, StandsBesideTheTokenForControl) {
  Start({.bearer = "read"},
        {.access = consumer::ControlAccess::kToken, .token = "change", .post = [](auto, auto) {
           return ControlAnswer{200, "done"};
         }});
  EXPECT_EQ(StatusOf(Asked("/x", "Authorization: Bearer change\r\n", "POST")), "200");
  EXPECT_THAT(notes_, ElementsAre("http_control: POST /x from 127.0.0.1"));
  EXPECT_EQ(StatusOf(Asked("/x", "Authorization: Bearer read\r\n", "POST")), "403");
  EXPECT_EQ(notes_.back(),
            "http_wrong_credentials: wrong credentials for the HTTP port from 127.0.0.1");
  EXPECT_EQ(StatusOf(Asked("/metrics", "Authorization: Bearer change\r\n")), "401");
}

TEST_F(PortAuth, AlsoGuardsControlFromThisMachine) {
  Start({.bearer = "token"}, {.access = consumer::ControlAccess::kLoopback, .post = [](auto, auto) {
                                return ControlAnswer{200, "done"};
                              }});
  EXPECT_EQ(StatusOf(Asked("/x", "", "POST")), "401");
  EXPECT_EQ(StatusOf(Asked("/x", "Authorization: Bearer token\r\n", "POST")), "200");
}

TEST_F(PortAuth, ReadsSecretsInFilesAtEachRequest) {
  const testing::TempDir folder;
  const auto file = [&](const char* name) { return Secret::OfFile(folder.File(name)); };
  Start(
      {.bearer = file("bearer"), .username = "ops", .password = file("password")},
      {.access = consumer::ControlAccess::kToken, .token = file("control"), .post = [](auto, auto) {
         return ControlAnswer{200, "done"};
       }});
  const auto asked = [&](const std::string& authorization, const char* method = "GET") {
    return StatusOf(Asked("/x", "Authorization: " + authorization + "\r\n", method));
  };
  EXPECT_EQ(asked("Bearer "), "401");
  EXPECT_EQ(asked("Basic b3BzOg=="), "401");
  EXPECT_EQ(asked("Bearer x", "POST"), "403");
  EXPECT_THAT(notes_, ::testing::Contains("secret_not_read: observe.auth.bearer: the file " +
                                          folder.File("bearer") + ": No such file or directory"));
  for (const char* secret : {"one", "two"}) {
    for (const char* name : {"bearer", "password", "control"}) (void)folder.Write(name, secret);
    for (const std::string said : {"one", "two"}) {
      const bool good = said == secret;
      EXPECT_EQ(asked("Bearer " + said), good ? "404" : "401");
      EXPECT_EQ(asked("Bearer " + said, "POST"), good ? "200" : "403");
    }
    EXPECT_EQ(asked("Basic b3BzOm9uZQ=="), std::string(secret) == "one" ? "404" : "401");
  }
}

// Browsers ask once without; who tries one is worth a line, but for the secret.
TEST_F(PortAuth, NotesWrongCredentialsAndNotMissingOnes) {
  Start({.bearer = "token"});
  (void)Asked("/metrics", "");
  (void)Asked("/metrics", "Authorization: Bearer token\r\n");
  EXPECT_THAT(notes_, IsEmpty());
  (void)Asked("/metrics", "Authorization: Bearer guess\r\n");
  EXPECT_THAT(notes_, ElementsAre("http_wrong_credentials: wrong credentials for the HTTP port "
                                  "from 127.0.0.1"));
}

}  // namespace
}  // namespace fencepost::metrics
