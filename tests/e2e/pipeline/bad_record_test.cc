// A record that cannot be processed stops the pipeline before it, and says which one it is.
#include <gmock/gmock.h>

#include "tests/support/pipeline_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Duplicate : public PipelineTest {};

class BadRecord : public PipelineTest {
 protected:
  // Ten good records, then this one, then five more; all of one partition.
  void ExpectStopAt(const std::string& bad, const std::string& word, const std::string& more = "") {
    PipelineText text = Text(1);
    text.more = more;
    Orders orders = Produced(10, 1);
    Send(0, bad);
    orders.Produce(5);
    for (int start = 0; start < 2; ++start) {  // a restart stops at the same place
      WorkerProcess worker(Worker(text));
      EXPECT_EQ(worker.Wait(seconds(40)), 1) << worker.Log();
      EXPECT_THAT(worker.ErrorLines(),
                  ElementsAre(AllOf(HasSubstr(name_ + "/0/10"), HasSubstr(word))));
      EXPECT_THAT(Committed(), ElementsAre(10));
    }
    EXPECT_EQ(table_->Value("SELECT count(DISTINCT order_id) || ' of ' || count(*) FROM effects"
                            " WHERE substr(order_id, 3)::int < 10 AND amount >= 0"),
              "10 of 10");
    EXPECT_EQ(table_->Value("SELECT count(*) FROM effects WHERE amount IN (-1, 4711)"), "0");
  }
};

TEST_F(BadRecord, WithoutAnIdStopsTheWorkerBeforeIt) {
  ExpectStopAt(R"({"amount":4711})", "order_id");
}

TEST_F(BadRecord, ThatIsNotJsonStopsTheWorkerBeforeIt) {
  ExpectStopAt("4711 \x01", "something follows the JSON document");
}

TEST_F(BadRecord, WithAnIdThatWasOtherContentStopsTheWorkerBeforeItWhereThatIsAskedFor) {
  ExpectStopAt(R"({"order_id":"o-3","amount":4711})", "explain", "on_id_conflict: stop\n");
}

TEST_F(BadRecord, ThatTheTableRefusesStopsTheWorkerBeforeIt) {
  ExpectStopAt(R"({"order_id":"x","amount":-1})", "effects_amount_check");
}

TEST_F(BadRecord, OfAnotherTypeThanItsColumnStopsTheWorkerBeforeIt) {
  ExpectStopAt(R"({"order_id":"x","amount":"much"})",
               "column amount (integer) from json:/amount is not a number");
}

TEST_F(BadRecord, WithOtherContentIsSkippedByDefaultAndTheLogNamesBothPositions) {
  PipelineText text = Text(1);
  Orders orders = Produced(10, 1);
  Send(0, R"({"order_id":"o-3","amount":4711})");
  orders.Produce(5);
  WorkerProcess worker(Worker(text));
  EXPECT_TRUE(WaitUntil(seconds(40), "all offsets to be committed", [&] {
    return CommittedToTheEnd(Kafka(), name_, name_);
  })) << worker.Log();
  EXPECT_EQ(worker.Now("fencepost_id_conflicts_total"), 1);
  EXPECT_THAT(worker.Log(), HasSubstr("the id was processed with other content: the ledger holds "
                                      "the id from " +
                                      name_ + "/0/3; it is skipped"));
  EXPECT_THAT(worker.Log(), HasSubstr("\"offset\":10"));
  ExpectAllDone(worker, 15);
}

// What an application sends again is never the same to the last byte.
TEST_F(Duplicate, ThatIsWrittenAnotherWayIsSkippedWithoutAConflict) {
  PipelineText text = Text(1);
  TestProducer producer(Kafka().bootstrap());
  const auto send = [&](const std::string& key, const std::string& trace,
                        const std::string& value) {
    producer.Send({.topic = name_,
                   .partition = 0,
                   .key = key,
                   .value = value,
                   .headers = {{"traceparent", trace}}});
  };
  send("a", "00-aaaa", R"({"order_id":"o-1","amount":5})");
  send("a", "00-bbbb", R"({"order_id":"o-1","amount":5})");
  send("b", "00-cccc", R"({ "amount": 5.0, "order_id": "o-1" })");
  producer.Flush();
  WorkerProcess worker(Worker(text));
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_EQ(worker.Now("fencepost_id_conflicts_total"), 0);
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  EXPECT_EQ(table_->Count(), 1);
}

}  // namespace
}  // namespace fencepost::testing
