// What may be in flight, and what hangs.
#include <gmock/gmock.h>

#include "tests/e2e/trouble/trouble_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

// Short enough that a few seconds without a poll would cost the membership.
constexpr const char* kMaxPoll = ", max.poll.interval.ms: 4000";
constexpr double kLongerThanMaxPoll = 5;  // seconds

class FlowControl : public TroubleTest {
 protected:
  PipelineText Text(int partitions) {
    PipelineText text = TroubleTest::Text(partitions);
    text.librdkafka = kMaxPoll;
    return text;
  }
  // Holds the table until the pipeline has been paused for so long; the most that was seen of it.
  double MostWhileTheTableIsLocked(WorkerProcess& worker, std::string_view metric,
                                   double paused_seconds) {
    double most = 0;
    EXPECT_TRUE(WaitUntil(seconds(30), "the pipeline to be paused for long", [&] {
      most = std::max(most, worker.Now(metric));
      return worker.Last("fencepost_backpressure_seconds_total") >= paused_seconds;
    })) << worker.Log();
    return most;
  }
  void ExpectOneAssignment(WorkerProcess& worker) {
    EXPECT_EQ(worker.Now("fencepost_rebalances_total", {{"event", "assigned"}}), 1);
    EXPECT_EQ(worker.Last("fencepost_rebalances_total"), 1);
  }
};

TEST_F(FlowControl, RecordsHoldAtTheirLimitAndPollGoesOnWhileTheOutputStandsStill) {
  PipelineText text = Text(4);
  text.more = "processing: {max_in_flight: 100, concurrency: 50}\n";
  Orders orders = Produced(2000, 4);
  auto lock = std::make_unique<TableLock>(*table_);
  WorkerProcess worker(Worker(text));
  const double most =
      MostWhileTheTableIsLocked(worker, "fencepost_records_in_flight", kLongerThanMaxPoll);
  EXPECT_LE(most, 100);
  EXPECT_GE(most, 90) << "a little is left where every partition holds its share";
  EXPECT_LE(worker.Last("fencepost_records_consumed_total"), 100);
  EXPECT_EQ(worker.Last("fencepost_partitions_paused"), 4);
  lock.reset();
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  ExpectOneAssignment(worker);
  EXPECT_EQ(worker.Last("fencepost_records_consumed_total"), 2000) << "nothing is read twice";
  ExpectAllDone(worker, 2000);
}

TEST_F(FlowControl, BytesHoldAtTheirLimit) {
  constexpr int kLimit = 200 * 1024;
  constexpr int kSize = 10 * 1024;
  PipelineText text = Text(4);
  text.more = "processing: {max_in_flight_bytes: 200KiB}\n";
  TestProducer producer(Kafka().bootstrap());
  for (int i = 0; i < 200; ++i) {
    std::string value = Orders::Value(i);
    value.insert(1, fmt::format(R"("pad":"{}",)", std::string(kSize, 'x')));
    producer.Send(name_, i % 4, fmt::format("k-{}", i), value);
  }
  producer.Flush();
  auto lock = std::make_unique<TableLock>(*table_);
  WorkerProcess worker(Worker(text));
  const double most = MostWhileTheTableIsLocked(worker, "fencepost_queue_size_bytes", 1.5);
  EXPECT_GE(most, kLimit * 9 / 10) << "a little is left where every partition holds its share";
  EXPECT_LE(most, kLimit + kSize + 200) << "the record that reaches the limit is the last";
  lock.reset();
  ExpectAllDone(worker, 200);
}

