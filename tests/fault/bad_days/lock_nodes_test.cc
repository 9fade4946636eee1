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
    ExpectAllDone(*team_, orders_.unique());
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

// lock.on_unavailable: proceed. Workers die, freeze and come while there is no lock at all; the
// frozen one wakes up with leases of before.
TEST_F(LockNodesBadDay, AllDownAreDoneWithoutUnderLoadAndKillsWhereThePipelineSaysProceed) {
  RedisServers nodes(5, {.appendonly = true});
  InitLocks(nodes);
  PipelineText text = Text(4);
  text.nodes = nodes.list();
  text.max_skew = "2s\n  on_unavailable: proceed";
  text.tokens = false;
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
  ExpectSays(worker(), "ready");
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

TEST_F(LockNodesBadDay, AStoreThatAllowsOnlyShorterLeasesIsNamedAndWaitedFor) {
  RedisServers nodes(5);
  InitLocks(nodes, "2s");
  PipelineText text = Text(4);
  text.nodes = nodes.list();
  orders_.Produce(300);
  team_.emplace(Worker(text));
  team_->Start(1);
  ExpectSays(worker(), "lock.ttl of 3000 ms is above the lock store's max_ttl of 2000 ms");
  EXPECT_EQ(table_->Count(), 0);
  const Finished again =
      RunFencepost({"locks", "init", "--force", "--redis", nodes.list(), "--max-ttl", "3s"});
  EXPECT_EQ(again.exit_code, 0) << again.error_output;
  ExpectItProcesses(300);
  ExpectTheTruth();
}

// What is done to some of five nodes, and undone, and what is to be seen of it.
struct Ill {
  using Act = void (*)(RedisServer&);
  const char* name;
  std::vector<std::size_t> nodes;
  Act begin, end;
  int up;                    // so many count as up then
  const char* problem;       // the page of the first says, or without a quorum /ready
  bool quarantined = false;  // since it may have lost, or had another's, locks
};

class IllNodes : public LockNodesBadDay, public ::testing::WithParamInterface<Ill> {};

TEST_P(IllNodes, AreDoneWithoutOrNamedAndWaitedForAndCostNothing) {
  const Ill& ill = GetParam();
  const std::size_t first = ill.nodes[0];
  const bool quorum = ill.nodes.size() <= 2;
  RedisServers nodes(5, {.appendonly = true});
  Start(nodes);
  ExpectNodesUp(5);
  const int before = table_->Count();
  for (const std::size_t node : ill.nodes) ill.begin(nodes[node]);
  if (quorum) {
    ExpectItProcesses(2000, seconds(20));
    ExpectNodesUp(ill.up);
    ExpectNode(first, ill.problem, false);
    EXPECT_TRUE(worker().Ready());
  } else {
    ExpectSays(worker(), ill.problem);
    orders_.Produce(500);
    ExpectNodesUp(ill.up);
    EXPECT_EQ(worker().Now("fencepost_redis_quorum_available"), 0);
    EXPECT_EQ(worker().Get("/live").status, 200);
    EXPECT_EQ(table_->Count(), before);
  }
  for (const std::size_t node : ill.nodes) ill.end(nodes[node]);
  // First what ends: a quarantine may be over before another node is connected again.
  if (ill.quarantined) ExpectNode(first, "", true);
  ExpectNodesUp(5);
  ExpectItProcesses(500, seconds(90));
  ExpectTheTruth();
}

void Kill(RedisServer& node) { node.Kill(); }
void Start(RedisServer& node) { node.Start(); }
void Evict(RedisServer& node) {
  node.Command({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"});
}
void KeepAll(RedisServer& node) {
  node.Command({"CONFIG", "SET", "maxmemory-policy", "noeviction"});
}

INSTANTIATE_TEST_SUITE_P(
    Nodes, IllNodes,
    ::testing::Values(Ill{"TwoOfFiveDown", {1, 4}, Kill, Start, 3, "", true},
                      Ill{"ThreeOfFiveDown", {0, 1, 2}, Kill, Start, 2, "no quorum", true},
                      Ill{"AFrozenOne",
                          {2},
                          [](RedisServer& node) { node.Pause(); },
                          [](RedisServer& node) { node.Resume(); },
                          4,
                          ""},
                      Ill{"OneWithoutMemory",
                          {3},
                          [](RedisServer& node) {
                            node.Command({"CONFIG", "SET", "maxmemory", "1"});
                          },
                          [](RedisServer& node) {
                            node.Command({"CONFIG", "SET", "maxmemory", "0"});
                          },
                          5,
                          ""},
                      Ill{"OneThatMayEvict", {0}, Evict, KeepAll, 4, "noeviction", true},
                      Ill{"ThreeThatMayEvict",
                          {0, 1, 2},
                          Evict,
                          KeepAll,
                          2,
                          "lock node a: its maxmemory-policy is 'allkeys-lru'",
                          true},
                      // Of a primary that does not exist, so that it keeps its data.
                      Ill{"AReadOnlyReplica",
                          {1},
                          [](RedisServer& node) {
                            node.Command({"REPLICAOF", "127.0.0.1", std::to_string(FreePort())});
                          },
                          [](RedisServer& node) {
                            node.Command({"REPLICAOF", "NO", "ONE"});
                          },
                          4,
                          "its role is 'slave'",
                          true}),
    [](const auto& ill) { return std::string(ill.param.name); });

}  // namespace
}  // namespace fencepost::testing
