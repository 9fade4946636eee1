// fencepost locks init, status, inspect and heal on real nodes.
#include <atomic>
#include <csignal>
#include <thread>

#include <nlohmann/json.hpp>

#include "locking/core/unit_value.h"
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
  // Clocks are one here: what must be waited for is short.
  [[nodiscard]] Finished Heal(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{"--max-skew", "100ms"};
    words.insert(words.end(), more.begin(), more.end());
    return Tool({"locks", "heal"}, words);
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
  EXPECT_THAT(text.output, HasSubstr("HELD token"));
  EXPECT_EQ(Tool({"locks", "inspect"}).exit_code, 2);
}

TEST_F(Locks, HealGivesAWipedNodeBackWhatItHadAndLiftsItsQuarantine) {
  const auto lock = Connect();
  const auto held = lock->Acquire("held");
  auto done = lock->Acquire("done");
  ASSERT_TRUE(held && done && done->Done(7));
  auto freed = lock->Acquire("freed");
  const auto floor = freed->token().value();
  freed->Release();
  nodes_[2].Restart(RedisServer::Data::kWipe);
  const Finished heal = Heal();
  ASSERT_EQ(heal.exit_code, 0) << heal.error_output;
  EXPECT_THAT(heal.output, HasSubstr("lock node c is healed"));
  EXPECT_EQ(Status()["nodes"][2]["state"], "ok");
  EXPECT_EQ(Inspect("held")["nodes"][2]["token"], held->token().value());
  EXPECT_EQ(Inspect("done")["nodes"][2]["state"], "done");
  EXPECT_EQ(Inspect("freed")["nodes"][2]["floor"], floor);
  EXPECT_THAT(Heal().output, HasSubstr("nothing to heal"));
}

TEST_F(Locks, HealKeepsANameOfTwoRivalsForEither) {
  const auto now =
      std::chrono::duration_cast<Millis>(std::chrono::system_clock::now().time_since_epoch());
  for (std::size_t node = 0; node < 2; ++node) {
    locking::UnitValue value;
    value.state = locking::UnitValue::State::kHeld;
    value.token = value.floor = locking::Token(88'000'000'000'000'000 + node);
    value.nonce = {{1, node + 1}};
    value.deadline = locking::WallTime(now + seconds(30));
    ASSERT_EQ(nodes_[node].Command({"SET", Key("split"), value.Encode(), "PX", "60000"}), "OK");
  }
  nodes_[2].Command({"FLUSHALL"});
  const Finished heal = Heal();
  EXPECT_THAT(heal.output, HasSubstr("1 leases (1 kept for their holders)")) << heal.error_output;
  EXPECT_EQ(Inspect("split")["nodes"][2]["state"], "held");
}

TEST_F(Locks, HealRefusesUnlessAllOthersCount) {
  nodes_[2].Command({"FLUSHALL"});
  nodes_[1].Command({"FLUSHALL"});
  const Finished two = Heal();
  EXPECT_EQ(two.exit_code, 1);
  EXPECT_THAT(two.error_output, MatchesRegex("fencepost: [^\n]+\n"));
}

TEST_F(Locks, HealRefusesWhileAnotherNodeIsAway) {
  nodes_[2].Command({"FLUSHALL"});
  nodes_[0].Stop();
  const Finished heal = Heal();
  EXPECT_EQ(heal.exit_code, 1);
  EXPECT_THAT(heal.error_output, MatchesRegex("fencepost: [^\n]+\n"));
}

TEST_F(Locks, HealLiftsNothingWhenTheNodeIsWipedAgain) {
  nodes_[2].Command({"FLUSHALL"});
  Process heal({.argv = Words({"locks", "heal"}, {"--max-skew", "1s"}), .separate_stderr = true});
  ASSERT_TRUE(WaitUntil(seconds(15),
                        [&] { return heal.ErrorOutput().find("waiting") != std::string::npos; }));
  nodes_[2].Command({"FLUSHALL"});
  EXPECT_EQ(heal.Wait(seconds(15)), 1);
  EXPECT_EQ(nodes_[2].Command({"GET", "fencepost::sentinel"}), "(nil)");
}

// Threads of two clients take three names in turn, while a node is wiped and healed.
TEST_F(Locks, NobodyEntersTwiceWhileANodeIsHealed) {
  std::array<std::atomic<int>, 3> inside{};
  std::array<std::atomic<std::uint64_t>, 3> last{};
  std::atomic<int> doubled{0};
  std::atomic<int> entered{0};
  std::atomic<bool> stop{false};
  const auto one = Connect();
  const auto other = Connect();
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      QuorumLock& lock = i % 2 == 0 ? *one : *other;
      for (std::size_t turn = 0; !stop; ++turn) {
        const std::size_t at = turn % inside.size();
        auto lease = lock.Acquire(fmt::format("n{}", at), {.wait = Millis(200)});
        if (!lease || !lease->valid()) continue;
        const std::uint64_t token = lease->token().value();
        if (++inside[at] > 1 || last[at].exchange(token) > token) ++doubled;
        ++entered;
        --inside[at];
        lease->Release();
      }
    });
  }
  ASSERT_TRUE(WaitUntil(seconds(10), [&] { return entered > 50; }));
  nodes_[2].Command({"FLUSHALL"});
  ASSERT_TRUE(
      WaitUntil(seconds(10), [&] { return Status()["nodes"][2]["state"] == "quarantined"; }));
  const Finished heal = Heal();
  EXPECT_EQ(heal.exit_code, 0) << heal.error_output;
  const int before = entered;
  EXPECT_TRUE(WaitUntil(seconds(10), [&] { return entered > before + 50; }));
  stop = true;
  threads.clear();
  EXPECT_EQ(doubled, 0);
  EXPECT_EQ(Status()["nodes"][2]["state"], "ok");
}

}  // namespace
}  // namespace fencepost::testing
