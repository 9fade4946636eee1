// The series of the group: assigned, revoked, lost, and commits that nobody takes.
#include <gmock/gmock.h>

#include "tests/e2e/metrics/metrics_test.h"
#include "tests/support/kafka_group.h"

namespace fencepost::testing {
namespace {

using namespace std::chrono_literals;

class KafkaMetrics : public MetricsTest {};

TEST_F(KafkaMetrics, PartitionsThatComeGoAndAreLost) {
  PipelineText text = Text(2);
  WorkerTeam team(Worker(text));
  team.Start(1);
  ExpectMoves(team[0], "rebalances_total", {{"event", "assigned"}});
  team.Add();
  ExpectMoves(team[0], "rebalances_total", {{"event", "revoked"}});
  ExpectMoves(team[1], "partitions_assigned");
  ExpectMoves(team[0], "rebalance_duration_seconds_count", {}, 1);
  SendOrder(0, "o-1", "k");
  SendOrder(1, "o-2", "k");
  ExpectMoves(team[0], "offset_commits_total", {{"result", "committed"}});
  team[0].Pause();
  EXPECT_TRUE(WaitUntil(
      60s, [&] { return team[1].Now("fencepost_partitions_assigned") == 2; },
      "the other to have both"));
  team[0].Resume();
  ExpectMoves(team[0], "rebalances_total", {{"event", "lost"}});
}

// A killed worker is a member until its session is over, so that nobody else has its partition.
TEST_F(KafkaMetrics, TheLagOfAPartitionThatNoWorkerHoldsIsToldByAnotherWorker) {
  PipelineText text = Text(2);
  text.session_ms = 200'000;
  WorkerTeam team(Worker(text));
  team.Start(2);
  for (std::size_t one : {0U, 1U}) {
    ASSERT_TRUE(Shows(team[one], "fencepost_partitions_assigned", {}, 1)) << team[one].Log();
  }
  for (int partition : {0, 1}) SendOrder(partition, fmt::format("first-{}", partition), "k");
  ASSERT_TRUE(AllCommitted());
  team[1].Kill();
  for (int partition : {0, 1}) {
    for (int i = 0; i < 5; ++i) SendOrder(partition, fmt::format("o-{}-{}", partition, i), "k");
  }
  // For a moment its own five may be all that there are.
  EXPECT_TRUE(WaitUntil(
      60s,
      [&] {
        return team[0].Now("fencepost_group_lag_records") == 5 &&
               team[0].Now("fencepost_consumer_lag_records") == 0;
      },
      "the lag of the other's partition"))
      << team[0].Log();
}

// As KEDA and other exporters compute it: from the group's offsets to the ends, markers included.
TEST_F(KafkaMetrics, TheLagIsZeroBehindTheMarkersOfTransactions) {
  WorkerProcess worker(Worker(Text(1)));
  ASSERT_TRUE(Shows(worker, "fencepost_partitions_assigned", {}, 1)) << worker.Log();
  const Labels partition = {{"topic", name_}, {"partition", "0"}};
  auto table = std::make_unique<TableLock>(*table_);
  TestProducer producer(Kafka().bootstrap(), name_ + "-source");
  const auto transaction = [&](const std::vector<std::string>& ids) {
    producer.Begin();
    for (const std::string& id : ids) {
      producer.Send(name_, 0, id, fmt::format(R"({{"order_id":"{}","amount":5}})", id));
    }
  };
  transaction({"o-1", "o-2"});
  producer.Commit();  // a marker at 2
  transaction({"o-3"});
  producer.Abort();  // a marker at 4
  EXPECT_TRUE(Shows(worker, "fencepost_group_lag_records", {}, 5)) << worker.Log();
  EXPECT_TRUE(Shows(worker, "fencepost_consumer_lag_records", partition, 2)) << worker.Log();
  table.reset();
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_THAT(Committed(), ::testing::ElementsAre(5));
  EXPECT_TRUE(Shows(worker, "fencepost_group_lag_records", {}, 0)) << worker.Log();
  EXPECT_EQ(worker.Now("fencepost_consumer_lag_records", partition), 0);
  EXPECT_EQ(table_->Count(), 2);
}

// Its heartbeats are so rare that only a commit tells it that it is no member any more.
TEST_F(KafkaMetrics, WhatWaitsAndCommitsThatAreNotTaken) {
  PipelineText text = Text(1);
  text.session_ms = 200'000;
  text.heartbeat_ms = 190'000;
  WorkerProcess worker(Worker(text));
  const Labels partition = {{"topic", name_}, {"partition", "0"}};
  auto table = std::make_unique<TableLock>(*table_);
  SendOrder(0, "o-1", "a");
  SendOrder(0, "o-2", "b");
  ASSERT_TRUE(Shows(worker, "fencepost_locks_held", {}, 2)) << worker.Log();
  EXPECT_TRUE(Shows(worker, "fencepost_consumer_lag_records", partition, 2)) << worker.Log();
  EXPECT_EQ(worker.Now("fencepost_commit_gap_records"), 0);
  Kafka().Pause();
  table.reset();
  EXPECT_TRUE(Shows(worker, "fencepost_commit_gap_records", {}, 2)) << worker.Log();
  EXPECT_TRUE(Shows(worker, "fencepost_consumer_lag_records", partition, 0)) << worker.Log();
  Kafka().Resume();
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_TRUE(Shows(worker, "fencepost_commit_gap_records", {}, 0)) << worker.Log();

  EXPECT_EQ(RemoveMembers(Kafka().bootstrap(), name_), 1);
  SendOrder(0, "o-3", "c");
  ExpectMoves(worker, "offset_commits_total", {{"result", "rejected"}});
  EXPECT_TRUE(AllCommitted()) << worker.Log();

  table = std::make_unique<TableLock>(*table_);
  SendOrder(0, "o-4", "d");
  ASSERT_TRUE(Shows(worker, "fencepost_locks_held", {}, 1)) << worker.Log();
  EXPECT_EQ(worker.Now("fencepost_offset_commits_total", {{"result", "failed"}}), 0);
  Kafka().admin().DeleteTopic(name_);
  table.reset();
  ExpectMoves(worker, "offset_commits_total", {{"result", "failed"}});
  EXPECT_EQ(table_->Count(), 4);
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
}

}  // namespace
}  // namespace fencepost::testing
