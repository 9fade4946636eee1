// More bad records in a row than are believed: their dead letters wait until any record takes
// effect.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "tests/model/flow/flow_bench.h"

namespace fencepost::consumer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using State = locking::NodeModel::State;

const WriteOutcome kBad{WriteResult::kBadRecord, "amount: 4711", DeadLetterReason::kBadRecord,
                        "column amount from json:/amount"};
const WriteOutcome kWritten{};

// Three in a row are believed.
FlowOptions Believing(Order order) {
  FlowOptions options = FlowBench::Options(order);
  options.dead_letters = true;
  options.on_bad_record = options.on_id_conflict = OnBad::kDeadLetter;
  options.max_consecutive = 3;
  return options;
}

class Withheld : public OneWorker {
 protected:
  explicit Withheld(const FlowOptions& options = Believing(Order::kNone)) : OneWorker(options) {}
  // So many records, the output refuses each.
  void DeliverRefused(int count, const std::string& name = "bad") {
    std::vector<std::string> records;
    for (int i = 0; i < count; ++i) records.push_back(fmt::format("{}-{}", name, i));
    worker.Deliver(0, records);
    worker.Answer(std::vector<WriteOutcome>(static_cast<std::size_t>(count), kBad));
  }
  void DeliverNameless(int count) {
    worker.Deliver(0, std::vector<std::string>(static_cast<std::size_t>(count), ""));
  }
  // Those that go out are acknowledged.
  static int LettersOf(FlowBench& bench) {
    for (int letters = 0;; ++letters) {
      bench.Settle();
      if (!bench.Acknowledge()) return letters;
    }
  }
  int Letters() { return LettersOf(worker); }
  const std::string& Refused() {
    worker.Wait(Millis(1100));
    return worker.flow.Refused();
  }
};

TEST_F(Withheld, GoOutWhenARecordTakesEffect) {
  DeliverNameless(20);
  EXPECT_EQ(Letters(), 3);
  worker.Deliver(0, {"good"});
  worker.WriteAll();
  EXPECT_EQ(Letters(), 17);
  EXPECT_EQ(worker.Watermark(0), 21);
  DeliverNameless(20);
  EXPECT_EQ(Letters(), 3) << "counted from the last that took effect";
}

TEST_F(Withheld, AreThoseThatTheOutputRefusesToo) {
  DeliverRefused(20);
  EXPECT_EQ(Letters(), 3);
  EXPECT_EQ(worker.Leased(), "") << "nobody elsewhere waits for them";
  worker.Deliver(0, {"good"});
  worker.Answer({kWritten});
  EXPECT_EQ(Letters(), 17);
  EXPECT_EQ(worker.Watermark(0), 21);
}

// Whatever order they are found bad in: a pipeline that is stopped then, and goes on with a file
// that was mended, finds none of them again.
TEST_F(Withheld, GoOutInTheOrderOfTheirPartition) {
  worker.Deliver(0, {"a", "b", "c", "d", "e"});
  worker.Answer({{WriteResult::kNotWritten}, kBad, {WriteResult::kNotWritten}, kBad, kBad});
  EXPECT_EQ(Letters(), 0) << "a may still take effect";
  EXPECT_EQ(worker.Watermark(0), 0);
  worker.Answer({kBad, kBad});
  EXPECT_EQ(Letters(), 3);
  EXPECT_EQ(worker.Watermark(0), 3) << "a, b and c";
  EXPECT_THAT(Refused(), HasSubstr("every record is refused (3 in a row)"));
}

TEST_F(Withheld, AreNoneWhileOthersTakeEffectBetweenThem) {
  for (int i = 0; i < 30; ++i) {
    worker.Deliver(0, {fmt::format("good-{}", i), "", ""});
    worker.WriteAll();
    EXPECT_EQ(Letters(), 2) << i;
  }
  EXPECT_EQ(Refused(), "");
}

// --- what shows that not all are bad -------------------------------------------------------------

TEST_F(Withheld, GoOutByADuplicateThatTheOutputFoundForItsColumnsWereFoundToo) {
  DeliverRefused(5);
  DeliverNameless(5);
  EXPECT_EQ(Letters(), 3);
  world.WriteRow("known=4", FlowBench::Options());
  worker.Deliver(0, {"known=4"});
  worker.WriteAll();
  EXPECT_EQ(worker.told.skips_by_ledger, 1);
  EXPECT_EQ(Letters(), 7);
}

