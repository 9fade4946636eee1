// When a handler's circuit opens and closes, and who may call meanwhile.
#include "consumer/flow/state/handler_circuit.h"

#include <gtest/gtest.h>

#include <map>

namespace fencepost::consumer {
namespace {

using locking::Instant;
using locking::Nanos;
using std::chrono::seconds;

Instant At(int second) { return Instant(seconds(1000 + second)); }

class Circuit : public ::testing::Test {
 protected:
  void Open() {
    for (int i = 0; i < 3; ++i) Fails(static_cast<std::size_t>(i), 0);
    ASSERT_TRUE(circuit.open());
    circuit.WaitUntil(At(5));
  }
  // A new call of that record, whose next one fails within 10 s if it can be made. True: it opens.
  bool Fails(std::size_t record, int second, Says says = Says::kNothing) {
    const bool before = circuit.open();
    circuit.OnFailure(record, records[record], ++calls, says, At(second));
    records[record].wait = seconds(10);
    return !before && circuit.open();
  }
  bool FindsNobody(std::size_t record, int second) {
    return Fails(record, second, Says::kServesNobody);
  }
  void Succeeds() { circuit.OnSuccess(++calls); }
  Nanos Alone(std::size_t record) { return records[record].alone; }
  HandlerCircuit circuit{3};
  HandlerCircuit::Call calls = 0;
  std::map<std::size_t, HandlerCircuit::Failing> records;
};

TEST_F(Circuit, OpensAfterSoManyFailuresInARowOfSeveralRecords) {
  EXPECT_FALSE(Fails(1, 0));
  EXPECT_FALSE(Fails(1, 1));
  EXPECT_TRUE(Fails(2, 2));
  EXPECT_TRUE(circuit.open());
  EXPECT_FALSE(Fails(3, 2)) << "it is open already";
}

TEST_F(Circuit, StaysClosedForOneRecordThatFailsAgainAndAgain) {
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(Fails(1, i));
  EXPECT_TRUE(Fails(2, 100));
}

TEST_F(Circuit, OpensForOneRecordAloneWhereTheServiceSaysThatItIsNotThere) {
  EXPECT_FALSE(FindsNobody(1, 0));
  EXPECT_FALSE(FindsNobody(1, 1));
  EXPECT_TRUE(FindsNobody(1, 2));
  EXPECT_TRUE(circuit.open());
}

TEST_F(Circuit, StaysClosedForOneThatFindsNobodyWhileTheServiceWorksForOthers) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(FindsNobody(1, i));
    Succeeds();
  }
}

TEST_F(Circuit, BeginsToCountAgainAtASuccess) {
  Fails(1, 0);
  Fails(2, 0);
  Succeeds();
  EXPECT_FALSE(Fails(3, 2));
  EXPECT_FALSE(Fails(4, 2));
  EXPECT_EQ(circuit.failures(), 2);
}

TEST_F(Circuit, DoesNotCountARecordThatFailsBetweenSuccessesOfOthers) {
  for (int i = 0; i < 9; ++i) {
    Fails(1, i);
    Fails(2, i);
    Succeeds();
  }
  EXPECT_FALSE(Fails(1, 10));
  EXPECT_EQ(circuit.failures(), 0);
}

TEST_F(Circuit, CountsRecordsThatFailedBeforeTheOutage) {
  Fails(1, 0);
  Fails(2, 0);
  Succeeds();
  bool opened = false;
  for (int i = 2; i < 9; ++i) opened = Fails(1, i) || Fails(2, i) || opened;
  EXPECT_TRUE(opened) << "nothing has succeeded since they failed last";
}

TEST_F(Circuit, ASuccessOfAnEarlierCallSaysNothingOfALaterFailure) {
  const HandlerCircuit::Call slow = ++calls;
  Fails(1, 0);
  circuit.OnSuccess(slow);
  Fails(1, 2);
  EXPECT_EQ(circuit.failures(), 1);
}

TEST_F(Circuit, StaysClosedForOneThatFindsNobodyOnceOthersHaveSucceededSinceItFailedFirst) {
  FindsNobody(1, 0);
  Succeeds();
  for (int i = 1; i < 100; ++i) EXPECT_FALSE(FindsNobody(1, i));
}

TEST_F(Circuit, OpensForOneThatDoesNotReachTheServiceWhateverWasBefore) {
  Fails(1, 0, Says::kIsAway);
  Succeeds();
  for (int i = 1; i < 10; ++i) Fails(1, i, Says::kIsAway);
  EXPECT_TRUE(circuit.open());
}

