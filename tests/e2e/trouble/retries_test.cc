// A handler that fails: tried again, given up, and what waits meanwhile.
#include <gmock/gmock.h>

#include "tests/e2e/trouble/trouble_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

class Retries : public TroubleTest {
 protected:
  PipelineText Text() {
    PipelineText text = TroubleTest::Text(1);
    text.more = Http() + DeadLetters() +
                "processing: {timeout: 300ms}\n"
                "retry: {attempts: 3, give_up_after: 0s, backoff: {initial: 20ms, max: 50ms}, "
                "never: [501]}\n";
    return text;
  }
  // One letter; its class, its attempts and its text.
  void ExpectLetter(const std::string& error_class, const std::string& attempts,
                    const std::string& error) {
    const auto letters = Letters();
    ASSERT_EQ(letters.size(), 1u);
    EXPECT_EQ(letters[0].Header("fencepost-error-class"), error_class);
    EXPECT_EQ(letters[0].Header("fencepost-attempts"), attempts);
    EXPECT_THAT(*letters[0].Header("fencepost-error"), HasSubstr(error));
  }
};

TEST_F(Retries, ACallThatFailsIsMadeAgainUntilItSucceeds) {
  Answers("o-1", {503, 503, 200});
  WorkerProcess worker(Worker(Text()));
  SendOrder(0, "o-1", "k");
  EXPECT_TRUE(Effects(1)) << worker.Log();
  EXPECT_EQ(CallsOf("o-1"), 3);
  EXPECT_TRUE(Shows(worker, "fencepost_records_processed_total", {{"result", "done"}}, 1));
  EXPECT_EQ(worker.Last("fencepost_retries_total", {{"stage", "handler"}}), 2);
  EXPECT_EQ(worker.Last("fencepost_dead_letters_total"), 0);
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  EXPECT_THAT(worker.Log(), AllOf(HasSubstr(name_ + "/0/0: attempt 1: 503"),
                                  HasSubstr(name_ + "/0/0: attempt 2: 503")));
  EXPECT_TRUE(CommittedToTheEnd(Kafka(), name_, name_));
}

TEST_F(Retries, AttemptsThatRunOutMakeADeadLetterOfTheUntouchedRecord) {
  const PipelineText text = Text();
  Answers("o-1", {500});
  TestRecord record;
  record.topic = name_;
  record.key = std::string("k\0\xff", 3);
  record.value = R"(  {"order_id": "o-1", "amount": 1.50 } )";
  record.headers = {{"own", "1"}, {"none", std::nullopt}, {"own", "2"}};
  record.timestamp_ms = 1'700'000'000'123;
  TestProducer producer(Kafka().bootstrap());
  producer.Send(record);
  producer.Flush();
  WorkerProcess worker(Worker(text));
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_EQ(CallsOf("o-1"), 3);
  EXPECT_TRUE(Shows(worker, "fencepost_records_processed_total", {{"result", "dead_lettered"}}, 1));
  EXPECT_EQ(worker.Last("fencepost_dead_letters_total", {{"reason", "handler"}}), 1);
  EXPECT_EQ(worker.Last("fencepost_dead_letters_total"), 1);
  EXPECT_EQ(worker.Last("fencepost_retries_total", {{"stage", "handler"}}), 2);
  EXPECT_EQ(worker.Last("fencepost_locks_held"), 0);
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  const auto letters = Letters();
  ASSERT_EQ(letters.size(), 1u);
  EXPECT_EQ(letters[0].key, record.key);
  EXPECT_EQ(letters[0].value, record.value);
  EXPECT_EQ(letters[0].timestamp_ms, record.timestamp_ms);
  std::vector<std::string> headers;
  for (const auto& [name, value] : letters[0].headers) {
    headers.push_back(name + "=" + value.value_or("null"));
  }
  EXPECT_THAT(headers,
              ElementsAre("own=1", "none=null", "own=2", StartsWith("fencepost-error=HTTP 500"),
                          "fencepost-error-class=500", "fencepost-pipeline=" + name_,
                          "fencepost-topic=" + name_, "fencepost-partition=0", "fencepost-offset=0",
                          "fencepost-record-id=o-1", "fencepost-attempts=3",
                          MatchesRegex("fencepost-failed-at=20..-..-..T..:..:..[.]...Z")));
  EXPECT_EQ(table_->Value("SELECT count(*) FROM effects"), "0");
  EXPECT_EQ(table_->Value("SELECT count(*) FROM fencepost_ledger"), "0");
}