TEST_F(Withheld, OnlyThoseWithoutAnIdGoOutByADuplicateThatTheOutputNeverSaw) {
  FlowOptions options = FlowBench::Handling(Order::kNone);
  options.max_consecutive = 3;
  FlowBench handling(world, options, 2);
  handling.Assign(0);
  handling.Deliver(0, {"a", "b", "c", "d"});
  handling.HandleAll();
  handling.Answer({kBad});
  handling.Answer({kBad, kBad, kBad});
  handling.Deliver(0, {"", ""});
  EXPECT_EQ(LettersOf(handling), 3);
  world.WriteRow("known=4", FlowBench::Options());
  handling.Deliver(0, {"known=4"});
  EXPECT_EQ(handling.told.skips_by_ledger, 1);
  EXPECT_EQ(LettersOf(handling), 2);
  EXPECT_EQ(handling.StageOf("d"), "withheld");
}

// As at the end of a topic: nothing comes after them that could take effect.
TEST_F(Withheld, AreNoneThatWereFoundBadInATransactionInWhichOthersTookEffect) {
  for (const bool first : {true, false}) {
    std::vector<std::string> records;
    std::vector<WriteOutcome> outcomes;
    for (int i = 0; i < 20; ++i) {
      records.push_back(fmt::format("r-{}-{}", first, i));
      outcomes.push_back((i == 0) == first && (i == 0 || i == 19) ? kWritten : kBad);
    }
    worker.Deliver(0, records);
    worker.Answer(outcomes);
    EXPECT_EQ(Letters(), 19) << first;
  }
  EXPECT_EQ(worker.Watermark(0), 40);
}

TEST_F(Withheld, ThatTheOutputRefusedDoNotGoOutByADeletion) {
  DeliverRefused(5);
  EXPECT_EQ(Letters(), 3);
  worker.Deliver(0, {"gone"});
  worker.Answer({{.result = WriteResult::kCommitted, .took_rows = false}});
  EXPECT_EQ(Letters(), 0);
}

TEST_F(Withheld, AreNoneThatTheLedgerKnows) {
  std::vector<std::string> records;
  for (int i = 0; i < 20; ++i) records.push_back(fmt::format("r-{}", i));
  worker.Deliver(0, records);
  worker.WriteAll();
  SharedWorld later;  // the DONE marks are forgotten, and the columns are others
  later.ledger = world.ledger;
  FlowBench again(later, Believing(Order::kNone), 2);
  again.Assign(0);
  again.Deliver(0, records);
  again.Answer(std::vector<WriteOutcome>(20, kBad));
  EXPECT_THAT(again.letters, IsEmpty());
  EXPECT_EQ(again.Watermark(0), 20);
}

// --- order, partitions, the end ------------------------------------------------------------------

class WithheldInOrder : public Withheld {
 protected:
  WithheldInOrder() : Withheld(Believing(Order::kKey)) {}
};

TEST_F(WithheldInOrder, HoldBackTheirKeyAndNoOther) {
  worker.Deliver(0, {"@a", "@b", "@c", "@d", "x@d", "y@e"});
  EXPECT_EQ(Letters(), 3);
  EXPECT_EQ(worker.Writes(), "y");
  EXPECT_EQ(worker.Leased(), "y") << "x waits without a lease";
  worker.Write();
  EXPECT_EQ(worker.Leased(), "x") << "the one before it is on its way";
  EXPECT_EQ(Letters(), 1);
  EXPECT_EQ(worker.Writes(), "x");
  worker.WriteAll();
  EXPECT_EQ(worker.Watermark(0), 6);
}

TEST_F(WithheldInOrder, LetTheSameRecordElsewhereTakeEffect) {
  worker.Deliver(0, {"@a", "@b", "@c", "r@d"});
  EXPECT_EQ(Letters(), 3);
  worker.Answer({kBad});
  ASSERT_EQ(worker.StageOf("r"), "withheld");
  worker.Assign(1);
  worker.Deliver(1, {"r@d"});
  worker.WriteAll();
  EXPECT_EQ(Letters(), 0) << "the ledger knows it now";
  EXPECT_EQ(worker.Watermark(0), 4);
}

TEST_F(WithheldInOrder, AreLetOutByAnyPartition) {
  worker.Assign(1);
  DeliverNameless(5);
  EXPECT_EQ(Letters(), 3);
  worker.Deliver(1, {"good"});
  worker.WriteAll();
  EXPECT_EQ(Letters(), 2);
  EXPECT_EQ(worker.Watermark(0), 5);
}

