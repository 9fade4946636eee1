// A record that a constraint between rows refuses (WriteOutcome::may_pass): what another record
// gives up may be what it takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer/flow/ports/retry.h"
#include "tests/model/flow/flow_bench.h"

namespace fencepost::consumer {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::StartsWith;

FlowOptions ToATable() {
  FlowOptions options = FlowBench::Options(Order::kKey);
  options.dead_letters = true;
  options.on_bad_record = OnBad::kDeadLetter;
  options.tuning.retry.initial = Millis(100);
  options.tuning.retry.max = Millis(2000);
  options.tuning.retry.jitter = Jitter::kNone;
  return options;
}
using Constraint = WorkerWith<ToATable>;

FlowOptions OfAHandler() {
  FlowOptions options = FlowBench::Handling(Order::kKey);
  options.tuning.retry = ToATable().tuning.retry;
  return options;
}
using ConstraintOnAnswers = WorkerWith<OfAHandler>;

WriteOutcome Refused() {
  return {.result = WriteResult::kBadRecord,
          .detail = "duplicate",
          .reason = DeadLetterReason::kOutput,
          .shown = "duplicate",
          .may_pass = true};
}
const WriteOutcome kTaken{.result = WriteResult::kCommitted};
const WriteOutcome kBehind{.result = WriteResult::kNotWritten};

TEST_F(Constraint, ThatAnotherKeyMendsMakesNoDeadLetterAndTheKeyKeepsItsOrder) {
  worker.Deliver(0, {"b1@b", "b2@b", "a@a"});
  ASSERT_EQ(worker.Writes(), "b1 b2 a");
  worker.Answer({Refused(), kBehind, kTaken});
  EXPECT_EQ(worker.Writes(), "") << "it waits, and so does what is behind it";
  EXPECT_EQ(worker.StageOf("b1"), "retrying");
  EXPECT_EQ(worker.Leased(), "b1 b2");
  worker.Wait(Millis(100));
  ASSERT_EQ(worker.Writes(), "b1 b2");
  worker.WriteAll();
  EXPECT_EQ(worker.Watermark(0), 3);
  EXPECT_EQ(worker.Letters(), "");
}

TEST_F(Constraint, IsToldFromTheFirstRefusalOnUntilItIsMended) {
  worker.Deliver(0, {"b@b", "c@c"});
  ASSERT_EQ(worker.Writes(), "b c");
  worker.Answer({Refused(), Refused()});
  EXPECT_THAT(
      worker.told.notes,
      ElementsAre("row_refused: t/0/0: duplicate; it is written again, since another record may "
                  "make room for it"))
      << "of several records one";
  const char* const end =
      ", and written again for about a minute, since another record may make room";
  worker.Wait(Millis(1000));
  EXPECT_EQ(worker.flow.WrittenAgain(),
            std::string("the rows of 2 records are refused; longest t/0/0: duplicate; refused 1 "
                        "time") +
                end);
  ASSERT_EQ(worker.Writes(), "b c");
  worker.Answer({Refused(), kTaken});
  EXPECT_EQ(worker.told.notes.size(), 1u);
  std::vector<FailedRecord> handed_on;
  for (int i = 0; i < 2000 && handed_on.size() != 1; ++i) {
    worker.Wait(Millis(10));
    if (!worker.Writes().empty()) worker.Answer({Refused()});
    for (const PartitionOffset& offset : worker.TakeCommits()) {
      handed_on = offset.failed;
      worker.Committed({offset});
    }
  }
  EXPECT_THAT(handed_on,
              ElementsAre(AllOf(Field(&FailedRecord::offset, 0), Field(&FailedRecord::attempts, 0),
                                Field(&FailedRecord::why, kRefusedForOthers))));
  worker.Wait(Millis(1000));
  EXPECT_THAT(worker.flow.WrittenAgain(), StartsWith("only t/0/0 is refused: duplicate; refused "));
  for (int i = 0; i < 1000 && worker.Writes().empty(); ++i) worker.Wait(Millis(10));
  worker.WriteAll();
  worker.Wait(Millis(1000));
  EXPECT_EQ(worker.flow.WrittenAgain(), "");
}

TEST_F(Constraint, ThatNobodyMendsMakesADeadLetterAfterAMinute) {
  worker.Deliver(0, {"b@b"});
  const Instant since = world.now.boot;
  int writes = 0;
  while (worker.Letters().empty() && world.now.boot - since < Millis(120'000)) {
    if (!worker.Writes().empty()) {
      worker.Answer({Refused()});
      ++writes;
    }
    worker.Wait(Millis(10));
  }
  EXPECT_EQ(worker.Letters(), "b:output");
  EXPECT_GE(world.now.boot - since, Millis(60'000));
  EXPECT_LT(world.now.boot - since, Millis(63'000));
  EXPECT_LT(writes, 45) << "with waits like those of the handler";
}

TEST_F(Constraint, IsTriedFiveTimesHoweverLongTheDatabaseWasAwayMeanwhile) {
  worker.Deliver(0, {"b@b"});
  for (int refusal = 1; refusal <= 5; ++refusal) {
    ASSERT_EQ(worker.Writes(), "b") << refusal;
    worker.Wait(Millis(61'000));
    worker.Answer({Refused()});
    EXPECT_EQ(worker.Letters(), "") << refusal;
    worker.Wait(Millis(2000));
  }
  ASSERT_EQ(worker.Writes(), "b");
  worker.Answer({Refused()});
  EXPECT_EQ(worker.Letters(), "b:output");
}

TEST_F(Constraint, OfARecordWithoutAKeyHoldsNobodyUp) {
  worker.Deliver(0, {"b", "a"});
  ASSERT_EQ(worker.Writes(), "b a");
  worker.Answer({Refused(), kTaken});
  EXPECT_EQ(worker.Letters(), "");
  worker.Deliver(0, {"c"});
  EXPECT_EQ(worker.Writes(), "c");
  worker.WriteAll();
  worker.Wait(Millis(100));
  EXPECT_EQ(worker.Writes(), "b");
}

TEST_F(Constraint, IsNotWaitedForLongerThanARecordMayFail) {
  Tuning tuning = ToATable().tuning;
  tuning.retry.give_up_after = Millis(0);
  worker.Tune(tuning);
  worker.Deliver(0, {"b@b"});
  worker.Answer({Refused()});
  EXPECT_EQ(worker.Letters(), "b:output");
}

TEST_F(Constraint, IsTheNextOwnersWhereThePartitionGoesMeanwhile) {
  worker.Deliver(0, {"b@b"});
  worker.Revoke(0);
  worker.Answer({Refused()});
  EXPECT_TRUE(worker.drained);
  EXPECT_EQ(worker.Letters(), "");
  EXPECT_EQ(worker.Leased(), "");
}

TEST_F(ConstraintOnAnswers, LeavesTheHandlersAnswerAsItIs) {
  worker.Deliver(0, {"b@b"});
  worker.Handle("b");
  worker.Answer({Refused()});
  worker.Wait(Millis(100));
  EXPECT_EQ(worker.Calls(), "");
  ASSERT_EQ(worker.Writes(), "b");
  worker.WriteAll();
  EXPECT_EQ(worker.Watermark(0), 1);
}

}  // namespace
}  // namespace fencepost::consumer
