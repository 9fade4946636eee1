// "Another host for a node" (deploy/operations/lock-nodes.md).
#include "tests/e2e/lock_nodes/lock_nodes_test.h"

namespace fencepost::testing {
namespace {

using Replacement = LockNodesTest;

TEST_F(Replacement, OfANodeUnderLoadDoublesNothingAndTheNewOneCounts) {
  Start();
  nodes_[0]->Stop();  // for good
  ExpectWorkGoesOn();
  const std::unique_ptr<RedisServer> old = std::exchange(nodes_[0], EmptyNode());
  Write();
  WorkerProcess& first = Roll((*team_)[0]);
  ExpectCounts(first, "a");
  // The old list's quorum without the node that is gone meets each quorum of the new one.
  const int by_old = WrittenBy("worker-2");
  EXPECT_TRUE(WaitUntil(kLong, "the old list", [&] { return WrittenBy("worker-2") > by_old; }));
  WorkerProcess& second = Roll((*team_)[1]);
  ExpectAllOk();
  ExpectCounts(second, "a");
  nodes_[1]->Stop();  // a quorum with the new node in it
  ExpectWorkGoesOn();
  nodes_[1]->Start();
  ExpectCounts(first, "b");
  ExpectTheTruth();
}

TEST_F(Replacement, OfANodeThatStillRunsStopsWhoListsItAndNobodyElse) {
  Start();
  const std::unique_ptr<RedisServer> old = std::exchange(nodes_[0], EmptyNode());
  Write();
  WorkerProcess& left = (*team_)[1];
  WorkerProcess& first = Roll((*team_)[0]);
  ExpectSays(left, "it was replaced");
  load_->Stop();  // it waits for all of its records, and worker-2 does none any more
  const int by_old = WrittenBy("worker-2");
  const int by_new = WrittenBy("worker-1");
  orders_.Produce(200);
  EXPECT_TRUE(WaitUntil(kLong, "work", [&] { return WrittenBy("worker-1") >= by_new + 50; }));
  EXPECT_EQ(WrittenBy("worker-2"), by_old);
  ExpectCounts(first, "a");
  ExpectCounts(Roll(left), "a");
  ExpectAllOk();
  load_.emplace(orders_, *table_);
  ExpectWorkGoesOn();
  ExpectTheTruth();
}

}  // namespace
}  // namespace fencepost::testing
