// Nodes as people write them.
#include "locking/redis/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "locking/redis/engine/access.h"
#include "locking/redis/session/session_pump.h"

namespace fencepost::locking {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

NodeAddress Parse(std::string_view text) {
  const auto address = ParseNodeAddress(text);
  EXPECT_TRUE(address) << text << ": " << (address ? "" : address.error().Line());
  return address.value_or(NodeAddress{});
}

std::string ProblemOf(std::vector<std::string> nodes, const std::string& password = "") {
  const auto problem = ProblemOf(RedisOptions{.nodes = std::move(nodes), .password = password});
  return problem ? problem->Line() : "";
}

TEST(NodeAddress, IsHostAndPortOrAUnixSocket) {
  EXPECT_EQ(Parse("redis-a:6379").host, "redis-a");
  EXPECT_EQ(Parse("redis-a:6379").port, "6379");
  EXPECT_EQ(Parse("[::1]:7001").host, "::1");
  EXPECT_EQ(Parse("unix:/run/redis.sock").path, "/run/redis.sock");
  EXPECT_EQ(Parse("unix:///run/redis.sock").path, "/run/redis.sock");
  for (const std::string bad :
       {"redis-a", "redis-a:", ":6379", "redis-a:0", "redis-a:65536", "redis-a:63x", "::1:7001",
        "unix:", "unix:redis.sock", "unix://redis.sock", "user@redis-a:6379", "a b:1", ""}) {
    EXPECT_FALSE(ParseNodeAddress(bad).has_value()) << bad;
  }
  EXPECT_FALSE(ParseNodeAddress("unix:/" + std::string(200, 'x')).has_value());
}

TEST(NodeAddress, IsAUrlThatMaySayUserPasswordAndTls) {
  NodeAddress address = Parse("redis://redis-a");
  EXPECT_EQ(address.host + " " + address.port, "redis-a 6379");
  EXPECT_EQ(address.tls, false);
  EXPECT_FALSE(address.username || address.password);
  address = Parse("rediss://fence%40post:p%2Fw%25%3A@[::1]:7001/0");
  EXPECT_EQ(address.host + " " + address.port, "::1 7001");
  EXPECT_EQ(address.tls, true);
  EXPECT_EQ(address.username, "fence@post");
  EXPECT_EQ(address.password, "p/w%:");
  EXPECT_EQ(address.text, "rediss://[::1]:7001/0") << "without the login";
  address = Parse("redis://:secret@h:1/");
  EXPECT_EQ(address.username, "");
  EXPECT_EQ(address.password, "secret");
  address = Parse("redis://user@[::1]");
  EXPECT_EQ(address.username, "user");
  EXPECT_EQ(address.port, "6379");
  EXPECT_FALSE(address.password);
  EXPECT_FALSE(Parse("h:1").tls) << "it says nothing of TLS";
}

TEST(NodeAddress, RefusesAUrlThatItCannotFollowAndSaysWhatToDoWithoutThePassword) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"redis://u:hunter2@h:1/3", "redis://h:1/3: locks are kept in database 0 only; end the URL"},
      {"redis://u:hunter2@h:1/0?db=0&password=hunter2", "a query or fragment is not known here"},
      {"redis://u:hun/hunter2@h:1", "write / as %2F"},
      {"redis://u:hun@hunter2@h:1", "@ as %40"},
      {"redis://u:hunter2%4@h:1", "write % as %25"},
      {"redis://u:hunter2%+1@h:1", "write % as %25"},
      {"redis://u:@h:1", "the password of the URL is empty"},
      {"redis://u:hunter2@", "the host is missing"},
      {"redis://u:hunter2", "the port is not a number"},
      {"redis://u:hunter2@h:99999", "the port is not a number"},
      {"u:hunter2@h:1", "a user and a password need a URL; write HOST:PORT"},
      {"valkey://u:hunter2@h:1", "the scheme is not known; write HOST:PORT"},
      {"http://h:1", "http://h:1: the scheme is not known"},
  };
  for (const auto& [text, said] : cases) {
    const auto address = ParseNodeAddress(text);
    ASSERT_FALSE(address) << text;
    EXPECT_THAT(address.error().Line(), HasSubstr(said));
    EXPECT_THAT(address.error().Line(), Not(HasSubstr("hunter2"))) << text;
  }
}

TEST(NodeAddress, IsTheSameNodeHoweverItIsSpelled) {
  const auto same = [](std::string_view one, std::string_view other) {
    return ReachedBy(Parse(one)) == ReachedBy(Parse(other));
  };
  EXPECT_TRUE(same("redis-a:6379", "redis://user:pw@Redis-A./0"));
  EXPECT_TRUE(same("rediss://[::1]:07001", "[0:0:0:0:0:0:0:1]:7001"));
  EXPECT_TRUE(same("unix:/run//redis.sock", "unix:///run/./redis.sock"));
  EXPECT_FALSE(same("redis-a:6379", "redis-a:6380"));
  EXPECT_FALSE(same("redis-a:6379", "redis-b:6379"));
}

TEST(RedisOptions, AreCheckedBeforeAnythingIsStarted) {
  EXPECT_EQ(ProblemOf({"a:1", "b:1", "c:1"}), "");
  EXPECT_THAT(ProblemOf({"a:1", "b:1"}), HasSubstr("2 lock nodes are listed; list 1, 3, 5 or 7"));
  EXPECT_EQ(ProblemOf({"a:6379", "b:1", "rediss://u:hunter2@A"}),
            "rediss://A: is listed twice: as a:6379 too; list each node once; each is an "
            "independent primary");
  EXPECT_THAT(ProblemOf({"redis://u@a"}), HasSubstr("redis://a: a user without a password; give"));
  EXPECT_EQ(ProblemOf({"redis://u@a"}, "pw"), "");
}

TEST(RedisOptions, GiveEachNodeWhatItsUrlSaysAndElseWhatAllHave) {
  const RedisOptions redis{
      .nodes = {"redis://own:o%20w@a:1", "b:1", "redis://only@c:1", "unix:/d", "rediss://:x@e"},
      .username = "common",
      .password = "pw",
      .tls = true,
      .tls_server_name = "node"};
  const auto all = MakeConnections(redis, {});
  std::string found;
  for (const ConnectionOptions& one : all) {
    EXPECT_EQ(one.problem, "");
    EXPECT_EQ(one.address.server_name, "node");
    found +=
        one.username + ":" + one.password.Read().value() + (one.tls != nullptr ? " tls, " : ", ");
  }
  EXPECT_EQ(found, "own:o w, common:pw tls, only:pw, common:pw, :x tls, ");
}

}  // namespace
}  // namespace fencepost::locking
