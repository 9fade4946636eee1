// kafka.static_members: a worker that comes back under its name interrupts no other.
#include <gmock/gmock.h>

#include "tests/e2e/trouble/trouble_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

class StaticMembers : public TroubleTest {
 protected:
  PipelineText Text(int partitions) {
    PipelineText text = TroubleTest::Text(partitions);
    text.start_from = "earliest\n  static_members: true";
    text.session_ms = 15'000;
    return text;
  }
  static double Owned(WorkerProcess& worker) { return worker.Now("fencepost_partitions_assigned"); }
  static double Rebalances(WorkerProcess& worker) {
    return worker.Now("fencepost_rebalances_total");
  }
};

TEST_F(StaticMembers, AWorkerThatIsKilledAndComesBackKeepsItsPartitionsAndInterruptsNoOther) {
  WorkerTeam team(Worker(Text(6)));
  team.Start(3);
  Orders orders = Produced(300, 6);
  EXPECT_TRUE(Effects(300)) << team.Tails();
  const auto shared_out = [&] {
    return Owned(team[0]) == 2 && Owned(team[1]) == 2 && Owned(team[2]) == 2;
  };
  EXPECT_TRUE(WaitUntil(seconds(30), "each to have its share", shared_out)) << team.Tails();
  const double first = Rebalances(team[0]);
  const double third = Rebalances(team[2]);
  team[1].Kill();
  WorkerProcess& again = team.Add("worker-2");
  orders.Produce(600);
  EXPECT_TRUE(Effects(900)) << team.Tails();
  EXPECT_TRUE(WaitUntil(seconds(10), "its partitions", [&] { return Owned(again) == 2; }));
  EXPECT_EQ(Rebalances(team[0]), first);
  EXPECT_EQ(Rebalances(team[2]), third);
  EXPECT_EQ(team.StopAll(), "");
}

TEST_F(StaticMembers, TwoWorkersOfOneNameAreToldApartInOneLine) {
  const WorkerOptions options = Worker(Text(2));
  WorkerProcess first(options);
  ExpectReady(first);
  WorkerProcess second(options);
  EXPECT_EQ(first.Wait(seconds(30)), 1) << first.Log();
  EXPECT_THAT(first.Log(), HasSubstr(fmt::format("another worker of group '{}' has taken this "
                                                 "worker's name",
                                                 name_)));
  ExpectReady(second);
  EXPECT_EQ(second.Stop(), 0) << second.Log();
}

TEST_F(StaticMembers, NeedANameThatTheWorkerKeeps) {
  const WorkerOptions options = Worker(Text(1));
  const Finished without = RunFencepost({"run", options.files[0]}, {{"FENCEPOST_WORKER", ""}});
  EXPECT_EQ(without.exit_code, 2);
  EXPECT_THAT(without.error_output, HasSubstr("kafka.static_members needs a name"));
  const Finished bad = RunFencepost({"run", options.files[0], "--worker", "worker 1"});
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_THAT(bad.error_output, HasSubstr("letters, digits"));
}

}  // namespace
}  // namespace fencepost::testing
