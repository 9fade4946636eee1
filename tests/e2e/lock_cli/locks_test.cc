// fencepost locks init, status and inspect on real nodes.
#include <csignal>

#include <nlohmann/json.hpp>

#include "locking/quorum_lock/quorum_lock.h"
#include "tests/e2e/lock_cli/lock_cli_test.h"
#include "tests/support/paths.h"

namespace fencepost::testing {
namespace {

using locking::Millis;
using locking::QuorumLock;
using nlohmann::json;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class Locks : public LockCliTest {
 protected:
  [[nodiscard]] json Status() const {
    return json::parse(Tool({"locks", "status"}, {"--json"}).output);
  }
  [[nodiscard]] json Inspect(const std::string& name) const {
    return json::parse(Tool({"locks", "inspect"}, {name, "--json"}).output).at(0);
  }
  [[nodiscard]] std::unique_ptr<QuorumLock> Connect() const {
    locking::LockOptions lock;
    lock.ttl = Millis(5000);
    lock.min_validity = Millis(500);
    lock.max_skew = Millis(100);
    lock.contact = locking::Contact::kAll;
    auto connected = QuorumLock::Connect({.redis = {.nodes = nodes_.addresses()}, .lock = lock});
    EXPECT_TRUE(connected);
    EXPECT_TRUE((*connected)->WaitReady(Millis(5000)));
    // All nodes, so that what is held stands everywhere.
    EXPECT_TRUE(WaitUntil(seconds(5), [&] {
      auto lease = (*connected)->Acquire("all");
      return lease && json(Inspect("all")).dump().find("absent") == std::string::npos;
    }));
    return std::move(*connected);
  }
};

TEST_F(Locks, StatusTellsOfEachNodeInTextAndJson) {
  const Finished text = Tool({"locks", "status"});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.output, HasSubstr("quorum: available (2 of 3 needed)"));
  EXPECT_THAT(text.output, HasSubstr("append-only file off"));
  nodes_[2].Stop();
  const json status = Status();
  EXPECT_TRUE(status["available"]);
  EXPECT_EQ(status["nodes"][0]["state"], "ok");
  EXPECT_EQ(status["nodes"][0]["memory_policy"], "noeviction");
  EXPECT_EQ(status["nodes"][2]["state"], "down");
  EXPECT_NE(status["nodes"][2]["problem"], "");
}

TEST_F(Locks, InitOfAStoreThatExistsSaysSoOnceAndHowToTakeThatForGood) {
  const Finished again = Tool({"locks", "init"});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_EQ(again.output, "");
  EXPECT_THAT(again.error_output,
              AllOf(HasSubstr("exists already and was left as it is"), HasSubstr("--if-missing")));
  EXPECT_EQ(std::ranges::count(again.error_output, '\n'), 1);
}

TEST_F(Locks, InitIfMissingLeavesAStoreThatStandsAndCreatesOneThatDoesNot) {
  const std::string store = Status()["store"];
  const Finished again = Tool({"locks", "init"}, {"--if-missing"});
  EXPECT_EQ(again.exit_code, 0) << again.error_output;
  EXPECT_THAT(again.output, HasSubstr("lock store " + store + " exists already"));
  EXPECT_EQ(Status()["store"], store);
  nodes_[2].Stop();
  EXPECT_EQ(Tool({"locks", "init"}, {"--if-missing"}).exit_code, 0) << "a majority knows it";
  nodes_[2].Restart(RedisServer::Data::kWipe);
  nodes_[0].Command({"FLUSHALL"});
  nodes_[1].Command({"FLUSHALL"});
  const Finished remade = Tool({"locks", "init"}, {"--if-missing"});
  EXPECT_EQ(remade.exit_code, 0) << remade.error_output;
  EXPECT_THAT(remade.output, HasSubstr("created over 3 nodes; it counts in "));
}

// Whoever was stalled while the nodes were flushed has its lease until its own end.
TEST_F(Locks, InitOfNodesThatWereFlushedGivesNoLockBeforeALeaseThatTheyForgotHasEnded) {
  const std::string go = Fifo("go");
  const auto holder = Begin({"x", "--", "cat", go});
  ASSERT_TRUE(WaitUntil(seconds(10), [&] { return Inspect("x")["verdict"] == "held"; }));
  holder->Kill(SIGSTOP);
  for (std::size_t node = 0; node < 3; ++node) nodes_[node].Command({"FLUSHALL"});
  const Finished init = Tool({"locks", "init"});
  EXPECT_EQ(init.exit_code, 0) << init.error_output;
  EXPECT_THAT(init.output, AllOf(HasSubstr("it counts in 40 s: node a (" + nodes_[0].address()),
                                 HasSubstr("was written to since it started"),
                                 HasSubstr("`fencepost locks init --force`")));
  const json status = Status();
  EXPECT_FALSE(status["available"]);
  for (const auto& node : status["nodes"]) EXPECT_EQ(node["state"], "quarantined");
  EXPECT_EQ(Exec({"x", "--wait", "1s", "--", "true"}).exit_code, 69) << "no quorum";
  const Finished forced = Tool({"locks", "init"}, {"--force"});
  EXPECT_EQ(forced.exit_code, 0) << forced.error_output;
  EXPECT_THAT(forced.output, HasSubstr("it counts at once"));
  EXPECT_TRUE(Status()["available"]);
  holder->Kill(SIGKILL);
}

TEST_F(Locks, InitOfNodesThatWereOnlyReadCountsAtOnce) {
  RedisServers fresh(3);
  for (std::size_t node = 0; node < 3; ++node) {
    fresh[node].Command({"GET", "x"});
    fresh[node].Command({"FLUSHALL"});
  }
  const std::vector<std::string> words{testing::FencepostBinary(), "locks", "init", "--redis",
                                       fresh.list()};
  const Finished init = RunToEnd({.argv = words, .separate_stderr = true}, kLong);
  EXPECT_EQ(init.exit_code, 0) << init.error_output;
  EXPECT_THAT(init.output, HasSubstr("it counts at once"));
}

TEST_F(Locks, InitDoubtsOneNodeThatWasWrittenToAmongFreshOnes) {
  RedisServers fresh(3);
  fresh[2].Command({"SET", "x", "1"});
  const std::vector<std::string> words{testing::FencepostBinary(), "locks", "init", "--redis",
                                       fresh.list()};
  const Finished init = RunToEnd({.argv = words, .separate_stderr = true}, kLong);
  EXPECT_EQ(init.exit_code, 0) << init.error_output;
  EXPECT_THAT(init.output, HasSubstr("it counts in 40 s: node c (" + fresh[2].address()));
}

TEST_F(Locks, InitIfMissingSaysThatTheStoreThatStandsAllowsOtherLeases) {
  ASSERT_EQ(Tool({"locks", "init"}, {"--force", "--max-ttl", "20s"}).exit_code, 0);
  EXPECT_EQ(Tool({"locks", "init"}, {"--if-missing", "--max-ttl", "20s"}).exit_code, 0);
  const Finished longer = Tool({"locks", "init"}, {"--if-missing", "--max-ttl", "2m"});
  EXPECT_EQ(longer.exit_code, 1);
  EXPECT_THAT(longer.error_output, HasSubstr("max_ttl is 20000 ms, not 120000 ms"));
}

TEST_F(Locks, InitIfMissingEndsWhatAnotherBegan) {
  for (std::size_t node = 0; node < 3; ++node) nodes_[node].Command({"FLUSHALL"});
  // A worker makes a store that waits its quarantine out; an init beside it finds it sooner or
  // later.
  Process other({.argv = Words({"locks", "init"}, {}), .separate_stderr = true});
  const Finished init = Tool({"locks", "init"}, {"--if-missing"});
  EXPECT_EQ(init.exit_code, 0) << init.error_output;
  other.Wait(seconds(15));
  EXPECT_EQ(Tool({"locks", "init"}, {"--if-missing"}).exit_code, 0);
}

TEST_F(Locks, InitIfMissingDoesNotTakeAStoreOfOtherNodesForItsOwn) {
  RedisServers strangers(2);
  const std::string list =
      nodes_[0].address() + "," + strangers[0].address() + "," + strangers[1].address();
  const Finished init = RunToEnd({.argv = {testing::FencepostBinary(), "locks", "init",
                                           "--if-missing", "--timeout", "2", "--redis", list},
                                  .separate_stderr = true},
                                 kLong);
  EXPECT_EQ(init.exit_code, 1);
  EXPECT_THAT(init.error_output, MatchesRegex("fencepost: [^\n]+\n"));
}

TEST_F(Locks, InspectTellsWhoHoldsWhatIsDoneAndWhatIsFree) {
  const auto lock = Connect();
  const auto held = lock->Acquire("held");
  ASSERT_TRUE(held);
  auto done = lock->Acquire("done");
  ASSERT_TRUE(done && done->Done(0xabcd));
  auto freed = lock->Acquire("freed");
  ASSERT_TRUE(freed);
  freed->Release();
  EXPECT_EQ(Inspect("held")["verdict"], "held");
  EXPECT_EQ(Inspect("held")["nodes"][1]["token"], held->token().value());
  EXPECT_EQ(Inspect("done")["verdict"], "done");
  EXPECT_EQ(Inspect("done")["nodes"][2]["crc"], "000000000000abcd");
  EXPECT_EQ(Inspect("freed")["verdict"], "free");
  EXPECT_EQ(Inspect("never")["nodes"][0]["state"], "absent");
  const Finished text = Tool({"locks", "inspect"}, {"held", "done"});
  EXPECT_THAT(text.output, HasSubstr("held: held by token"));
  EXPECT_THAT(text.output, HasSubstr("held under token"));
  EXPECT_EQ(Tool({"locks", "inspect"}).exit_code, 2);
}

}  // namespace
}  // namespace fencepost::testing