TEST_F(Withheld, GoWithTheirPartitionAtOnceAndComeAgainToTheNextOwner) {
  worker.Assign(1);
  DeliverNameless(5);
  DeliverRefused(5);
  EXPECT_EQ(Letters(), 3);
  worker.Revoke(0);
  ASSERT_TRUE(worker.drained) << "the drain does not wait for them";
  EXPECT_EQ(worker.flow.in_flight(), 0u);
  worker.Deliver(1, {"good"});
  worker.WriteAll();
  EXPECT_EQ(Letters(), 0) << "they are another's";
  FlowBench next(world, Believing(Order::kNone), 3);
  next.Assign(0, 3, 2);
  next.Deliver(0, {"", "", "good"});
  EXPECT_TRUE(next.Acknowledge() && next.Acknowledge());
  EXPECT_EQ(next.Watermark(0), 6) << "the ledger knows the last one";
}

TEST_F(Withheld, AreGivenUpWhenTheyAreFoundDuringADrain) {
  DeliverNameless(3);
  EXPECT_EQ(Letters(), 3);
  worker.Deliver(0, {"a", "b"});
  worker.flow.StopTaking();
  worker.Revoke(0);
  EXPECT_FALSE(worker.drained) << "they are being written";
  worker.Answer({kBad, kBad});
  EXPECT_TRUE(worker.drained);
  EXPECT_THAT(worker.letters, IsEmpty());
  EXPECT_EQ(worker.StateOf("a"), State::kFree);
}

TEST_F(Withheld, TakeOnlyTheRoomThatThereIs) {
  FlowOptions options = Believing(Order::kNone);
  options.max_in_flight = 8;
  FlowBench small(world, options, 2);
  small.Assign(1);
  small.Deliver(1, std::vector<std::string>(11, ""));
  while (small.Acknowledge()) {
  }
  EXPECT_EQ(small.flow.in_flight(), 8u);
  EXPECT_EQ(small.flow.backpressure().Room(), 0u);
  EXPECT_EQ(small.paused, std::vector<PartitionIndex>{1});
}

// --- what may be judged otherwise later ----------------------------------------------------------

FlowOptions Answering() {
  FlowOptions options = FlowBench::Handling(Order::kNone);
  options.max_consecutive = 3;
  options.tuning.retry.initial = Millis(100);
  options.tuning.retry.max = Millis(1000);
  options.tuning.retry.jitter = Jitter::kNone;
  return options;
}

// The service answers something that the output cannot take.
class WithheldAnswers : public Withheld {
 protected:
  WithheldAnswers() : Withheld(Answering()) {
    worker.Deliver(0, {"a", "b", "c", "d", "e", "f"});
    worker.HandleAll();
    while (!worker.writes.empty()) RefuseWrite();
    EXPECT_EQ(Letters(), 3);
  }
  void RefuseWrite() {
    worker.Answer(std::vector<WriteOutcome>(worker.writes.front()->records.size(), kBad));
  }
  void WaitForACall() {
    for (int i = 0; worker.Calls().empty() && i < 1000; ++i) worker.Wait(Millis(10));
  }
};

TEST_F(WithheldAnswers, AreAskedForAgainOneByOneUntilOneTakesEffectAndThenAll) {
  for (const std::string id : {"d", "e", "f", "d"}) {
    WaitForACall();
    ASSERT_EQ(worker.Calls(), id) << "one at a time";
    worker.HandleAll();
    RefuseWrite();
    EXPECT_EQ(Letters(), 0);
  }
  WaitForACall();
  worker.HandleAll();  // the service is well again
  worker.WriteAll();
  EXPECT_EQ(worker.Calls(), "f d");
  worker.HandleAll();
  worker.WriteAll();
  EXPECT_EQ(Letters(), 0);
  EXPECT_EQ(worker.Watermark(0), 6);
}

TEST_F(WithheldAnswers, AreAskedForAgainEverLessOften) {
  std::vector<Instant> asked;
  for (int i = 0; i < 8; ++i) {
    WaitForACall();
    asked.push_back(world.now.boot);
    worker.HandleAll();
    RefuseWrite();
  }
  EXPECT_LT(asked[1] - asked[0], Millis(500));
  EXPECT_GE(asked[7] - asked[6], Millis(900));
}

