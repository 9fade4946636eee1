// Stops and rebalances while handlers run.
#include <regex>
#include <set>

#include <gmock/gmock.h>

#include "tests/e2e/trouble/trouble_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// What a dead worker held stays on the nodes for ttl + 2 * max_skew = 34 s. Who is quicker than
// this did not wait for it. No lease ends because the machine is busy.
constexpr const char* kLongTtl = "30s";
constexpr seconds kWithoutWaiting{30};

class Shutdown : public TroubleTest {
 protected:
  PipelineText Text(int partitions) {
    static const auto nodes = [] {
      auto servers = std::make_unique<RedisServers>(5);
      InitLocks(*servers, kLongTtl);
      return servers;
    }();
    PipelineText text = TroubleTest::Text(partitions);
    text.nodes = nodes->list();
    text.ttl = kLongTtl;
    return text;
  }
  ::testing::AssertionResult Draining(WorkerProcess& worker) {
    return WaitUntil(seconds(10), "the worker to say that it drains", [&] {
      return !worker.Running() || worker.Readiness().find("draining") != std::string::npos;
    });
  }
  // Orders of a key each.
  void Produce(int orders, int partitions) {
    TestProducer producer(Kafka().bootstrap());
    for (int i = 0; i < orders; ++i) {
      producer.Send(name_, i % partitions, Orders::Id(i), Orders::Value(i));
    }
    producer.Flush();
  }
  // The offsets come to the end without waiting for anybody's TTL.
  void ExpectQuickEnd(const WorkerProcess& worker) {
    const auto since = steady_clock::now();
    EXPECT_TRUE(AllCommitted()) << worker.Log();
    EXPECT_LT(steady_clock::now() - since, kWithoutWaiting) << worker.Log();
  }
  // By a second signal, while it drains.
  void StopTwice(WorkerProcess& worker) {
    worker.Terminate();
    ASSERT_TRUE(Draining(worker));
    EXPECT_TRUE(worker.Running());
    worker.Terminate();
    EXPECT_EQ(worker.Wait(seconds(10)), 0) << worker.Log();
  }
  // The next worker does what is left of so many orders, and waits for no lease to end.
  void ExpectQuickRest(const PipelineText& text, int orders) {
    WorkerProcess worker(Worker(text));
    ExpectQuickEnd(worker);
    EXPECT_EQ(worker.Now("fencepost_lock_takeovers_total"), 0);
    ExpectAllDone(worker, orders);
  }
};

TEST_F(Shutdown, SigtermFinishesTheCallThatRunsAndReleasesTheRest) {
  PipelineText text = Text(1);
  text.more = Http() + "processing: {concurrency: 1}\n";
  HangOn(0);
  Produce(50, 1);
  {
    WorkerProcess worker(Worker(text));
    ASSERT_TRUE(WaitUntil(seconds(20), "a call to run while all are leased", [&] {
      return AllCalls() == 1 && worker.Now("fencepost_locks_held") == 50;
    })) << worker.Log();
    worker.Terminate();
    ASSERT_TRUE(Draining(worker));
    EXPECT_TRUE(Shows(worker, "fencepost_locks_held", {}, 1)) << "the rest is released at once";
    EXPECT_TRUE(worker.Running()) << "it waits for the call";
    service_.Release();
    EXPECT_EQ(worker.Wait(seconds(15)), 0) << worker.Log();
  }
  EXPECT_EQ(AllCalls(), 1) << "nothing new is begun";
  EXPECT_EQ(table_->Count(), 1);
  ExpectQuickRest(text, 50);
  EXPECT_EQ(AllCalls(), 50) << "each id was handled once";
}

