// How leases are given back, by what became of them on the nodes. The rows are refused, so the
// records end as dead letters; their leases are long, so that nothing else ends them.
#include "tests/e2e/metrics/metrics_test.h"

namespace fencepost::testing {
namespace {

using namespace std::chrono_literals;

class ReleaseMetrics : public MetricsTest {
 protected:
  ReleaseMetrics() : nodes_(5) { InitLocks(nodes_, "30s"); }

  PipelineText Text() {
    PipelineText text = MetricsTest::Text(1);
    text.nodes = nodes_.list();
    text.ttl = "30s";
    text.more = DeadLetters(", max_consecutive: 0");  // they go out side by side
    return text;
  }
  // Its amount is refused by the table.
  void SendRefused(const std::string& id) const { SendOrder(0, id, id, "-1"); }
  static void ExpectReleased(WorkerProcess& worker, const std::string& result) {
    ExpectMoves(worker, "lock_releases_total", {{"result", result}});
  }

  RedisServers nodes_;
};

TEST_F(ReleaseMetrics, AreCountedByWhatTheNodesSay) {
  WorkerProcess worker(Worker(Text()));
  auto table = std::make_unique<TableLock>(*table_);
  for (const char* id : {"o-kept", "o-gone", "o-taken"}) SendRefused(id);
  ASSERT_TRUE(Shows(worker, "fencepost_locks_held", {}, 3)) << worker.Readiness() << worker.Log();
  EXPECT_EQ(worker.Now("fencepost_lock_releases_total"), 0);
  Remove(nodes_, "o-gone");
  Put(nodes_, "o-taken", HeldBy(TokenAt(0ms), 60s));
  table.reset();
  for (const char* result : {"released", "expired", "stolen"}) ExpectReleased(worker, result);
  for (const char* node : {"a", "b", "c", "d", "e"}) {
    ExpectMoves(worker, "redis_command_duration_seconds_count",
                {{"node", node}, {"command", "release"}});
  }
  EXPECT_EQ(worker.Now("fencepost_lock_releases_total"), 3);

  table = std::make_unique<TableLock>(*table_);
  SendRefused("o-unheard");
  ASSERT_TRUE(Shows(worker, "fencepost_locks_held", {}, 1)) << worker.Readiness() << worker.Log();
  for (const std::size_t node : {0U, 1U, 2U}) nodes_[node].Pause();
  table.reset();
  ExpectReleased(worker, "unknown");
  for (const std::size_t node : {0U, 1U, 2U}) nodes_[node].Resume();
  EXPECT_TRUE(AllCommitted()) << worker.Readiness();
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
}

}  // namespace
}  // namespace fencepost::testing
