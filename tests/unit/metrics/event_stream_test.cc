// /events: places are given back however a listener leaves, and nobody is starved by listeners.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "metrics/http/http_server.h"
#include "tests/support/process.h"

namespace fencepost::metrics {
namespace {

using namespace std::chrono_literals;
using fencepost::testing::WaitUntil;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A client's connection; reads give up after ten seconds.
class Client {
 public:
  Client(int port, const std::string& path, int receive_buffer = 0)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval limit{10, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (receive_buffer > 0) {
      setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(static_cast<std::uint16_t>(port));
    EXPECT_EQ(connect(fd_, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    if (!path.empty()) Ask(path);  // else a silent one
  }
  ~Client() {
    if (fd_ >= 0) close(fd_);
  }
  Client(Client&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Client& operator=(Client&&) = delete;

  void Ask(const std::string& path) const {
    const std::string request = "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n";
    send(fd_, request.data(), request.size(), MSG_NOSIGNAL);
  }
  // Until `text` has come so often, or the server closes, or nothing comes.
  std::string ReadUntil(const std::string& text, int times = 1) {
    std::string got;
    std::vector<char> buffer(64UL << 10);
    std::size_t from = 0;  // what lies before is counted
    for (int count = 0; count < times;) {
      const ssize_t n = recv(fd_, buffer.data(), buffer.size(), 0);
      if (n <= 0) break;
      got.append(buffer.data(), static_cast<std::size_t>(n));
      for (auto at = got.find(text, from); at != got.npos; at = got.find(text, from)) {
        ++count;
        from = at + text.size();
      }
      from = std::max(from, got.size() - std::min(got.size(), text.size() - 1));
    }
    return got;
  }
  ssize_t ReadSome(std::size_t most) {
    std::vector<char> buffer(most);
    return recv(fd_, buffer.data(), buffer.size(), 0);
  }
  std::string ReadToTheEnd() { return ReadUntil("never said"); }
  // Leaves by a reset (RST) instead of a FIN.
  void Reset() {
    const linger none{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  }
  static int Count(const std::string& in, const std::string& text) {
    int count = 0;
    for (auto at = in.find(text); at != in.npos; at = in.find(text, at + 1)) ++count;
    return count;
  }

 private:
  int fd_;
};

class EventStreams : public ::testing::Test {
 protected:
  void Open(HttpLimits limits = {}, std::size_t size = 4) {
    Endpoints endpoints;
    endpoints.live = [] { return ProbeResult{true, ""}; };
    endpoints.metrics = [this] { return std::string(metrics_size_, 'm'); };
    endpoints.event = [this, size] {
      ++made_;
      return "data: \"" + std::string(size, 'x') + "\"\n\n";
    };
    auto server = HttpServer::Start("127.0.0.1:0", endpoints, limits);
    ASSERT_TRUE(server) << server.error().Line();
    server_ = std::move(*server);
  }
  Client Listen(int receive_buffer = 0) { return {server_->port(), "/events", receive_buffer}; }
  std::string Get(const std::string& path) { return Client(server_->port(), path).ReadToTheEnd(); }
  // The connections that the server has accepted: their ends in this process.
  [[nodiscard]] std::vector<int> Accepted() const {
    std::vector<int> accepted;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      const int fd = std::atoi(entry.path().filename().c_str());
      sockaddr_in own{}, peer{};
      socklen_t size = sizeof own, peer_size = sizeof peer;
      if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
          getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0 &&
          own.sin_family == AF_INET && ntohs(own.sin_port) == server_->port()) {
        accepted.push_back(fd);
      }
    }
    return accepted;
  }
  // A stream of its own, not the one event for which there is no place: a second one comes.
  bool Served() { return Client::Count(Listen().ReadUntil("data: ", 2), "data: ") == 2; }

  std::atomic<int> made_{0};
  std::atomic<std::size_t> metrics_size_{10};
  std::unique_ptr<HttpServer> server_;
};

TEST_F(EventStreams, ComeWhileSomebodyListens) {
  Open();
  const std::string got = Listen().ReadUntil("data: ", 2);
  EXPECT_THAT(got, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(got, HasSubstr("Content-Type: text/event-stream\r\n"));
  EXPECT_THAT(got, HasSubstr("data: \"xxxx\"\n\ndata: "));
}

TEST_F(EventStreams, OfAListenerTooManyAreOneAndAWordWhenToAskAgain) {
  Open();
  std::vector<Client> listeners;
  for (int i = 0; i < HttpServer::kMaxStreams; ++i) {
    listeners.push_back(Listen());
    EXPECT_THAT(listeners.back().ReadUntil("data: "), HasSubstr("200 OK"));
  }
  const std::string surplus = Listen().ReadToTheEnd();
  EXPECT_THAT(surplus, HasSubstr("retry: 3000\n\ndata: "));
  EXPECT_EQ(Client::Count(surplus, "data: "), 1);
  EXPECT_THAT(Get("/live"), StartsWith("HTTP/1.1 200 OK"));
  const auto from = std::chrono::steady_clock::now();
  server_.reset();  // does not wait for them
  EXPECT_LT(std::chrono::steady_clock::now() - from, 5s);
}

TEST_F(EventStreams, TakeNoNoticeOfHowManyHaveComeAndLeft) {
  // Noticed at once, and by no write: none comes in this time.
  Open({.between_events = 60s});
  for (int round = 0; round < 4; ++round) {
    std::vector<Client> listeners;
    while (listeners.size() < HttpServer::kMaxStreams) {
      ASSERT_TRUE(WaitUntil(10s, [&] {
        Client listener = Listen();
        // One too many is told another time.
        if (Client::Count(listener.ReadUntil("data: "), "retry: 2000\n") != 1) return false;
        listeners.push_back(std::move(listener));
        return true;
      })) << round;
    }
    for (std::size_t i = 0; i < listeners.size(); i += 2) listeners[i].Reset();
  }
}

TEST_F(EventStreams, LeaveNoPlaceToAListenerThatNeverReads) {
  Open({.io_timeout = 300ms}, 64UL << 10);
  std::vector<Client> listeners;
  for (int i = 0; i < HttpServer::kMaxStreams; ++i) listeners.push_back(Listen(4096));
  // Nobody of them has left.
  EXPECT_TRUE(WaitUntil(30s, [&] { return Served(); }));
}

TEST_F(EventStreams, LargerThanAllBuffersLeaveNoPlaceEither) {
  Open({.io_timeout = 2s}, 8UL << 20);
  std::vector<Client> listeners;
  for (int i = 0; i < HttpServer::kMaxStreams; ++i) listeners.push_back(Listen(4096));
  EXPECT_TRUE(WaitUntil(30s, [&] { return Served(); }));
}

TEST_F(EventStreams, AreNotMadeForAListenerThatHasNotTakenTheLastOne) {
  Open({.io_timeout = 60s}, 1UL << 20);
  Client listener = Listen(4096);
  EXPECT_TRUE(WaitUntil(10s, [&] { return made_ == 1; }));
  EXPECT_EQ(Client::Count(listener.ReadUntil("data: "), "data: "), 1);
  EXPECT_TRUE(Served());  // meanwhile a second and more has passed
  EXPECT_EQ(made_, 3);
}

TEST_F(EventStreams, EndAfterTheLifeOfAStream) {
  Open({.stream_life = 1ms});
  const std::string got = Listen().ReadToTheEnd();
  EXPECT_THAT(got, HasSubstr("retry: 2000\n\ndata: "));
  EXPECT_EQ(Client::Count(got, "data: "), 1);
}

TEST_F(EventStreams, AreNoneIfTheyCannotBeMade) {
  Endpoints endpoints;
  endpoints.event = []() -> std::string { throw std::runtime_error("boom"); };
  endpoints.live = [] { return ProbeResult{true, ""}; };
  auto server = HttpServer::Start("127.0.0.1:0", endpoints);
  ASSERT_TRUE(server);
  for (int i = 0; i < 2 * HttpServer::kMaxStreams; ++i) {
    EXPECT_THAT(Client((*server)->port(), "/events").ReadToTheEnd(), Not(HasSubstr("data")));
  }
  EXPECT_THAT(Client((*server)->port(), "/live").ReadToTheEnd(), HasSubstr("200 OK"));
}

TEST_F(EventStreams, AreGivenUpWhateverIsThrownAmidThem) {
  Endpoints endpoints;
  endpoints.event = []() -> std::string { throw 7; };
  auto server = HttpServer::Start("127.0.0.1:0", endpoints);
  ASSERT_TRUE(server);
  EXPECT_EQ(Client((*server)->port(), "/events").ReadToTheEnd(), "");
}

// A client that takes a little now and then holds a thread for four patiences, and no longer.
TEST_F(EventStreams, AndOtherAnswersTrickleForNoLongerThanTheirTime) {
  Open({.io_timeout = 250ms});
  metrics_size_ = 64UL << 20;
  Client trickling(server_->port(), "", 4096);
  ASSERT_TRUE(WaitUntil(10s, [&] { return Accepted().size() == 1; }));
  // So that what the client takes soon makes room for a few bytes more.
  const int small = 4096;
  ASSERT_EQ(setsockopt(Accepted().at(0), SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
  trickling.Ask("/metrics");
  const auto from = std::chrono::steady_clock::now();
  EXPECT_TRUE(WaitUntil(10s, [&] {
    (void)trickling.ReadSome(64);
    return Accepted().empty();
  }));
  EXPECT_GE(std::chrono::steady_clock::now() - from, 500ms);
}

// Browsers open connections ahead of need; a scraper may read slowly.
TEST_F(EventStreams, AndSilentOrSlowClientsDoNotStarveProbes) {
  Open({.io_timeout = 60s});
  metrics_size_ = 8UL << 20;
  std::vector<Client> clients;
  for (int i = 0; i < HttpServer::kMaxStreams; ++i) {
    clients.push_back(Listen());
    EXPECT_THAT(clients.back().ReadUntil("data: "), HasSubstr("200 OK"));
  }
  for (int i = 0; i < 2; ++i) clients.emplace_back(server_->port(), "/metrics", 4096);
  for (int i = 0; i < 3; ++i) clients.emplace_back(server_->port(), "");
  // They come before the probe.
  ASSERT_TRUE(WaitUntil(10s, [&] { return Accepted().size() == clients.size(); }));
  EXPECT_THAT(Get("/live"), StartsWith("HTTP/1.1 200 OK"));
}

}  // namespace
}  // namespace fencepost::metrics
