// Bad days of the lock nodes. Each test has five of its own, so that none leaves another a
// quarantine.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/support/pipeline_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

class LockNodesBadDay : public PipelineTest {
 protected:
  LockNodesBadDay() : orders_(Kafka().bootstrap(), name_, 4, 5, 0.05) {}

  // A worker over these nodes that has processed its first records.
  void Start(RedisServers& nodes) {
    InitLocks(nodes);
    PipelineText text = Text(4);
    text.nodes = nodes.list();
    team_.emplace(Worker(text));
    team_->Start(1);
    ExpectItProcesses(300);
  }
  void ExpectItProcesses(int records, Deadline limit = seconds(60)) {
    orders_.Produce(records);
    EXPECT_TRUE(AllCommitted(limit)) << worker().Readiness() << team_->Tails();
  }
  void ExpectItSays(const std::string& part) {
    EXPECT_TRUE(WaitUntil(seconds(20), "the worker to say '" + part + "'",
                          [&] { return worker().Readiness().find(part) != std::string::npos; }))
        << worker().Readiness() << team_->Tails();
  }
  void ExpectCounted(const std::string& metric, const MetricsPage::Labels& labels) {
    EXPECT_TRUE(WaitUntil(seconds(20), metric, [&] { return worker().Now(metric, labels) > 0; }))
        << team_->Tails();
  }
  void ExpectNodesUp(int count) {
    EXPECT_TRUE(WaitUntil(seconds(20), fmt::format("{} nodes to be up", count), [&] {
      return worker().Now("fencepost_redis_node_up") == count;
    })) << worker().Get("/status").body;
  }
  void ExpectTheTruth() {
    EXPECT_EQ(team_->StopAll(), "");
    EXPECT_EQ(table_->Audit(name_, orders_.unique()), "");
    EXPECT_EQ(team_->Sum("fencepost_invariant_violations_total"), 0);
  }
  // What the page says of a node, which it does a moment later than the metrics.
  void ExpectNode(std::size_t node, const std::string& problem, bool quarantined) {
    const auto so = [&] {
      const nlohmann::json status = Node(node);
      const bool named = status["problem"].get<std::string>().find(problem) != std::string::npos;
      return named && status["quarantined"] == quarantined;
    };
    EXPECT_TRUE(WaitUntil(seconds(20), "the node", so)) << worker().Get("/status").body;
  }
  WorkerProcess& worker() { return (*team_)[0]; }
  [[nodiscard]] nlohmann::json Node(std::size_t node) {
    const auto status = nlohmann::json::parse(worker().Get("/status").body);
    return status["pipelines"][0]["nodes"][node];
  }

  Orders orders_;
  std::optional<WorkerTeam> team_;
};

TEST_F(LockNodesBadDay, TwoOfFiveDownStopNothing) {
  RedisServers nodes(5);
  Start(nodes);
  nodes[1].Kill();
  nodes[4].Kill();
  ExpectItProcesses(2000);
  ExpectNodesUp(3);
  EXPECT_TRUE(worker().Ready());
  ExpectTheTruth();
}

TEST_F(LockNodesBadDay, ThreeOfFiveDownPauseItAndItGoesOnByItself) {
  RedisServers nodes(5, {.appendonly = true});
  Start(nodes);
  const int before = table_->Count();
  for (const std::size_t node : {0U, 1U, 2U}) nodes[node].Kill();
  ExpectItSays("no quorum");
  orders_.Produce(500);
  EXPECT_EQ(worker().Now("fencepost_redis_quorum_available"), 0);
  EXPECT_EQ(worker().Get("/live").status, 200);
  EXPECT_EQ(table_->Count(), before);
  for (const std::size_t node : {0U, 1U, 2U}) nodes[node].Start();
  ExpectItSays("quarantine");
  ExpectItProcesses(500);
  ExpectTheTruth();
}

// lock.on_unavailable: proceed. Workers die, freeze and come while there is no lock at all; the
// frozen one wakes up with leases of before.
TEST_F(LockNodesBadDay, AllDownAreDoneWithoutUnderLoadAndKillsWhereThePipelineSaysProceed) {
  RedisServers nodes(5, {.appendonly = true});
  InitLocks(nodes);
  PipelineText text = Text(4);
  text.nodes = nodes.list();
  text.max_skew = "2s\n  on_unavailable: proceed";
  text.output = fmt::format(
      "output: {{postgres: {{dsn: \"{}\", table: effects,"
      " columns: {{order_id: json:/order_id, amount: json:/amount}}}}}}\n",
      text.dsn);
  team_.emplace(Worker(text));
  team_->Start(3);
  ExpectItProcesses(2000);
  const auto grow = [&](int records) {
    const int wanted = table_->Count() + records / 2;
    orders_.Produce(records);
    EXPECT_TRUE(Effects(wanted)) << team_->Tails();
  };
  {
    const TableLock lock(*table_);  // so that the frozen one has leases
    orders_.Produce(2000);
    ASSERT_TRUE(WaitUntil(seconds(20), "leases",
                          [&] { return (*team_)[2].Now("fencepost_locks_held") > 0; }));
    (*team_)[2].Pause();
  }
  for (std::size_t node = 0; node < nodes.size(); ++node) nodes[node].Kill();
  grow(5000);
  ExpectItSays("ready");
  EXPECT_TRUE(worker().Ready());
  ExpectCounted("fencepost_records_unlocked_total", {});
  EXPECT_THAT(worker().Get("/status").body, HasSubstr("processed without a lock"));
  (*team_)[1].Kill();
  WorkerProcess& late = team_->Add();  // it starts without any lock node
  EXPECT_TRUE(WaitUntil(seconds(60), "the late one to have its part", [&] {
    orders_.Produce(200);
    return late.Now("fencepost_records_unlocked_total") > 0;
  })) << late.Readiness();
  grow(5000);
  (*team_)[2].Resume();
  for (std::size_t node = 0; node < nodes.size(); ++node) nodes[node].Start();
  ASSERT_TRUE(WaitUntil(seconds(60), "the locks to be back", [&] {
    return worker().Log().find("\"locked_again\"") != std::string::npos;
  })) << worker().Readiness();
  const double unlocked = worker().Now("fencepost_records_unlocked_total");
  ExpectItProcesses(3000);
  EXPECT_EQ(worker().Now("fencepost_records_unlocked_total"), unlocked);
  ExpectTheTruth();
}

