// A handler whose service fails for all records: the flow waits, and gives no record up.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/model/flow/flow_bench.h"

namespace fencepost::consumer {
namespace {

HandlerFailure Unavailable() {
  return {.error_class = "503", .text = "o-1 is not now", .shown = "HTTP 503", .retry_after = {}};
}

HandlerFailure WrongAddress() {
  HandlerFailure failure = Unavailable();
  failure.error_class = "404";
  failure.shown = "HTTP 404";
  failure.retry = false;
  return failure;
}

FlowOptions WithCircuit() {
  FlowOptions options = FlowBench::Handling(Order::kKey);
  options.tuning.retry.attempts = 3;
  options.tuning.retry.give_up_after = Millis(60'000);
  options.tuning.retry.initial = Millis(100);
  options.tuning.retry.max = Millis(2000);
  options.tuning.retry.jitter = Jitter::kNone;
  options.circuit_failures = 3;
  return options;
}

class CircuitTest : public OneWorker {
 protected:
  CircuitTest() : OneWorker(WithCircuit()) { worker.Deliver(0, {"a@1", "b@2", "c@3"}); }
  void FailAll(const HandlerFailure& failure = Unavailable()) {
    for (const std::string id : {"a", "b", "c"}) worker.Fail(id, failure);
  }
  // Waits for the next call, and returns whose it is.
  std::string NextCalls() {
    for (int i = 0; worker.Calls().empty() && i < 10'000; ++i) worker.Wait(Millis(10));
    return worker.Calls();
  }
  [[nodiscard]] bool Noted(const std::string& event) const {
    return std::ranges::any_of(
        worker.told.notes, [&](const std::string& note) { return note.starts_with(event + ": "); });
  }
};

// It was asked of one caller: the next probe is any other record.
TEST_F(CircuitTest, ARetryAfterOfADayKeepsNoOtherRecordFromBeingTried) {
  HandlerFailure closed = Unavailable();
  closed.retry_after = std::chrono::hours(24);
  FailAll(closed);
  EXPECT_NE(worker.flow.HandlerUnavailable(), "");
  worker.Deliver(0, {"d@4"});
  worker.Wait(Millis(61'000));
  EXPECT_EQ(worker.Calls(), "d");
}

TEST_F(CircuitTest, AnOutageOfTheServiceCostsNoRecordHoweverLongItIs) {
  FailAll();
  EXPECT_EQ(worker.flow.HandlerUnavailable(), "503: HTTP 503");
  EXPECT_TRUE(Noted("handler_unavailable"));
  for (int probe = 0; probe < 200; ++probe) {
    const std::string called = NextCalls();
    ASSERT_EQ(called.size(), 1u) << "one at a time: " << called;
    worker.Fail(called, Unavailable());
  }
  EXPECT_EQ(worker.Letters(), "");
  EXPECT_FALSE(worker.stop);
  worker.Handle(NextCalls());
  EXPECT_EQ(worker.flow.HandlerUnavailable(), "");
  EXPECT_TRUE(Noted("handler_available"));
  for (int i = 0; i < 2; ++i) worker.Handle(NextCalls().substr(0, 1));
  worker.WriteAll();
  EXPECT_EQ(worker.Watermark(0), 3);
}

TEST_F(CircuitTest, AServiceThatSaysThatItIsNotThereCostsALoneRecordNothing) {
  worker.Handle("b");
  worker.Handle("c");
  // Two failures may have begun before the others succeeded; three count.
  for (int i = 0; i < 5; ++i) worker.Fail(NextCalls(), Unavailable());
  EXPECT_EQ(worker.flow.HandlerUnavailable(), "503: HTTP 503");
  for (int probe = 0; probe < 200; ++probe) {
    ASSERT_EQ(NextCalls(), "a");
    worker.Fail("a", Unavailable());
  }
  EXPECT_EQ(worker.Letters(), "");
  worker.Handle(NextCalls());
  EXPECT_EQ(worker.flow.HandlerUnavailable(), "");
}

TEST_F(CircuitTest, TakesTurnsSoThatAnyRecordCanShowThatTheServiceWorks) {
  FailAll();
  std::string probed;
  for (int probe = 0; probe < 9; ++probe) {
    const std::string called = NextCalls();
    worker.Fail(called, Unavailable());
    probed += called;
  }
  for (const char id : {'a', 'b', 'c'}) EXPECT_GE(std::ranges::count(probed, id), 2) << probed;
  worker.Deliver(0, {"d@4"});
  bool called = false;
  for (int probe = 0; probe < 9 && !called; ++probe) {
    const std::string next = NextCalls();
    called = next == "d";
    if (!called) worker.Fail(next, Unavailable());
  }
  EXPECT_TRUE(called) << "a record that came later has its turn too";
}

TEST_F(CircuitTest, ARecordIsGivenUpWhenItFailsForLongWhileOthersSucceed) {
  const Instant since = world.now.boot;
  for (int i = 0; worker.Letters().empty() && i < 1000; ++i) {
    worker.Fail("a", Unavailable());
    if (!worker.Letters().empty()) break;
    worker.Deliver(0, {"x" + std::to_string(i)});
    worker.Handle("x" + std::to_string(i));
    worker.WriteAll();
    while (worker.Calls().find('a') == std::string::npos) worker.Wait(Millis(10));
  }
  EXPECT_EQ(worker.Letters(), "a:503");
  EXPECT_GE(world.now.boot - since, Millis(60'000));
  EXPECT_LT(world.now.boot - since, Millis(70'000));
  EXPECT_FALSE(Noted("handler_unavailable"));
}

// The last success came after their first failure, and yet the service is away for all now.
TEST_F(CircuitTest, RecordsThatFailedBeforeAnOutageAreNotGivenUpInIt) {
  worker.Fail("a", Unavailable());
  worker.Fail("b", Unavailable());
  worker.Handle("c");
  worker.WriteAll();
  const Instant since = world.now.boot;
  while (world.now.boot - since < std::chrono::minutes(30)) {
    for (const char id : NextCalls()) {
      if (id != ' ') worker.Fail(std::string(1, id), Unavailable());
    }
  }
  EXPECT_EQ(worker.Letters(), "");
  EXPECT_TRUE(Noted("handler_unavailable"));
}

TEST_F(CircuitTest, BadRecordsThatNothingCanPassAreGivenUpOneByOneInTheEnd) {
  HandlerFailure broken = Unavailable();
  broken.error_class = "500";
  const Instant since = world.now.boot;
  std::vector<Instant> given_up;
  for (int i = 0; given_up.size() < 3 && i < 10'000; ++i) {
    for (const char id : NextCalls()) {
      if (id != ' ') worker.Fail(std::string(1, id), broken);
    }
    worker.Settle();
    if (worker.letters.size() > given_up.size()) given_up.push_back(world.now.boot);
  }
  ASSERT_EQ(given_up.size(), 3u);
  EXPECT_GE(given_up[0] - since, Millis(240'000)) << "four times give_up_after";
  EXPECT_GE(given_up[1] - given_up[0], Millis(60'000));
  EXPECT_GE(given_up[2] - given_up[1], Millis(60'000));
}

FlowOptions BelievingTwo() {
  FlowOptions options = WithCircuit();
  options.max_consecutive = 2;
  options.tuning.concurrency = 1;
  return options;
}

class WrongCaller : public OneWorker {
 protected:
  WrongCaller() : OneWorker(BelievingTwo()) {
    worker.Deliver(0, {"a@1", "b@2", "c@3", "d@4", "e@5"});
  }
};

TEST_F(WrongCaller, AfterSoManyRefusalsInARowTheServiceIsAskedAgainAndNotTheTopicEmptied) {
  for (int i = 0; i < 40; ++i) {
    if (!worker.Calls().empty()) worker.Fail(worker.Calls(), WrongAddress());
    worker.Wait(Millis(1000));
  }
  EXPECT_EQ(worker.Letters(), "a:404 b:404");
  EXPECT_EQ(worker.flow.HandlerUnavailable().substr(0, 47),
            "404: HTTP 404; 2 records in a row were refused ");
  for (int i = 0; i < 3; ++i) {
    while (worker.Calls().empty()) worker.Wait(Millis(10));
    worker.Handle(worker.Calls());
  }
  EXPECT_EQ(worker.flow.HandlerUnavailable(), "");
  EXPECT_EQ(worker.letters.size(), 2u);
}

// Of a proxy whose backends come and go.
TEST_F(WrongCaller, AnOutageBetweenRefusalsDoesNotMakeThemFewer) {
  for (int i = 0; i < 40; ++i) {
    if (!worker.Calls().empty()) {
      worker.Fail(worker.Calls(), i % 2 == 0 ? WrongAddress() : Unavailable());
    }
    worker.Settle();
    worker.Wait(Millis(1000));
  }
  EXPECT_EQ(worker.letters.size(), 2u) << worker.Letters();
}

TEST_F(WrongCaller, ARefusalAmongSuccessesIsTheRecordsOwn) {
  for (const std::string id : {"a", "b"}) worker.Fail(id, WrongAddress());
  worker.Handle("c");
  for (const std::string id : {"d", "e"}) worker.Fail(id, WrongAddress());
  EXPECT_EQ(worker.Letters(), "a:404 b:404 d:404 e:404");
}

TEST_F(CircuitTest, APausedPipelineIsNotToldAsStalled) {
  worker.SetPaused(true);
  worker.Wait(Millis(400'000));
  EXPECT_EQ(worker.flow.Stalled(), "");
  worker.SetPaused(false);
  worker.Wait(Millis(2000));
  EXPECT_EQ(worker.flow.Stalled(), "") << "its time begins anew";
  worker.Wait(Millis(400'000));
  EXPECT_NE(worker.flow.Stalled(), "");
}

TEST_F(CircuitTest, TheTimeOfAnOutageDoesNotCountAsTheRecords) {
  FailAll();
  while (world.now.boot - Instant(std::chrono::seconds(1000)) < Millis(120'000)) {
    worker.Fail(NextCalls(), Unavailable());
  }
  std::string last = NextCalls();
  worker.Handle(last);  // the service is back
  const std::string next = NextCalls().substr(0, 1);
  worker.Fail(next, Unavailable());
  EXPECT_EQ(worker.Letters(), "") << "it has failed for two minutes, and may for one";
}

TEST_F(CircuitTest, AFailureThatIsTheRecordsOwnShowsThatTheServiceWorks) {
  FailAll();
  worker.Fail(NextCalls(), WrongAddress());
  EXPECT_EQ(worker.flow.HandlerUnavailable(), "");
  EXPECT_EQ(worker.letters.size(), 1u);
}

TEST_F(CircuitTest, AServiceThatIsNotReachedOpensItToo) {
  HandlerFailure failure = Unavailable();
  failure.error_class = "connection";
  failure.reached = false;
  FailAll(failure);
  EXPECT_EQ(worker.flow.HandlerUnavailable(), "connection: HTTP 503");
}

TEST_F(CircuitTest, ARebalanceGivesBackWhatWaitsForTheService) {
  FailAll();
  worker.Revoke(0);
  EXPECT_TRUE(worker.drained);
  EXPECT_EQ(worker.flow.HandlerUnavailable(), "") << "it would never be ready again";
}

TEST_F(CircuitTest, ACancelledProbeMakesRoomForTheNext) {
  FailAll();
  const std::string probe = NextCalls();
  world.Steal(LockName("p", probe));
  worker.Wait(world.lock.ttl * 2);
  HandlerFailure cancelled = Unavailable();
  cancelled.error_class = "cancelled";
  worker.Fail(probe, cancelled);
  EXPECT_NE(NextCalls(), "");
}

FlowOptions OneCall() {
  FlowOptions options = WithCircuit();
  options.tuning.concurrency = 1;
  return options;
}
using OneCallAtATime = WorkerWith<OneCall>;

TEST_F(OneCallAtATime, IsNotTakenUpByTheRetriesOfAnotherKey) {
  worker.Deliver(0, {"a@1", "behind@1", "b@2", "c@3"});
  worker.Fail("a", Unavailable());
  for (const std::string id : {"b", "c"}) {
    ASSERT_EQ(worker.Calls(), id) << "while a waits for its next attempt";
    worker.Handle(id);
  }
  worker.WriteAll();
  EXPECT_EQ(worker.Writes(), "");
  EXPECT_EQ(worker.StageOf("a"), "retrying");
}

FlowOptions FiveASecond() {
  FlowOptions options = WithCircuit();
  options.tuning.calls_per_second = 5;
  return options;
}
using RateLimitOfAHandler = WorkerWith<FiveASecond>;

TEST_F(RateLimitOfAHandler, LetsCallsOutEvenly) {
  worker.Deliver(0, {"a@1", "b@2", "c@3"});
  EXPECT_EQ(worker.Calls(), "a");
  worker.Wait(Millis(150));
  EXPECT_EQ(worker.Calls(), "a");
  worker.Wait(Millis(60));
  EXPECT_EQ(worker.Calls(), "a b");
  worker.Wait(Millis(200));
  EXPECT_EQ(worker.Calls(), "a b c");
}

using Pause = WorkerWith<WithCircuit>;

TEST_F(Pause, TakesNothingNewFinishesWhatWasBegunAndGoesOn) {
  worker.Deliver(0, {"a@1"});
  worker.SetPaused(true);
  worker.Deliver(0, {"b@2"});
  EXPECT_EQ(worker.Leased(), "a");
  worker.Handle("a");
  worker.WriteAll();
  EXPECT_EQ(worker.Watermark(0), 1);
  worker.SetPaused(false);
  EXPECT_EQ(worker.Calls(), "b");
}

TEST_F(OneCallAtATime, IsTheLimitUntilItIsTuned) {
  worker.Deliver(0, {"a@1", "b@2", "c@3"});
  EXPECT_EQ(worker.Calls(), "a");
  Tuning tuning = OneCall().tuning;
  tuning.concurrency = 2;
  tuning.retry.never = {"5xx"};
  worker.Tune(tuning);
  EXPECT_EQ(worker.Calls(), "a b");
  worker.Fail("a", Unavailable());
  EXPECT_EQ(worker.Letters(), "a:503");
  EXPECT_EQ(worker.Calls(), "b c");
}

TEST_F(RateLimitOfAHandler, ThatIsTunedIsNotDelayedByTheOldOne) {
  Tuning tuning = FiveASecond().tuning;
  tuning.calls_per_second = 0.001;
  worker.Tune(tuning);
  worker.Deliver(0, {"a@1", "b@2", "c@3"});
  EXPECT_EQ(worker.Calls(), "a");
  tuning.calls_per_second = 5;
  worker.Tune(tuning);
  EXPECT_EQ(worker.Calls(), "a b");
  worker.Wait(Millis(210));
  EXPECT_EQ(worker.Calls(), "a b c");
}

}  // namespace
}  // namespace fencepost::consumer
