// Bad days of two groups of lock nodes under one pipeline: a group that loses its quorum, one that
// forgets everything, and a worker with another list. Each test has nodes of its own.
#include <gmock/gmock.h>

#include "consumer/record/identity.h"
#include "locking/core/group_place.h"
#include "tests/support/pipeline_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

class LockGroupsBadDay : public PipelineTest {
 protected:
  LockGroupsBadDay() : orders_(Kafka().bootstrap(), name_, 4, 5, 0.05) {}

  std::string List(std::size_t group) {
    std::vector<std::string> nodes;
    for (std::size_t i = 0; i < 3; ++i) nodes.push_back(nodes_.addresses()[3 * group + i]);
    return fmt::format("{}", fmt::join(nodes, ","));
  }
  Finished Init(std::size_t first, std::size_t second, std::vector<std::string> more = {}) {
    std::vector<std::string> words{"locks",   "init",      "--max-ttl", "3s",
                                   "--redis", List(first), "--redis",   List(second)};
    words.insert(words.end(), more.begin(), more.end());
    return RunFencepost(words);
  }
  PipelineText WithGroups(PipelineText text, std::size_t first, std::size_t second) {
    text.groups = fmt::format("[{}], [{}]", List(first), List(second));
    text.order = "none";  // so that no record waits for another one's group
    return text;
  }
  [[nodiscard]] int InGroup(int group, int from, int to) const {
    int count = 0;
    for (int order = from; order < to; ++order) {
      const std::string key = consumer::LockName(name_, Orders::Id(order));
      count += locking::GroupOf(key, 2) == group ? 1 : 0;
    }
    return count;
  }
  void ExpectItProcesses(int records, Deadline limit = seconds(60)) {
    orders_.Produce(records);
    EXPECT_TRUE(AllCommitted(limit)) << worker().Readiness() << team_->Tails();
  }
  void ExpectItSays(WorkerProcess& who, const std::string& part) {
    EXPECT_TRUE(WaitUntil(
        seconds(30), [&] { return who.Readiness().find(part) != std::string::npos; },
        "the worker to say '" + part + "'"))
        << who.Readiness() << team_->Tails();
  }
  void ExpectTheTruth() {
    EXPECT_EQ(team_->StopAll(), "");
    EXPECT_EQ(table_->Audit(name_, orders_.unique()), "");
    EXPECT_EQ(team_->Sum("fencepost_invariant_violations_total"), 0);
  }
  WorkerProcess& worker() { return (*team_)[0]; }

  Orders orders_;
  RedisServers nodes_{6, {.appendonly = true}};
  std::optional<WorkerTeam> team_;
};

TEST_F(LockGroupsBadDay, AGroupWithoutAQuorumHoldsUpItsOwnNamesAndOneThatForgetsCostsNothing) {
  ASSERT_EQ(Init(0, 1).exit_code, 0);
  team_.emplace(Worker(WithGroups(Text(4), 0, 1)));
  team_->Start(2);
  ExpectItProcesses(3000);
  EXPECT_EQ(worker().Now("fencepost_redis_node_up", {{"node", "f"}}), 1);

  const int before = orders_.unique();
  for (const std::size_t node : {3U, 4U}) nodes_[node].Kill();
  ExpectItSays(worker(), "group 2: no quorum of lock nodes");
  EXPECT_EQ(worker().Now("fencepost_redis_quorum_available"), 0);
  orders_.Produce(1000);
  const int wanted = before + InGroup(0, before, orders_.unique());
  ASSERT_LT(wanted, orders_.unique());
  EXPECT_TRUE(Effects(wanted)) << worker().Readiness() << team_->Tails();
  EXPECT_EQ(table_->Count(), wanted) << "names of the second group wait";

  (*team_)[1].Kill();  // what it was waiting for is another's
  for (const std::size_t node : {3U, 4U}) nodes_[node].Start();
  EXPECT_TRUE(AllCommitted(seconds(90))) << worker().Readiness() << team_->Tails();

  orders_.Produce(10'000);
  ASSERT_TRUE(Effects(before + 2500)) << team_->Tails();
  for (const std::size_t node : {0U, 1U, 2U}) nodes_[node].Command({"FLUSHALL"});
  EXPECT_TRUE(AllCommitted(seconds(90))) << worker().Readiness() << team_->Tails();
  EXPECT_TRUE(WaitUntil(
      seconds(30), [&] { return worker().Ready(); }, "it to be ready"))
      << worker().Readiness();
  ExpectTheTruth();
}

TEST_F(LockGroupsBadDay, TheRecordsOfAGroupWithoutAQuorumGoOnByTheLedgerWhereItSaysProceed) {
  ASSERT_EQ(Init(0, 1).exit_code, 0);
  PipelineText text = WithGroups(Text(4), 0, 1);
  text.max_skew = "2s\n  on_unavailable: proceed";
  text.output = fmt::format(
      "output: {{postgres: {{dsn: \"{}\", table: effects,"
      " columns: {{order_id: json:/order_id, amount: json:/amount}}}}}}\n",
      text.dsn);
  team_.emplace(Worker(text));
  team_->Start(1);
  ExpectItProcesses(500);
  EXPECT_EQ(worker().Now("fencepost_records_unlocked_total"), 0);
  const int before = orders_.unique();
  for (const std::size_t node : {3U, 4U}) nodes_[node].Kill();
  EXPECT_TRUE(WaitUntil(
      seconds(30), [&] { return worker().Log().find("\"unlocked\"") != std::string::npos; },
      "it to go on without a lock"));
  ExpectItProcesses(1000);
  EXPECT_TRUE(worker().Ready()) << worker().Readiness();
  const double unlocked = worker().Now("fencepost_records_unlocked_total");
  EXPECT_GE(unlocked, InGroup(1, before, orders_.unique()));
  EXPECT_LT(unlocked, 1000) << "those of the first group are locked";
  ExpectTheTruth();
}

TEST_F(LockGroupsBadDay, AWorkerWithAnotherOrderOfGroupsLocksNothingUntilTheyAreChangedForAll) {
  ASSERT_EQ(Init(0, 1).exit_code, 0);
  const PipelineText text = Text(4);
  team_.emplace(Worker(WithGroups(text, 0, 1)));
  team_->Start(1);
  ExpectItProcesses(500);
  EXPECT_EQ(team_->StopAll(), "");

  WorkerTeam turned(Worker(WithGroups(text, 1, 0)));
  turned.Start(1);
  orders_.Produce(500);
  ExpectItSays(turned[0], "its lock store is group 2 of 2, but it is listed in group 1 of 2");
  EXPECT_FALSE(turned[0].Ready());
  EXPECT_EQ(turned[0].Now("fencepost_locks_held"), 0);
  EXPECT_THAT(Init(1, 0).error_output, HasSubstr("its lock store is group 2 of 2"));
  EXPECT_EQ(turned.StopAll(), "");

  const Finished forced = Init(1, 0, {"--force"});  // as OPERATIONS says
  EXPECT_EQ(forced.exit_code, 0) << forced.error_output;
  EXPECT_THAT(forced.output, HasSubstr("of group 2 of 2 created over 3 nodes; it counts at once"));
  team_.emplace(Worker(WithGroups(text, 1, 0)));
  team_->Start(1);
  EXPECT_TRUE(AllCommitted(seconds(60))) << worker().Readiness() << team_->Tails();
  ExpectTheTruth();
}

}  // namespace
}  // namespace fencepost::testing