TEST_F(LockNodesBadDay, AFrozenNodeDoesNotHoldTheOthersUp) {
  RedisServers nodes(5);
  Start(nodes);
  nodes[2].Pause();
  ExpectItProcesses(5000, seconds(20));
  EXPECT_TRUE(worker().Ready());
  nodes[2].Resume();
  ExpectItProcesses(1000);
  ExpectNodesUp(5);
  ExpectTheTruth();
}

TEST_F(LockNodesBadDay, ANodeWithoutMemoryIsCountedAndDoneWithout) {
  RedisServers nodes(5);
  Start(nodes);
  nodes[3].Command({"CONFIG", "SET", "maxmemory", "1"});
  ExpectItProcesses(2000);
  ExpectCounted("fencepost_redis_command_errors_total", {{"node", "d"}, {"reason", "oom"}});
  nodes[3].Command({"CONFIG", "SET", "maxmemory", "0"});
  ExpectItProcesses(500);
  ExpectTheTruth();
}

TEST_F(LockNodesBadDay, ANodeThatMayEvictLocksIsLeftOutAndComesBackInQuarantine) {
  RedisServers nodes(5);
  Start(nodes);
  ExpectNodesUp(5);
  nodes[0].Command({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"});
  ExpectNodesUp(4);
  ExpectNode(0, "noeviction", false);
  EXPECT_TRUE(worker().Ready());
  ExpectItProcesses(500);
  nodes[0].Command({"CONFIG", "SET", "maxmemory-policy", "noeviction"});
  ExpectNodesUp(5);
  ExpectNode(0, "", true);  // it may have evicted what was held
  ExpectItProcesses(500);
  ExpectTheTruth();
}

// Where no quorum is left without them, nothing is processed, nothing lost, and it goes on by
// itself.
TEST_F(LockNodesBadDay, NodesThatMayEvictLocksAreNamedAndWaitedFor) {
  RedisServers nodes(5);
  Start(nodes);
  const int before = table_->Count();
  for (const std::size_t node : {0U, 1U, 2U}) {
    nodes[node].Command({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"});
  }
  ExpectItSays("lock node a: its maxmemory-policy is 'allkeys-lru'");
  orders_.Produce(500);
  EXPECT_EQ(table_->Count(), before);
  for (const std::size_t node : {0U, 1U, 2U}) {
    nodes[node].Command({"CONFIG", "SET", "maxmemory-policy", "noeviction"});
  }
  ExpectItSays("quarantine");
  ExpectItProcesses(500, seconds(90));
  ExpectTheTruth();
}

TEST_F(LockNodesBadDay, AStoreThatAllowsOnlyShorterLeasesIsNamedAndWaitedFor) {
  RedisServers nodes(5);
  InitLocks(nodes, "2s");
  PipelineText text = Text(4);
  text.nodes = nodes.list();
  orders_.Produce(300);
  team_.emplace(Worker(text));
  team_->Start(1);
  ExpectItSays("lock.ttl of 3000 ms is above the lock store's max_ttl of 2000 ms");
  EXPECT_EQ(table_->Count(), 0);
  const Finished again =
      RunFencepost({"locks", "init", "--force", "--redis", nodes.list(), "--max-ttl", "3s"});
  EXPECT_EQ(again.exit_code, 0) << again.error_output;
  ExpectItProcesses(300);
  ExpectTheTruth();
}

TEST_F(LockNodesBadDay, AReadOnlyReplicaIsLeftOutAndComesBackInQuarantine) {
  RedisServers nodes(5);
  Start(nodes);
  ExpectNodesUp(5);
  // Of a primary that does not exist, so that it keeps its data.
  nodes[1].Command({"REPLICAOF", "127.0.0.1", std::to_string(FreePort())});
  ExpectNodesUp(4);
  ExpectItProcesses(500);
  ExpectNode(1, "its role is 'slave'", false);
  nodes[1].Command({"REPLICAOF", "NO", "ONE"});
  ExpectNodesUp(5);
  ExpectNode(1, "", true);  // it may have had another's data
  ExpectItProcesses(500);
  ExpectTheTruth();
}

}  // namespace
}  // namespace fencepost::testing
