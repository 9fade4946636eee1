// When a handler's circuit opens and closes, and who may call meanwhile.
#include "consumer/flow/state/handler_circuit.h"

#include <gtest/gtest.h>

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
  // Now for the first time.
  bool Fails(std::size_t record, int second) {
    return circuit.OnFailure(record, circuit.turn(), At(second));
  }
  HandlerCircuit circuit{3};
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

TEST_F(Circuit, BeginsToCountAgainAtASuccess) {
  Fails(1, 0);
  Fails(2, 0);
  EXPECT_FALSE(circuit.OnSuccess(At(1))) << "it was closed";
  EXPECT_FALSE(Fails(1, 2));
  EXPECT_FALSE(Fails(2, 2));
  EXPECT_EQ(circuit.failures(), 2);
}

TEST_F(Circuit, DoesNotCountRecordsThatFailedBeforeOthersSucceeded) {
  const HandlerCircuit::Turn before = circuit.turn();
  circuit.OnSuccess(At(0));
  for (std::size_t record = 0; record < 9; ++record) {
    EXPECT_FALSE(circuit.OnFailure(record, before, At(1)));
  }
  EXPECT_EQ(circuit.failures(), 0);
}

TEST_F(Circuit, NeverOpensWhereItIsSwitchedOff) {
  HandlerCircuit none(0);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(none.OnFailure(static_cast<std::size_t>(i), 0, At(0)));
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
  EXPECT_TRUE(circuit.OnSuccess(At(7)));
  EXPECT_FALSE(circuit.open());
  EXPECT_EQ(circuit.NextCall(), Instant());
  EXPECT_FALSE(circuit.OnEnd(70)) << "it is a call like any other now";
}

TEST_F(Circuit, ItsClosedTimeStandsStillWhileItIsOpen) {
  const Nanos before = circuit.ClosedTime(At(0));
  Open();
  EXPECT_EQ(circuit.ClosedTime(At(60)), before);
  EXPECT_EQ(circuit.OpenFor(At(60)), seconds(60));
  circuit.OnSuccess(At(60));
  EXPECT_EQ(circuit.OpenFor(At(70)), seconds(0));
  EXPECT_EQ(circuit.ClosedTime(At(70)), before + seconds(10));
}

}  // namespace
}  // namespace fencepost::consumer
