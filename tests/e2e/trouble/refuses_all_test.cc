// A mistake in the pipeline file that makes every record bad, and a topic that really has many bad
// ones.
#include <gmock/gmock.h>

#include "tests/e2e/trouble/trouble_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class RefusesAll : public TroubleTest {
 protected:
  // A thousand good orders, a pipeline with this mistake, and then without it.
  void ExpectTenLetters(const std::string& right, const std::string& wrong,
                        const std::vector<std::string>& reason,
                        const std::vector<std::string>& replay) {
    PipelineText text = Text(4);
    text.more = DeadLetters();
    Orders orders = Produced(1000, 4);
    std::string mistaken = text.Yaml();
    mistaken.replace(mistaken.find(right), right.size(), wrong);
    {
      WorkerProcess worker(
          {.files = {folder_.Write("mistaken.yaml", mistaken)}, .name = "worker-1"});
      ExpectSays(worker, "every record is refused");
      for (const std::string& part : reason) EXPECT_THAT(worker.Readiness(), HasSubstr(part));
      EXPECT_TRUE(
          Shows(worker, "fencepost_records_processed_total", {{"result", "dead_lettered"}}, 10));
      EXPECT_EQ(worker.Get("/live").status, 200);
      EXPECT_EQ(worker.Stop(), 0) << worker.Log();
    }
    EXPECT_EQ(Letters().size(), 10u);
    EXPECT_EQ(table_->Count(), 0);

    WorkerProcess worker(Worker(text));
    EXPECT_TRUE(AllCommitted()) << worker.Readiness();
    EXPECT_EQ(table_->Count(), 990) << "ten are dead letters";
    std::vector<std::string> words{"dlq", "replay", "--execute",
                                   folder_.Write("right.yaml", text.Yaml())};
    words.insert(words.end(), replay.begin(), replay.end());
    const Finished replayed = RunFencepost(words);
    EXPECT_EQ(replayed.exit_code, 0) << replayed.output << replayed.error_output;
    EXPECT_TRUE(Effects(1000)) << worker.Log();
    ExpectAllDone(worker, 1000);
  }
  // The service answers so to all of a hundred orders, and then as it should.
  void ExpectLettersOf(int status, std::size_t letters, const std::string& reason) {
    PipelineText text = Text(2);
    text.more = Http() + DeadLetters() + "retry: {backoff: {initial: 20ms, max: 200ms}}\n";
    AnswersAll(status);
    (void)Produced(100, 2);
    WorkerProcess worker(Worker(text));
    ExpectSays(worker, reason);
    EXPECT_EQ(worker.Get("/ready").status, 503);
    const int before = AllCalls();
    EXPECT_TRUE(WaitUntil(seconds(20), "probes", [&] { return AllCalls() >= before + 20; }));
    EXPECT_EQ(Letters().size(), letters);
    AnswersAll(200);
    EXPECT_TRUE(AllCommitted()) << worker.Readiness();
    EXPECT_EQ(Letters().size(), letters);
    EXPECT_EQ(table_->Count(), 100 - static_cast<int>(letters));
    ExpectReady(worker);
  }
};

TEST_F(RefusesAll, ARedirectionIsNoRecordsFault) {
  ExpectLettersOf(302, 0, "handler: its service is unavailable: 302");
}

TEST_F(RefusesAll, AServiceThatRefusesEveryRecordFromTheStartMakesNoDeadLetterAndIsAskedAgain) {
  ExpectLettersOf(410, 0, "handler: its service is unavailable: 410");
}

TEST_F(RefusesAll, AJqProgramThatRefusesEveryRecordMakesTenDeadLetters) {
  PipelineText text = Text(2);
  text.more = "handler: {jq: 'error(\"no\")'}\n" + DeadLetters();
  (void)Produced(100, 2);
  WorkerProcess worker(Worker(text));
  ExpectSays(worker, "handler: every record is refused (10 in a row): jq");
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  EXPECT_EQ(Letters().size(), 10u);
}

TEST_F(RefusesAll, AWrongRecordIdMakesTenDeadLettersAndTheRestWaitsForTheRightOne) {
  ExpectTenLetters(
      "record_id: json:/order_id", "record_id: json:/orderid",
      {"not ready: ", ": every record is refused (10 in a row): no record id: json:/orderid",
       "check record_id and the producer", "dead_letter.max_consecutive"},
      {"--as-new-id"});
}

TEST_F(RefusesAll, AWrongColumnMakesTenDeadLettersAndTheRestWaitsForTheRightOne) {
  ExpectTenLetters("amount: json:/amount", "amount: json:/amnt",
                   {": every record is refused (10 in a row): column amount (integer) from "
                    "json:/amnt",
                    "check columns"},
                   {});
}

TEST_F(RefusesAll, ATopicInWhichEveryThirdRecordIsBadFlowsOn) {
  PipelineText text = Text(2);
  text.more = DeadLetters();
  TestProducer producer(Kafka().bootstrap());
  for (int i = 0; i < 300; ++i) {
    const std::string no_id = fmt::format(R"({{"id":"o-{}"}})", i);
    const std::string no_amount = fmt::format(R"({{"order_id":"o-{}"}})", i);
    const std::string bad = i % 2 == 0 ? no_id : no_amount;
    producer.Send(name_, i % 2, fmt::format("customer-{}", i), i % 3 == 0 ? bad : Orders::Value(i));
  }
  producer.Flush();
  WorkerProcess worker(Worker(text));
  EXPECT_TRUE(AllCommitted()) << worker.Readiness();
  EXPECT_TRUE(worker.Ready()) << worker.Readiness();
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  EXPECT_THAT(worker.Log(), Not(HasSubstr("every record is refused")));
  EXPECT_EQ(Letters().size(), 100u);
  EXPECT_EQ(table_->Count(), 200);
}

}  // namespace
}  // namespace fencepost::testing
