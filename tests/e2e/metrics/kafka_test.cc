// The series of the group: assigned, revoked, lost, and commits that nobody takes.
#include <gmock/gmock.h>

#include "tests/e2e/metrics/metrics_test.h"

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

}  // namespace
}  // namespace fencepost::testing