TEST_F(Circuit, OpensAtOnceWhereAllAreRefusedAndStaysOpenForTheLastOfThem) {
  Succeeds();
  EXPECT_TRUE(Fails(1, 0, Says::kRefusesAll));
  Fails(1, 1, Says::kRefusesAll);
  EXPECT_TRUE(circuit.open());
}

TEST_F(Circuit, ClosesWhenTheRecordThatIsAloneFailsForAnotherReason) {
  for (int i = 0; i < 3; ++i) FindsNobody(1, i);
  ASSERT_TRUE(circuit.open());
  Fails(1, 9);
  EXPECT_FALSE(circuit.open());
}

TEST_F(Circuit, ClosesWhenOneIsLeftAndFails) {
  Open();
  circuit.OnAlone(2);
  EXPECT_TRUE(circuit.open());
  Fails(2, 1);
  EXPECT_FALSE(circuit.open());
}

TEST_F(Circuit, TakesNoRecordForAloneOnceAnotherWasGivenUpUntilACallSucceeds) {
  for (int i = 0; i < 3; ++i) Fails(1, i);
  circuit.OnGivenUp();
  circuit.OnIdle();
  for (int i = 3; i < 6; ++i) Fails(2, i);
  EXPECT_TRUE(circuit.open());
  circuit.OnAlone(2);
  Fails(2, 6);
  EXPECT_TRUE(circuit.open());
  EXPECT_EQ(Alone(2), seconds(0));
  Succeeds();
  for (int i = 7; i < 10; ++i) Fails(3, i);
  EXPECT_FALSE(circuit.open());
  EXPECT_GT(Alone(3), seconds(0));
}

TEST_F(Circuit, LetsOneProbeOutAtATimeAfterItsWait) {
  EXPECT_EQ(circuit.NextCall(), Instant()) << "closed";
  Open();
  EXPECT_EQ(circuit.NextCall(), At(5));
  circuit.OnCall(70);
  EXPECT_EQ(circuit.NextCall(), Instant::max());
  EXPECT_FALSE(circuit.OnEnd(69)) << "a call from before";
  EXPECT_EQ(circuit.NextCall(), Instant::max());
  EXPECT_TRUE(circuit.OnEnd(70));
  Fails(1, 6);
  circuit.WaitUntil(At(16));
  EXPECT_EQ(circuit.NextCall(), At(16));
  EXPECT_EQ(circuit.probes(), 2);
}

TEST_F(Circuit, ClosesAtTheSuccessOfAnyCall) {
  Open();
  circuit.OnCall(70);
  Succeeds();
  EXPECT_FALSE(circuit.open());
  EXPECT_EQ(circuit.NextCall(), Instant());
  EXPECT_FALSE(circuit.OnEnd(70)) << "it is a call like any other now";
}

// --- how long a record has failed by itself ------------------------------------------------------

TEST_F(Circuit, CountsTheTimeOfARecordThatFailsAlone) {
  for (int second : {0, 5, 10}) Fails(1, second);
  EXPECT_EQ(Alone(1), seconds(10));
}

TEST_F(Circuit, CountsTheTimeOfARecordThatFailsWhileOthersSucceed) {
  for (int second : {0, 5, 10}) {
    for (const std::size_t record : {1, 2}) FindsNobody(record, second);
    Succeeds();
  }
  EXPECT_EQ(Alone(1), seconds(10));
  EXPECT_EQ(Alone(2), seconds(10));
}

TEST_F(Circuit, CountsNoTimeInWhichSeveralFailAndNoneSucceeds) {
  for (int second = 0; second < 1000; ++second) {
    for (const std::size_t record : {1, 2}) Fails(record, second);
  }
  EXPECT_EQ(Alone(1), seconds(0));
  EXPECT_EQ(Alone(2), seconds(0));
}

TEST_F(Circuit, CountsNoTimeInWhichTheServiceSaysThatItServesNobody) {
  for (int second = 0; second < 1000; ++second) FindsNobody(1, second);
  EXPECT_EQ(Alone(1), seconds(0));
}

TEST_F(Circuit, CountsNoMoreThanARecordHadToWait) {
  Fails(1, 0);
  Fails(1, 900);  // it was without its lock
  EXPECT_EQ(Alone(1), seconds(10));
}

}  // namespace
}  // namespace fencepost::consumer
