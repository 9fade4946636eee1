// The table that says what a record does next.
#include "consumer/flow/state/next.h"

#include <gtest/gtest.h>

#include "consumer/flow/state/lock_unit.h"
#include "consumer/flow/state/work_list.h"

namespace fencepost::consumer {
namespace {

constexpr PipelineTraits kPlain{};
constexpr PipelineTraits kMarks{.finality = Finality::kWrite, .write_decides = false};
constexpr PipelineTraits kPure{.finality = Finality::kLedger, .handler = true, .outside = false};
constexpr PipelineTraits kOutside{.finality = Finality::kLedger, .handler = true, .outside = true};
constexpr ChainPosition kFirst{};
constexpr ChainPosition kSoon{.before = Before::kMaySoon, .before_handled = false};
constexpr ChainPosition kLate{.before = Before::kNotSoon, .before_handled = false};

struct A : InFlight {
  explicit A(Stage at) { stage_ = at; }
};
// In a unit of its own.
struct Locked : A {
  explicit Locked(Stage at = Stage::kLocking) : A(at) {
    units.Join(*this, "id", Sharing::kExclusive);
    unit->BecomeAcquiring({.slot = 0, .generation = 1});
  }
  LockUnits units;
};
struct WithLease : Locked {
  explicit WithLease(Stage at = Stage::kLocking) : Locked(at) {
    unit->BecomeLeased(locking::Token(1));
  }
};

TEST(Next, IsTheLockWhereEverythingBeforeIsLeasedOrMayBeSoon) {
  EXPECT_EQ(Next(A(Stage::kQueued), kFirst, kPlain), Move::kLock);
  EXPECT_EQ(Next(A(Stage::kQueued), kSoon, kPlain), Move::kLock);
  EXPECT_EQ(Next(A(Stage::kQueued), kLate, kPlain), Move::kStay);
  EXPECT_EQ(Next(A(Stage::kLocking), kFirst, kPlain), Move::kStay) << "no answer yet";
}

TEST(Next, IsNothingForAQueuedRecordOfAWorkerOrPartitionThatEnds) {
  EXPECT_EQ(Next(A(Stage::kQueued), {.may_lock = false}, kPlain), Move::kStay);
}

TEST(Next, KeepsALeaseOnlyAsPartOfThePrefix) {  // 15
  EXPECT_EQ(Next(WithLease(), kFirst, kPlain), Move::kAwaitOrder);
  EXPECT_EQ(Next(WithLease(), kSoon, kPlain), Move::kAwaitPrefix);
  EXPECT_EQ(Next(WithLease(), kLate, kPlain), Move::kGiveBack);
  EXPECT_EQ(Next(WithLease(Stage::kGranted), kSoon, kPlain), Move::kStay);
  EXPECT_EQ(Next(WithLease(Stage::kGranted), kLate, kPlain), Move::kGiveBack);
}

TEST(Next, OfARecordWithoutAnIdIsItsDeadLetterWithoutALock) {
  A in(Stage::kQueued);
  in.without_id = true;
  in.letter = std::make_unique<DeadLetter>();
  EXPECT_EQ(Next(in, kFirst, kPlain), Move::kStartDeadLetter);
  EXPECT_EQ(Next(in, kSoon, kPlain), Move::kAwaitPrefix);
  EXPECT_EQ(Next(in, kLate, kPlain), Move::kStay);
}

TEST(Next, AsksTheLedgerBeforeAHandlerThatMayHaveEffects) {
  EXPECT_EQ(Next(WithLease(), kFirst, kOutside), Move::kLookUp);
  EXPECT_EQ(Next(WithLease(), kFirst, kPure), Move::kAwaitTurn);
  WithLease in;
  in.handled = true;
  EXPECT_EQ(Next(in, kFirst, kPure), Move::kAwaitOrder) << "its values are kept";
}

TEST(Next, BelievesAMarkOnlyWhereTheWriteDoesNotDecide) {  // 11
  Locked in;
  in.unit->BecomeDone(locking::Token(1), 0);
  EXPECT_EQ(Next(in, kFirst, kMarks), Move::kSkipDone);
  EXPECT_EQ(Next(in, kFirst, kPlain), Move::kAwaitOrder);
  EXPECT_EQ(Next(in, kFirst, kOutside), Move::kLookUp);
}

TEST(Next, WaitsForACallThatIsStillOut) {  // 18
  WithLease in;
  in.call = 7;
  EXPECT_EQ(Next(in, kFirst, kOutside), Move::kAwaitFormerCall);
  in.BecomeWaiting();
  EXPECT_EQ(Next(in, kFirst, kOutside), Move::kStay);
}

TEST(Next, IsTheHandlerOrTheOutputOnceEverythingBeforeIsHandled) {  // 18, 21
  const ChainPosition early{.before_handled = false};
  EXPECT_EQ(Next(WithLease(Stage::kWaiting), kFirst, kOutside), Move::kTakeTurn);
  EXPECT_EQ(Next(WithLease(Stage::kWaiting), early, kOutside), Move::kStay);
  EXPECT_EQ(Next(WithLease(Stage::kHandled), kFirst, kOutside), Move::kJoinWrites);
  EXPECT_EQ(Next(WithLease(Stage::kHandled), early, kOutside), Move::kStay);
}

TEST(Next, IsLeftToOthersWhereTheyHaveTheRecord) {
  for (const Stage stage : {Stage::kWithheld, Stage::kWaitingForSameId, Stage::kLookup,
                            Stage::kHandling, Stage::kRetrying, Stage::kReady, Stage::kWriting,
                            Stage::kPublishingDeadLetter, Stage::kBlocked}) {
    EXPECT_EQ(Next(WithLease(stage), kFirst, kOutside), Move::kStay) << StageName(stage);
  }
}

TEST(WorkList, HoldsARecordOnceAndInTheOrderOfTheFirstPush) {
  WorkList list;
  InFlight a, b;
  list.Push(&a);
  list.Push(&b);
  list.Push(&a);
  list.Push(nullptr);
  EXPECT_EQ(list.Pop(), &a);
  list.Push(&a);
  EXPECT_EQ(list.Pop(), &b);
  EXPECT_EQ(list.Pop(), &a);
  EXPECT_EQ(list.Pop(), nullptr);
}

}  // namespace
}  // namespace fencepost::consumer
