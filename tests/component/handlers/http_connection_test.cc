// The connections of the http handler: kept ones that have ended, and what goes over them.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <stdexcept>

#include "tests/component/handlers/runner_fixture.h"
#include "tests/support/stub_server.h"

namespace fencepost::consumer {
namespace {

using fencepost::testing::StubServer;
using fencepost::testing::WaitUntil;
using ::testing::Contains;
using ::testing::Key;
using ::testing::Not;
using Answer = StubServer::Answer;

class HttpConnection : public RunnerFixture {
 protected:
  void Serve(StubServer::Handle handle) {
    server_ = std::make_unique<StubServer>(std::move(handle));
    Start({.kind = HttpHandlerOptions{.url = server_->Url("/charge")}});
  }
  // The test has both ends of each connection: the client's, or what listens.
  int Socket(bool listens) {
    const std::string url = server_->Url("");
    const int port = std::stoi(url.substr(url.rfind(':') + 1));
    for (int fd = 0; fd < 1024; ++fd) {
      sockaddr_in name{};
      socklen_t size = sizeof(name);
      auto* const generic = reinterpret_cast<sockaddr*>(&name);
      int accepts = 0;
      socklen_t whole = sizeof(accepts);
      if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &whole) != 0) continue;
      if ((accepts != 0) != listens) continue;
      if ((listens ? getsockname : getpeername)(fd, generic, &size) != 0) continue;
      if (name.sin_family == AF_INET && ntohs(name.sin_port) == port) return fd;
    }
    throw std::runtime_error("no such socket");
  }
  // The kept connection has ended, and the server, which is busy, leaves it half open: only what is
  // sent shows it.
  void ServeAndEnd() {
    Serve([this](const StubServer::Request& request) {
      if (request.line.starts_with("HOLD")) server_->Hold();
      return Answer{.body = request.body};
    });
    EXPECT_EQ(ValueOf("1"), "1");
    const int client = Socket(false);
    const std::string_view hold = "HOLD / HTTP/1.1\r\n\r\n";
    ASSERT_EQ(send(client, hold.data(), hold.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(hold.size()));
    ASSERT_TRUE(WaitUntil(10s, [&] { return server_->requests().size() == 2; }));
    ASSERT_EQ(shutdown(client, SHUT_WR), 0);
  }

  std::unique_ptr<StubServer> server_;
};

TEST_F(HttpConnection, ThatHasEndedBeforeAnythingWentOutCostsNoAttempt) {
  ServeAndEnd();
  EXPECT_EQ(ValueOf("2"), "2");
  EXPECT_EQ(server_->connections(), 2);
  EXPECT_EQ(server_->requests().size(), 3u);
  EXPECT_EQ(recorder_.handled(), 2);
}

TEST_F(HttpConnection, ThatHasEndedWithNobodyToConnectToReachedNobody) {
  ServeAndEnd();
  ASSERT_EQ(shutdown(Socket(true), SHUT_RDWR), 0);
  const HandlerFailure failure = FailureOf("2");
  EXPECT_EQ(failure.error_class, "connection");
  EXPECT_FALSE(failure.reached);
}

TEST_F(HttpConnection, CarriesLargeBodiesWithoutAskingFirst) {
  Serve([](const StubServer::Request&) { return Answer{}; });
  ValueOf(std::string(3 << 20, 'x'));
  EXPECT_THAT(server_->requests().at(0).headers, Not(Contains(Key("expect"))));
}

}  // namespace
}  // namespace fencepost::consumer