TEST_F(Retries, AnOutageOfTheServiceIsWaitedForAndCostsNoRecord) {
  PipelineText text = Text();
  text.more.replace(text.more.find("give_up_after: 0s"), 17, "give_up_after: 1ms");
  AnswersAll(503);
  Orders orders = Produced(500, 1);
  WorkerProcess worker(Worker(text));
  const auto says_why = [&] {
    return worker.Readiness().find("handler: its service is unavailable: 503") != std::string::npos;
  };
  EXPECT_TRUE(WaitUntil(seconds(20), "/ready to name the service", says_why)) << worker.Log();
  EXPECT_EQ(worker.Get("/ready").status, 503);
  const int before = AllCalls();
  EXPECT_TRUE(WaitUntil(seconds(20), "probes", [&] { return AllCalls() >= before + 50; }));
  EXPECT_TRUE(says_why()) << worker.Readiness();
  AnswersAll(200);
  EXPECT_TRUE(Effects(orders.unique())) << worker.Log();
  ExpectReady(worker);
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  EXPECT_THAT(Letters(), IsEmpty());
  EXPECT_THAT(worker.Log(),
              AllOf(HasSubstr("handler_unavailable"), HasSubstr("handler_available")));
  EXPECT_TRUE(CommittedToTheEnd(Kafka(), name_, name_));
}

TEST_F(Retries, ARecordThatFailsWhileOthersSucceedIsGivenUp) {
  PipelineText text = Text();
  text.more.replace(text.more.find("give_up_after: 0s"), 17, "give_up_after: 500ms");
  Answers("poison", {500});
  SendOrder(0, "poison", "k");
  Orders orders = Produced(500, 1);
  WorkerProcess worker(Worker(text));
  ExpectAllDone(worker);
  EXPECT_GT(CallsOf("poison"), 3) << "attempts alone did not end it";
  const auto letters = Letters();
  ASSERT_EQ(letters.size(), 1u);
  EXPECT_EQ(letters[0].Header("fencepost-record-id"), "poison");
}

TEST_F(Retries, AProgramThatAlwaysDiesCostsNoRecord) {
  PipelineText text = TroubleTest::Text(1);
  text.more = DeadLetters() +
              "handler:\n  exec: {command: [sh, -c, \"exit 3\"], idempotent: true}\n"
              "retry: {attempts: 3, give_up_after: 1ms, backoff: {initial: 20ms, max: 50ms}}\n";
  Orders orders = Produced(50, 1);
  WorkerProcess worker(Worker(text));
  const auto retries = [&] {
    return worker.Now("fencepost_retries_total", {{"stage", "handler"}});
  };
  // A program that dies is started again after up to ten seconds.
  EXPECT_TRUE(WaitUntil(seconds(180), "retries", [&] { return retries() >= 8; })) << worker.Log();
  EXPECT_THAT(worker.Readiness(), HasSubstr("handler: its service is unavailable: "));
  worker.Kill();
  EXPECT_THAT(Letters(), IsEmpty());
}

TEST_F(Retries, ATimeoutIsItsOwnReason) {
  PipelineText text = Text();
  text.more.replace(text.more.find("[501]"), 5, "[timeout]");
  HangOn(0);
  WorkerProcess worker(Worker(text));
  SendOrder(0, "o-1", "k");
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_TRUE(Shows(worker, "fencepost_dead_letters_total", {{"reason", "timeout"}}, 1));
  EXPECT_EQ(worker.Last("fencepost_dead_letters_total"), 1);
  ExpectLetter("timeout", "1", "timed out after 3");
}

TEST_F(Retries, WithoutADeadLetterTopicTheWorkerStopsAndSaysWhatToDo) {
  PipelineText text = TroubleTest::Text(1);
  text.more = Http();
  Answers("o-bad", {404});
  SendOrder(0, "o-good", "k");
  SendOrder(0, "o-bad", "k");
  SendOrder(0, "o-behind", "k");
  WorkerProcess worker(Worker(text));
  EXPECT_EQ(worker.Wait(seconds(30)), 1) << worker.Log();
  EXPECT_THAT(worker.ErrorLines(),
              ElementsAre(AllOf(StartsWith("fencepost: " + name_ + "/0/1: "), HasSubstr("404"),
                                HasSubstr("fix what the handler calls, give dead_letter, or move "
                                          "the group's offset past it"))));
  EXPECT_THAT(Committed(), ElementsAre(1));
  EXPECT_EQ(table_->Value("SELECT string_agg(order_id, ',') FROM effects"), "o-good");
  EXPECT_EQ(CallsOf("o-behind"), 0);
}

}  // namespace
}  // namespace fencepost::testing