TEST_F(Shutdown, AHandlerThatTakesLongerThanTheSessionCostsNoCommitAndDoublesNoDeadLetter) {
  PipelineText text = Text(1);
  text.session_ms = 2000;
  text.heartbeat_ms = 300;
  text.more =
      Http() + DeadLetters() +
      "retry: {never: [422]}\nprocessing: {concurrency: 1, timeout: 20s, revoke_drain: 21s}\n";
  for (int i = 0; i < 60; i += 2) Answers(Orders::Id(i), {422});
  HangOn(0);
  Produce(60, 1);
  {
    WorkerProcess worker(Worker(text));
    ASSERT_TRUE(WaitUntil(seconds(20), "a call", [&] { return AllCalls() == 1; })) << worker.Log();
    worker.Terminate();
    const auto since = steady_clock::now();
    ASSERT_TRUE(Draining(worker));
    ASSERT_TRUE(WaitUntil(seconds(20), "more than two sessions to pass", [&] {
      return !worker.Running() || steady_clock::now() > since + seconds(5);
    }));
    service_.Release();
    EXPECT_EQ(worker.Wait(seconds(15)), 0) << worker.Log();
    EXPECT_THAT(worker.Log(), Not(HasSubstr("revoke_commit_failed")));
    EXPECT_EQ(Letters().size(), 1u);
    EXPECT_EQ(Committed(), (std::vector<std::int64_t>{1}));
  }
  WorkerProcess worker(Worker(text));
  ExpectQuickEnd(worker);
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  std::set<std::string> ids;
  for (const TestRecord& letter : Letters()) ids.insert(*letter.value);
  EXPECT_EQ(ids.size(), 30u);
  EXPECT_EQ(Letters().size(), 30u);
  EXPECT_EQ(table_->Count(), 30);
}

TEST_F(Shutdown, ASecondSignalDoesNotWaitForAHandlerThatHangs) {
  PipelineText text = Text(1);
  text.more = Http() + "processing: {concurrency: 1, timeout: 20s, revoke_drain: 21s}\n";
  HangOn(0);
  Produce(20, 1);
  {
    WorkerProcess worker(Worker(text));
    ASSERT_TRUE(WaitUntil(seconds(20), "a call", [&] { return AllCalls() == 1; })) << worker.Log();
    StopTwice(worker);
  }
  EXPECT_EQ(table_->Count(), 0);
  ExpectQuickRest(text, 20);
}

TEST_F(Shutdown, ASecondSignalGivesBackWhatTheOutputHasInItsHands) {
  const PipelineText text = Text(1);
  Produce(20, 1);
  {
    const TableLock lock(*table_);
    WorkerProcess worker(Worker(text));
    ASSERT_TRUE(WaitUntil(seconds(20), "all to be leased", [&] {
      return worker.Now("fencepost_locks_held") == 20;
    })) << worker.Log();
    StopTwice(worker);
  }
  ExpectQuickRest(text, 20);
}

TEST_F(Shutdown, ARevokeFinishesWhatRunsAndReleasesTheRestAtOnce) {
  PipelineText text = Text(2);
  text.more = Http() + "processing: {concurrency: 1}\n";
  HangOn(0);
  Produce(60, 2);
  WorkerTeam team(Worker(text));
  team.Start(1);
  ASSERT_TRUE(WaitUntil(seconds(20), "a call to run while all are leased", [&] {
    return AllCalls() == 1 && team[0].Now("fencepost_locks_held") == 60;
  })) << team.Tails();
  team.Add();
  ExpectSays(team[0], "rebalancing");
  EXPECT_TRUE(Shows(team[0], "fencepost_locks_held", {}, 1)) << "the rest is released at once";
  service_.Release();
  ExpectQuickEnd(team[1]);
  team.Look();
  EXPECT_EQ(team.Sum("fencepost_lock_takeovers_total"), 0);
  EXPECT_GT(team[1].Last("fencepost_records_processed_total", {{"result", "done"}}), 0);
  EXPECT_EQ(AllCalls(), 60) << "each id was handled once";
  EXPECT_EQ(team.StopAll(), "");
  EXPECT_EQ(table_->Audit(name_, 60), "");
}

TEST_F(Shutdown, ReadySaysThatAQuorumIsLostAlsoWhileTheGroupRebalances) {
  RedisServers nodes(3);
  InitLocks(nodes);
  PipelineText text = TroubleTest::Text(2);
  text.nodes = nodes.list();
  text.more = Http() + "processing: {concurrency: 1}\n";
  HangOn(0);
  Produce(10, 2);
  WorkerTeam team(Worker(text));
  team.Start(1);
  ASSERT_TRUE(WaitUntil(seconds(20), "a call that hangs", [&] { return AllCalls() == 1; }))
      << team.Tails();
  team.Add();  // the first worker is asked for its partitions, and waits for the call
  for (const std::size_t node : {0U, 1U}) nodes[node].Kill();
  EXPECT_TRUE(WaitUntil(seconds(20), "both reasons, the graver one first", [&] {
    return std::regex_search(team[0].Readiness(),
                             std::regex("no quorum of lock nodes.*the group is rebalancing"));
  })) << team[0].Readiness();
  service_.Release();
}

