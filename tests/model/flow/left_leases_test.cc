// With a ledger that remembers what is done: leases are left behind, and who finds a name held asks
// the ledger.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model/flow/flow_bench.h"

namespace fencepost::consumer {
namespace {

using locking::NodeModel;
using State = NodeModel::State;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// One that another worker has written, whose lease it left behind.
void WriteElsewhere(SharedWorld& world, const std::string& record) {
  FlowBench other(world, FlowBench::Options(), 2);
  other.Assign(7);
  other.Deliver(7, {record});
  other.WriteAll();
  ASSERT_EQ(other.flow.in_flight(), 0);
}

FlowOptions LettersOfConflicts() {
  FlowOptions options = FlowBench::Options();
  options.dead_letters = true;
  options.on_id_conflict = OnBad::kDeadLetter;
  return options;
}

using LeftLease = OneWorker;
using ContendedRecord = WorkerWith<LettersOfConflicts>;

TEST_F(LeftLease, StaysAtTheNodesUntilItsDeadline) {
  worker.Deliver(0, {"a"});
  worker.WriteAll();
  EXPECT_EQ(worker.Watermark(0), 1);
  EXPECT_EQ(worker.core.held(), 0);
  EXPECT_EQ(worker.StateOf("a"), State::kHeld);
  worker.Pass(world.lock.ttl / 2);
  worker.core.OnTime(world.now);
  worker.Settle();
  worker.Pass(world.lock.ttl / 2 + Millis(1));
  const auto unit = world.nodes[0].Look("fencepost:{p}:a", world.now.wall);
  EXPECT_LE(unit.deadline, world.now.wall) << "nobody has extended it";
}

TEST_F(ContendedRecord, ThatTheLedgerKnowsIsSkippedAtOnceAndTheOthersKeepTheirLeases) {
  WriteElsewhere(world, "a");
  worker.answers_lookups = false;
  worker.Deliver(0, {"a", "b"});
  EXPECT_EQ(worker.Lookups(), "a");
  EXPECT_EQ(worker.StageOf("b"), "granted") << "it waits for the answer, with its lease";
  worker.LookUpAll();
  EXPECT_EQ(worker.told.skips_by_ledger, 1);
  EXPECT_EQ(worker.Writes(), "b");
  EXPECT_THAT(worker.told.rounds, ElementsAre(locking::RoundResult::kDone))
      << "a lease that was left behind is no contention";
  worker.WriteAll();
  EXPECT_EQ(worker.Watermark(0), 2);
}

TEST_F(ContendedRecord, ThatTheLedgerDoesNotKnowWaitsAndThoseBehindItGiveTheirLeasesBack) {
  world.Steal("fencepost:{p}:a");
  worker.Deliver(0, {"a", "b"});
  EXPECT_EQ(worker.StageOf("a"), "locking");
  EXPECT_EQ(worker.StageOf("b"), "queued");
  EXPECT_EQ(worker.StateOf("b"), State::kFree);
  EXPECT_THAT(worker.told.rounds, ElementsAre(locking::RoundResult::kContended));
}

TEST_F(ContendedRecord, IsLookedUpOnceARoundAndOnceAtATime) {
  world.Steal("fencepost:{p}:a");
  worker.answers_lookups = false;
  worker.Deliver(0, {"a"});
  worker.Wait(Millis(500));
  EXPECT_EQ(worker.Lookups(), "a") << "the first is not answered yet";
  worker.LookUpAll();
  const std::size_t rounds = worker.told.rounds.size();
  EXPECT_GT(rounds, 1) << "each round counts";
  worker.Wait(Millis(1200));
  EXPECT_EQ(worker.Lookups(), "a") << "and is asked again after a further round";
}

// The row says all: it does not wait for the lease that was left behind with it.
TEST_F(ContendedRecord, WithAnIdOfOtherContentIsADeadLetterAtOnce) {
  WriteElsewhere(world, "a=1");
  worker.answers_lookups = false;
  worker.Deliver(0, {"a=2", "b"});
  worker.LookUpAll();
  EXPECT_EQ(worker.told.conflicts, 1);
  EXPECT_EQ(worker.Letters(), "a:id_conflict");
  EXPECT_EQ(worker.Lookups(), "");
  EXPECT_EQ(worker.StateOf("a"), State::kHeld) << "the lease of the other is not touched";
  worker.Acknowledge();
  worker.WriteAll();
  EXPECT_EQ(worker.Watermark(0), 2);
  EXPECT_EQ(worker.told.conflicts, 1);
}

// Its own transaction was not answered: it waits until that can come no more, and asks the nodes
// and the ledger no more often than for any name that is held.
TEST(ContendedConflictInDoubt, WaitsWithoutAskingAtOnceAgain) {
  for (const OnBad what : {OnBad::kDeadLetter, OnBad::kSkip}) {
    SharedWorld world;
    FlowOptions options = LettersOfConflicts();
    options.on_id_conflict = what;
    options.ledger_row_lifetime = Millis(3'600'000);
    FlowBench worker(world, options);
    worker.Assign(0);
    worker.Confirm();
    worker.Deliver(0, {"a=2"});
    world.Steal("fencepost:{p}:a");
    worker.Wait(world.lock.ttl / 2);
    world.WriteRow("a=1");
    worker.Answer({{.result = WriteResult::kIdConflict, .detail = "other", .in_doubt = true}});
    EXPECT_EQ(worker.StageOf("a"), "locking");
    EXPECT_EQ(worker.Letters(), "");
    EXPECT_EQ(worker.Watermark(0), 0);
    for (int i = 0; i < 40; ++i) {
      if (i % 4 == 0) world.Steal("fencepost:{p}:a");
      worker.Wait(Millis(1000));
    }
    EXPECT_EQ(worker.told.conflicts, 1);
    EXPECT_EQ(worker.Letters(), what == OnBad::kSkip ? "" : "a:id_conflict");
    if (what == OnBad::kDeadLetter) worker.Acknowledge();
    EXPECT_EQ(worker.Watermark(0), 1);
  }
}

TEST_F(ContendedRecord, BehindAConflictOfItsIdIsLookedUpAsAnyOther) {
  WriteElsewhere(world, "a=1");
  worker.Deliver(0, {"a=2", "a=1"});
  EXPECT_EQ(worker.Letters(), "a:id_conflict");
  worker.Acknowledge();
  EXPECT_EQ(worker.told.skips_by_ledger, 1);
  EXPECT_EQ(worker.Watermark(0), 2);
}

using RecordWithTheSameId = OneWorker;

TEST_F(RecordWithTheSameId, GoesOnUnderTheLeaseOfTheOneBeforeIt) {
  worker.Deliver(0, {"a", "a"});
  const auto before = world.nodes[0].Look("fencepost:{p}:a", world.now.wall).token;
  worker.Write();
  EXPECT_EQ(worker.Writes(), "a") << "without another round";
  EXPECT_EQ(world.nodes[0].Look("fencepost:{p}:a", world.now.wall).token, before);
  worker.WriteAll();
  EXPECT_EQ(worker.told.skips_by_ledger, 1);
  EXPECT_EQ(worker.Watermark(0), 2);
  EXPECT_EQ(worker.core.held(), 0);
}

TEST_F(RecordWithTheSameId, AcquiresWhereTheLeaseOfTheOneBeforeItHasEnded) {
  worker.Deliver(0, {"a", "a"});
  worker.Pass(world.lock.ttl);
  worker.Write();
  EXPECT_EQ(worker.StageOf("a"), "writing");
  const auto unit = world.nodes[0].Look("fencepost:{p}:a", world.now.wall);
  EXPECT_GT(unit.deadline, world.now.wall) << "a lease of its own";
}

TEST(Takeover, CountsOnlyWhereTheEffectWasNotWritten) {
  for (const bool written : {false, true}) {
    SharedWorld world;
    if (written) {
      WriteElsewhere(world, "a");
    } else {
      world.Steal("fencepost:{p}:a");
    }
    world.now.boot += world.lock.ttl + Millis(10);
    world.now.wall += world.lock.ttl + Millis(10);
    FlowBench worker(world);
    worker.Assign(0);
    worker.Deliver(0, {"a"});
    worker.WriteAll();
    EXPECT_EQ(worker.told.takeovers, written ? 0 : 1);
    EXPECT_EQ(worker.told.skips_by_ledger, written ? 1 : 0);
  }
}

}  // namespace
}  // namespace fencepost::consumer
