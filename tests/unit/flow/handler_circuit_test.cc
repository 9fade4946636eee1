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
  // A new call of that record.
  bool Fails(std::size_t record, int second) {
    return circuit.OnFailure(record, records[record], ++calls, false, At(second));
  }
  // The service says that it serves nobody now.
  bool FindsNobody(std::size_t record, int second) {
    return circuit.OnFailure(record, records[record], ++calls, true, At(second));
  }
  bool Succeeds(int second) { return circuit.OnSuccess(++calls, At(second)); }
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
    Succeeds(i);
  }
}

TEST_F(Circuit, BeginsToCountAgainAtASuccess) {
  Fails(1, 0);
  Fails(2, 0);
  EXPECT_FALSE(Succeeds(1)) << "it was closed";
  EXPECT_FALSE(Fails(3, 2));
  EXPECT_FALSE(Fails(4, 2));
  EXPECT_EQ(circuit.failures(), 2);
}

TEST_F(Circuit, DoesNotCountARecordThatFailsBetweenSuccessesOfOthers) {
  for (int i = 0; i < 9; ++i) {
    Fails(1, i);
    Fails(2, i);
    Succeeds(i);
  }
  EXPECT_FALSE(Fails(1, 10));
  EXPECT_EQ(circuit.failures(), 0);
}

TEST_F(Circuit, CountsRecordsThatFailedBeforeTheOutage) {
  Fails(1, 0);
  Fails(2, 0);
  Succeeds(1);
  bool opened = false;
  for (int i = 2; i < 9; ++i) opened = Fails(1, i) || Fails(2, i) || opened;
  EXPECT_TRUE(opened) << "nothing has succeeded since they failed last";
}

TEST_F(Circuit, ASuccessOfAnEarlierCallSaysNothingOfALaterFailure) {
  const HandlerCircuit::Call slow = ++calls;
  Fails(1, 0);
  circuit.OnSuccess(slow, At(1));
  Fails(1, 2);
  EXPECT_EQ(circuit.failures(), 1);
}

TEST_F(Circuit, NeverOpensWhereItIsSwitchedOff) {
  HandlerCircuit none(0);
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_FALSE(none.OnFailure(i, records[i], ++calls, true, At(0)));
  }
}

TEST_F(Circuit, LetsARecordBeGivenUpNowAndThenWhenItIsOpenForLong) {
  const Nanos after = seconds(10);
  Open();
  EXPECT_FALSE(circuit.MayGiveUp(records[1], after, At(39)));
  EXPECT_TRUE(circuit.MayGiveUp(records[1], after, At(40)));
  EXPECT_FALSE(circuit.MayGiveUp(records[2], after, At(49))) << "one in each give_up_after";
  EXPECT_TRUE(circuit.MayGiveUp(records[2], after, At(50)));
  EXPECT_FALSE(circuit.MayGiveUp(records[0], Nanos(0), At(99)));
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
  EXPECT_TRUE(Succeeds(7));
  EXPECT_FALSE(circuit.open());
  EXPECT_EQ(circuit.NextCall(), Instant());
  EXPECT_FALSE(circuit.OnEnd(70)) << "it is a call like any other now";
}

TEST_F(Circuit, ItsClosedTimeStandsStillWhileItIsOpen) {
  const Nanos before = circuit.ClosedTime(At(0));
  Open();
  EXPECT_EQ(circuit.ClosedTime(At(60)), before);
  EXPECT_EQ(circuit.OpenFor(At(60)), seconds(60));
  Succeeds(60);
  EXPECT_EQ(circuit.OpenFor(At(70)), seconds(0));
  EXPECT_EQ(circuit.ClosedTime(At(70)), before + seconds(10));
}

}  // namespace
}  // namespace fencepost::consumer
