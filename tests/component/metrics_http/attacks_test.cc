// What a hostile client tries on the port, and that those who behave are answered meanwhile.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "metrics/http/http_server.h"
#include "tests/component/metrics_http/raw_client.h"
#include "tests/support/process.h"

namespace fencepost::metrics {
namespace {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using Clock = std::chrono::steady_clock;
using fencepost::testing::WaitUntil;

constexpr std::size_t kAttackers = 10'000;

class Attacked : public ::testing::Test {
 protected:
  void Open(HttpLimits limits, std::size_t page = 1000) {
    Endpoints endpoints;
    endpoints.live = [] { return ProbeResult{true, ""}; };
    endpoints.metrics = [this, page] {
      ++pages_;
      if (released_.valid()) released_.wait();
      return std::string(page, 'm');
    };
    endpoints.control = {.access = consumer::ControlAccess::kLoopback,
                         .post = [this](auto, std::string_view body) {
                           ++posts_;
                           return ControlAnswer{200, std::string(body)};
                         }};
    auto server = HttpServer::Start("127.0.0.1:0", endpoints, limits);
    ASSERT_TRUE(server) << server.error().Line();
    server_ = std::move(*server);
  }
  ~Attacked() override {
    for (const int fd : clients_) close(fd);
  }
  int Connected(int receive_buffer = 0) {
    clients_.push_back(Connect("127.0.0.1", server_->port(), receive_buffer));
    EXPECT_GE(clients_.back(), 0);
    return clients_.back();
  }
  std::string Sent(const std::string& request) const {
    return Exchange("127.0.0.1", server_->port(), request);
  }
  std::string Live() const { return StatusOf(Ask(server_->port(), "GET", "/live")); }
  // How many connections the server holds: their ends in this process.
  [[nodiscard]] std::size_t Held() const {
    std::size_t held = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      const int fd = std::atoi(entry.path().filename().c_str());
      sockaddr_in own{}, peer{};
      socklen_t size = sizeof own, peer_size = sizeof peer;
      if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
          getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0 &&
          own.sin_family == AF_INET && ntohs(own.sin_port) == server_->port()) {
        ++held;
      }
    }
    return held;
  }
  [[nodiscard]] static bool HasAnswer(int fd) {
    char one = 0;
    return recv(fd, &one, 1, MSG_PEEK | MSG_DONTWAIT) != -1;
  }

  std::unique_ptr<HttpServer> server_;
  std::vector<int> clients_;
  std::atomic<int> posts_{0}, pages_{0};
  std::shared_future<void> released_;  // pages wait for it
};

// Slow-loris: a byte now and then, so that the line never breaks off.
TEST_F(Attacked, ByAByteAtATimeEndsTheRequestAfterItsTime) {
  Open({.request = 300ms});
  for (const std::string begun : {"G", "GET /live HTTP/1.1\r\nHost: localhost\r\nX: ",
                                  "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\n"
                                  "\r\n"}) {
    const int fd = Connected();
    const auto from = Clock::now();
    Say(fd, begun);
    ASSERT_TRUE(WaitUntil(10s, [&] {
      Say(fd, "a");
      return HasAnswer(fd);
    }));
    EXPECT_GE(Clock::now() - from, 300ms);
    EXPECT_EQ(StatusOf(Hear(fd)), "408") << begun;
  }
  EXPECT_EQ(posts_, 0);
  EXPECT_TRUE(WaitUntil(10s, [&] { return Held() == 0; }));
}

TEST_F(Attacked, BySilenceEndsTheConnection) {
  Open({.request = 300ms});
  EXPECT_EQ(Hear(Connected()), "");
  EXPECT_TRUE(WaitUntil(10s, [&] { return Held() == 0; }));
}

