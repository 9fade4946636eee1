// Kafka output: outputs and offsets in one transaction, which holds a prefix of each partition.
#include <gtest/gtest.h>

#include "tests/model/flow/flow_bench.h"

namespace fencepost::consumer {
namespace {

using State = locking::NodeModel::State;

constexpr Millis kLinger{100};

FlowOptions Transactions(std::size_t full = 10) {
  FlowOptions options = FlowBench::Options();
  options.finality = Finality::kTransaction;
  options.writes_out = 1;
  options.write_batch = full;
  options.linger = kLinger;
  options.dead_letters = true;
  options.on_bad_record = options.on_id_conflict = OnBad::kDeadLetter;
  return options;
}

class Transaction : public OneWorker {
 protected:
  Transaction() : OneWorker(Transactions()) {}
  // The name is DONE, with the checksum of a record that is delivered like this.
  void Done(const std::string& id) {
    FlowBench other(world, Transactions(), 2);
    other.Assign(9);
    other.Deliver(9, {id});
    other.Wait(kLinger);
    other.WriteAll();
  }
};

// --- when it is closed ---------------------------------------------------------------------------

TEST_F(Transaction, WaitsForMoreUntilItsOldestRecordHasLingered) {
  worker.Deliver(0, {"a"});
  worker.Wait(kLinger / 2);
  worker.Deliver(0, {"b"});
  EXPECT_EQ(worker.Writes(), "");
  worker.Wait(kLinger / 2);
  EXPECT_EQ(worker.Writes(), "a b");
  EXPECT_EQ(worker.Offsets(), "0:2");
}

// --- after the lease -----------------------------------------------------------------------------

FlowOptions ByPosition() {
  FlowOptions options = Transactions();
  options.identity = {};
  return options;
}

using TransactionByPosition = WorkerWith<ByPosition>;

void WriteAfterTheLease(FlowBench& worker, SharedWorld& world) {
  worker.Deliver(0, {"a"});
  worker.Wait(kLinger);
  worker.Pass(world.lock.ttl * 2);
  worker.Settle();
  worker.core.OnTime(world.now);
  worker.Settle();
  worker.WriteAll();
  EXPECT_EQ(worker.Watermark(0), 1);
}

TEST_F(Transaction, BegunAfterItsLeaseHadEndedIsAViolation) {
  WriteAfterTheLease(worker, world);
  ASSERT_EQ(worker.told.broken.size(), 1u);
  EXPECT_EQ(worker.told.broken[0], locking::Invariant::kLeaseAfterLoss);
}

TEST_F(TransactionByPosition, BegunAfterItsLeaseHadEndedDecidesByItself) {
  WriteAfterTheLease(worker, world);
  EXPECT_TRUE(worker.told.broken.empty());
}

TEST_F(TransactionByPosition, ReleasesItsLeasesAndMarksNothing) {
  worker.Deliver(0, {"a"});
  worker.Wait(kLinger);
  EXPECT_EQ(worker.StateOf("cluster/t/0/0"), State::kHeld);
  worker.Write();
  EXPECT_EQ(worker.StateOf("cluster/t/0/0"), State::kFree);
}

TEST_F(TransactionByPosition, HoldsARecordWhoseNameWasMarkedDoneByAnotherVersion) {  // 11
  world.MarkDone("cluster/t/0/0");
  worker.Deliver(0, {"a"});
  worker.Wait(kLinger);
  ASSERT_EQ(worker.writes.size(), 1u);
  EXPECT_EQ(worker.writes[0]->records.size(), 1u);
  EXPECT_EQ(worker.Offsets(), "0:1");
  worker.Write();
  EXPECT_EQ(worker.Watermark(0), 1);
}

FlowOptions OfTwo() { return Transactions(2); }
using SmallTransaction = WorkerWith<OfTwo>;

TEST_F(SmallTransaction, IsClosedAtOnceWhenItIsFull) {
  worker.Deliver(0, {"a", "b", "c"});
  EXPECT_EQ(worker.Writes(), "a b");
  EXPECT_EQ(worker.Offsets(), "0:2");
}

TEST_F(SmallTransaction, IsAlone) {
  worker.Deliver(0, {"a", "b", "c", "d"});
  worker.Wait(kLinger * 3);
  EXPECT_EQ(worker.Writes(), "a b");
  worker.Write();
  EXPECT_EQ(worker.Writes(), "c d");
}

FlowOptions RoomForTwo() {
  FlowOptions options = Transactions();
  options.max_in_flight = 2;
  return options;
}
using FullWorker = WorkerWith<RoomForTwo>;

TEST_F(FullWorker, ClosesItsTransactionSinceNoMoreCanCome) {
  worker.Deliver(0, {"a", "b"});
  EXPECT_EQ(worker.Writes(), "a b");
}

TEST_F(Transaction, IsClosedAtOnceByADrain) {
  worker.Deliver(0, {"a"});
  worker.Revoke(0);
  EXPECT_EQ(worker.Writes(), "a");
  EXPECT_FALSE(worker.drained);
  worker.Write();
  ASSERT_TRUE(worker.drained);
  EXPECT_TRUE(worker.drained->empty()) << "the transaction has moved the offset";
}

// --- its offsets ---------------------------------------------------------------------------------

TEST_F(Transaction, MovesPastWhatWasSkippedAndPastHoles) {
  Done("x");
  worker.Deliver(0, {"a", "x", "b", "x"});
  worker.End(0, 9);
  worker.Wait(kLinger);
  EXPECT_EQ(worker.Writes(), "a b");
  EXPECT_EQ(worker.Offsets(), "0:9");
  EXPECT_EQ(worker.told.skips_by_hint, 2);
}

TEST_F(Transaction, MovesNoOffsetOutsideOfOne) {
  worker.Deliver(0, {"a"});
  worker.Wait(kLinger);
  worker.Write();
  EXPECT_EQ(worker.Watermark(0), 1);
  EXPECT_TRUE(worker.Commits().empty());
  EXPECT_TRUE(worker.writes.empty()) << "nothing is left to say";
}

TEST_F(Transaction, HoldsOffsetsAloneWhereEverythingWasSkipped) {
  Done("x");
  worker.Deliver(0, {"x"});
  EXPECT_TRUE(worker.Commits().empty());
  ASSERT_EQ(worker.writes.size(), 1u);
  EXPECT_TRUE(worker.writes[0]->request.items.empty());
  EXPECT_EQ(worker.Offsets(), "0:1");
  EXPECT_EQ(worker.writes[0]->request.offsets[0].where.topic, "t");
  EXPECT_EQ(worker.writes[0]->request.epoch, 1u);
}

TEST_F(Transaction, OfOffsetsAloneThatTheGroupRefusedIsSentAgain) {
  Done("x");
  worker.Deliver(0, {"x"});
  EXPECT_TRUE(worker.Commits().empty());
  ASSERT_EQ(worker.writes.size(), 1u);
  worker.Abort();
  EXPECT_TRUE(worker.Commits().empty());
  ASSERT_EQ(worker.writes.size(), 1u);
  EXPECT_EQ(worker.Offsets(), "0:1");
}

TEST_F(Transaction, OfADrainHoldsTheLastOffsets) {
  Done("x");
  worker.Deliver(0, {"x"});
  worker.Revoke(0);
  ASSERT_EQ(worker.writes.size(), 1u);
  EXPECT_EQ(worker.Offsets(), "0:1");
  EXPECT_FALSE(worker.drained);
  worker.Write();
  EXPECT_TRUE(worker.drained);
}

// --- aborted -------------------------------------------------------------------------------------

TEST_F(Transaction, ThatIsAbortedGivesItsLeasesBackAndGoesAgainInOrder) {
  worker.Deliver(0, {"a", "b", "c"});
  worker.Wait(kLinger);
  const auto token = worker.writes[0]->request.items[0].token;
  worker.Abort();
  EXPECT_EQ(worker.Watermark(0), 0);
  worker.Wait(kLinger);
  EXPECT_EQ(worker.Writes(), "a b c");
  EXPECT_EQ(worker.Offsets(), "0:3");
  EXPECT_GT(worker.writes[0]->request.items[0].token, token) << "under a new lease";
  worker.Write();
  EXPECT_EQ(worker.Watermark(0), 3);
}

TEST_F(Transaction, WithABadRecordHoldsItAsADeadLetterTheNextTime) {
  worker.Deliver(0, {"a", "bad", "c"});
  worker.Wait(kLinger);
  const WriteOutcome again{.result = WriteResult::kNotWritten, .detail = {}};
  worker.Answer({again, {WriteResult::kBadRecord, "too large", DeadLetterReason::kOutput}, again});
  worker.Wait(kLinger);
  ASSERT_EQ(worker.Writes(), "a bad c");
  const auto& items = worker.writes[0]->request.items;
  EXPECT_EQ(items[0].dead_letter, nullptr);
  ASSERT_NE(items[1].dead_letter, nullptr);
  EXPECT_EQ(items[1].dead_letter->error, "too large");
  EXPECT_EQ(worker.Letters(), "") << "nobody else publishes it";
  worker.Write();
  EXPECT_EQ(worker.Watermark(0), 3);
  EXPECT_EQ(worker.told.buried, std::vector{DeadLetterReason::kOutput});
  EXPECT_EQ(worker.StateOf("bad"), State::kFree) << "a dead letter is not DONE";
}

TEST_F(Transaction, TakesARecordWithoutAnIdAsADeadLetterInItsPlace) {
  worker.Deliver(0, {"a", "", "b"});
  worker.Wait(kLinger);
  ASSERT_EQ(worker.Writes(), "a  b");
  EXPECT_NE(worker.writes[0]->request.items[1].dead_letter, nullptr);
  EXPECT_EQ(worker.Offsets(), "0:3");
}

// --- another cluster -----------------------------------------------------------------------------

FlowOptions LettersApart() {
  FlowOptions options = Transactions();
  options.letters_apart = true;
  return options;
}
using TransactionWithoutLetters = WorkerWith<LettersApart>;

TEST_F(TransactionWithoutLetters, MovesPastADeadLetterOnceItIsAcknowledged) {
  worker.Deliver(0, {"a", "", "b"});
  worker.Wait(kLinger);
  ASSERT_EQ(worker.Writes(), "a");
  EXPECT_EQ(worker.Offsets(), "0:1");
  worker.Write();
  worker.Wait(kLinger * 2);
  EXPECT_EQ(worker.Letters(), ":bad_record");
  EXPECT_EQ(worker.Writes(), "") << "nothing passes it";
  EXPECT_EQ(worker.Watermark(0), 1);
  ASSERT_TRUE(worker.Acknowledge());
  worker.Wait(kLinger);
  ASSERT_EQ(worker.Writes(), "b");
  EXPECT_EQ(worker.Offsets(), "0:3");
  EXPECT_EQ(worker.writes[0]->request.items[0].dead_letter, nullptr);
}

TEST_F(TransactionWithoutLetters, OfADrainMovesPastALetterThatWasAcknowledged) {
  worker.Deliver(0, {""});
  ASSERT_EQ(worker.Letters(), ":bad_record");
  worker.Revoke(0);
  EXPECT_FALSE(worker.drained);
  worker.Acknowledge();
  ASSERT_EQ(worker.writes.size(), 1u);
  EXPECT_TRUE(worker.writes[0]->request.items.empty());
  EXPECT_EQ(worker.Offsets(), "0:1");
  EXPECT_FALSE(worker.drained);
  worker.Write();
  EXPECT_TRUE(worker.drained);
}

FlowOptions Elsewhere() {
  FlowOptions options = Transactions();
  options.finality = Finality::kWrite;
  return options;
}
using TransactionElsewhere = WorkerWith<Elsewhere>;

TEST_F(TransactionElsewhere, LingersTooAndTheOffsetFollows) {
  worker.Deliver(0, {"a"});
  worker.Wait(kLinger / 2);
  EXPECT_EQ(worker.Writes(), "");
  worker.Wait(kLinger / 2);
  ASSERT_EQ(worker.Writes(), "a");
  EXPECT_TRUE(worker.writes[0]->request.offsets.empty());
  EXPECT_TRUE(worker.Commits().empty()) << "it is not answered";
  worker.Write();
  EXPECT_EQ(worker.Watermark(0), 1);
  EXPECT_EQ(worker.Commits().size(), 1u);
}

TEST_F(Transaction, ThatOutlivesItsAssignmentChangesNothing) {
  worker.Deliver(0, {"a"});
  worker.Wait(kLinger);
  worker.Revoke(0, true);
  ASSERT_TRUE(worker.drained);
  worker.Assign(0, 0, 2);
  worker.Deliver(0, {"a"});
  worker.Abort();
  worker.Wait(kLinger);
  EXPECT_EQ(worker.Writes(), "a");
  EXPECT_EQ(worker.writes[0]->request.epoch, 2u);
}

}  // namespace
}  // namespace fencepost::consumer
