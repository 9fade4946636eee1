// What a worker says of a record that cannot be processed, and to whom.
#include <gmock/gmock.h>

#include "tests/e2e/trouble/trouble_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kCard = "4111-1111-1111-1111";

class Privacy : public TroubleTest {
 protected:
  static void ExpectNothingOfTheCard(WorkerProcess& worker) {
    for (const char* path : {"/", "/status", "/metrics", "/fragment", "/ready"}) {
      EXPECT_THAT(worker.Get(path).body, Not(HasSubstr("4111-"))) << path;
    }
    EXPECT_THAT(worker.Log(), Not(HasSubstr("4111-")));
  }
  static std::string ErrorOf(const TestRecord& letter) {
    return letter.Header("fencepost-error").value_or("");
  }
};

TEST_F(Privacy, WhatATableRefusesIsQuotedInItsDeadLetterAndNowhereElse) {
  PipelineText text = Text(1);
  text.more = DeadLetters();
  Send(0, fmt::format(R"({{"order_id":"a1","amount":"{}"}})", kCard));
  WorkerProcess worker(Worker(text));
  ASSERT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_THAT(worker.Log(), HasSubstr("SQLSTATE 22P02"));
  ExpectNothingOfTheCard(worker);
  EXPECT_EQ(worker.Stop(), 0);
  const auto letters = Letters();
  ASSERT_EQ(letters.size(), 1u);
  EXPECT_THAT(ErrorOf(letters[0]), HasSubstr(kCard));
}

TEST_F(Privacy, AWorkerThatStopsAtARecordNamesItsPlaceAndNotItsContent) {
  const PipelineText text = Text(1);
  Send(0, fmt::format(R"({{"order_id":"a1","amount":"{}"}})", kCard));
  WorkerProcess worker(Worker(text));
  ASSERT_EQ(worker.Wait(seconds(40)), 1) << worker.Log();
  EXPECT_THAT(worker.Log(), HasSubstr(name_ + "/0/0"));
  EXPECT_THAT(worker.Log(), Not(HasSubstr("4111-")));
}

TEST_F(Privacy, TheAnswerOfAServiceThatRefusesIsQuotedInTheDeadLetterAndNowhereElse) {
  StubServer service([](const StubServer::Request&) {
    return StubServer::Answer{.status = 422, .body = std::string("no such card: ") + kCard};
  });
  PipelineText text = Text(1);
  text.more = DeadLetters() + fmt::format("handler:\n  http: {{url: \"{}\", idempotent: true}}\n",
                                          service.Url("/charge"));
  SendOrder(0, "a1", "k");
  WorkerProcess worker(Worker(text));
  ASSERT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_THAT(worker.Log(), HasSubstr("HTTP 422"));
  ExpectNothingOfTheCard(worker);
  EXPECT_EQ(worker.Stop(), 0);
  const auto letters = Letters();
  ASSERT_EQ(letters.size(), 1u);
  EXPECT_THAT(ErrorOf(letters[0]), HasSubstr(kCard));
}

// At the default limits of the broker and of librdkafka.
TEST_F(Privacy, ALargeValueThatATableRefusesBecomesADeadLetter) {
  PipelineText text = Text(1);
  text.more = DeadLetters();
  Send(0, R"({"order_id":"a1","amount":")" + std::string(600'000, 'x') + "\"}");
  Send(0, R"({"order_id":"a2","amount":2})");
  WorkerProcess worker(Worker(text));
  ASSERT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_EQ(worker.Stop(), 0);
  const auto letters = Letters();
  ASSERT_EQ(letters.size(), 1u);
  EXPECT_LE(ErrorOf(letters[0]).size(), 1000u);
}

}  // namespace
}  // namespace fencepost::testing