TEST_F(FlowControl, AProcessThatHangsOnARecordIsKilledAndTheRecordTriedAgain) {
  PipelineText text = Text(1);
  const std::string script = folder_.Write("hangs.py",
                                           "import json, signal, sys\n"
                                           "for line in sys.stdin:\n"
                                           "    r = json.loads(line)\n"
                                           "    if r['record_id'] == 'o-3' and r['attempt'] == 1:\n"
                                           "        signal.pause()\n"
                                           "    print(json.dumps({'value': r['value']}), "
                                           "flush=True)\n");
  text.more = fmt::format(
      "handler:\n  exec: {{command: [python3, {}], processes: 2, idempotent: true}}\n"
      "processing: {{timeout: 5s}}\n",  // long enough for the others on a busy machine
      script);
  Orders orders = Produced(20, 1);
  WorkerProcess worker(Worker(text));
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_TRUE(Shows(worker, "fencepost_retries_total", {{"stage", "handler"}}, 1));
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  EXPECT_THAT(worker.Log(), HasSubstr("attempt 1: timeout: no answer within 5000 ms"));
  EXPECT_EQ(table_->Audit(name_, 20), "");
}

TEST_F(FlowControl, ARecordThatIsTriedAgainForLongHoldsBackItsOwnKeyAndNothingElse) {
  PipelineText text = Text(4);
  text.more = Http() +
              "processing: {max_in_flight: 100}\n"
              "retry: {attempts: 1000, backoff: {initial: 1s, max: 5s}}\n";
  Answers("stuck", {503});
  SendOrder(0, "stuck", "k");
  SendOrder(0, "behind", "k");
  Orders orders = Produced(1000, 4);
  WorkerProcess worker(Worker(text));
  EXPECT_TRUE(Effects(1000)) << worker.Log();
  EXPECT_EQ(Committed()[0], 0);
  EXPECT_EQ(CallsOf("behind"), 0);
  EXPECT_TRUE(Shows(worker, "fencepost_records_in_flight", {}, 2));
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
}

TEST_F(FlowControl, AStuckPartitionLeavesTheOthersRoom) {
  PipelineText text = Text(4);
  text.more = Http() +
              "retry: {attempts: 1000, backoff: {initial: 1s, max: 5s}}\n"
              "processing: {max_in_flight: 100, order: partition}\n";
  Answers("stuck", {503});
  SendOrder(0, "stuck", "k");
  Orders orders = Produced(2000, 4);
  WorkerProcess worker(Worker(text));
  EXPECT_TRUE(Effects(1400)) << worker.Log();  // about 500 orders are of each partition
  EXPECT_EQ(Committed()[0], 0);
  EXPECT_TRUE(Shows(worker, "fencepost_partitions_paused", {}, 1));
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
}

// A handler makes 1 MB of each record, and the table takes nothing: without a bound on what
// handlers make, 1,500 records in flight were 1.3 GiB.
TEST_F(FlowControl, MemoryStaysBoundedWhileAHandlerMakesLargeValuesAndTheTableIsLocked) {
  PipelineText text = Text(1);
  text.more =
      "processing: {max_in_flight: 1500}\n"
      "handler: {jq: '. + {pad: (\"x\" * 1000000)}'}\n";
  Orders orders = Produced(300, 1);
  auto lock = std::make_unique<TableLock>(*table_);
  WorkerProcess worker(Worker(text));
  const auto memory = [&] {
    return worker.Now("process_resident_memory_bytes") / (1 << 20);  // MiB
  };
  double most = 0;
  EXPECT_TRUE(WaitUntil(seconds(60), "memory to be full of values", [&] {
    most = std::max(most, memory());
    return worker.Last("fencepost_records_consumed_total") == 300 &&
           worker.Last("fencepost_queue_size_bytes") > (56 << 20);
  })) << worker.Log();
  EXPECT_LE(worker.Last("fencepost_queue_size_bytes"), 66 << 20);
  lock.reset();
  EXPECT_TRUE(WaitUntil(seconds(120), "all effects", [&] {
    most = std::max(most, memory());
    return table_->Count() == 300;
  })) << worker.Log();
  EXPECT_LT(most, 300);
  RecordProperty("rss_mib", static_cast<int>(most));
  ExpectAllDone(worker, 300);
}

