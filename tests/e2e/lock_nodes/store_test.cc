// A store created again with all workers stopped, as deploy/operations/lock-nodes.md says: for
// another number of nodes, and where most nodes were lost.
#include "tests/e2e/lock_nodes/lock_nodes_test.h"

namespace fencepost::testing {
namespace {

class StoreMadeAnew : public LockNodesTest {
 protected:
  void StopWorkers() {
    load_->Stop();
    ASSERT_EQ(team_->StopAll(), "");
  }
  void MakeAnew() {
    const Finished init = Tool({"locks", "init", file(), "--force", "--max-ttl", "3s"});
    ASSERT_EQ(init.exit_code, 0) << init.output << init.error_output;
    EXPECT_NE(init.output.find("it counts at once"), std::string::npos) << init.output;
    team_->Add("worker-1");
    team_->Add("worker-2");
    load_.emplace(orders_, *table_);
    ExpectWorkGoesOn();
    ExpectAllOk();
  }
};

TEST_F(StoreMadeAnew, OfFiveNodesInPlaceOfThreeDoublesNothing) {
  Start();
  StopWorkers();
  nodes_.push_back(EmptyNode());
  nodes_.push_back(EmptyNode());
  Write();
  MakeAnew();
  nodes_[0]->Stop();
  nodes_[1]->Stop();  // five live through that
  ExpectWorkGoesOn();
  ExpectTheTruth();
}

TEST_F(StoreMadeAnew, IsWhatMostNodesAskForThatCameBackEmpty) {
  Start();
  StopWorkers();
  for (const std::size_t node : {0U, 1U}) nodes_[node]->Restart(RedisServer::Data::kWipe);
  WorkerProcess& worker = team_->Add("worker-1");
  ExpectSays(worker, "only 1 of 3 nodes still know lock store");
  ASSERT_EQ(worker.Stop(), 0) << worker.Log();
  MakeAnew();
  ExpectTheTruth();
}

}  // namespace
}  // namespace fencepost::testing
