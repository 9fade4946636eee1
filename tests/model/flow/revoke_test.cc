// The end of an assignment while a handler is at work.
#include <gtest/gtest.h>

#include "tests/model/flow/flow_bench.h"

namespace fencepost::consumer {
namespace {

using State = locking::NodeModel::State;

const HandlerFailure kBusy{.error_class = "503", .text = "busy", .retry_after = {}};
const HandlerFailure kRefused{.error_class = "422", .text = "", .retry = false, .retry_after = {}};

FlowOptions OneCall() {
  FlowOptions options = FlowBench::Handling(Order::kNone);
  options.tuning.concurrency = 1;
  return options;
}

using Revoked = WorkerWith<OneCall>;

TEST_F(Revoked, FinishesWhatIsBeingHandledAndGivesBackWhatWaits) {
  worker.Deliver(0, {"a", "b"});
  ASSERT_EQ(worker.Calls(), "a");
  worker.Revoke(0);
  EXPECT_EQ(worker.StateOf("b"), State::kFree);
  EXPECT_FALSE(worker.drained);
  worker.Handle("a");
  EXPECT_EQ(worker.Calls(), "") << "nothing new is begun";
  worker.WriteAll();
  ASSERT_TRUE(worker.drained);
  EXPECT_EQ(worker.drained->at(0).next, 1);
}

TEST_F(Revoked, GivesBackWhatWaitsForItsNextAttempt) {
  worker.Deliver(0, {"a"});
  worker.Fail("a", kBusy);
  worker.Revoke(0);
  EXPECT_TRUE(worker.drained);
  EXPECT_EQ(worker.StateOf("a"), State::kFree);
}

TEST_F(Revoked, LeavesTheNextAttemptToTheNextOwner) {
  worker.Deliver(0, {"a"});
  worker.Revoke(0);
  EXPECT_FALSE(worker.drained);
  worker.Fail("a", kBusy);
  EXPECT_TRUE(worker.drained);
  EXPECT_EQ(worker.StateOf("a"), State::kFree);
}

TEST_F(Revoked, WaitsForADeadLetterThatIsOut) {
  worker.Deliver(0, {"a"});
  worker.Fail("a", kRefused);
  worker.Revoke(0);
  EXPECT_FALSE(worker.drained);
  worker.Acknowledge();
  ASSERT_TRUE(worker.drained);
  EXPECT_EQ(worker.drained->at(0).next, 1);
}

TEST_F(Revoked, CallsOffAtItsDeadlineWhatIsStillBeingHandled) {
  worker.Deliver(0, {"a"});
  worker.Revoke(0);
  worker.Wait(Millis(1100));
  ASSERT_TRUE(worker.drained);
  EXPECT_TRUE(worker.drained->empty());
  EXPECT_EQ(worker.Calls(), "a!");
  EXPECT_EQ(worker.StateOf("a"), State::kFree);
  worker.Handle("a");
  EXPECT_EQ(worker.Writes(), "") << "what it answers then does not count";
}

TEST_F(Revoked, PublishesNoDeadLetterAfterItsDeadline) {
  worker.answers_lookups = false;
  worker.Deliver(0, {"a"});
  worker.LookUpAll();
  worker.Fail("a", kRefused);
  ASSERT_EQ(worker.Lookups(), "a");
  worker.Revoke(0);
  worker.Pass(Millis(1100));
  worker.LookUp();  // the answer comes just too late
  EXPECT_TRUE(worker.drained);
  EXPECT_EQ(worker.Letters(), "");
}

TEST_F(Revoked, BeginsNoCallAfterItsDeadline) {
  worker.answers_lookups = false;
  worker.Deliver(0, {"a"});
  worker.LookUpAll();
  world.MarkDone("a");
  worker.Pass(world.lock.ttl / 3 - Millis(100));
  worker.Revoke(0);
  worker.Wait(Millis(300));  // DONE is heard, the call is called off
  ASSERT_EQ(worker.Calls(), "a!");
  worker.Fail("a", kBusy);
  ASSERT_EQ(worker.Lookups(), "a");
  worker.Pass(Millis(1000));
  worker.LookUp();  // there is no row; but the time is over
  EXPECT_TRUE(worker.drained);
  EXPECT_EQ(worker.Calls(), "");
}

TEST_F(Revoked, CallsOffAtOnceWhenTheAssignmentIsLost) {
  worker.Deliver(0, {"a"});
  worker.Revoke(0, true);
  EXPECT_TRUE(worker.drained);
  EXPECT_EQ(worker.Calls(), "a!");
}

TEST_F(Revoked, FinishesARecordThatWasHandledBeforeItsLeaseWasLost) {
  worker.answers_lookups = false;
  worker.Deliver(0, {"a"});
  worker.HandleAll();
  worker.Pass(world.lock.ttl);
  worker.Answer({{.result = WriteResult::kNotWritten, .detail = {}}});
  worker.Wait(Millis(10));
  ASSERT_EQ(worker.Lookups(), "a") << "it is leased again";
  worker.Revoke(0);
  EXPECT_FALSE(worker.drained);
  worker.LookUpAll();
  worker.WriteAll();
  ASSERT_TRUE(worker.drained);
  EXPECT_EQ(worker.drained->at(0).next, 1);
}

TEST_F(Revoked, OnlyHurriesADrainThatIsUnderWay) {
  worker.Wait(Millis(10));
  worker.flow.HurryDrain(world.now.boot, world.now);
  EXPECT_GT(worker.flow.NextTime(), world.now.boot);
}

TEST_F(Revoked, EndsSoonerWhereOthersWaitForItAndNeverLater) {
  worker.answers_lookups = false;
  worker.Deliver(0, {"a"});
  worker.HandleAll();
  worker.Revoke(0);
  ASSERT_FALSE(worker.drained);
  worker.flow.HurryDrain(world.now.boot + Millis(5000), world.now);
  worker.Wait(Millis(990));
  EXPECT_FALSE(worker.drained);
  worker.Wait(Millis(20));
  EXPECT_TRUE(worker.drained) << "its own limit is a second";
}

// --- stalls --------------------------------------------------------------------------------------

FlowOptions Stalling() {
  FlowOptions options = FlowBench::Handling(Order::kNone);
  options.stall_after = Millis(5000);
  return options;
}

using Stall = WorkerWith<Stalling>;

TEST_F(Stall, IsToldWithThePositionOfTheRecordAndWhatItWaitsFor) {
  worker.Deliver(0, {"a"});
  worker.Wait(Millis(4000));
  EXPECT_EQ(worker.flow.Stalled(), "");
  worker.Wait(Millis(3000));
  EXPECT_NE(worker.flow.Stalled().find("t/0/0: handling"), std::string::npos)
      << worker.flow.Stalled();
  ASSERT_EQ(worker.told.notes.size(), 1u) << "once in a while, not each second";
  EXPECT_EQ(worker.told.notes[0].find("stalled: t/0/0"), 0u);
}

TEST_F(Stall, IsOverWhenTheRecordMovesOn) {
  worker.Deliver(0, {"a", "b"});
  worker.Wait(Millis(7000));
  ASSERT_NE(worker.flow.Stalled(), "");
  worker.Handle("a");
  worker.WriteAll();
  worker.Wait(Millis(1100));
  EXPECT_EQ(worker.flow.Stalled(), "") << "b is the oldest only since now";
  worker.Wait(Millis(6000));
  EXPECT_NE(worker.flow.Stalled().find("t/0/1"), std::string::npos);
}

// --- whose it is -------------------------------------------------------------------------------

// Rows stay for 40 s: what the group has confirmed holds for 20 of them.
FlowOptions Pruned() {
  FlowOptions options = FlowBench::Options(Order::kNone);
  options.ledger_row_lifetime = Millis(40'000);
  return options;
}

class Ownership : public ::testing::Test {
 protected:
  Ownership() : worker(world, Pruned()) {}
  void AssignAndConfirm() {
    worker.Assign(0);
    worker.Confirm();
  }
  SharedWorld world;
  FlowBench worker;
};

TEST_F(Ownership, IsAskedForByACommitAsSoonAsAPartitionIsAssignedAndNothingIsWrittenBefore) {
  worker.Assign(0, 7);
  const auto commits = worker.TickCommits();
  ASSERT_EQ(commits.size(), 1u);
  EXPECT_EQ(commits[0].next, 7);
  worker.Deliver(0, {"a"});
  EXPECT_EQ(worker.Writes(), "");
  worker.Committed(commits);
  EXPECT_EQ(worker.Writes(), "a");
}

TEST_F(Ownership, IsAskedForOnceMoreWhereTheLastCommitThatWasTakenIsOlderThanAQuarterOfLedgerKeep) {
  AssignAndConfirm();
  worker.Pass(Millis(19'999));
  worker.Deliver(0, {"a"});
  EXPECT_EQ(worker.Writes(), "a");
  worker.Pass(Millis(1));  // as one that was frozen finds itself
  worker.Deliver(0, {"b"});
  EXPECT_EQ(worker.Writes(), "a");
  worker.WriteAll();
  EXPECT_EQ(worker.StageOf("b"), "handled");
  const auto commits = worker.TickCommits();
  ASSERT_EQ(commits.size(), 1u);
  worker.Committed(commits);
  EXPECT_EQ(worker.Writes(), "b");
}

TEST_F(Ownership, IsNotShownByACommitThatWasSentBeforeAndTakenSince) {
  worker.Assign(0);
  const auto commits = worker.TickCommits();
  const Instant sent = world.now.boot;
  worker.Pass(Millis(20'000));
  worker.Deliver(0, {"a"});
  worker.Committed(commits, sent);
  EXPECT_EQ(worker.Writes(), "");
  EXPECT_EQ(worker.TickCommits().size(), 1u) << "it asks again";
}

TEST_F(Ownership, IsAskedForAgainWithTheNextCommitsWhereACommitIsRefused) {
  worker.Assign(0);
  const auto commits = worker.TickCommits();
  worker.Committed(commits, std::nullopt);
  EXPECT_TRUE(worker.TickCommits().empty()) << "not at once";
  EXPECT_EQ(worker.Commits().size(), 1u);
}

TEST_F(Ownership, IsShownByTheFirstAnswerWhereAnotherCommitHasFollowedMeanwhile) {
  worker.Assign(0);
  const auto first = worker.TickCommits();
  const Instant sent = world.now.boot;
  worker.End(0, 2);  // holes
  const auto second = worker.Commits();
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].next, 2);
  worker.Deliver(0, {"a"});
  EXPECT_EQ(worker.Writes(), "");
  worker.Committed(first, sent);
  EXPECT_EQ(worker.Writes(), "a");
}

// Without a quorum of nodes, by the ledger alone.
TEST(OwnershipOfAHandledRecord, ThatComesAfterItsTimeHasEndedCallsNothingBehindIt) {
  SharedWorld world;
  FlowOptions options = FlowBench::Handling();
  options.ledger_row_lifetime = Millis(1'000);  // and a record that goes on without a lock
  options.tuning.retry = {
      .attempts = 1, .initial = Millis(1000), .max = Millis(1000), .jitter = Jitter::kNone};
  FlowBench worker(world, options);
  worker.Assign(0);
  worker.Assign(1);
  const auto commits = worker.TickCommits();
  worker.flow.SetUnlocked(true, world.now);
  worker.Deliver(0, {"a"});
  worker.Handle("a");
  worker.Deliver(1, {"x"});
  worker.Fail("x", {.error_class = "connection", .text = "refused", .reached = false});
  worker.Pass(Millis(900));
  worker.Deliver(0, {"b"});
  ASSERT_EQ(worker.Calls(), "") << "the next call is a probe, a second after that of x";
  worker.Pass(Millis(150));  // that of a is over, and no timer has come yet
  worker.Committed(commits);
  EXPECT_EQ(worker.Calls(), "") << "of b";
  EXPECT_EQ(worker.Writes(), "");
  worker.Wait(Millis(1000));
  EXPECT_EQ(worker.Calls(), "b") << "nothing of its former call is waited for";
}

TEST_F(Ownership, EndsAtARevokeWhereItIsNotSureAnyMore) {
  AssignAndConfirm();
  worker.Deliver(0, {"a"});
  worker.Pass(Millis(20'000));
  worker.Revoke(0);
  ASSERT_TRUE(worker.drained.has_value());
  EXPECT_TRUE(worker.drained->empty());
}

TEST_F(Ownership, ThatIsNotSureAnyMoreIsWaitedForByNoDrain) {
  AssignAndConfirm();
  worker.Pass(Millis(19'900));
  worker.Deliver(0, {"a"});
  worker.Deliver(0, {"b"});
  worker.Revoke(0);
  EXPECT_FALSE(worker.drained.has_value()) << "a is being written";
  worker.Pass(Millis(100));
  worker.Write();
  EXPECT_TRUE(worker.drained.has_value());
}

}  // namespace
}  // namespace fencepost::consumer
