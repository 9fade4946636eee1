// A record that cannot be processed: a dead letter where there is a topic for them, else the end of
// the pipeline. Numbers are PROTOCOL.md's.
#include <gmock/gmock.h>

#include <fmt/format.h>

#include "tests/model/flow/flow_bench.h"

namespace fencepost::consumer {
namespace {

using ::testing::HasSubstr;
using State = locking::NodeModel::State;

const HandlerFailure kRefused{
    .error_class = "422", .text = "no such account", .retry = false, .retry_after = {}};

class DeadLettering : public OneWorker {
 protected:
  explicit DeadLettering(const FlowOptions& options = FlowBench::Handling()) : OneWorker(options) {}
  // "a" is handled, and its transaction answered so.
  void WriteA(const WriteOutcome& outcome, const std::string& record = "a") {
    worker.Deliver(0, {record});
    worker.HandleAll();
    worker.Answer({outcome});
  }
};

const WriteOutcome kBad{WriteResult::kBadRecord, "value too long", DeadLetterReason::kOutput};
const WriteOutcome kUnanswered{.result = WriteResult::kNotWritten, .in_doubt = true};

// The handler has refused "a"; the look-up that follows is held.
class RefusedByItsHandler : public DeadLettering {
 protected:
  RefusedByItsHandler() {
    worker.Deliver(0, {"a"});
    worker.answers_lookups = false;
    worker.Fail("a", kRefused);
  }
};

TEST_F(RefusedByItsHandler, IsPublishedOnlyAfterAnotherLookUp) {
  EXPECT_EQ(worker.Letters(), "");
  EXPECT_EQ(worker.Lookups(), "a");
  worker.LookUp();
  ASSERT_EQ(worker.Letters(), "a:422");
  EXPECT_EQ(worker.letters[0].error, "no such account");
  EXPECT_EQ(worker.letters[0].record.offset, 0);
}

TEST_F(RefusedByItsHandler, IsASkipWhereTheRowStandsAfterAll) {
  world.WriteRow("a");
  worker.LookUpAll();
  EXPECT_EQ(worker.Letters(), "");
  EXPECT_EQ(worker.Watermark(0), 1);
  EXPECT_TRUE(worker.told.buried.empty());
}

TEST_F(RefusedByItsHandler, HoldsUpNoRevokeOnceItsTopicRefusesIt) {
  worker.Deliver(0, {"b"});
  worker.LookUpAll();
  worker.Revoke(0);
  EXPECT_FALSE(worker.drained) << "it may be acknowledged";
  worker.RefuseLetters();
  worker.HandleAll();
  worker.WriteAll();
  ASSERT_TRUE(worker.drained);
  EXPECT_EQ(worker.dropped_letters.size(), 1u) << "the next owner publishes it";
  EXPECT_EQ(worker.Letters(), "");
}

TEST_F(RefusedByItsHandler, IsDroppedByThePublisherTooWhereItsPartitionIsLost) {
  worker.LookUp();
  ASSERT_EQ(worker.Letters(), "a:422");
  worker.Revoke(0, true);
  EXPECT_EQ(worker.dropped_letters.size(), 1u);
}

TEST_F(RefusedByItsHandler, IsPublishedOnlyUnderAStandingLease) {
  worker.Pass(world.lock.ttl * 2);  // it is stalled while it is looked up
  worker.LookUp();
  EXPECT_EQ(worker.Letters(), "");
  worker.Wait(Millis(100));  // leased again
  EXPECT_EQ(worker.Lookups(), "a");
  EXPECT_EQ(worker.Calls(), "") << "it is not handled again for that";
  worker.LookUpAll();
  EXPECT_EQ(worker.Letters(), "a:422");
}

TEST_F(RefusedByItsHandler, EndsTheRecordOnlyWhenItIsAcknowledgedAndLeavesNeitherMarkNorRow) {
  worker.Deliver(0, {"b"});
  worker.LookUpAll();
  worker.Wait(Millis(2000));
  EXPECT_EQ(worker.StageOf("a"), "dying");
  EXPECT_EQ(worker.Calls(), "") << "b waits for it";
  EXPECT_EQ(worker.Watermark(0), 0);
  EXPECT_TRUE(worker.Commits().empty());
  worker.Acknowledge();
  EXPECT_EQ(worker.Calls(), "b");
  EXPECT_EQ(worker.Watermark(0), 1);
  EXPECT_EQ(worker.Commits().size(), 1u);
  EXPECT_EQ(worker.told.buried, std::vector{DeadLetterReason::kHandler});
  EXPECT_EQ(worker.StateOf("a"), State::kFree);
  EXPECT_EQ(world.ledger.Find("a"), nullptr);
}

TEST_F(RefusedByItsHandler, IsStillPublishedOnceWhereTheLeaseIsLostMeanwhile) {
  worker.LookUpAll();
  LoseLease("a");
  EXPECT_EQ(worker.Letters(), "a:422") << "it may have been published";
  worker.Acknowledge();
  EXPECT_EQ(worker.Watermark(0), 1);
}

TEST_F(DeadLettering, TakesATimeoutAndABadAnswerForWhatTheyAre) {
  worker.Deliver(0, {"a"});
  worker.Fail("a", {.error_class = "timeout", .text = "", .retry = false, .retry_after = {}});
  ASSERT_EQ(worker.letters.size(), 1u);
  EXPECT_EQ(worker.letters[0].reason, DeadLetterReason::kTimeout);
}

// --- by position ---------------------------------------------------------------------------------

FlowOptions ByPosition() {
  FlowOptions options = FlowBench::Handling();
  options.identity = {};
  options.identity.accept_replay_ids = true;
  return options;
}
class DeadLetteringByPosition : public DeadLettering {
 protected:
  DeadLetteringByPosition() : DeadLettering(ByPosition()) {}
  void Refuse(const std::string& id) {
    worker.Fail(id, kRefused);
    worker.Acknowledge();
  }
};

TEST_F(DeadLetteringByPosition, IsDoneInTheLedgerBeforeTheWatermarkPassesIt) {
  worker.Deliver(0, {"x", "x"});
  Refuse("cluster/t/0/0");
  EXPECT_EQ(worker.Watermark(0), 0);
  ASSERT_EQ(worker.Writes(), "cluster/t/0/0");
  EXPECT_NE(worker.writes[0]->request.items[0].dead_letter, nullptr);
  worker.WriteAll();
  EXPECT_EQ(worker.Watermark(0), 1);
  EXPECT_EQ(worker.told.buried, std::vector{DeadLetterReason::kHandler});
  EXPECT_EQ(worker.Letters(), "") << "it is published once";
  EXPECT_EQ(worker.StateOf("cluster/t/0/0"), State::kFree) << "its replay waits for nobody";
}

TEST_F(DeadLetteringByPosition, IsWrittenWithoutALeaseOnceItIsPublished) {
  worker.Deliver(0, {"x"});
  worker.Fail("cluster/t/0/0", kRefused);
  LoseLease("cluster/t/0/0");
  worker.Acknowledge();
  worker.Wait(Millis(100));
  ASSERT_EQ(worker.Writes(), "cluster/t/0/0");
  worker.WriteAll();
  EXPECT_EQ(worker.Watermark(0), 1);
  EXPECT_EQ(worker.told.buried.size(), 1u);
}

TEST_F(DeadLetteringByPosition, IsWrittenBeforeItsPartitionGoes) {
  worker.Deliver(0, {"x"});
  worker.Fail("cluster/t/0/0", kRefused);
  worker.Revoke(0);
  worker.Acknowledge();
  EXPECT_FALSE(worker.drained);
  worker.WriteAll();
  ASSERT_TRUE(worker.drained);
  EXPECT_EQ(worker.drained->at(0).next, 1);
}

// It is being written, or waits for another transaction.
TEST_F(DeadLetteringByPosition, IsNotPublishedAgainWhereTheDrainEndsBeforeItIsWritten) {
  for (const bool waits : {false, true}) {
    worker.Assign(waits ? 1 : 2);
    if (waits) {
      worker.Deliver(1, {"y"});
      worker.Handle("cluster/t/1/0");
      worker.Assign(0, 1, 2);
    }
    const Offset offset = waits ? 1 : 0;
    worker.Deliver(0, {"x"});
    worker.Fail(fmt::format("cluster/t/0/{}", offset), kRefused);
    worker.Revoke(0);
    worker.Acknowledge();
    ASSERT_EQ(worker.writes.size(), 1u);
    ASSERT_FALSE(worker.drained);
    worker.Wait(Millis(2000));
    ASSERT_TRUE(worker.drained);
    ASSERT_EQ(worker.drained->size(), 1u);
    EXPECT_EQ(worker.drained->at(0).next, offset + 1);
    worker.Answer({kUnanswered});
    worker.WriteAll();
    EXPECT_EQ(worker.told.buried.size(), static_cast<std::size_t>(offset + 1));
  }
  EXPECT_EQ(worker.Watermark(1), 1);
  EXPECT_EQ(worker.flow.in_flight(), 0u);
}

TEST_F(DeadLetteringByPosition, IsNotPublishedAgainWhereItsLeaseIsLostDuringTheDrain) {
  worker.Deliver(0, {"x"});
  worker.Fail("cluster/t/0/0", kRefused);
  worker.Revoke(0);
  worker.Pass(world.lock.ttl);
  worker.Acknowledge();
  worker.Wait(Millis(100));
  ASSERT_TRUE(worker.drained) << "nothing is to be waited for";
  EXPECT_EQ(worker.drained->at(0).next, 1);
  EXPECT_EQ(worker.told.buried.size(), 1u);
}

TEST_F(DeadLetteringByPosition, ThatTheOutputDoesNotTakeLeavesAHoleAndHoldsUpNothing) {
  worker.Deliver(0, {"x"});
  Refuse("cluster/t/0/0");
  worker.Answer({kBad});
  EXPECT_EQ(worker.Watermark(0), 1);
  EXPECT_EQ(worker.Letters(), "");
}

TEST_F(DeadLetteringByPosition, ThatIsReadAgainIsSkippedAndItsReplayIsProcessedOnce) {
  worker.Deliver(0, {"x"});
  Refuse("cluster/t/0/0");
  worker.WriteAll();
  worker.Wait(Millis(100));  // tokens grow with time
  FlowBench next(world, ByPosition(), 2);
  next.Assign(0, 0, 2);
  next.Deliver(0, {"x"});
  EXPECT_EQ(next.Calls(), "");
  EXPECT_EQ(next.Watermark(0), 1);
  next.DeliverReplay(0, "cluster/t/0/0");
  EXPECT_EQ(next.Calls(), "cluster/t/0/0");
}

TEST_F(DeadLetteringByPosition, IsAReplayOfAPositionOfAnotherLog) {
  worker.Assign(1);
  const auto is_bad = [this](const std::string& id) {
    worker.DeliverReplay(0, id);
    const bool bad = worker.Letters() == ":bad_record";
    if (bad) {
      EXPECT_THAT(worker.letters[0].error, HasSubstr("a position of another record"));
    }
    worker.Acknowledge();
    worker.HandleAll();
    worker.WriteAll();
    return bad;
  };
  EXPECT_TRUE(is_bad("cluster/t/0/0")) << "its own";
  EXPECT_TRUE(is_bad("cluster/t/0/9")) << "one to come";
  EXPECT_FALSE(is_bad("cluster/t/0/1"));
  EXPECT_FALSE(is_bad("elsewhere/t/0/9")) << "the log of another cluster";
  EXPECT_FALSE(is_bad("cluster/t/1/9")) << "its end is not known";
  worker.End(1, 3);
  EXPECT_TRUE(is_bad("cluster/t/1/3"));
  EXPECT_FALSE(is_bad("cluster/t/1/2"));
  worker.Deliver(1, {"x"});
  EXPECT_FALSE(is_bad("cluster/t/1/3")) << "it was read since";
  EXPECT_FALSE(is_bad("cluster/t/2/0")) << "of another worker";
}

TEST_F(DeadLetteringByPosition, IsAReplayOfAPositionWhereAnotherRecordIsInFlight) {
  worker.Assign(1);
  worker.Deliver(1, {"x=new"});
  worker.DeliverReplay(0, "cluster/t/1/0");
  EXPECT_EQ(worker.Letters(), ":bad_record");
}

// --- no output -----------------------------------------------------------------------------------

class Filtering : public DeadLettering {
 protected:
  explicit Filtering(const FlowOptions& options = FlowBench::Handling()) : DeadLettering(options) {}
  void Filter(const std::string& record) {
    worker.Deliver(0, {record});
    worker.Handle("a", {});
    worker.WriteAll();
  }
};
class FilteringByJq : public Filtering {
 protected:
  static FlowOptions Options() {
    FlowOptions options = FlowBench::Handling();
    options.handler.kind = JqHandlerOptions{"."};
    return options;
  }
  FilteringByJq() : Filtering(Options()) {}
};

TEST_F(Filtering, LeavesTheIdToARecordOfOtherContentWithoutAWait) {
  Filter("a=draft");
  EXPECT_EQ(worker.told.without_output, 1);
  EXPECT_EQ(worker.StateOf("a"), State::kFree);
  worker.Deliver(0, {"a=draft"});
  EXPECT_EQ(worker.told.skips_by_ledger, 1) << "the same content";
  worker.Deliver(0, {"a=paid"});
  worker.Handle("a");
  worker.WriteAll();
  EXPECT_EQ(worker.Watermark(0), 3);
  EXPECT_EQ(worker.told.conflicts, 0);
  EXPECT_EQ(world.ledger.Find("a")->source, "t/0/2");
}

// Its handler has effects: it is called for what was done before the one that took effect, and for
// nothing else.
TEST_F(Filtering, ThatIsReadAgainAfterAnotherContentTookEffectIsNoConflict) {
  Filter("a=draft");
  worker.Deliver(0, {"a=paid"});
  worker.HandleAll();
  worker.WriteAll();
  FlowBench next(world, FlowBench::Handling(), 2);
  next.Assign(0, 0, 2);
  next.Deliver(0, {"a=draft", "a=paid", "a=other"});
  next.Handle("a", {});
  next.WriteAll();
  EXPECT_EQ(next.told.without_output, 1);
  EXPECT_EQ(next.told.skips_by_ledger, 1);
  EXPECT_EQ(next.Calls(), "") << "a third content is a conflict at once";
  EXPECT_EQ(next.Letters(), "a:id_conflict");
}

TEST_F(FilteringByJq, IsNoConflictWhereverTheOtherContentWas) {
  world.WriteRow("a=paid");
  worker.Deliver(0, {"a=draft"});
  Filter("a=more");
  EXPECT_EQ(worker.told.conflicts, 0);
}

class FilteringToLines : public Filtering {
 protected:
  static FlowOptions Options() {
    FlowOptions options = FlowBench::Handling();
    options.finality = Finality::kWrite;
    return options;
  }
  FilteringToLines() : Filtering(Options()) {}
};

TEST_F(FilteringToLines, IsNotMarkedDone) {
  worker.Deliver(0, {"a=draft"});
  worker.Handle("a", {});
  worker.Answer({{.result = WriteResult::kNoOutput, .took_rows = false}});
  EXPECT_EQ(worker.StateOf("a"), State::kFree);
  worker.Deliver(0, {"a=paid"});
  EXPECT_EQ(worker.Calls(), "a");
}

// --- refused by the output -----------------------------------------------------------------------

TEST_F(DeadLettering, IsTheEndOfARecordThatTheOutputRefuses) {
  worker.Deliver(0, {"a", "b"});
  worker.HandleAll();
  ASSERT_EQ(worker.Writes(), "a");
  ASSERT_EQ(worker.StageOf("b"), "ready");
  worker.Answer({kBad});
  EXPECT_EQ(worker.Writes(), "") << "b waits for its order";
  ASSERT_EQ(worker.Letters(), "a:output");
  EXPECT_EQ(worker.letters[0].reason, DeadLetterReason::kOutput);
  worker.Acknowledge();
  EXPECT_EQ(worker.Writes(), "b") << "without another look or call";
}

TEST_F(DeadLettering, OfARefusedRecordNeedsALeaseAgainIfItWasLost) {
  worker.Deliver(0, {"a"});
  worker.HandleAll();
  LoseLease("a");
  worker.Answer({kBad});
  EXPECT_EQ(worker.Letters(), "");
  worker.Wait(world.lock.ttl * 2);
  EXPECT_EQ(worker.Letters(), "a:output");
}

const WriteOutcome kRefusedInDoubt{.result = WriteResult::kBadRecord,
                                   .detail = "value too long",
                                   .reason = DeadLetterReason::kOutput,
                                   .in_doubt = true};

// Its first transaction was not answered; written again, it was refused.
TEST_F(DeadLettering, OfARecordInDoubtWaitsUntilItsUnansweredTransactionCannotComeAnyMore) {
  WriteA(kRefusedInDoubt);
  worker.Wait(FlowOptions().transaction_lasts - Millis(100));
  EXPECT_EQ(worker.StageOf("a"), "doubted");
  worker.Wait(Millis(200));
  EXPECT_EQ(worker.Letters(), "a:output");
  worker.Acknowledge();
  EXPECT_EQ(worker.Watermark(0), 1);
}

TEST_F(DeadLettering, OfARecordInDoubtIsASkipWhereItsTransactionCameAfterAll) {
  WriteA(kRefusedInDoubt);
  world.WriteRow("a");
  worker.Wait(FlowOptions().transaction_lasts + Millis(100));
  EXPECT_EQ(worker.Letters(), "");
  EXPECT_EQ(worker.Watermark(0), 1);
}

// Handed back without an answer, and refused in a later transaction, which is answered.
TEST_F(DeadLettering, WaitsForTheUnansweredTransactionOfAnEarlierBatchToo) {
  worker.Deliver(0, {"a"});
  worker.HandleAll();
  LoseLease("a");
  worker.Answer({kUnanswered});
  worker.Wait(world.lock.ttl * 2);
  worker.Answer({kBad});
  ASSERT_EQ(worker.StageOf("a"), "doubted");
  worker.Wait(FlowOptions().transaction_lasts);
  EXPECT_EQ(worker.Letters(), "a:output");
}

const WriteOutcome kConflictInDoubt{
    .result = WriteResult::kIdConflict, .detail = "other content", .in_doubt = true};

FlowOptions OnConflict(OnBad what) {
  FlowOptions options = FlowBench::Handling();
  options.on_id_conflict = what;
  return options;
}

template <OnBad what>
class ConflictThatEnds : public DeadLettering {
 protected:
  ConflictThatEnds() : DeadLettering(OnConflict(what)) {}
};
using SkippedConflict = ConflictThatEnds<OnBad::kSkip>;
using StoppingConflict = ConflictThatEnds<OnBad::kStop>;

// The row of the other record may be pruned before its own transaction comes.
class ConflictInDoubt : public DeadLettering {
 protected:
  static FlowOptions Options(OnBad what) {
    FlowOptions options = OnConflict(what);
    options.ledger_row_lifetime = Millis(3'600'000);
    return options;
  }
  explicit ConflictInDoubt(OnBad what = OnBad::kDeadLetter) : DeadLettering(Options(what)) {
    worker.Confirm();
  }
};

TEST_F(ConflictInDoubt, OfAConflictInDoubtWaitsAndLooksOnceMore) {
  WriteA(kConflictInDoubt, "a=mine");
  worker.Wait(FlowOptions().transaction_lasts - Millis(100));
  EXPECT_EQ(worker.StageOf("a"), "doubted");
  world.WriteRow("a=other");
  worker.Wait(Millis(200));
  EXPECT_EQ(worker.Letters(), "a:id_conflict");
  worker.Acknowledge();
  EXPECT_EQ(worker.Watermark(0), 1);
}

TEST_F(ConflictInDoubt, OfAConflictInDoubtIsASkipWhereItsTransactionCameAfterAll) {
  WriteA(kConflictInDoubt, "a=mine");
  world.WriteRow("a=mine");
  worker.Wait(FlowOptions().transaction_lasts + Millis(100));
  EXPECT_EQ(worker.Letters(), "");
  EXPECT_EQ(worker.Watermark(0), 1);
}

// Handed back without an answer; and then the look-up finds the other's row.
TEST_F(ConflictInDoubt, OfAConflictInDoubtThatALookUpFindsWaitsToo) {
  worker.Deliver(0, {"a=mine"});
  worker.HandleAll();
  LoseLease("a");
  worker.Answer({kUnanswered});
  world.WriteRow("a=other");
  worker.Wait(world.lock.ttl * 2);
  EXPECT_EQ(worker.Letters(), "");
  ASSERT_EQ(worker.StageOf("a"), "doubted");
  worker.Wait(FlowOptions().transaction_lasts);
  EXPECT_EQ(worker.Letters(), "a:id_conflict");
}

TEST_F(DeadLettering, OfARecordInDoubtHoldsUpNoRevoke) {
  worker.Deliver(0, {"a", "b"});
  worker.HandleAll();
  worker.Answer({kRefusedInDoubt});
  worker.Revoke(0);
  EXPECT_TRUE(worker.drained);
  EXPECT_EQ(worker.Letters(), "");
}

class SkippedConflictInDoubt : public ConflictInDoubt {
 protected:
  SkippedConflictInDoubt() : ConflictInDoubt(OnBad::kSkip) {
    WriteA(kConflictInDoubt, "a=mine");
    worker.Wait(FlowOptions().transaction_lasts - Millis(100));
    EXPECT_EQ(worker.Watermark(0), 0);
    EXPECT_EQ(worker.told.conflicts, 0);
  }
};

TEST_F(SkippedConflictInDoubt, SkipsWhatIsInDoubtOnceItsTransactionCannotComeAnyMore) {
  world.WriteRow("a=other");
  worker.Wait(Millis(200));
  EXPECT_EQ(worker.told.conflicts, 1);
  EXPECT_EQ(worker.Watermark(0), 1);
}

TEST_F(SkippedConflictInDoubt, WritesWhatWasInDoubtWhereTheOthersRowIsGone) {
  worker.Wait(Millis(200));
  EXPECT_EQ(worker.Writes(), "a") << "as it was handled";
  worker.WriteAll();
  EXPECT_EQ(worker.told.conflicts, 0);
  EXPECT_EQ(worker.Watermark(0), 1);
}

TEST(SkippedConflictInDoubtWithoutAHandler, IsWrittenAsItCameWhereTheOthersRowIsGone) {
  SharedWorld world;
  FlowOptions options = FlowBench::Options();
  options.on_id_conflict = OnBad::kSkip;
  options.ledger_row_lifetime = Millis(3'600'000);
  FlowBench worker(world, options);
  worker.Assign(0);
  worker.Confirm();
  worker.Deliver(0, {"a=mine"});
  ASSERT_EQ(worker.Writes(), "a");
  worker.Answer({kConflictInDoubt});
  worker.Wait(FlowOptions().transaction_lasts + Millis(100));
  EXPECT_EQ(worker.Writes(), "a");
}

TEST_F(SkippedConflict, InDoubtIsSkippedAtOnceWhereRowsAreKeptSinceTheOthersRowStays) {
  WriteA(kConflictInDoubt, "a=mine");
  EXPECT_EQ(worker.Watermark(0), 1);
}

// --- records without an id -----------------------------------------------------------------------

TEST_F(DeadLettering, OfARecordWithoutAnIdComesInItsPlaceAndHoldsNothingBack) {
  worker.Deliver(0, {"", "b"});
  ASSERT_EQ(worker.Letters(), ":bad_record");
  EXPECT_EQ(worker.Leased(), "b");
  worker.Acknowledge();
  worker.HandleAll();
  worker.WriteAll();
  EXPECT_EQ(worker.Watermark(0), 2);
}

TEST_F(DeadLettering, OfARecordWithoutAnIdWaitsForThoseBeforeIt) {
  FlowBench holder(world, FlowBench::Options(), 2);
  holder.Assign(9);
  holder.Deliver(9, {"x"});
  worker.Deliver(0, {"x", "", "b"});
  EXPECT_EQ(worker.Letters(), "");
  holder.WriteAll();
  worker.Wait(Millis(1500));
  EXPECT_EQ(worker.Letters(), ":bad_record");
}

// --- conflicts -----------------------------------------------------------------------------------

TEST_F(DeadLettering, IsTheEndOfAnIdWithOtherContent) {
  world.WriteRow("a=one");
  worker.Deliver(0, {"a=two"});
  EXPECT_EQ(worker.told.conflicts, 1);
  ASSERT_EQ(worker.Letters(), "a:id_conflict");
  EXPECT_EQ(worker.letters[0].attempts, 0) << "it never was handled";
  worker.Acknowledge();
  EXPECT_EQ(worker.Watermark(0), 1);
}

TEST_F(SkippedConflict, IsSaidAndTheWatermarkPassesIt) {
  world.WriteRow("a=one");
  worker.Deliver(0, {"a=two"});
  EXPECT_EQ(worker.told.conflicts, 1);
  EXPECT_EQ(worker.Watermark(0), 1);
  EXPECT_THAT(
      worker.told.notes,
      ::testing::ElementsAre("id_conflict: t/0/0: the id was processed with other content: the "
                             "ledger holds the id from t/0/0; it is skipped "
                             "(on_id_conflict: skip)"));
}

TEST_F(StoppingConflict, StopsThePipeline) {
  world.WriteRow("a=one");
  worker.Deliver(0, {"a=two"});
  ASSERT_TRUE(worker.stop);
  EXPECT_EQ(worker.stop->code, "id_conflict");
  EXPECT_EQ(worker.Watermark(0), 0);
}

TEST(Conflict, OfAPositionStopsThePipelineWhateverIsAskedFor) {
  for (const OnBad what : {OnBad::kSkip, OnBad::kDeadLetter}) {
    SharedWorld world;
    FlowOptions options = OnConflict(what);
    options.identity = {};
    FlowOptions without = FlowBench::Options();
    without.identity = {};
    FlowBench worker(world, options);
    world.WriteRow("a=one", without);
    worker.Assign(0);
    worker.Deliver(0, {"a=two"});
    ASSERT_TRUE(worker.stop);
    EXPECT_EQ(worker.stop->code, "id_conflict");
    EXPECT_NE(worker.stop->hint.find("recreated"), std::string::npos);
  }
}

// --- without a topic for them --------------------------------------------------------------------

FlowOptions Stopping(Order order) {
  FlowOptions options = FlowBench::Handling(order);
  options.dead_letters = false;
  options.on_bad_record = options.on_id_conflict = OnBad::kStop;
  return options;
}

class WithoutDeadLetters : public DeadLettering {
 protected:
  WithoutDeadLetters() : DeadLettering(Stopping(Order::kNone)) {}
};

TEST_F(WithoutDeadLetters, ThePipelineStopsOnceAllBeforeTheRecordIsFinished) {
  worker.Deliver(0, {"a", "b"});
  worker.Fail("b", kRefused);
  EXPECT_EQ(worker.StageOf("b"), "blocked");
  EXPECT_FALSE(worker.stop);
  worker.HandleAll();
  worker.WriteAll();
  ASSERT_TRUE(worker.stop);
  EXPECT_EQ(worker.stop->code, "handler_failed");
  EXPECT_EQ(worker.stop->where, "t/0/1");
  EXPECT_EQ(worker.Watermark(0), 1);
}

TEST_F(WithoutDeadLetters, ThePipelineStopsAtARecordThatTheOutputRefusesAndQuotesNothingOfIt) {
  worker.Deliver(0, {"a"});
  worker.HandleAll();
  worker.Answer(
      {{WriteResult::kBadRecord, "too long: 4111", DeadLetterReason::kOutput, "value too long"}});
  ASSERT_TRUE(worker.stop);
  EXPECT_EQ(worker.stop->code, "bad_record");
  EXPECT_EQ(worker.stop->what, "value too long");
}

// --- publishing fails ----------------------------------------------------------------------------

TEST_F(DeadLettering, PausesThePipelineWhilePublishingFailsAndResumesIt) {
  worker.CanPublish(false);
  EXPECT_EQ(worker.paused, std::vector<PartitionIndex>{0});
  EXPECT_TRUE(worker.resumed.empty());
  worker.Deliver(0, {"a"});  // was on its way
  worker.HandleAll();
  worker.WriteAll();
  EXPECT_EQ(worker.Watermark(0), 1) << "what is here goes on";
  EXPECT_TRUE(worker.resumed.empty());
  worker.CanPublish(true);
  EXPECT_EQ(worker.resumed, std::vector<PartitionIndex>{0});
}

}  // namespace
}  // namespace fencepost::consumer
