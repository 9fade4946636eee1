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
  [[nodiscard]] bool connected() const { return context_->err == 0; }
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

TEST_F(TcpProxyTest, ForwardsBothWays) {
  Client client(proxy_.port());
  EXPECT_TRUE(client.Set("1"));
  EXPECT_EQ(redis_.Command({"GET", "a"}), "1");
  EXPECT_EQ(proxy_.connections(), 1);
}

TEST_F(TcpProxyTest, ForwardsLaterConnectionsToWhereItIsToldTo) {
  RedisServer other;
  Client before(proxy_.port());
  EXPECT_TRUE(before.Set("1"));
  proxy_.Forward(other.port());
  Client later(proxy_.port());
  EXPECT_TRUE(before.Set("2") && later.Set("3"));
  EXPECT_EQ(redis_.Command({"GET", "a"}), "2");
  EXPECT_EQ(other.Command({"GET", "a"}), "3");
}

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

TEST_F(TcpProxyTest, CutsWhatIsOpenAndTakesNewConnections) {
  Client client(proxy_.port());
  EXPECT_TRUE(client.Set("1"));
  proxy_.Cut();
  EXPECT_FALSE(client.Set("2"));
  Client again(proxy_.port());
  EXPECT_TRUE(again.Set("3"));
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

TEST_F(TcpProxyTest, ForgetsWhatIsOpenWithoutAWordAndTakesNewConnections) {
  Client client(proxy_.port());
  EXPECT_TRUE(client.Set("1"));
  proxy_.Forget();
  EXPECT_FALSE(client.Set("2"));
  Client again(proxy_.port());
  EXPECT_TRUE(again.Set("3"));
  proxy_.Restore();
  EXPECT_EQ(redis_.Command({"GET", "a"}), "3");
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

TEST_F(TcpProxyTest, JittersAndLosesNothing) {
  Client client(proxy_.port());
  proxy_.Jitter(milliseconds(20));
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(client.Set(std::to_string(i).c_str()));
  EXPECT_EQ(redis_.Command({"GET", "a"}), "9");
}

TEST_F(TcpProxyTest, RefusesUntilRestored) {
  proxy_.Refuse();
  EXPECT_FALSE(Client(proxy_.port()).connected());
  proxy_.Restore();
  Client client(proxy_.port());
  EXPECT_TRUE(client.Set("1"));
}

TEST(MetricsPage, FindsSeriesByNameAndLabels) {
  const MetricsPage page(
      "# HELP a_total what\n# TYPE a_total counter\n"
      "a_total{pipeline=\"p\",result=\"ok\"} 2\na_total{pipeline=\"p\",result=\"q\\\"}\\n\"} 3.5\n"
      "b 1e3 1700000000000\nnonsense\n");
  EXPECT_EQ(page.Value("a_total", {{"result", "ok"}}), 2);
  EXPECT_EQ(page.Value("a_total", {{"result", "q\"}\n"}}), 3.5);
  EXPECT_EQ(page.Value("a_total", {{"pipeline", "p"}}), 5.5);
  EXPECT_EQ(page.Value("a_total", {{"pipeline", "x"}}), std::nullopt);
  EXPECT_EQ(page.Value("b"), 1000);
  EXPECT_EQ(page.broken(), std::vector<std::string>{"nonsense"});
}

TEST(HttpGet, SaysZeroWhenNobodyAnswers) {
  EXPECT_EQ(HttpGet("127.0.0.1", FreePort(), "/").status, 0);
  EXPECT_EQ(Scrape(FreePort()), std::nullopt);
}

}  // namespace
}  // namespace fencepost::testing
