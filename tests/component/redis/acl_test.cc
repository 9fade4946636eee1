// The rights that the README of locking/ lists are enough, and none of them is too many.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/component/redis/scripted_client.h"
#include "tests/support/paths.h"

namespace fencepost::locking {
namespace {

using namespace std::chrono_literals;
using fencepost::testing::RedisServer;
using ::testing::HasSubstr;

// The words of a line of the README, behind "ACL SETUSER fencepost …": the first is without
// wake-up, the second with it.
std::vector<std::string> Rights(int line) {
  std::ifstream readme(testing::SourcePath("locking/README.md"));
  const std::string kBefore = "ACL SETUSER fencepost ";
  std::string text;
  while (line >= 0 && std::getline(readme, text)) {
    if (text.starts_with(kBefore)) --line;
  }
  EXPECT_LT(line, 0) << "locking/README.md has no such line";
  std::istringstream words(text.substr(std::min(kBefore.size(), text.size())));
  std::vector<std::string> rights;
  for (std::string word; words >> word;) rights.push_back(word == ">PASSWORD" ? ">pw" : word);
  return rights;
}

// A managed one may refuse what is called dangerous, INFO among it, and have no CONFIG.
TEST(ManagedNode, ThatRefusesInfoIsGoodEnoughWhereALedgerDecides) {
  for (const char* refuses : {"user app on >pw ~* &* +@all -@admin -@dangerous",
                              "rename-command INFO \"\"\nrename-command CONFIG \"\"\n"
                              "user app on >pw ~* &* +@all"}) {
    RedisServer server({.config = {refuses}});
    for (const bool decides : {true, false}) {
      ConnectionHarness harness(fmt::format("redis://{}", server.address()));
      harness.options.username = "app";
      harness.options.password = "pw";
      harness.options.lock.quarantine = !decides;
      harness.Start();
      const ScriptedClient& client = harness.client;
      ASSERT_TRUE(harness.RunUntil([&] { return !client.infos.empty() || !client.notes.empty(); },
                                   "an answer"));
      EXPECT_EQ(client.infos.empty(), !decides) << refuses;
      if (decides) {
        EXPECT_EQ(client.infos[0].run_id + client.infos[0].role, "");
      }
    }
  }
}

class AclTest : public ::testing::Test {
 protected:
  void Grant(const std::vector<std::string>& rights) {
    std::vector<std::string> command = {"ACL", "SETUSER", "fencepost"};
    command.insert(command.end(), rights.begin(), rights.end());
    ASSERT_EQ(server.Command(command), "OK");
  }
  // A life: connected, the sentinel made, locks taken, kept, given back, marked, forgotten. The
  // first thing that is refused ends it; then what the log says of it.
  std::string Refusal() {
    EXPECT_EQ(server.Command({"FLUSHALL"}), "OK");
    EXPECT_EQ(server.Command({"SCRIPT", "FLUSH"}), "OK");
    ConnectionHarness harness(fmt::format("redis://fencepost:pw@{}", server.address()));
    harness.options.username = "fencepost";
    harness.options.password = "pw";
    harness.options.lock.node_timeout = 2000ms;
    ScriptedClient& client = harness.client;
    harness.Start();
    const auto gone_wrong = [&] { return !client.notes.empty(); };
    const auto run_until = [&](const std::function<bool()>& condition) {
      EXPECT_TRUE(harness.RunUntil([&] { return condition() || gone_wrong(); }, "an answer"));
      return !gone_wrong();
    };
    const auto told = [&] {
      for (const CommandError error : client.errors) EXPECT_EQ(error, CommandError::kAuth);
      return client.notes.empty() ? "" : client.notes.front();
    };
    if (!run_until([&] { return !client.infos.empty(); })) return told();
    client.commands.push_back(
        {StoreCommand::Kind::kWrite, {std::nullopt, SentinelText(), std::nullopt}});
    if (!run_until([&] { return !client.sentinels.empty(); })) return told();
    EXPECT_EQ(client.sentinels.front(), SentinelText());
    const auto ask = [&](OpKind kind, std::uint32_t lock) {
      const std::size_t before = client.replies.size();
      client.Queue(kind, lock);
      return run_until([&] { return client.replies.size() > before; });
    };
    std::uint32_t lock = 0;
    for (const OpKind end : {OpKind::kRelease, OpKind::kAbort, OpKind::kDone}) {
      ++lock;
      if (!ask(OpKind::kAcquire, lock) || !ask(OpKind::kExtend, lock) ||
          !ask(OpKind::kFill, lock) || !ask(OpKind::kAcquire, lock) || !ask(end, lock) ||
          !ask(OpKind::kInspect, lock)) {
        return told();
      }
    }
    // Found by another: DONE, and how long it is remembered.
    client.Queue(OpKind::kAcquire, lock);
    if (!ask(OpKind::kForget, lock)) return told();
    EXPECT_EQ(client.CodeOf(lock, OpKind::kDone), ReplyCode::kMarked);
    EXPECT_EQ(client.CodeOf(1, OpKind::kRelease), ReplyCode::kFreed);
    EXPECT_EQ(client.CodeOf(1, OpKind::kExtend), ReplyCode::kExtended);
    EXPECT_TRUE(client.errors.empty());
    return told();
  }

  RedisServer server;
};

TEST_F(AclTest, TheListedRightsSuffice) {
  Grant(Rights(0));
  EXPECT_EQ(Refusal(), "");
  Grant(Rights(1));
  EXPECT_EQ(Refusal(), "");
}

TEST_F(AclTest, EachOfThemIsNeededAndTheLogSaysWhichIsMissing) {
  const std::vector<std::string> rights = Rights(0);
  int taken_away = 0;
  for (const std::string& right : rights) {
    if (right[0] != '+' && right[0] != '~') continue;
    ++taken_away;
    std::vector<std::string> fewer;
    std::copy_if(rights.begin(), rights.end(), std::back_inserter(fewer),
                 [&](const std::string& other) { return other != right; });
    Grant(fewer);
    EXPECT_THAT(Refusal(), HasSubstr(right)) << "without " << right;
  }
  EXPECT_GE(taken_away, 7);
}

}  // namespace
}  // namespace fencepost::locking