TEST_F(Attacked, ByAReaderWhoTakesLittleEndsTheAnswerAfterItsTime) {
  Open({.answer = 500ms}, 64UL << 20);
  const int slow = Connected(4096);
  const auto from = Clock::now();
  Say(slow, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(WaitUntil(30s, [&] {
    char some[64];
    (void)recv(slow, some, sizeof some, MSG_DONTWAIT);
    return Clock::now() - from > 400ms && Held() == 0;
  }));
  EXPECT_GE(Clock::now() - from, 500ms);
}

// The oldest makes room, also where all wait for us and none has to say more.
TEST_F(Attacked, ByReadersWhoTakeNothingStillAnswersProbes) {
  Open({.connections = 4, .answer = 60s}, 8UL << 20);
  for (int i = 0; i < 12; ++i) {
    Say(Connected(4096), "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_EQ(Live(), "200");
    EXPECT_LE(Held(), 5U);
  }
  const auto from = Clock::now();
  server_.reset();
  EXPECT_LT(Clock::now() - from, 60s) << "nor do they hold up its end";
}

TEST_F(Attacked, ByFiveThousandWhoAskForSlowPagesAndLeaveStillAnswersProbes) {
  std::promise<void> release;
  released_ = release.get_future().share();
  Open({});
  for (int i = 0; i < 5'000; ++i) {
    const int fd = Connect("127.0.0.1", server_->port());
    ASSERT_GE(fd, 0);
    Say(fd, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    close(fd);
  }
  EXPECT_EQ(Live(), "200");
  const std::string refused = Ask(server_->port(), "GET", "/status");
  EXPECT_EQ(StatusOf(refused), "503");
  EXPECT_EQ(BodyOf(refused), "too many requests at a time\n");
  EXPECT_EQ(BodyOf(Ask(server_->port(), "HEAD", "/status")), "");
  release.set_value();
  server_.reset();
  EXPECT_LT(pages_, 500) << "64 at a time, and some as they were released";
}

// 8 MiB each: more than four answers are above what all may have.
TEST_F(Attacked, ByReadersWhoTakeNothingKeepsABoundedSizeOfAnswers) {
  Open({.answer = 60s}, 8UL << 20);
  for (int i = 0; i < 12; ++i) {
    const int fd = Connected(4096);
    Say(fd, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    ASSERT_TRUE(WaitUntil(10s, [&] { return HasAnswer(fd); })) << i;
    EXPECT_LE(Held(), 4U);
  }
  EXPECT_EQ(Live(), "200");
}

// Both ends are in this process: 10,000 descriptors are the clients'.
TEST_F(Attacked, ByTenThousandConnectionsStillAnswersProbes) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit more = before;
  more.rlim_cur = std::min<rlim_t>(before.rlim_max, kAttackers + 1000);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &more), 0);
  ASSERT_GE(more.rlim_cur, kAttackers + 1000) << "ulimit -Hn is too low for this test";
  Open({.request = 60s});
  const std::string_view pieces[] = {"", "G", "GET /live HTTP/1.1\r\nHost: localhost\r\n"};
  for (std::size_t i = 0; i < kAttackers; ++i) {
    Say(Connected(), pieces[i % std::size(pieces)]);
    if (i % 500 == 0) {
      EXPECT_EQ(Live(), "200") << "after " << i;
    }
  }
  EXPECT_EQ(Live(), "200");
  EXPECT_LE(Held(), HttpLimits{}.connections);
  for (const int fd : clients_) close(fd);
  clients_.clear();
  EXPECT_TRUE(WaitUntil(10s, [&] { return Held() == 0; }));
  setrlimit(RLIMIT_NOFILE, &before);
}

// Where the whole process has none left: one of the port's own gives its place.
TEST_F(Attacked, WithoutADescriptorLeftStillAnswersProbes) {
  Open({.request = 60s});
  const int first = Connected();
  ASSERT_TRUE(WaitUntil(10s, [&] { return Held() == 1; }));
  const int probe = Connected();
  ASSERT_TRUE(WaitUntil(10s, [&] { return Held() == 2; }));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  // A socket of ours, and none for the server's end of it.
  const int late = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(late) + 1;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  sockaddr_in at{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  at.sin_port = htons(static_cast<std::uint16_t>(server_->port()));
  const bool connected = connect(late, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0;
  Say(late, "GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const std::string answer = Hear(late);
  setrlimit(RLIMIT_NOFILE, &before);
  close(late);
  EXPECT_TRUE(connected);
  EXPECT_EQ(StatusOf(answer), "200");
  EXPECT_EQ(Hear(first), "") << "the oldest has made room";
  (void)probe;
}

std::string ManyHeaders(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("X-{}: v\r\n", i);
  return text;
}

TEST_F(Attacked, ByHugeRequestsRefusesThemEarly) {
  Open({});
  const std::string host = "Host: localhost\r\n", get = "GET /live HTTP/1.1\r\n" + host;
  const std::string post = "POST /x HTTP/1.1\r\n" + host;
  struct Row {
    std::string what, request, status;
  };
  for (const Row& row :
       {Row{"a long header", get + "X: " + std::string(8'200, 'x') + "\r\n\r\n", "431"},
        Row{"a header of 16 MiB", get + "X: " + std::string(16UL << 20, 'x') + "\r\n\r\n", "431"},
        Row{"a line without an end", std::string(1UL << 20, 'x'), "431"},
        Row{"many headers", get + ManyHeaders(10'000) + "\r\n", "431"},
        Row{"as many as fit", get + ManyHeaders(700) + "\r\n", "200"},
        Row{"a long path", "GET /" + std::string(9'000, 'p') + " HTTP/1.1\r\n" + host + "\r\n",
            "431"},
        Row{"a path that fits", "GET /" + std::string(8'000, 'p') + " HTTP/1.1\r\n" + host + "\r\n",
            "404"},
        Row{"a long query",
            "GET /live?" + std::string(8'000, '&') + " HTTP/1.1\r\n" + host + "\r\n", "200"},
        Row{"a long body", post + "Content-Length: 1025\r\n\r\n" + std::string(1025, 'b'), "413"},
        Row{"a body of 2^64", post + "Content-Length: 18446744073709551617\r\n\r\n", "413"},
        Row{"a body of -1", post + "Content-Length: -1\r\n\r\n", "400"},
        Row{"two lengths", post + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nbb", "400"},
        Row{"pieces without an end", post + "Transfer-Encoding: chunked\r\n\r\nffffffff\r\n",
            "411"},
        Row{"a body that grows when it is unpacked",
            post + "Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nbomb", "200"}}) {
    EXPECT_EQ(StatusOf(Sent(row.request)), row.status) << row.what;
  }
  EXPECT_EQ(posts_, 1);
  EXPECT_EQ(Live(), "200");
}

// A request begun behind another's end is nobody's: the answer says that the connection ends.
TEST_F(Attacked, ByRequestsInOneGoAnswersTheFirstAlone) {
  Open({});
  const std::string get = "GET /live HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n";
  const std::string post = "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nok";
  std::string many = post;
  for (int i = 0; i < 1'000; ++i) many += i % 2 == 0 ? get : post;
  const std::string answer = Sent(many);
  EXPECT_EQ(StatusOf(answer), "200");
  EXPECT_THAT(answer, HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_EQ(BodyOf(answer), "ok\n");
  EXPECT_EQ(posts_, 1);
}

TEST_F(Attacked, ByHeadersThatAskForMoreWorkDoesNone) {
  Open({}, 100'000);
  std::string ranges = "0-0";
  for (int i = 0; i < 1'500; ++i) ranges += ",0-0";
  for (const std::string& header :
       {"Range: bytes=" + ranges, std::string("Range: bytes=1-2"), std::string("Range: nonsense"),
        std::string("Accept-Encoding: br, gzip"), std::string("Expect: 100-continue"),
        std::string("Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings")}) {
    const std::string answer =
        Sent("GET /metrics HTTP/1.1\r\nHost: localhost\r\n" + header + "\r\n\r\n");
    EXPECT_EQ(StatusOf(answer), "200") << header.substr(0, 40);
    EXPECT_EQ(BodyOf(answer), std::string(100'000, 'm')) << header.substr(0, 40);
  }
}

// Where a proxy before the port might read another request than the port does.
TEST_F(Attacked, ByRequestsOfTwoMeaningsRefusesThem) {
  Open({});
  const std::string host = "Host: localhost\r\n";
  for (const std::string& request :
       {std::string("GET /live HTTP/1.1\r\n\r\n"),
        "GET /live HTTP/1.1\r\n" + host + "Host: evil.example\r\n\r\n",
        std::string("GET /live HTTP/1.1\r\nHost: local host\r\n\r\n"),
        std::string("GET /live HTTP/1.1\r\nHost: localhost/evil\r\n\r\n"),
        std::string("GET /live HTTP/1.1\r\nHost: evil@localhost\r\n\r\n"),
        "GET /live HTTP/1.1\r\n" + host + "Folded: a\r\n b\r\n\r\n",
        "GET /live HTTP/1.1\r\n" + host + "Blank : a\r\n\r\n",
        "GET /live HTTP/1.1\r\n" + host + ": a\r\n\r\n",
        "GET /live HTTP/1.1\r\n" + host + "Nothing\r\n\r\n",
        "GET /live HTTP/1.1\r\n" + host + "X: a\nY: b\r\n\r\n",
        "GET /live HTTP/1.1\r\n" + host + std::string("X: \0\r\n\r\n", 8),
        "GET /live HTTP/1.1 \r\n" + host + "\r\n", "GET  /live HTTP/1.1\r\n" + host + "\r\n",
        "GET /live HTTP/2.0\r\n" + host + "\r\n", "GET /live\r\n" + host + "\r\n",
        "FROB /live HTTP/1.1\r\n" + host + "\r\n", std::string("\r\n\r\n"),
        std::string("\x16\x03\x01\x02\x01\x01\r\n\r\n")}) {
    EXPECT_EQ(StatusOf(Sent(request)), "400") << request;
  }
  EXPECT_EQ(StatusOf(Sent("GET /%6Cive HTTP/1.1\r\nhOsT:localhost\r\n\r\n")), "200");
}

}  // namespace
}  // namespace fencepost::metrics