TEST_F(WithheldAnswers, AreJudgedOnceMoreAfterAnEffectAndThenTheirVerdictIsFinal) {
  std::vector<std::string> records;
  for (int i = 0; i < 30; ++i) records.push_back(fmt::format("bad-{}", i));
  worker.Deliver(0, records);
  int judged = 0;
  const auto work = [&] {
    for (bool any = true; any;) {
      any = false;
      for (; !worker.calls.empty(); ++judged, any = true) {
        worker.Handle(worker.calls.front().record_id);
      }
      for (; !worker.writes.empty(); any = true) {
        std::vector<WriteOutcome> outcomes;
        for (const InFlight* in : worker.writes.front()->records)
          outcomes.push_back(in->identity.id.starts_with("good") ? kWritten : kBad);
        worker.Answer(outcomes);
      }
      while (worker.Acknowledge()) any = true;
    }
  };
  work();
  EXPECT_EQ(judged, 30);
  for (int i = 0; i < 4; ++i) {
    worker.Deliver(0, {fmt::format("good-{}", i)});
    work();
  }
  EXPECT_EQ(worker.Watermark(0), 40);
  EXPECT_EQ(judged, 30 + 4 + 33) << "each of those that were withheld once more";
  EXPECT_EQ(worker.told.buried.size(), 36u);
}

TEST_F(WithheldAnswers, AreSaidWhileOneOfThemIsTriedAgain) {
  EXPECT_NE(Refused(), "");
  for (int i = 0; i < 4; ++i) {
    WaitForACall();
    EXPECT_NE(Refused(), "") << "it was refused before";
    worker.HandleAll();
    EXPECT_NE(Refused(), "");
    RefuseWrite();
    EXPECT_NE(Refused(), "");
  }
  WaitForACall();
  worker.HandleAll();
  worker.WriteAll();
  worker.HandleAll();
  worker.WriteAll();
  EXPECT_EQ(Refused(), "");
}

// It is in flight alone, and none is withheld.
TEST_F(Withheld, AreSaidWhileTheOnlyOneIsTriedAgain) {
  WriteOutcome refused = kBad;
  refused.reason = DeadLetterReason::kOutput;
  worker.Deliver(0, {"a", "b", "c", "d"});
  worker.Answer(std::vector<WriteOutcome>(4, refused));
  EXPECT_EQ(Letters(), 3);
  EXPECT_NE(Refused(), "");
  for (int i = 0; worker.Writes().empty() && i < 100; ++i) worker.Wait(Millis(100));
  EXPECT_NE(Refused(), "");
  worker.WriteAll();
  EXPECT_EQ(Refused(), "");
}

TEST(WithheldAnswersInOrder, AreNotAskedForAgainWhileACallBehindThemIsOut) {
  SharedWorld world;
  FlowOptions options = Answering();
  options.order = Order::kPartition;
  FlowBench worker(world, options);
  worker.Assign(0);
  worker.Deliver(0, {"a", "b", "c", "d", "e"});
  for (const std::string id : {"a", "b", "c", "d"}) {
    worker.Handle(id);
    worker.Answer({kBad});
    (void)worker.Acknowledge();
  }
  ASSERT_EQ(worker.StageOf("d"), "withheld");
  ASSERT_EQ(worker.Calls(), "e!");
  worker.Wait(Millis(5000));
  EXPECT_EQ(worker.Calls(), "e!");
  worker.Fail("e", {.error_class = "cancelled", .text = "", .retry_after = {}});
  worker.Wait(Millis(5000));
  EXPECT_EQ(worker.Calls(), "d");
}

TEST_F(Withheld, ThatTheDatabaseRefusedOrWasTooSlowForAreWrittenAgain) {
  Offset done = 0;
  for (const auto reason : {DeadLetterReason::kOutput, DeadLetterReason::kTimeout}) {
    const std::string last = fmt::format("d{}", done);
    WriteOutcome bad = kBad;
    bad.reason = reason;
    worker.Deliver(
        0, {fmt::format("a{}", done), fmt::format("b{}", done), fmt::format("c{}", done), last});
    worker.Answer(std::vector<WriteOutcome>(4, bad));
    EXPECT_EQ(Letters(), 3);
    for (int i = 0; worker.Writes().empty() && i < 100; ++i) worker.Wait(Millis(100));
    EXPECT_EQ(worker.Writes(), last);
    worker.WriteAll();  // its table is as it should be
    EXPECT_EQ(Letters(), 0);
    EXPECT_EQ(worker.Watermark(0), done += 4);
  }
}

