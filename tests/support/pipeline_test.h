// The servers of a test program, started once, and a topic, a table and a pipeline file for each
// test.
#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/pipeline_servers.h"
#include "tests/support/worker_process.h"

namespace fencepost::testing {

class PipelineTest : public ::testing::Test {
 protected:
  static KafkaBroker& Kafka() {
    static KafkaBroker broker;
    return broker;
  }
  static PostgresServer& Postgres() {
    static PostgresServer server;
    return server;
  }
  // A store by kImmediate, with a max_ttl of 3 s.
  static RedisServers& Nodes() {
    static const auto nodes = [] {
      auto servers = std::make_unique<RedisServers>(5);
      InitLocks(*servers);
      return servers;
    }();
    return *nodes;
  }

  PipelineTest() {
    static int number = 0;
    name_ = fmt::format("orders-{}", ++number);
    table_ = std::make_unique<EffectsTable>(Postgres(), name_);
  }

  // A pipeline over a topic of its own.
  PipelineText Text(int partitions) {
    Kafka().CreateTopic(name_, partitions);
    PipelineText text;
    text.name = text.topic = name_;
    text.brokers = Kafka().bootstrap();
    text.nodes = Nodes().list();
    text.dsn = table_->dsn();
    text.mysql = table_->mysql();
    text.sqlite_path = table_->sqlite_path();
    return text;
  }
  WorkerOptions Worker(const PipelineText& text) const {
    return {.files = {folder_.Write(text.name + ".yaml", text.Yaml())}, .name = "worker-1"};
  }
  void Send(int partition, const std::string& value) const {
    TestProducer producer(Kafka().bootstrap());
    producer.Send(name_, partition, "k", value);
    producer.Flush();
  }
  // The pipeline's orders, the first of which are in its topic.
  Orders Produced(int records, int partitions) const {
    Orders orders(Kafka().bootstrap(), name_, partitions);
    orders.Produce(records);
    return orders;
  }
  ::testing::AssertionResult Effects(int rows, Deadline limit = std::chrono::seconds(60)) const {
    return WaitUntil(
        limit, [&] { return table_->Count() >= rows; },
        fmt::format("{} effects, there are {}", rows, table_->Count()));
  }
  ::testing::AssertionResult AllCommitted(Deadline limit = std::chrono::seconds(60)) const {
    return WaitUntil(
        limit, [&] { return CommittedToTheEnd(Kafka(), name_, name_); },
        "the group's offsets to be the ends of the partitions");
  }
  // All is committed, each worker ends with 0, and each of so many orders took effect once.
  void ExpectAllDone(WorkerProcess& worker) const {
    EXPECT_TRUE(AllCommitted()) << worker.Readiness() << worker.Log();
    EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  }
  void ExpectAllDone(WorkerProcess& worker, int orders) const {
    ExpectAllDone(worker);
    EXPECT_EQ(table_->Audit(name_, orders), "");
  }
  void ExpectAllDone(WorkerTeam& team, int orders) const {
    EXPECT_TRUE(AllCommitted()) << team.Tails();
    EXPECT_EQ(team.StopAll(), "");
    EXPECT_EQ(table_->Audit(name_, orders), "");
  }
  [[nodiscard]] std::vector<std::int64_t> Committed() const {
    return Kafka().admin().CommittedOffsets(name_, name_);
  }

  std::string name_;  // of the pipeline, its group, its topic and its database
  TempDir folder_;
  std::unique_ptr<EffectsTable> table_;
};

}  // namespace fencepost::testing
