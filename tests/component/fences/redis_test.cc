// deploy/redis/fence.lua
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/component/fences/holder.h"
#include "tests/support/paths.h"

namespace fencepost::fences {
namespace {

using ::testing::HasSubstr;
using testing::RedisServer;
using ::testing::StartsWith;

const std::string kScript = testing::SourcePath("deploy/redis/fence.lua");

class FrozenRedisHolder : public HolderTest {};

class RedisFence : public ::testing::Test {
 protected:
  std::string Write(const std::string& token, const std::string& value,
                    const std::string& fence_ttl = "0", const std::string& value_ttl = "0") {
    return redis_.Command({"EVAL", testing::ReadFile(kScript), "2", "{a}", "{a}:fence", token,
                           value, fence_ttl, value_ttl});
  }
  RedisServer redis_;
};

TEST_F(FrozenRedisHolder, IsRefusedWhenItWritesAfterTheNextOne) {
  const RedisServer data;
  const auto write = [&](const std::string& value) {
    return fmt::format(
        "redis-cli -e -p {} EVAL \"$(cat {})\" 2 '{{account-7}}' '{{account-7}}:fence'"
        " $FENCEPOST_TOKEN {} 86400000",
        data.port(), kScript, value);
  };
  const Late late = WriteLate(write("frozen"), write("next"));
  EXPECT_NE(late.code, 0);
  EXPECT_THAT(late.holder->Said(), HasSubstr("FENCED token " + late.holder->token()));
  EXPECT_THAT(late.holder->Said(), HasSubstr(late.winner + " was admitted"));
  EXPECT_EQ(data.Command({"GET", "{account-7}"}), "next");
}

TEST_F(RedisFence, AdmitsEqualAndHigherTokensOnly) {
  EXPECT_EQ(Write("17", "a"), "OK");
  EXPECT_EQ(Write("17", "b"), "OK");
  EXPECT_EQ(Write("9", "c"), "FENCED token 9 is too low, 17 was admitted");
  EXPECT_EQ(redis_.Command({"GET", "{a}"}), "b");
  EXPECT_EQ(Write("0000000000000000018", "d"), "OK");
  EXPECT_EQ(redis_.Command({"GET", "{a}"}), "d");
}

TEST_F(RedisFence, TellsTokensApartThatADoubleCannot) {
  EXPECT_EQ(Write("9007199254740993", "a"), "OK");
  EXPECT_THAT(Write("9007199254740992", "b"), StartsWith("FENCED"));
  EXPECT_EQ(Write("9223372036854775807", "c"), "OK");
  EXPECT_THAT(Write("9223372036854775806", "d"), StartsWith("FENCED"));
}

TEST_F(RedisFence, RefusesWhatIsNoTokenOrNoTime) {
  for (const char* token : {"", "0", "-1", "1.5", "1e3", "x", "9223372036854775808", " 1"}) {
    EXPECT_THAT(Write(token, "a"), StartsWith("ERR")) << token;
  }
  EXPECT_THAT(Write("1", "a", "-1"), StartsWith("ERR"));
  EXPECT_THAT(Write("1", "a", "soon"), StartsWith("ERR"));
  EXPECT_THAT(Write("1", "a", "0", "-5"), StartsWith("ERR"));
  EXPECT_EQ(redis_.Command({"DBSIZE"}), "0");
}

TEST_F(RedisFence, ExpiresNothingUnlessToldAndRemembersFromTheLastWriteOn) {
  EXPECT_EQ(Write("17", "a"), "OK");
  EXPECT_EQ(redis_.Command({"PTTL", "{a}:fence"}), "-1");
  EXPECT_EQ(redis_.Command({"PTTL", "{a}"}), "-1");
  EXPECT_EQ(Write("18", "a", "60000", "30000"), "OK");
  EXPECT_GT(std::stoll(redis_.Command({"PTTL", "{a}:fence"})), 50'000);
  EXPECT_LE(std::stoll(redis_.Command({"PTTL", "{a}"})), 30'000);
  EXPECT_EQ(Write("18", "a", "600000"), "OK");
  EXPECT_GT(std::stoll(redis_.Command({"PTTL", "{a}:fence"})), 500'000);
}

// README: "a fence that expires forgets".
TEST_F(RedisFence, ForgetsWhenItExpires) {
  EXPECT_EQ(Write("18", "a", "50"), "OK");
  ASSERT_TRUE(testing::WaitUntil(std::chrono::seconds(10), "the fence to expire", [&] {
    return redis_.Command({"GET", "{a}:fence"}) == "(nil)";
  }));
  EXPECT_EQ(Write("17", "b"), "OK");
}

// `admit` as a part of a script of one's own, cut out of the file as the README says.
TEST_F(RedisFence, IsUsedInAScriptOfOnesOwn) {
  const std::string all = testing::ReadFile(kScript);
  const std::string parts = all.substr(0, all.find("local value_ttl"));
  const std::string own = parts +
                          "local refused = admit(KEYS[2], ARGV[1], '60000')\n"
                          "if refused then return refused end\n"
                          "return redis.call('INCR', KEYS[1])";
  const auto run = [&](const std::string& token) {
    return redis_.Command({"EVAL", own, "2", "{n}", "{n}:fence", token});
  };
  EXPECT_EQ(run("5"), "1");
  EXPECT_EQ(run("6"), "2");
  EXPECT_THAT(run("5"), StartsWith("FENCED"));
  EXPECT_EQ(redis_.Command({"GET", "{n}"}), "2");
}

}  // namespace
}  // namespace fencepost::fences
