// One node for a command, over a real one.
#include "locking/redis/tools/raw_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <asio/io_context.hpp>

#include "tests/support/servers.h"

namespace fencepost::locking {
namespace {

using fencepost::testing::RedisServer;
using fencepost::testing::TcpProxy;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr Millis kPatience{10'000};
constexpr Millis kShort{50};

class RawNodeTest : public ::testing::Test {
 protected:
  RawNode& Node(const std::string& address) {
    redis_.nodes = {address};
    return node_.emplace(io_, redis_, 0);
  }

  RedisServer server_;
  asio::io_context io_;
  RedisOptions redis_;
  std::optional<RawNode> node_;
};

TEST_F(RawNodeTest, AnswersOneCallAfterAnother) {
  RawNode& node = Node(server_.address());
  ASSERT_TRUE(node.Connect(kPatience));
  EXPECT_EQ(node.ReadInfo("replication", kPatience).value()["role"], "master");
  EXPECT_NE(node.ReadInfo("server", kPatience).value()["run_id"], "");
}

TEST_F(RawNodeTest, SaysWhyItCannotConnectAndSaysItAgainToEveryCall) {
  RawNode& node = Node("127.0.0.1:1");
  EXPECT_THAT(node.Connect(kPatience).error().what, HasSubstr("refused"));
  EXPECT_THAT(node.ReadInfo("server", kPatience).error().what, HasSubstr("refused"));
}

TEST_F(RawNodeTest, RepeatsWhatTheNodeSaysOfTheLoginAndWhatToDo) {
  redis_.password = "wrong";
  const auto connected = Node(server_.address()).Connect(kPatience);
  EXPECT_THAT(connected.error().what, StartsWith("the node says: "));
  EXPECT_THAT(connected.error().hint, HasSubstr("lock.redis.password"));
}

TEST_F(RawNodeTest, GoesOnAfterAnErrorThatTheNodeAnswered) {
  RawNode& node = Node(server_.address());
  ASSERT_TRUE(node.Connect(kPatience));
  server_.Command({"ACL", "SETUSER", "default", "-info"});
  EXPECT_THAT(node.ReadInfo("server", kPatience).error().what, HasSubstr("NOPERM"));
  server_.Command({"ACL", "SETUSER", "default", "+info"});
  EXPECT_TRUE(node.ReadInfo("server", kPatience));
}

// Else the next call would take the answer for its own.
TEST_F(RawNodeTest, EndsWithACallThatIsNotAnsweredInTime) {
  TcpProxy proxy(server_.port());
  RawNode& node = Node(proxy.address());
  ASSERT_TRUE(node.Connect(kPatience));
  proxy.BlackHole();
  EXPECT_EQ(node.ReadInfo("server", kShort).error().what, "no answer in 50 ms");
  proxy.Restore();
  EXPECT_EQ(node.ReadInfo("memory", kPatience).error().what, "no answer in 50 ms");
}

TEST_F(RawNodeTest, GivesUpANodeThatDoesNotLetItIn) {
  TcpProxy proxy(server_.port());
  proxy.BlackHole();
  EXPECT_THAT(Node(proxy.address()).Connect(kShort).error().what,
              HasSubstr("no connection and login within the timeout"));
}

}  // namespace
}  // namespace fencepost::locking
