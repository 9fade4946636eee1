// The series of the lock nodes: each is made to fail in every way, under a worker that goes on.
#include <gmock/gmock.h>

#include "tests/e2e/metrics/metrics_test.h"

namespace fencepost::testing {
namespace {

using namespace std::chrono_literals;

class NodeMetrics : public MetricsTest {
 protected:
  NodeMetrics() : nodes_(5, {.own_clock = true}) { InitLocks(nodes_); }

  PipelineText Text() {
    PipelineText text = MetricsTest::Text(1);
    text.nodes = nodes_.list();
    return text;
  }
  // Its handler hangs on o-1 until the service is released: the lease has to be extended.
  std::unique_ptr<WorkerProcess> HolderOfALease() {
    PipelineText text = Text();
    text.more = Http() + "processing: {timeout: 60s, revoke_drain: 61s}\n";
    HangOn(0);
    auto worker = std::make_unique<WorkerProcess>(Worker(text));
    SendOrder(0, "o-1", "k");
    EXPECT_TRUE(Called("o-1")) << worker->Log();
    return worker;
  }
  // Sends orders until the series moves: what a node refuses shows when it is asked.
  void ExpectMovesWithWork(WorkerProcess& worker, const std::string& metric, const Labels& labels) {
    std::string series = metric;
    for (const auto& [name, value] : labels) series += fmt::format(" {}={}", name, value);
    EXPECT_TRUE(WaitUntil(
        60s,
        [&] {
          if (worker.Now("fencepost_records_in_flight") == 0) {
            SendOrder(0, fmt::format("w-{}", sent_++), "k");
          }
          return worker.Now("fencepost_" + metric, labels) > 0;
        },
        series))
        << worker.Readiness();
  }
  void Error(WorkerProcess& worker, const std::string& node, const std::string& reason) {
    ExpectMovesWithWork(worker, "redis_command_errors_total", {{"node", node}, {"reason", reason}});
  }

