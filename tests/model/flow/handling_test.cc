// A record on its way through a handler that may have effects of its own: looked up, its turn,
// called, called off. Numbers are PROTOCOL.md's.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/model/flow/flow_bench.h"

namespace fencepost::consumer {
namespace {

const HandlerFailure kCancelled{
    .error_class = "cancelled", .text = "cancelled", .made = false, .retry_after = {}};
const HandlerFailure kBusy{.error_class = "503", .text = "busy", .retry_after = {}};

FlowOptions InOrder() { return FlowBench::Handling(); }
FlowOptions ByKey() { return FlowBench::Handling(Order::kKey); }
FlowOptions TwoAtATime() {
  FlowOptions options = FlowBench::Handling(Order::kNone);
  options.tuning.concurrency = 2;
  return options;
}
// Without effects of its own.
FlowOptions Pure() {
  FlowOptions options = FlowBench::Handling();
  options.handler.kind = JqHandlerOptions{".amount"};
  return options;
}
FlowOptions OneWrite() {
  FlowOptions options = FlowBench::Handling();
  options.write_batch = options.writes_out = 1;
  return options;
}

using Handling = WorkerWith<InOrder>;
using HandlingByKey = WorkerWith<ByKey>;
using TwoCalls = WorkerWith<TwoAtATime>;
using PureHandling = WorkerWith<Pure>;
using OneWriteAtATime = WorkerWith<OneWrite>;

// --- the ledger is asked first -------------------------------------------------------------------

TEST_F(Handling, StartsOnlyAfterTheLedgerWasAsked) {
  worker.answers_lookups = false;
  worker.Deliver(0, {"a"});
  EXPECT_EQ(worker.Leased(), "a");
  EXPECT_EQ(worker.Lookups(), "a");
  EXPECT_EQ(worker.Calls(), "");
  worker.LookUp();
  EXPECT_EQ(worker.Calls(), "a");
  EXPECT_EQ(worker.Writes(), "");
  worker.Handle("a");
  EXPECT_EQ(worker.Writes(), "a");
  EXPECT_EQ(worker.writes[0]->request.items[0].values->at(0), "made");
}

TEST_F(Handling, WaitsForALogThatIsUnreadAndHoldsUpNoOtherPartition) {
  worker.unread = {"a", "b"};
  for (const char* id : {"a", "b"}) worker.Deliver(0, {id});
  for (int i = 0; i < 5; ++i) worker.Wait(Millis(500));
  EXPECT_EQ(worker.StageOf("a"), "doubted");
  worker.Assign(1);
  worker.Deliver(1, {"c"});
  EXPECT_EQ(worker.Calls(), "c");
  worker.unread.clear();
  worker.Wait(Millis(500));
  EXPECT_EQ(worker.Calls(), "c a");
}

TEST_F(Handling, IsNotBegunForARecordWhoseRowStands) {
  world.WriteRow("a");
  worker.Deliver(0, {"a"});
  EXPECT_EQ(worker.Calls(), "");
  EXPECT_EQ(worker.Writes(), "");
  EXPECT_EQ(worker.Watermark(0), 1);
  EXPECT_EQ(worker.told.skips_by_ledger, 1);
}

TEST_F(Handling, AsksTheLedgerForAHintedRecordTooAndRunsItWithoutARow) {  // 11
  world.MarkDone("a");
  worker.answers_lookups = false;
  worker.Deliver(0, {"a"});
  EXPECT_EQ(worker.Leased(), "");
  EXPECT_EQ(worker.Lookups(), "a");
  worker.LookUp();
  EXPECT_EQ(worker.Calls(), "a");
}

TEST(HandlingByAnyOutput, IsNotBegunForARecordWithoutWhatTheOutputTakesFromIt) {
  for (const Finality finality : {Finality::kLedger, Finality::kWrite, Finality::kTransaction}) {
    SharedWorld world;
    FlowOptions options = FlowBench::Handling();
    options.finality = finality;
    options.required = {{"column customer", *Selector::Parse("key")}};
    FlowBench worker(world, options);
    worker.Assign(0);
    if (finality == Finality::kLedger) world.WriteRow("c");
    worker.Deliver(0, {"a@k", "b", "c"});
    EXPECT_EQ(worker.Calls(), "a");
    worker.HandleAll();
    if (finality == Finality::kTransaction) {
      ASSERT_EQ(worker.Writes(), "a b c");
      EXPECT_NE(worker.writes[0]->request.items[1].dead_letter, nullptr);
      continue;
    }
    worker.WriteAll();
    ASSERT_EQ(worker.Letters(), "b:bad_record");
    EXPECT_EQ(worker.letters[0].error, "column customer from key: key finds nothing in the record");
    EXPECT_EQ(worker.letters[0].attempts, 0);
    worker.Acknowledge();
    EXPECT_EQ(worker.Letters(), finality == Finality::kLedger ? "" : "c:bad_record");
    EXPECT_EQ(worker.told.skips_by_ledger, finality == Finality::kLedger ? 1 : 0) << "it is done";
  }
}

TEST(HandlingByAnyOutput, IsBegunForARecordWithoutWhatTheHandlersNullDoesNotNeed) {
  for (const OnNull on_null : {OnNull::kBad, OnNull::kSkip, OnNull::kDelete}) {
    SCOPED_TRACE(static_cast<int>(on_null));
    SharedWorld world;
    PostgresOptions output;
    output.columns = {{"id", *Selector::Parse("record_id")}, {"customer", *Selector::Parse("key")}};
    output.rules = {.key = {"id"}, .on_null_value = on_null};
    FlowOptions options = FlowBench::Handling();
    options.required = RequiredPartsOf(output);
    FlowBench worker(world, options);
    worker.Assign(0);
    worker.Deliver(0, {"a"});
    if (on_null == OnNull::kBad) {
      EXPECT_EQ(worker.Calls(), "");
      EXPECT_EQ(worker.Letters(), "a:bad_record");
      continue;
    }
    ASSERT_EQ(worker.Calls(), "a");
    worker.Handle("a", {std::nullopt});
    worker.WriteAll();
    EXPECT_EQ(worker.Letters(), "");
    EXPECT_EQ(worker.Watermark(0), 1);
  }
}

TEST_F(Handling, CarriesAnIdThatIsStoredAsItsDigestToTheOutput) {
  const std::string id(600, 'x');
  worker.Deliver(0, {id});
  EXPECT_EQ(worker.Calls(), StoredId(id));
  worker.Handle(StoredId(id));
  const WriteItem& item = worker.writes.at(0)->request.items[0];
  EXPECT_EQ(item.record_id, StoredId(id));
  EXPECT_EQ(item.whole_id, id);
}

TEST_F(Handling, AsksForManyRecordsAtATime) {
  worker.answers_lookups = false;
  worker.Deliver(0, {"a", "b", "c"});
  ASSERT_FALSE(worker.lookups.empty());
  EXPECT_EQ(worker.lookups.size(), 1u);
  EXPECT_EQ(worker.Lookups(), "a b c");
}

// --- order and concurrency -----------------------------------------------------------------------

TEST_F(HandlingByKey, OfOneKeyNeverOverlapsWhileOthersGoOn) {
  worker.Deliver(0, {"a@k", "b@k", "c@j", "d"});
  EXPECT_EQ(worker.Calls(), "a c d");
  worker.Handle("c");
  EXPECT_EQ(worker.Calls(), "a d") << "another key is no reason";
  worker.Handle("a");
  EXPECT_EQ(worker.Calls(), "d b") << "as soon as the one before it is handled";
}

TEST_F(HandlingByKey, OfRecordsWithoutAKeyIsSideBySideAndAnEmptyKeyIsAKey) {
  worker.Deliver(0, {"a", "b", "c@", "d@", "e"});
  EXPECT_EQ(worker.Calls(), "a b c e");
  worker.Fail("a", kBusy);
  worker.Handle("e");
  EXPECT_EQ(worker.Writes(), "e") << "nothing holds it up";
}

TEST_F(HandlingByKey, WaitsOnlyForTheRetriesOfItsOwnKey) {
  worker.Deliver(0, {"a@k", "b@k", "c@j"});
  worker.Fail("a", kBusy);
  worker.HandleAll();
  EXPECT_EQ(worker.StageOf("a"), "retrying");
  EXPECT_EQ(worker.StageOf("b"), "waiting");
  EXPECT_EQ(worker.Writes(), "c");
}

TEST_F(HandlingByKey, DoesNotBeginWhileTheCalledOffCallOfTheOneBeforeItIsOut) {
  worker.Deliver(0, {"a@k", "b@k"});
  world.WriteRow("a@k");
  HearDone("a");
  EXPECT_EQ(worker.Calls(), "a!") << "what it does may still be happening";
  worker.Fail("a", kCancelled);
  EXPECT_EQ(worker.Calls(), "b");
}

// It is done elsewhere meanwhile, and the ledger says so as soon as its name is contended.
TEST_F(HandlingByKey, OfAContendedRecordIsFollowedOnceItsCalledOffCallIsAnswered) {
  worker.Deliver(0, {"a@k", "b@k"});
  ASSERT_EQ(worker.Calls(), "a");
  LoseLease("a");
  ASSERT_EQ(worker.Calls(), "a!");
  world.WriteRow("a@k");
  worker.Wait(Millis(1200));
  EXPECT_EQ(worker.Calls(), "a!") << "what it does may still be happening";
  worker.Fail("a", kCancelled);
  worker.Wait(Millis(1200));
  EXPECT_EQ(worker.Calls(), "b");
  EXPECT_EQ(worker.told.skips_by_ledger, 1);
}

TEST_F(TwoCalls, OfWhichOneWasNotSentInTimeAreMadeAgainWithoutCountingIt) {
  worker.Deliver(0, {"a", "b"});
  const locking::Instant end = worker.calls[0].valid_until;
  EXPECT_GT(end, world.now.boot);
  EXPECT_LT(end, locking::Instant::max());
  for (int i = 0; i < 50; ++i) worker.Fail("a", kCancelled);
  EXPECT_EQ(worker.Calls(), "b a");
  EXPECT_EQ(worker.calls[1].attempt, 1);
}

TEST_F(TwoCalls, AreOutAtMost) {
  worker.Deliver(0, {"a", "b", "c", "d"});
  EXPECT_EQ(worker.Calls(), "a b");
  worker.Handle("b");
  EXPECT_EQ(worker.Calls(), "a c");
}

TEST_F(TwoCalls, AreNotTakenUpByARecordThatWaitsForItsRetry) {
  worker.Deliver(0, {"a", "b", "c"});
  worker.Fail("a", kBusy);
  EXPECT_EQ(worker.StageOf("a"), "retrying");
  EXPECT_EQ(worker.Calls(), "b c");
}

TEST_F(TwoCalls, AreTakenUpByACalledOffOneUntilItIsAnswered) {
  worker.Deliver(0, {"a", "b", "c"});
  LoseLease("a");
  EXPECT_EQ(worker.Calls(), "a! b");
  worker.Fail("a", kCancelled);
  EXPECT_EQ(worker.Calls(), "b c");
}

// --- a handler without effects of its own --------------------------------------------------------

TEST_F(PureHandling, OfAChainOverlapsAndIsWrittenInOrder) {
  worker.answers_lookups = false;
  worker.Deliver(0, {"a", "b"});
  EXPECT_EQ(worker.Lookups(), "") << "the ledger decides when it is written";
  EXPECT_EQ(worker.Calls(), "a b");
  worker.Handle("b");
  EXPECT_EQ(worker.Writes(), "");
  worker.Handle("a");
  EXPECT_EQ(worker.Writes(), "a b");
}

// --- called off ----------------------------------------------------------------------------------

TEST_F(Handling, IsCalledOffWhenTheLeaseIsLost) {
  worker.Deliver(0, {"a"});
  LoseLease("a");
  EXPECT_EQ(worker.Calls(), "a!");
  EXPECT_EQ(worker.Leased(), "");
}

TEST_F(Handling, DoesNotCountWhatACalledOffCallAnswers) {
  worker.Deliver(0, {"a"});
  LoseLease("a");
  worker.Handle("a");
  EXPECT_EQ(worker.Writes(), "");
  worker.Wait(world.lock.ttl * 2);  // leased again
  EXPECT_EQ(worker.Calls(), "a");
}

TEST_F(Handling, BeginsAgainOnlyAfterTheCalledOffCallWasAnswered) {
  worker.Deliver(0, {"a"});
  LoseLease("a");
  worker.Wait(world.lock.ttl * 2);
  EXPECT_EQ(worker.Leased(), "a");
  EXPECT_EQ(worker.Calls(), "a!");
  worker.Fail("a", kCancelled);
  EXPECT_EQ(worker.Calls(), "a");
}

TEST_F(Handling, CountsNoAnswerThatComesAfterTheLeasesOwnEnd) {
  worker.Deliver(0, {"a"});
  worker.Pass(world.lock.ttl * 2);  // it is stalled; nobody has told it that the lease is over
  worker.Handle("a");
  EXPECT_EQ(worker.Writes(), "");
  worker.Wait(Millis(100));
  EXPECT_EQ(worker.Calls(), "a");
}

TEST_F(Handling, IsCalledOffWhenDoneIsHeardAndTheLedgerDecides) {  // 11
  worker.answers_lookups = false;
  worker.Deliver(0, {"a", "b"});
  worker.LookUpAll();
  world.WriteRow("a");
  HearDone("a");
  EXPECT_EQ(worker.Calls(), "a!");
  worker.Fail("a", kCancelled);
  EXPECT_EQ(worker.Lookups(), "a");
  worker.LookUpAll();
  EXPECT_EQ(worker.Watermark(0), 1);
  EXPECT_EQ(worker.told.skips_by_ledger, 1);
  EXPECT_EQ(worker.Calls(), "b");
}

TEST_F(Handling, RunsAgainAfterAHintWithoutARow) {  // 11
  worker.Deliver(0, {"a"});
  HearDone("a");
  worker.Fail("a", kCancelled);
  EXPECT_EQ(worker.Calls(), "a");
}

TEST_F(OneWriteAtATime, KeepsAResultThatWasGivenBackButAsksTheLedgerAgain) {
  worker.answers_lookups = false;
  worker.Deliver(0, {"x", "a"});
  worker.HandleAll();
  ASSERT_EQ(worker.Writes(), "x");
  ASSERT_EQ(worker.StageOf("a"), "ready");
  LoseLease("a");
  worker.LookUpAll();
  worker.Wait(world.lock.ttl * 2);
  EXPECT_NE(worker.Lookups(), "");
  worker.LookUpAll();
  EXPECT_EQ(worker.Calls(), "");
  worker.WriteAll();
  EXPECT_EQ(worker.Watermark(0), 2);
  EXPECT_NE(world.ledger.Find("a"), nullptr);
}

}  // namespace
}  // namespace fencepost::consumer