TEST_F(Shutdown, ARollingRestartUnderLoadRepeatsNoCallButTheCountedRetries) {
  PipelineText text = Text(6);
  text.more = Http() +
              "processing: {concurrency: 8}\n"
              "retry: {backoff: {initial: 20ms, max: 50ms}}\n";
  Orders orders(Kafka().bootstrap(), name_, 6);
  std::set<std::string> refused_once;
  for (int i = 0; i < 20'000; i += 40) {
    Answers(Orders::Id(i), {503, 200});
    refused_once.insert(Orders::Id(i));
  }
  WorkerTeam team(Worker(text));
  team.Start(3);
  for (std::size_t old = 0; old < 3; ++old) {
    const int before = std::max(0, table_->Count());
    orders.Produce(3000);
    ASSERT_TRUE(Effects(before + 200)) << team.Tails();
    team[old].Terminate();
    ASSERT_TRUE(WaitUntil(seconds(30), "a worker to end", [&] {
      team.Look();
      return !team[old].Running();
    }));
    EXPECT_EQ(team[old].Wait(seconds(1)), 0) << team.Tails();
    team.Add();
  }
  EXPECT_TRUE(AllCommitted()) << team.Tails();
  team.Look();
  int repeated = 0;
  for (const auto& [id, count] : Calls()) {
    repeated += count - 1;
    EXPECT_EQ(count, refused_once.contains(id) ? 2 : 1) << id;
  }
  EXPECT_GT(repeated, 0);
  // What a worker counted between the last look at its metrics and its end is not seen.
  EXPECT_GT(team.Sum("fencepost_retries_total", {{"stage", "handler"}}), 0);
  EXPECT_LE(team.Sum("fencepost_retries_total", {{"stage", "handler"}}), repeated);
  EXPECT_EQ(team.Sum("fencepost_lock_takeovers_total"), 0);
  EXPECT_EQ(team.StopAll(), "");
  EXPECT_EQ(table_->Audit(name_, orders.unique()), "");
}

TEST_F(Shutdown, AHandlerThatNeverReturnsEndsWithTheProcessSomeSecondsAfterTheLimit) {
  PipelineText text = Text(2);
  text.more =
      "handler: {jq: 'def f: f; if .amount == 4711 then f else . end'}\n"
      "processing: {timeout: 200ms, revoke_drain: 500ms}\n"
      "shutdown_timeout: 1s\n";
  WorkerTeam team(Worker(text));
  team.Start(2);
  ASSERT_TRUE(WaitUntil(seconds(20), "both workers to have a partition", [&] {
    team.Look();
    return team[0].Last("fencepost_partitions_assigned") == 1 &&
           team[1].Last("fencepost_partitions_assigned") == 1;
  })) << team.Tails();
  SendOrder(0, "o-0", "k", "4711");
  SendOrder(1, "o-1", "k", "4711");
  ASSERT_TRUE(WaitUntil(seconds(20), "both workers to have a record that hangs", [&] {
    team.Look();
    return team[0].Last("fencepost_records_in_flight") == 1 &&
           team[1].Last("fencepost_records_in_flight") == 1;
  })) << team.Tails();
  for (std::size_t i = 0; i < 2; ++i) team[i].Terminate();
  ASSERT_TRUE(Draining(team[1]));
  team[1].Terminate();
  EXPECT_EQ(team[1].Wait(seconds(10)), 1) << team.Tails();
  EXPECT_EQ(team[0].Wait(seconds(15)), 1) << team.Tails();
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_THAT(team[i].ErrorLines(),
                ElementsAre(AllOf(HasSubstr("the pipelines did not stop within"),
                                  ContainsRegex(i == 0 ? "within 1[1-9] s" : "within [5-9] s"),
                                  HasSubstr("pipeline '" + name_ + "' waits for its handler"),
                                  HasSubstr("the oldest record was " + name_))));
  }
  EXPECT_EQ(table_->Count(), 0);
}

}  // namespace
}  // namespace fencepost::testing
