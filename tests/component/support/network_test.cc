#include <hiredis/hiredis.h>

#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "tests/support/servers.h"

namespace fencepost::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

// A Redis client through the proxy, with a limit on each answer.
class Client {
 public:
  explicit Client(int port) : context_(redisConnectWithTimeout("127.0.0.1", port, {2, 0})) {
    redisSetTimeout(context_, {0, 200'000});
  }
  ~Client() { redisFree(context_); }
  bool Set(const char* value) {
    auto* reply = static_cast<redisReply*>(redisCommand(context_, "SET a %s", value));
    if (reply == nullptr) return false;
    freeReplyObject(reply);
    return true;
  }

 private:
  redisContext* context_;
};

class TcpProxyTest : public ::testing::Test {
 protected:
  RedisServer redis_;
  TcpProxy proxy_{redis_.port()};
};

TEST_F(TcpProxyTest, DelaysByAtLeastWhatWasAsked) {
  Client client(proxy_.port());
  proxy_.Delay(milliseconds(40));
  const auto start = steady_clock::now();
  EXPECT_TRUE(client.Set("1"));
  EXPECT_GE(steady_clock::now() - start, milliseconds(80));
}

TEST_F(TcpProxyTest, LosesTheAnswerButNotTheCommandWhenOnlyThatWayIsBlack) {
  Client client(proxy_.port());
  proxy_.BlackHole(TcpProxy::Way::kToClient);
  EXPECT_FALSE(client.Set("1"));
  EXPECT_EQ(redis_.Command({"GET", "a"}), "1");
}

TEST_F(TcpProxyTest, LosesTheCommandWhenTheWayThereIsBlack) {
  Client client(proxy_.port());
  proxy_.BlackHole(TcpProxy::Way::kToServer);
  EXPECT_FALSE(client.Set("1"));
  EXPECT_EQ(redis_.Command({"GET", "a"}), "(nil)");
}

TEST_F(TcpProxyTest, HoldsWhatTheWatcherPicksUntilItIsReleased) {
  std::atomic<int> port{0};
  proxy_.Watch([&](const TcpProxy::Passing& passing) {
    if (passing.bytes.find("stop") == std::string_view::npos) return false;
    port = passing.client_port;
    return passing.way == TcpProxy::Way::kToServer;
  });
  Client client(proxy_.port());
  EXPECT_TRUE(client.Set("1"));
  EXPECT_EQ(port, 0);
  EXPECT_FALSE(client.Set("stop"));
  EXPECT_NE(port, 0);
  EXPECT_EQ(redis_.Command({"GET", "a"}), "1");
  proxy_.Release();
  EXPECT_TRUE(WaitUntil(seconds(5), [&] { return redis_.Command({"GET", "a"}) == "stop"; }));
  proxy_.Watch(nullptr);
}

TEST_F(TcpProxyTest, LetsAForgottenConnectionGoOnceItIsRestoredAndItsClientHasHungUp) {
  auto gone = std::make_unique<Client>(proxy_.port());
  Client stays(proxy_.port());
  EXPECT_TRUE(gone->Set("1") && stays.Set("2"));
  const auto clients = [&] {  // of the server, the one that asks not counted
    const std::string text = redis_.Command({"INFO", "clients"});
    return std::stoi(text.substr(text.find("connected_clients:") + 18)) - 1;
  };
  proxy_.Forget();
  gone.reset();
  Client later(proxy_.port());  // the proxy has gone round since
  EXPECT_TRUE(later.Set("3"));
  EXPECT_EQ(proxy_.connections(), 3);
  EXPECT_EQ(clients(), 3);
  proxy_.Restore();
  EXPECT_TRUE(WaitUntil(seconds(5), [&] { return clients() == 2; }));
  EXPECT_EQ(proxy_.connections(), 2);
  EXPECT_FALSE(stays.Set("4"));
}

}  // namespace
}  // namespace fencepost::testing
