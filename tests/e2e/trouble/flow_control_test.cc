// What may be in flight, and what hangs.
#include <gmock/gmock.h>

#include "tests/e2e/trouble/trouble_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
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
    EXPECT_TRUE(WaitUntil(
        seconds(30),
        [&] {
          most = std::max(most, worker.Now(metric));
          return worker.Last("fencepost_backpressure_seconds_total") >= paused_seconds;
        },
        "the pipeline to be paused for long"))
        << worker.Log();
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
  Orders orders(Kafka().bootstrap(), name_, 4);
  orders.Produce(2000);
  auto lock = std::make_unique<TableLock>(*table_);
  WorkerProcess worker(Worker(text));
  EXPECT_EQ(MostWhileTheTableIsLocked(worker, "fencepost_records_in_flight", kLongerThanMaxPoll),
            100);
  EXPECT_EQ(worker.Last("fencepost_records_consumed_total"), 100);
  EXPECT_EQ(worker.Last("fencepost_partitions_paused"), 4);
  lock.reset();
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  ExpectOneAssignment(worker);
  EXPECT_EQ(worker.Last("fencepost_records_consumed_total"), 2000) << "nothing is read twice";
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  EXPECT_EQ(table_->Audit(name_, 2000), "");
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
  EXPECT_GE(most, kLimit);
  EXPECT_LE(most, kLimit + kSize + 200) << "the record that reaches the limit is the last";
  lock.reset();
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  EXPECT_EQ(table_->Audit(name_, 200), "");
}

TEST_F(FlowControl, ACallThatIsNeverAnsweredIsCancelledAndMadeAgain) {
  PipelineText text = Text(1);
  text.more = Http() + "processing: {timeout: 3s}\n";
  Orders orders(Kafka().bootstrap(), name_, 1);
  orders.Produce(20);
  HangOn(0, "o-3");
  WorkerProcess worker(Worker(text));
  EXPECT_TRUE(Effects(19)) << worker.Log();
  EXPECT_EQ(CallsOf("o-3"), 1) << "the others did not wait for it";
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_EQ(CallsOf("o-3"), 2);
  EXPECT_TRUE(Shows(worker, "fencepost_retries_total", {{"stage", "handler"}}, 1));
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  EXPECT_THAT(worker.Log(), HasSubstr("attempt 1 of 5: timeout: "));
  EXPECT_EQ(table_->Audit(name_, 20), "");
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
      "processing: {{timeout: 1s}}\n",
      script);
  Orders orders(Kafka().bootstrap(), name_, 1);
  orders.Produce(20);
  WorkerProcess worker(Worker(text));
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_TRUE(Shows(worker, "fencepost_retries_total", {{"stage", "handler"}}, 1));
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  EXPECT_THAT(worker.Log(), HasSubstr("attempt 1 of 5: timeout: no answer within 1000 ms"));
  EXPECT_EQ(table_->Audit(name_, 20), "");
}

TEST_F(FlowControl, AStallShowsInLiveInTheLogAndInTheMetricsAndCostsNoMembership) {
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
  EXPECT_TRUE(WaitUntil(
      seconds(20), [&] { return AllCalls() == 1; }, "the handler to be called"));
  EXPECT_EQ(worker.Get("/live").status, 200);
  EXPECT_TRUE(WaitUntil(
      seconds(20), [&] { return worker.Get("/live").status == 503; }, "/live to fail"));
  EXPECT_THAT(worker.Get("/live").body,
              AllOf(HasSubstr("stalled"), HasSubstr(name_ + "/0/0: handling for")));
  EXPECT_THAT(worker.Log(), AllOf(HasSubstr("\"stalled\""), HasSubstr(name_ + "/0/0")));
  EXPECT_EQ(worker.Now("fencepost_oldest_unprocessed_record_timestamp_seconds"), 1'700'000'000);
  service_.Release();
  EXPECT_TRUE(WaitUntil(
      seconds(20), [&] { return worker.Get("/live").status == 200; }, "/live to recover"));
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_TRUE(Shows(worker, "fencepost_oldest_unprocessed_record_timestamp_seconds", {}, 0));
  ExpectOneAssignment(worker);
  EXPECT_EQ(AllCalls(), 1);
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
}

}  // namespace
}  // namespace fencepost::testing
