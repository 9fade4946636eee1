// Where a worker begins, and how it ends.
#include <numeric>

#include <gmock/gmock.h>

#include "tests/support/pipeline_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;
using ::testing::ContainsRegex;

class StartAndStop : public PipelineTest {};

TEST_F(StartAndStop, LatestTakesWhatComesAfterItsFirstStartAlsoWhileNoWorkerRuns) {
  PipelineText text = Text(4);
  text.order = "partition";
  text.start_from = "latest";
  Orders orders = Produced(50, 4);
  {
    WorkerProcess worker(Worker(text));
    ASSERT_TRUE(WaitUntil(seconds(30), "the worker to have its partitions", [&] {
      return worker.Ready() && worker.Now("fencepost_partitions_assigned") == 4;
    })) << worker.Log();
    worker.Kill();
  }
  orders.Produce(50);
  WorkerProcess worker(Worker(text));
  ExpectAllDone(worker);
  EXPECT_EQ(table_->Value("SELECT count(*) || ' from ' || min(substr(order_id, 3)::int) ||"
                          " ' to ' || max(substr(order_id, 3)::int) FROM effects"),
            "50 from 50 to 99");
}

TEST_F(StartAndStop, SigtermDrainsCommitsAndLeavesNothingToDoAgain) {
  constexpr int kRecords = 40'000;
  PipelineText text = Text(4);
  text.order = "partition";
  Orders orders = Produced(kRecords, 4);
  {
    WorkerProcess worker(Worker(text));
    ASSERT_TRUE(Effects(1000)) << worker.Log();
    EXPECT_EQ(worker.Stop(seconds(25)), 0) << worker.Log();
    EXPECT_THAT(worker.Log(),
                ContainsRegex("stopping: [0-9]+ in flight, at most 25 s; a second signal stops at "
                              "once(.|\n)*\"event\":\"stopped\""));
  }
  const auto committed = Committed();
  const int done = table_->Count();
  EXPECT_LT(done, kRecords) << "it was to be stopped in the middle";
  EXPECT_EQ(std::accumulate(committed.begin(), committed.end(), std::int64_t{0}), done);
  WorkerProcess worker(Worker(text));
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_EQ(worker.Now("fencepost_dedupe_skips_total"), 0);
  EXPECT_EQ(worker.Last("fencepost_records_processed_total", {{"result", "done"}}),
            kRecords - done);
  ExpectAllDone(worker, kRecords);
}

}  // namespace
}  // namespace fencepost::testing