  RedisServers nodes_;
  int sent_ = 0;
};

TEST_F(NodeMetrics, EveryKindOfErrorIsCountedAtItsNode) {
  WorkerProcess worker(Worker(Text()));
  ExpectMoves(worker, "redis_quorum_available");
  nodes_[0].Command({"SCRIPT", "FLUSH"});
  Error(worker, "a", "noscript");
  nodes_[1].Command({"CONFIG", "SET", "maxmemory", "1"});
  Error(worker, "b", "oom");
  nodes_[1].Command({"CONFIG", "SET", "maxmemory", "0"});
  nodes_[2].Command({"ACL", "SETUSER", "default", "-evalsha", "-set"});
  Error(worker, "c", "auth");
  nodes_[2].Command({"ACL", "SETUSER", "default", "+evalsha", "+set"});
  nodes_[2].Command({"CONFIG", "SET", "min-replicas-to-write", "1"});
  Error(worker, "c", "other");
  nodes_[2].Command({"CONFIG", "SET", "min-replicas-to-write", "0"});
  nodes_[3].Pause();
  Error(worker, "d", "timeout");
  nodes_[3].Resume();
  nodes_[4].Kill();
  Error(worker, "e", "connection");
  EXPECT_TRUE(Shows(worker, "fencepost_redis_node_up", {{"node", "e"}}, 0));
  nodes_[4].Start();
  ExpectMoves(worker, "redis_reconnects_total", {{"node", "e"}});
  ExpectMoves(worker, "redis_node_restarts_detected_total", {{"node", "e"}});
  ExpectMoves(worker, "redis_node_quarantined", {{"node", "e"}});
  nodes_[0].ShiftClock(60s);
  EXPECT_TRUE(WaitUntil(
      60s,
      [&] {
        return worker.Now("fencepost_redis_node_clock_offset_seconds", {{"node", "a"}}) > 50;
      },
      "the clock's offset"));
  ExpectMoves(worker, "redis_node_quarantined", {{"node", "a"}});
}

// While no quorum may be asked no record begins: a round fails of one that waits for its lock.
TEST_F(NodeMetrics, NodesThatMayEvictLocksFailTheRoundsOfWhoWaits) {
  WorkerProcess worker(Worker(Text()));
  Put(nodes_, "o-held", HeldBy(TokenAt(-1000ms), 600s));
  SendOrder(0, "o-held", "k");
  ExpectMoves(worker, "lock_acquisitions_total", {{"result", "contended"}});
  for (const std::size_t node : {0U, 1U, 2U}) {
    nodes_[node].Command({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"});
  }
  ExpectMoves(worker, "quorum_failures_total", {{"reason", "policy"}});
}

// Its role is looked at every two seconds, and from then on nobody writes to it: now and then that
// look comes first, and it is tried again.
TEST_F(NodeMetrics, AWriteThatAReplicaRefusesIsCounted) {
  WorkerProcess worker(Worker(Text()));
  const Labels readonly = {{"node", "b"}, {"reason", "readonly"}};
  const auto refused = [&] {
    return worker.Now("fencepost_redis_command_errors_total", readonly) > 0;
  };
  EXPECT_TRUE(WaitUntil(
      60s,
      [&] {
        nodes_[1].Command({"REPLICAOF", "NO", "ONE"});
        if (!WaitUntil(
                20s, [&] { return worker.Ready(); }, "the worker to be ready"))
          return false;
        nodes_[1].Command({"REPLICAOF", "127.0.0.1", std::to_string(FreePort())});
        SendOrder(0, fmt::format("r-{}", sent_++), "k");
        const auto seen = WaitUntil(20s, [&] { return refused() || !worker.Ready(); });
        return seen && refused();
      },
      "a refused write"))
      << worker.Readiness();
}

TEST_F(NodeMetrics, NodesThatAreGoneFrozenOrFullAreToldApart) {
  WorkerProcess worker(Worker(Text()));
  ExpectMoves(worker, "redis_quorum_available");
  for (const std::size_t node : {0U, 1U, 2U}) {
    nodes_[node].Command({"CONFIG", "SET", "maxmemory", "1"});
  }
  ExpectMovesWithWork(worker, "lock_acquisitions_total", {{"result", "error"}});
  for (const std::size_t node : {0U, 1U, 2U}) {
    nodes_[node].Command({"CONFIG", "SET", "maxmemory", "0"});
  }
  for (const std::size_t node : {0U, 1U, 2U}) nodes_[node].Pause();
  ExpectMovesWithWork(worker, "lock_acquisitions_total", {{"result", "timeout"}});
  ExpectMovesWithWork(worker, "quorum_failures_total", {{"reason", "timeout"}});
  for (const std::size_t node : {0U, 1U, 2U}) nodes_[node].Resume();
  EXPECT_TRUE(WaitUntil(
      60s, [&] { return worker.Ready(); }, "the worker to be ready"));
  const double paused = worker.Now("fencepost_backpressure_seconds_total");
  Put(nodes_, "last", HeldBy(TokenAt(0ms), 60s));
  SendOrder(0, "last", "k");
  ExpectMoves(worker, "lock_acquisitions_total", {{"result", "contended"}});
  // Rounds that full nodes refused are counted there, too.
  const double refused = worker.Now("fencepost_quorum_failures_total", {{"reason", "unreachable"}});
  for (const std::size_t node : {0U, 1U, 2U}) nodes_[node].Kill();
  ExpectMoves(worker, "quorum_failures_total", {{"reason", "unreachable"}}, refused);
  EXPECT_TRUE(Shows(worker, "fencepost_redis_quorum_available", {}, 0));
  EXPECT_TRUE(Shows(worker, "fencepost_partitions_paused", {}, 1));
  EXPECT_EQ(worker.Now("fencepost_backpressure_seconds_total"), paused)
      << "an outage is no backpressure";
}

// That is seen when a lease has to be extended: the handler hangs.
TEST_F(NodeMetrics, LeasesThatNodesForgetAreLostToAWipe) {
  const auto holder = HolderOfALease();
  WorkerProcess& worker = *holder;
  for (const std::size_t node : {0U, 1U, 2U}) nodes_[node].Command({"FLUSHALL"});
  ExpectMoves(worker, "lock_losses_total", {{"reason", "node_wiped"}});
  ExpectMoves(worker, "lock_extensions_total", {{"result", "error"}});
  ExpectMoves(worker, "lock_acquisitions_total", {{"result", "no_quorum"}});
  ExpectMoves(worker, "quorum_failures_total", {{"reason", "quarantined"}});
  service_.Release();
  EXPECT_TRUE(AllCommitted()) << worker.Readiness();
}

TEST_F(NodeMetrics, LeasesThatNodesEndTooEarlyAreLostToTheirClocks) {
  const auto holder = HolderOfALease();
  WorkerProcess& worker = *holder;
  for (const std::size_t node : {0U, 1U, 2U}) nodes_[node].ShiftClock(60s);
  ExpectMoves(worker, "lock_losses_total", {{"reason", "clock"}});
  EXPECT_EQ(worker.Now("fencepost_lock_losses_total"), 1);
  service_.Release();
}

TEST_F(NodeMetrics, AWorkerWhoseClockNoNodeAcceptsSaysSo) {
  for (std::size_t node = 0; node < 5; ++node) nodes_[node].ShiftClock(-60s);
  PipelineText text = Text();
  WorkerProcess worker(Worker(text));
  SendOrder(0, "o-1", "k");
  ExpectMoves(worker, "lock_acquisitions_total", {{"result", "refused"}});
  ExpectMoves(worker, "quorum_failures_total", {{"reason", "clock"}});
  EXPECT_TRUE(WaitUntil(
      20s, [&] { return worker.Readiness().find("clock") != std::string::npos; }, "its reason"));
}

}  // namespace
}  // namespace fencepost::testing
