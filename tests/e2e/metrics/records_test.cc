// The series of records that are not processed: another's id, and what nobody can process.
#include "tests/e2e/metrics/metrics_test.h"

namespace fencepost::testing {
namespace {

using namespace std::chrono_literals;

class RecordMetrics : public MetricsTest {};

// What cannot be processed stops the pipeline once all before it is finished: until then it is
// seen.
TEST_F(RecordMetrics, AConflictOfIdsAndARecordThatStopsThePipeline) {
  PipelineText text = Text(1);
  text.more = Http() +
              "processing: {timeout: 60s, revoke_drain: 61s}\n"
              "on_id_conflict: skip\n";
  WorkerProcess worker(Worker(text));
  SendOrder(0, "o-1", "a");
  ASSERT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_EQ(worker.Now("fencepost_id_conflicts_total"), 0);
  SendOrder(0, "o-1", "a", "6");
  ExpectMoves(worker, "id_conflicts_total");
  HangOn(0, "o-2");
  Answers("o-3", {404});
  SendOrder(0, "o-2", "b");
  ASSERT_TRUE(Called("o-2")) << worker.Log();
  EXPECT_EQ(worker.Now("fencepost_records_processed_total", {{"result", "failed"}}), 0);
  SendOrder(0, "o-3", "c");
  ExpectMoves(worker, "records_processed_total", {{"result", "failed"}});
  service_.Release();
  EXPECT_EQ(worker.Wait(60s), 1) << worker.Log();
  EXPECT_EQ(table_->Count(), 2);
}

TEST_F(RecordMetrics, ARowThatLosesToAHigherFenceIsCounted) {
  PipelineText text = Text(1);
  table_->Exec("CREATE TABLE kept (id text PRIMARY KEY, v bigint)");
  text.record_id = "position";
  text.output = fmt::format(
      "output: {{postgres: {{dsn: \"{}\", table: kept, columns: {{id: json:/order_id}},"
      " on_conflict: update, key: [id], fence_column: v, fence_by: json:/amount}}}}\n",
      table_->dsn());
  WorkerProcess worker(Worker(text));
  SendOrder(0, "o-1", "a", "7");
  ASSERT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_EQ(worker.Now("fencepost_fencing_rejections_total", {{"side", "row"}}), 0);
  SendOrder(0, "o-1", "a", "6");
  ExpectMoves(worker, "fencing_rejections_total", {{"side", "row"}});
  EXPECT_EQ(table_->Value("SELECT v FROM kept"), "7");
}

TEST_F(RecordMetrics, ARecordThatMakesNoRowIsCountedAndLeavesItsIdToTheNextOne) {
  PipelineText text = Text(1);
  text.more = "handler: {jq: 'if .amount == 5 then empty else . end'}\n";
  WorkerProcess worker(Worker(text));
  SendOrder(0, "o-1", "a", "5");
  ExpectMoves(worker, "records_processed_total", {{"result", "no_output"}});
  SendOrder(0, "o-1", "a", "6");
  ExpectMoves(worker, "records_processed_total", {{"result", "done"}});
  EXPECT_EQ(worker.Now("fencepost_id_conflicts_total"), 0);
  EXPECT_EQ(table_->Count(), 1);
}

TEST_F(RecordMetrics, ARecordThatWhenLeavesOutIsCountedAndItsOffsetPassed) {
  PipelineText text = Text(1);
  text.more = "when: [json:/amount = 5]\n";
  WorkerProcess worker(Worker(text));
  for (int i = 0; i < 3; ++i) SendOrder(0, "o-1", "a", std::to_string(6 + i));
  ExpectMoves(worker, "records_processed_total", {{"result", "filtered"}});
  ASSERT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_EQ(table_->Count(), 0);
  SendOrder(0, "o-1", "a", "5");
  ExpectMoves(worker, "records_processed_total", {{"result", "done"}});
  EXPECT_EQ(worker.Now("fencepost_id_conflicts_total"), 0);
}

}  // namespace
}  // namespace fencepost::testing