// A wrong record_id finds the same id in all of them.
TEST_F(Withheld, AreConflictsOfOneIdToo) {
  worker.Deliver(0, {"one=0"});
  worker.WriteAll();
  for (int i = 1; i < 10; ++i) {
    worker.Deliver(0, {fmt::format("one={}", i)});
    worker.WriteAll();
    (void)Letters();
  }
  EXPECT_EQ(worker.told.buried, std::vector(3, DeadLetterReason::kIdConflict));
  EXPECT_THAT(Refused(), AllOf(HasSubstr("the id was processed with other content"),
                               HasSubstr("check record_id and the producer")));
  worker.Deliver(0, {"none"});
  worker.Answer({{.result = WriteResult::kNoOutput}});
  EXPECT_EQ(Letters(), 0) << "a record that makes no row is in conflict with none";
  worker.Deliver(0, {"good"});
  worker.WriteAll();
  EXPECT_EQ(Letters(), 6);
  EXPECT_EQ(worker.Watermark(0), 12);
}

TEST_F(Withheld, ThatNothingElseCanMakeGoodAreNotTriedAgain) {
  DeliverRefused(5);
  DeliverNameless(5);
  EXPECT_EQ(Letters(), 3);
  worker.Wait(Millis(60'000));
  EXPECT_EQ(worker.Writes(), "");
}

// --- transactions --------------------------------------------------------------------------------

FlowOptions Transactions() {
  FlowOptions options = Believing(Order::kPartition);
  options.finality = Finality::kTransaction;
  options.writes_out = 1;
  return options;
}

TEST(WithheldInTransactions, HoldBackTheirPartitionUntilAnotherTakesEffect) {
  SharedWorld world;
  FlowBench worker(world, Transactions());
  worker.Assign(0);
  worker.Assign(1);
  worker.Deliver(0, {"", "", "", "", "behind"});
  worker.WriteAll();
  EXPECT_EQ(worker.told.buried.size(), 3u);
  EXPECT_EQ(worker.Watermark(0), 3);
  worker.Deliver(1, {"good"});
  worker.WriteAll();
  worker.WriteAll();
  EXPECT_EQ(worker.told.buried.size(), 4u);
  EXPECT_EQ(worker.Watermark(0), 5);
}

// --- what is said --------------------------------------------------------------------------------

TEST_F(Withheld, AreSaidWithTheFirstOnesReasonAndNothingOfARecord) {
  DeliverRefused(5);
  EXPECT_EQ(Letters(), 3);
  EXPECT_THAT(Refused(), AllOf(HasSubstr("every record is refused (3 in a row): column amount from "
                                         "json:/amount; check columns"),
                               HasSubstr("dead_letter.max_consecutive"), Not(HasSubstr("4711"))));
  DeliverNameless(3);
  EXPECT_THAT(Refused(), HasSubstr("column amount")) << "it does not change with each";
  worker.Deliver(0, {"good"});
  worker.Answer({kWritten});
  EXPECT_EQ(worker.flow.Refused(), "");
}

TEST_F(Withheld, NameRecordIdWhereNoIdIsFound) {
  DeliverNameless(5);
  Letters();
  EXPECT_THAT(Refused(), AllOf(HasSubstr("header"), HasSubstr("check record_id")));
}

TEST_F(Withheld, AreSaidByTheReasonOfThoseThatStillWait) {
  DeliverNameless(5);
  DeliverRefused(5);
  Letters();
  EXPECT_THAT(Refused(), HasSubstr("check record_id"));
  world.WriteRow("known", FlowBench::Options());
  worker.Deliver(0, {"known"});  // without a value: its columns say nothing
  worker.WriteAll();
  Letters();
  EXPECT_THAT(Refused(), HasSubstr("check columns"));
}

TEST_F(Withheld, AreNotSaidWhileAnotherRecordMayTakeEffectUnlessThatTakesLong) {
  worker.Assign(1);
  worker.Deliver(1, {"good"});
  DeliverNameless(5);
  EXPECT_EQ(Letters(), 3);
  EXPECT_EQ(Refused(), "") << "good is being written";
  worker.Wait(FlowBench::Options().stall_after);
  EXPECT_NE(Refused(), "");
  worker.WriteAll();
  EXPECT_EQ(Refused(), "");
}

TEST_F(Withheld, AreNotSaidWhenTheyAreGone) {
  DeliverNameless(5);
  Letters();
  EXPECT_NE(Refused(), "");
  worker.Revoke(0);
  EXPECT_EQ(Refused(), "");
}

}  // namespace
}  // namespace fencepost::consumer
