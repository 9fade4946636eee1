// How the lock nodes are named on the command line.
#include "consumer/cli/shared/lock_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "consumer/cli/shared/pipelines.h"
#include "locking/base/temp_folder.h"

namespace fencepost::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class LockNodesTest : public ::testing::Test {
 protected:
  ~LockNodesTest() override { unsetenv("FENCEPOST_REDIS_PASSWORD"); }

  std::optional<LockNodes> Resolve(std::vector<std::string> words) {
    CLI::App command;
    LockNodeArguments arguments;
    AddLockNodeOptions(command, arguments);
    std::reverse(words.begin(), words.end());  // as CLI11 takes them
    command.parse(words);
    testing::internal::CaptureStderr();
    auto nodes = ResolveLockNodes(arguments);
    error = testing::internal::GetCapturedStderr();
    return nodes;
  }
  std::string error;
};

TEST_F(LockNodesTest, TakeUserAndTlsFromOptionsAndThePasswordFromTheEnvironment) {
  setenv("FENCEPOST_REDIS_PASSWORD", "hunter2", 1);
  const auto nodes = Resolve(
      {"--redis", "a:1,rediss://own@b,unix:/c", "--user", "u", "--tls-server-name", "redis"});
  ASSERT_TRUE(nodes) << error;
  EXPECT_THAT(nodes->redis.nodes, ElementsAre("a:1", "rediss://own@b", "unix:/c"));
  EXPECT_EQ(nodes->redis.username, "u");
  EXPECT_EQ(nodes->redis.password, "hunter2");
  EXPECT_EQ(nodes->redis.tls_server_name, "redis");
}

// By the rule of pipeline files.
TEST_F(LockNodesTest, TakeAPasswordFileWithoutItsMarksAndRefuseWhatMayBePartOfThePassword) {
  const TempFolder folder;
  const auto with = [&](std::string_view text) {
    const std::string file = (folder.path() / "p").string();
    std::ofstream(file, std::ios::binary) << text;
    const auto nodes = Resolve({"--redis", "a:1", "--password-file", file});
    return nodes ? nodes->redis.password.Read().value() : error;
  };
  EXPECT_EQ(with("s3cret"), "s3cret");
  EXPECT_EQ(with("\xef\xbb\xbfs3 cret\r\n"), "s3 cret");
  for (const auto& [text, why] :
       {std::pair("a\nb", "holds a line break"), std::pair("a\rb", "holds a line break"),
        std::pair("a ", "begins or ends with a blank"), std::pair("\n", "is empty")}) {
    EXPECT_THAT(with(text), HasSubstr(why)) << text;
  }
  setenv("FENCEPOST_REDIS_PASSWORD", "hunter2\r", 1);
  EXPECT_FALSE(Resolve({"--redis", "a:1"}));
  EXPECT_EQ(error, "fencepost: ${FENCEPOST_REDIS_PASSWORD} holds a line break\n");
}

// A node is restarted when all others are ok: for every pipeline that uses them.
TEST_F(LockNodesTest, OfAPipelineWhoseLedgerDecidesAreSeenAsThoseSeeThemThatNeedTheLock) {
  const TempFolder folder;
  const std::string file = (folder.path() / "p.yaml").string();
  std::ofstream(file) << "version: 1\nname: orders\n"
                         "kafka: {brokers: localhost:9092, topics: [orders]}\n"
                         "lock: {redis: {nodes: [\"a:1\"]}}\n"
                         "on_bad_record: stop\n"
                         "output: {sqlite: {path: e.db, table: t, columns: {a: key}}}\n";
  const auto pipelines = LoadPipelines({{file}, {}});
  ASSERT_TRUE(pipelines && !pipelines->front().lock.lock.quarantine);
  const auto nodes = Resolve({file});
  ASSERT_TRUE(nodes) << error;
  EXPECT_TRUE(nodes->lock.quarantine);
}

TEST_F(LockNodesTest, AreRefusedInOneLineThatNamesNoPassword) {
  EXPECT_FALSE(Resolve({"--redis", "redis://u:hunter2@a:1/9"}));
  EXPECT_THAT(error, HasSubstr("--redis: redis://a:1/9: locks are kept in database 0 only"));
  EXPECT_THAT(error, Not(HasSubstr("hunter2")));
  EXPECT_FALSE(Resolve({"--redis", "a:1,b:1,redis://u:hunter2@a:1"}));
  EXPECT_THAT(error, HasSubstr("redis://a:1: is listed twice: as a:1 too"));
  EXPECT_THAT(error, Not(HasSubstr("hunter2")));
  EXPECT_FALSE(Resolve({"--redis", "a:1", "--user", "u"}));
  EXPECT_THAT(error, HasSubstr("a:1: a user without a password; give the password"));
  EXPECT_FALSE(Resolve({"--redis", "a:1,b:1"}));
  EXPECT_THAT(error, HasSubstr("--redis: 2 lock nodes are listed; list 1, 3, 5 or 7"));
}

TEST_F(LockNodesTest, AreRefusedWithTlsFilesThatCannotBeUsed) {
  EXPECT_FALSE(Resolve({"--redis", "a:1", "--tls-ca", "/nowhere"}));
  EXPECT_THAT(error, HasSubstr("/nowhere: the CA file cannot be used: No such file or directory; "
                               "check lock.redis.tls.ca (--tls-ca)\n"));
  EXPECT_FALSE(Resolve({"--redis", "a:1", "--tls-key", "/nowhere"}));
  EXPECT_THAT(error, HasSubstr("its certificate is not given; give both"));
  EXPECT_FALSE(Resolve({"p.yaml", "--tls-ca", "/nowhere"}));
  EXPECT_THAT(error, HasSubstr("a pipeline file has lock.redis.tls"));
}

}  // namespace
}  // namespace fencepost::cli
