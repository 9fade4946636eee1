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

TEST(LeftLease, StaysAtTheNodesUntilItsDeadline) {
  SharedWorld world;
  FlowBench worker(world);
  worker.Assign(0);
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

TEST(LeftLease, IsNoneOfARecordThatFailed) {
  SharedWorld world;
  FlowOptions options = FlowBench::Options();
  options.dead_letters = true;
  options.on_bad_record = OnBad::kDeadLetter;
  FlowBench worker(world, options);
  worker.Assign(0);
  worker.Deliver(0, {"a", "b"});
  worker.Settle();
  worker.Answer({{.result = WriteResult::kBadRecord, .detail = "no", .shown = "no"}, {}});
  worker.LookUpAll();
  ASSERT_TRUE(worker.Acknowledge());
  EXPECT_EQ(worker.StateOf("a"), State::kFree);
  EXPECT_EQ(worker.StateOf("b"), State::kHeld);
}

TEST(LeftLease, IsNoneOfARecordWhoseEffectIsNotKnown) {
  SharedWorld world;
  FlowBench worker(world);
  worker.Assign(0);
  worker.Deliver(0, {"a"});
  worker.Settle();
  ASSERT_EQ(worker.Writes(), "a");
  worker.flow.OnOutputEnded(world.now);
  worker.Settle();
  EXPECT_EQ(worker.StateOf("a"), State::kFree);
}

TEST(ContendedRecord, ThatTheLedgerKnowsIsSkippedAtOnceAndTheOthersKeepTheirLeases) {
  SharedWorld world;
  WriteElsewhere(world, "a");
  FlowBench worker(world);
  worker.Assign(0);
  worker.Deliver(0, {"a", "b"});
  worker.Settle();
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

TEST(ContendedRecord, ThatTheLedgerDoesNotKnowWaitsAndThoseBehindItGiveTheirLeasesBack) {
  SharedWorld world;
  world.Steal("fencepost:{p}:a");
  FlowBench worker(world);
  worker.Assign(0);
  worker.Deliver(0, {"a", "b"});
  worker.Settle();
  worker.LookUpAll();
  EXPECT_EQ(worker.StageOf("a"), "locking");
  EXPECT_EQ(worker.StageOf("b"), "queued");
  EXPECT_EQ(worker.StateOf("b"), State::kFree);
  EXPECT_THAT(worker.told.rounds, ElementsAre(locking::RoundResult::kContended));
}

TEST(ContendedRecord, IsLookedUpOnceARoundAndOnceAtATime) {
  SharedWorld world;
  world.Steal("fencepost:{p}:a");
  FlowBench worker(world);
  worker.Assign(0);
  worker.Deliver(0, {"a"});
  worker.Wait(Millis(500));
  EXPECT_EQ(worker.Lookups(), "a") << "the first is not answered yet";
  worker.LookUpAll();
  const std::size_t rounds = worker.told.rounds.size();
  EXPECT_GT(rounds, 1) << "each round counts";
  worker.Wait(Millis(1200));
  EXPECT_EQ(worker.Lookups(), "a") << "and is asked again after a further round";
}

FlowOptions LettersOfConflicts() {
  FlowOptions options = FlowBench::Options();
  options.dead_letters = true;
  options.on_id_conflict = OnBad::kDeadLetter;
  return options;
}

// The row says all: it does not wait for the lease that was left behind with it.
TEST(ContendedRecord, WithAnIdOfOtherContentIsADeadLetterAtOnce) {
  SharedWorld world;
  WriteElsewhere(world, "a=1");
  FlowBench worker(world, LettersOfConflicts());
  worker.Assign(0);
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
TEST(ContendedRecord, WithAnIdOfOtherContentInDoubtWaitsWithoutAskingAtOnceAgain) {
  for (const OnBad what : {OnBad::kDeadLetter, OnBad::kSkip}) {
    SharedWorld world;
    FlowOptions options = LettersOfConflicts();
    options.on_id_conflict = what;
    options.ledger_row_lifetime = Millis(3'600'000);
    FlowBench worker(world, options);
    worker.Assign(0);
    worker.Confirm();
    worker.Deliver(0, {"a=2"});
    worker.Settle();
    world.Steal("fencepost:{p}:a");
    worker.Wait(world.lock.ttl / 2);
    world.WriteRow("a=1");
    worker.Answer({{.result = WriteResult::kIdConflict, .detail = "other", .in_doubt = true}});
    worker.LookUpAll();
    EXPECT_EQ(worker.StageOf("a"), "locking");
    EXPECT_EQ(worker.Letters(), "");
    EXPECT_EQ(worker.Watermark(0), 0);
    for (int i = 0; i < 40; ++i) {
      if (i % 4 == 0) world.Steal("fencepost:{p}:a");
      worker.Wait(Millis(1000));
      worker.LookUpAll();
    }
    EXPECT_EQ(worker.told.conflicts, 1);
    EXPECT_EQ(worker.Letters(), what == OnBad::kSkip ? "" : "a:id_conflict");
    if (what == OnBad::kDeadLetter) worker.Acknowledge();
    EXPECT_EQ(worker.Watermark(0), 1);
  }
}

TEST(ContendedRecord, BehindAConflictOfItsIdIsLookedUpAsAnyOther) {
  SharedWorld world;
  WriteElsewhere(world, "a=1");
  FlowBench worker(world, LettersOfConflicts());
  worker.Assign(0);
  worker.Deliver(0, {"a=2", "a=1"});
  worker.LookUpAll();
  EXPECT_EQ(worker.Letters(), "a:id_conflict");
  worker.Acknowledge();
  worker.LookUpAll();
  EXPECT_EQ(worker.told.skips_by_ledger, 1);
  EXPECT_EQ(worker.Watermark(0), 2);
}

using RecordWithTheSameId = OneWorker;

TEST_F(RecordWithTheSameId, GoesOnUnderTheLeaseOfTheOneBeforeIt) {
  worker.Deliver(0, {"a", "a"});
  worker.Settle();
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
  worker.Settle();
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

TEST(Operations, OfRecordsByIdAreOneAcquireANodeAndNothingElse) {
  SharedWorld world;
  FlowBench worker(world, FlowBench::Options(Order::kNone));
  worker.Assign(0);
  std::vector<std::string> ids;
  for (int i = 0; i < 100; ++i) ids.push_back("o-" + std::to_string(i));
  worker.Deliver(0, ids);
  worker.WriteAll();
  EXPECT_EQ(worker.Watermark(0), 100);
  EXPECT_EQ(worker.Operations(), "acquire 300");
}

}  // namespace
}  // namespace fencepost::consumer
