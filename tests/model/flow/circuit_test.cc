// A handler whose service fails for all records: the flow waits, and gives no record up.
#include <gmock/gmock.h>
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
  EXPECT_EQ(worker.flow.HandlerUnavailable(), "its service is unavailable: 503: HTTP 503");
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

TEST_F(CircuitTest, AStopDoesNotSayThatTheServiceIsAvailable) {
  FailAll();
  worker.flow.StopTaking();
  worker.Revoke(0);
  worker.Wait(Millis(1100));
  EXPECT_FALSE(Noted("handler_available"));
}

TEST_F(CircuitTest, AServiceThatSaysThatItIsNotThereCostsALoneRecordNothing) {
  worker.Handle("b");
  worker.Handle("c");
  // Two failures may have begun before the others succeeded; three count.
  for (int i = 0; i < 5; ++i) worker.Fail(NextCalls(), Unavailable());
  EXPECT_EQ(worker.flow.HandlerUnavailable(), "its service is unavailable: 503: HTTP 503");
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

TEST_F(CircuitTest, ARecordIsGivenUpForAnAnswerAboutTheCallerLikeForAnyOtherWhileOthersSucceed) {
  for (const std::string id : {"a", "b", "c"}) worker.Handle(id);
  for (const std::string error_class : {"302", "401", "403", "405", "407", "421", "426"}) {
    worker.letters.clear();
    HandlerFailure caller = Unavailable();
    caller.error_class = error_class;
    const std::string id = "bad" + error_class;
    worker.Deliver(0, {id + "@" + error_class});
    const Instant since = world.now.boot;
    for (int i = 0; worker.Letters().empty() && i < 1000; ++i) {
      if (worker.Calls().find(id) != std::string::npos) worker.Fail(id, caller);
      const std::string other = std::string("x") + error_class + "-" + std::to_string(i);
      worker.Deliver(0, {other});
      worker.Handle(other);
      worker.WriteAll();
      worker.Wait(Millis(500));
    }
    EXPECT_EQ(worker.Letters(), id + ":" + error_class);
    EXPECT_GE(world.now.boot - since, Millis(60'000));
    EXPECT_LT(world.now.boot - since, Millis(90'000));
  }
  EXPECT_FALSE(Noted("handler_unavailable"));
}

// The last success came after their first failure, and yet the service is away for all now, or
// takes the caller no more.
TEST_F(CircuitTest, RecordsThatFailedBeforeAnOutageAreNotGivenUpInIt) {
  HandlerFailure failure = Unavailable();
  worker.Fail("a", failure);
  worker.Fail("b", failure);
  worker.Handle("c");
  worker.WriteAll();
  for (const char* error_class : {"503", "401"}) {
    failure.error_class = error_class;
    const Instant since = world.now.boot;
    while (world.now.boot - since < std::chrono::minutes(30)) {
      for (const char id : NextCalls()) {
        if (id != ' ') worker.Fail(std::string(1, id), failure);
      }
    }
    EXPECT_EQ(worker.Letters(), "") << error_class;
  }
  EXPECT_TRUE(Noted("handler_unavailable"));
}

// As of a service that hangs behind a load balancer.
TEST_F(CircuitTest, AnOutageThatTheServiceDoesNotOwnUpToCostsNoRecordEither) {
  for (const char* error_class : {"500", "502", "504", "timeout", "exec"}) {
    HandlerFailure broken = Unavailable();
    broken.error_class = error_class;
    const Instant since = world.now.boot;
    while (world.now.boot - since < std::chrono::hours(2)) {
      for (const char id : NextCalls()) {
        if (id != ' ') worker.Fail(std::string(1, id), broken);
      }
    }
    EXPECT_EQ(worker.Letters(), "") << error_class;
    EXPECT_NE(worker.flow.HandlerUnavailable(), "") << error_class;
  }
}

// --- one record is no outage ---------------------------------------------------------------------

class Poison : public CircuitTest {
 protected:
  // So often, with nothing else to do.
  void FailAlone(const std::string& error_class, int times) {
    HandlerFailure broken = Unavailable();
    broken.error_class = error_class;
    for (int i = 0; i < times; ++i) {
      if (NextCalls() == "a") worker.Fail("a", broken);
    }
    worker.Wait(Millis(1100));
  }
  void OthersSucceed() {
    for (const std::string id : {"b", "c"}) worker.Handle(id);
    worker.WriteAll();
  }
};

TEST_F(Poison, IsNamedAndNotTheServiceAndIsGivenUpAfterItsTime) {
  worker.Fail("a", Unavailable());
  worker.Deliver(0, {"d@4"});
  worker.Handle("d");
  OthersSucceed();
  FailAlone("503", 9);
  EXPECT_EQ(worker.flow.HandlerUnavailable(), "");
  EXPECT_EQ(worker.flow.Failing(), "only t/0/0 fails: 503, 10 attempts");
  EXPECT_EQ(worker.Letters(), "");
  FailAlone("503", 60);
  EXPECT_EQ(worker.Letters(), "a:503");
  EXPECT_EQ(worker.flow.Failing(), "");
}

TEST_F(Poison, ThatIsLeftOverFromAnOutageEndsItByAnotherFailure) {
  OthersSucceed();
  FailAlone("503", 6);
  EXPECT_NE(worker.flow.HandlerUnavailable(), "");
  FailAlone("500", 2);
  EXPECT_EQ(worker.flow.HandlerUnavailable(), "");
  EXPECT_EQ(worker.flow.Failing(), "only t/0/0 fails: 500, 8 attempts");
  EXPECT_TRUE(Noted("handler_available"));
  FailAlone("500", 60);
  EXPECT_EQ(worker.Letters(), "a:500");
}

TEST_F(Poison, ThatIsTheLastOfSeveralButForItsDuplicateEndsTheOutageTheyWere) {
  worker.Assign(1);
  worker.Deliver(1, {"d@4", "d@5"});
  HandlerFailure broken = Unavailable();
  broken.error_class = "500";
  for (const std::string id : {"a", "b", "c", "d"}) worker.Fail(id, broken);
  ASSERT_NE(worker.flow.HandlerUnavailable(), "");
  worker.Revoke(0);
  worker.Wait(Millis(1100));
  for (int i = 0; i < 3; ++i) {
    if (NextCalls() == "d") worker.Fail("d", broken);
  }
  EXPECT_EQ(worker.flow.HandlerUnavailable(), "");
}

TEST_F(Poison, IsCountedWhereThereAreSeveral) {
  for (int i = 0; i < 400; ++i) {
    for (const char id : NextCalls()) {
      if (id == 'a' || id == 'b') worker.Fail(std::string(1, id), Unavailable());
    }
    worker.Deliver(0, {"x" + std::to_string(i)});
    worker.Handle("x" + std::to_string(i));
    worker.WriteAll();
    worker.Wait(Millis(100));
  }
  EXPECT_THAT(worker.flow.Failing(), ::testing::StartsWith("2 records fail; longest t/0/"));
}

FlowOptions InOneChain() {
  FlowOptions options = WithCircuit();
  options.order = Order::kPartition;
  return options;
}

class OneChain : public OneWorker {
 protected:
  OneChain() : OneWorker(InOneChain()) {}
  void FailFor(const char* error_class, Millis time) {
    HandlerFailure broken = Unavailable();
    broken.error_class = error_class;
    for (const Instant end = world.now.boot + time; world.now.boot < end;) {
      while (!worker.calls.empty()) worker.Fail(worker.calls.front().record_id, broken);
      while (worker.Acknowledge()) {
      }
      worker.Wait(Millis(100));
    }
  }
  void Recover() {
    for (int i = 0; i < 300; ++i) {
      worker.HandleAll();
      worker.WriteAll();
      worker.Wait(Millis(100));
    }
  }
};

TEST_F(OneChain, CostsAnOutageAtMostOneRecord) {
  Offset from = 0;
  for (const char* error_class : {"500", "502", "504", "timeout", "exec"}) {
    worker.told.buried.clear();
    std::vector<std::string> records;
    for (int i = 0; i < 20; ++i) records.push_back(std::string(error_class) + std::to_string(i));
    worker.Deliver(0, records);
    from += 20;
    FailFor(error_class, std::chrono::minutes(12));
    EXPECT_EQ(worker.told.buried.size(), 1u) << error_class;
    EXPECT_THAT(worker.flow.HandlerUnavailable(),
                ::testing::AllOf(
                    ::testing::StartsWith("only t/0/"),
                    ::testing::EndsWith(std::string(" can be tried; it fails: ") + error_class)));
    Recover();
    EXPECT_EQ(worker.Watermark(0), from) << error_class;
    EXPECT_EQ(worker.told.buried.size(), 1u) << error_class;
    EXPECT_EQ(worker.flow.HandlerUnavailable(), "");
  }
}

// They come one after the other: none is left when the next one does.
TEST_F(OneChain, CostsAnOutageAtMostOneRecordWhereTheyComeOneByOne) {
  for (int i = 0; i < 5; ++i) {
    worker.Deliver(0, {"a" + std::to_string(i)});
    FailFor("500", std::chrono::minutes(10));
  }
  EXPECT_EQ(worker.told.buried.size(), 1u);
}

TEST_F(OneChain, NamesTheRecordsThatFailWithAllOthersBehindThem) {
  worker.Assign(1);
  worker.Deliver(0, {"a", "c"});
  worker.Deliver(1, {"b", "d"});
  FailFor("500", std::chrono::minutes(10));
  EXPECT_EQ(worker.told.buried.size(), 0u);
  EXPECT_EQ(worker.flow.HandlerUnavailable(), "only t/0/0 and t/1/0 can be tried; both fail: 500");
  FailFor("503", std::chrono::minutes(1));
  EXPECT_EQ(worker.flow.HandlerUnavailable(), "its service is unavailable: 503: HTTP 503");
  FailFor("500", std::chrono::minutes(1));
  Tuning tuning = InOneChain().tuning;
  tuning.retry.never = {"500"};
  worker.Tune(tuning);
  for (int i = 0; worker.told.buried.size() < 2 && i < 100; ++i) {
    for (const std::string id : {"a", "b"}) {
      if (worker.Calls().find(id) == std::string::npos) continue;
      HandlerFailure broken = Unavailable();
      broken.error_class = "500";
      worker.Fail(id, broken);
      worker.Acknowledge();
    }
    worker.Wait(Millis(100));
  }
  Recover();
  EXPECT_EQ(worker.Watermark(0), 2);
  EXPECT_EQ(worker.Watermark(1), 2);
  EXPECT_EQ(worker.told.buried.size(), 2u);
}

// --- what is refused for good --------------------------------------------------------------------

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
  EXPECT_THAT(worker.flow.HandlerUnavailable(),
              ::testing::StartsWith("every record is refused (2 in a row): 404: HTTP 404; check"));
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

// What is refused in between counts in one row with what the output refuses, and with records
// without an id.
TEST_F(WrongCaller, CountsWithOtherCausesInOneRow) {
  worker.Assign(1);
  worker.Deliver(1, {"", ""});
  EXPECT_TRUE(worker.Acknowledge() && worker.Acknowledge());
  worker.Fail("a", WrongAddress());
  EXPECT_EQ(worker.Letters(), "");
  EXPECT_NE(worker.flow.HandlerUnavailable(), "");
}

using FullRow = WorkerWith<BelievingTwo>;

TEST_F(FullRow, ARecordThatIsNotGivenUpForItMakesTheServiceUnavailable) {
  worker.Deliver(0, {"", "", "a@1"});
  while (worker.Acknowledge()) {
  }
  HandlerFailure broken = WrongAddress();
  broken.error_class = "500";
  broken.retry = true;
  const Instant end = world.now.boot + Millis(120'000);
  while (world.now.boot < end) {
    if (!worker.Calls().empty()) worker.Fail("a", broken);
    worker.Wait(Millis(500));
  }
  EXPECT_EQ(worker.Letters(), "");
  EXPECT_THAT(worker.flow.HandlerUnavailable(),
              ::testing::StartsWith("every record is refused (2 in a row): 500: HTTP 404; check"));
  while (worker.Calls().empty()) worker.Wait(Millis(10));
  worker.Handle("a");
  EXPECT_EQ(worker.flow.HandlerUnavailable(), "");
}

TEST_F(CircuitTest, AFailureThatIsTheRecordsOwnShowsThatTheServiceWorks) {
  FailAll();
  worker.Fail(NextCalls(), WrongAddress());
  EXPECT_EQ(worker.flow.HandlerUnavailable(), "");
  EXPECT_EQ(worker.letters.size(), 1u);
}

HandlerFailure RefusedBeforeTheCall() {
  HandlerFailure failure = WrongAddress();
  failure.error_class = "bad_record";
  failure.asked = false;
  return failure;
}

TEST_F(CircuitTest, ARecordThatIsRefusedBeforeAnyCallSaysNothingOfTheService) {
  FailAll();
  worker.Fail(NextCalls(), RefusedBeforeTheCall());
  EXPECT_EQ(worker.letters.size(), 1u);
  EXPECT_EQ(worker.flow.HandlerUnavailable(), "its service is unavailable: 503: HTTP 503");
}

TEST_F(FullRow, ARefusalInAnOutageDoesNotReplaceItsReason) {
  worker.Assign(1);
  worker.Deliver(0, {"a@1", "b@2", "c@3"});
  for (const std::string id : {"a", "b", "c"}) worker.Fail(id, Unavailable());
  ASSERT_EQ(worker.flow.HandlerUnavailable(), "its service is unavailable: 503: HTTP 503");
  worker.Deliver(1, {"", ""});
  while (worker.Acknowledge()) {
  }
  for (int i = 0; i < 3; ++i) {
    while (worker.Calls().empty()) worker.Wait(Millis(10));
    worker.Fail(worker.Calls(), i == 1 ? WrongAddress() : RefusedBeforeTheCall());
    EXPECT_EQ(worker.flow.HandlerUnavailable(), "its service is unavailable: 503: HTTP 503");
  }
  EXPECT_EQ(worker.told.buried.size(), 2u);
}

TEST_F(CircuitTest, AServiceThatIsNotReachedOpensItToo) {
  HandlerFailure failure = Unavailable();
  failure.error_class = "connection";
  failure.reached = false;
  FailAll(failure);
  EXPECT_EQ(worker.flow.HandlerUnavailable(), "its service is unavailable: connection: HTTP 503");
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

}  // namespace
}  // namespace fencepost::consumer