TEST_F(FlowControl, AStallShowsInReadyInTheLogAndInTheMetricsAndCostsNoMembership) {
  PipelineText text = Text(1);
  text.more = Http() + "processing: {timeout: 20s, revoke_drain: 21s, stall_after: 5s}\n";
  HangOn(0);
  TestProducer producer(Kafka().bootstrap());
  TestRecord record;
  record.topic = name_;
  record.key = "k";
  record.value = Orders::Value(0);
  record.timestamp_ms = 1'700'000'000'000;
  producer.Send(record);
  producer.Flush();
  WorkerProcess worker(Worker(text));
  EXPECT_TRUE(WaitUntil(seconds(20), "the handler to be called", [&] { return AllCalls() == 1; }));
  const std::string stall = name_ + ": stalled: " + name_ + "/0/0: handling for ";
  ExpectSays(worker, stall);
  EXPECT_TRUE(worker.Ready()) << worker.Readiness();
  EXPECT_EQ(worker.Get("/live").status, 200);
  EXPECT_THAT(worker.Get("/status").body, HasSubstr("\"stalled: " + name_ + "/0/0: handling for "));
  EXPECT_THAT(worker.Log(), AllOf(HasSubstr("\"stalled\""), HasSubstr(name_ + "/0/0")));
  EXPECT_EQ(worker.Now("fencepost_oldest_unprocessed_record_timestamp_seconds"), 1'700'000'000);
  service_.Release();
  EXPECT_TRUE(
      WaitUntil(seconds(20), "the stall to end", [&] { return worker.Readiness() == "ready\n"; }));
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_TRUE(Shows(worker, "fencepost_oldest_unprocessed_record_timestamp_seconds", {}, 0));
  ExpectOneAssignment(worker);
  EXPECT_EQ(AllCalls(), 1);
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
}

TEST_F(FlowControl, AServiceThatIsAwayForLongerThanAStallLeavesTheWorkerLiveAndAttemptsCounting) {
  PipelineText text = Text(1);
  text.more = Http() +
              "processing: {timeout: 200ms, stall_after: 500ms}\n"
              "retry: {attempts: 1000, backoff: {initial: 300ms, max: 300ms, jitter: none}}\n";
  Answers("o-0", {503});
  Orders orders = Produced(5, 1);
  WorkerProcess worker(Worker(text));
  const auto stalled = [&] {
    EXPECT_EQ(worker.Get("/live").status, 200) << worker.Get("/live").body;
    return worker.Readiness().find("waiting for the next attempt for ") != std::string::npos;
  };
  EXPECT_TRUE(WaitUntil(seconds(30), "/ready to name the stall", stalled)) << worker.Readiness();
  EXPECT_TRUE(worker.Ready()) << worker.Readiness();
  const int before = CallsOf("o-0");
  const double retries = worker.Now("fencepost_retries_total", {{"stage", "handler"}});
  EXPECT_TRUE(WaitUntil(seconds(30), "further attempts",
                        [&] { return stalled() && CallsOf("o-0") >= before + 5; }));
  EXPECT_GE(worker.Now("fencepost_retries_total", {{"stage", "handler"}}), retries + 4);
  // The record that the partition waits for, since when, and what waits behind it.
  EXPECT_TRUE(WaitUntil(seconds(30), "the others to be finished", [&] {
    return worker.Get("/status").body.find("4 finished records") != std::string::npos;
  }));
  EXPECT_THAT(worker.Get("/status").body,
              ContainsRegex("\"waits_for\": \"" + name_ +
                            "/0/0: [^\"]*, for [0-9]+ s; 4 finished records behind it\""));
  const MetricsPage::Labels where = {{"topic", name_}, {"partition", "0"}};
  EXPECT_EQ(worker.Now("fencepost_oldest_unfinished_offset", where), 0);
  EXPECT_GE(worker.Last("fencepost_oldest_unfinished_seconds", where), 0.5);
  Answers("o-0", {200});
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_TRUE(Shows(worker, "fencepost_oldest_unfinished_offset", where, -1));
  EXPECT_EQ(worker.Last("fencepost_oldest_unfinished_seconds", where), 0);
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
}

}  // namespace
}  // namespace fencepost::testing
