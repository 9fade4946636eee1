// Which nodes an acquire asks first, and how long it waits for them.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "locking/core/contact/fast_nodes.h"

namespace fencepost::locking {
namespace {

class FastNodesTest : public ::testing::Test {
 protected:
  void Pass(Nanos time) { now.boot += time, now.wall += std::chrono::floor<Millis>(time); }
  void Probe(NodeIndex node, Nanos took) { fast.OnProbed(node, took, now); }
  void ProbeAll(Nanos took) {
    for (NodeIndex node = 0; node < kNodes; ++node) Probe(node, took);
  }
  // So many probes, two seconds apart, as the store makes them.
  void Probes(int count, std::array<Nanos, 5> took) {
    for (int i = 0; i < count; ++i) {
      Pass(Millis(2000));
      for (NodeIndex node = 0; node < kNodes; ++node) Probe(node, took[std::size_t(node)]);
    }
  }
  bool Has(NodeIndex node) const { return (fast.fast() & Bit(node)) != 0; }
  NodeSet First(const std::string& name, NodeSet good = AllNodes(5)) const {
    return fast.First(name, good, place);
  }

  static constexpr int kNodes = 5;
  static constexpr Nanos kUsual{Millis(1)};
  static constexpr Nanos kSlow{Millis(100)};
  static constexpr std::array<Nanos, 5> kWell{kUsual, kUsual, kUsual, kUsual, kUsual};
  static constexpr std::array<Nanos, 5> kOneSlow{kUsual, kUsual, kSlow, kUsual, kUsual};
  Now now{Instant(std::chrono::seconds(1000)), WallTime(Millis(1'800'000'000'000))};
  std::array<std::uint8_t, kMaxNodes> place{0, 1, 2, 3, 4, 5, 6};
  FastNodes fast{kNodes, Millis(200)};
};

TEST_F(FastNodesTest, AreAllAtFirst) { EXPECT_EQ(fast.fast(), AllNodes(5)); }

TEST_F(FastNodesTest, AreNotOneThatIsSlowUntilItWasGoodAfterASecond) {
  Probes(3, kWell);
  Pass(Millis(10));
  Probe(2, kSlow);
  EXPECT_FALSE(Has(2)) << "at once";
  Pass(Millis(900));
  Probe(2, kUsual);
  EXPECT_FALSE(Has(2));
  Probes(5, kOneSlow);
  EXPECT_FALSE(Has(2));
  Probes(1, kWell);
  EXPECT_EQ(fast.fast(), AllNodes(5));
}

TEST_F(FastNodesTest, AreStillOneThatWasLateOnceByLittle) {
  Probes(3, kWell);
  Probe(2, Millis(30));
  EXPECT_TRUE(Has(2));
}

TEST_F(FastNodesTest, LeaveOneOutForTwiceAsLongEachTimeThatItIsSlowAgainSoon) {
  Probes(3, kWell);
  const auto out_for = [&] {
    Probe(2, kSlow);
    EXPECT_FALSE(Has(2));
    const Instant left = now.boot;
    while (!Has(2)) {
      Pass(Millis(100));
      Probe(2, kUsual);
    }
    return std::chrono::duration_cast<Millis>(now.boot - left).count();
  };
  EXPECT_EQ(out_for(), 1000);
  EXPECT_EQ(out_for(), 2000);
  EXPECT_EQ(out_for(), 4000);
  for (int i = 0; i < 5; ++i) out_for();
  EXPECT_EQ(out_for(), 16'000) << "at most";
  Pass(Millis(61'000));
  EXPECT_EQ(out_for(), 1000) << "it was good for long";
}

TEST_F(FastNodesTest, AreAllWhereAllAreSlow) {
  Probes(3, kWell);
  for (int i = 0; i < 30; ++i) {
    Pass(Millis(100));
    ProbeAll(kSlow);
  }
  Pass(Millis(20'000));
  ProbeAll(kSlow);
  EXPECT_EQ(fast.fast(), AllNodes(5));
}

TEST_F(FastNodesTest, AreNotOneThatIsAwayAndItComesBackWithAnAnswer) {
  Probes(3, kWell);
  fast.OnAway(2, now);
  EXPECT_FALSE(Has(2));
  Pass(Millis(60'000));
  EXPECT_FALSE(Has(2)) << "time alone says nothing";
  Probe(2, kUsual);
  EXPECT_TRUE(Has(2));
}

TEST_F(FastNodesTest, AreNotOneThatIsSilentWhileOthersAnswer) {
  Probes(3, kWell);
  fast.OnQueued(2, now);
  fast.OnTaken(2, true, now);
  Pass(Millis(5));
  fast.OnLate(Bit(2), true, now);
  EXPECT_TRUE(Has(2)) << "for a moment";
  Pass(Millis(30));
  fast.OnLate(Bit(2), false, now);
  EXPECT_TRUE(Has(2)) << "nobody answered: this process may have stood still";
  fast.OnLate(Bit(2), true, now);
  EXPECT_FALSE(Has(2));
}

TEST_F(FastNodesTest, AreMeasuredFromTheOldestOperationToItsAnswer) {
  Probes(3, kWell);
  for (int i = 0; i < 200; ++i) {
    fast.OnQueued(0, now);
    Pass(Millis(3));
    fast.OnQueued(0, now);
    fast.OnTaken(0, true, now);
    Pass(Millis(1));
    fast.OnAnswered(0, now);
    fast.OnAnswered(0, now);  // nothing is out
  }
  EXPECT_NEAR(static_cast<double>(fast.UsualWait(0).count()), 4e6, 1e5);
}

TEST_F(FastNodesTest, AreWaitedForALittleLongerThanTheirLastWaitsButOneInAHundred) {
  EXPECT_EQ(fast.Patience(AllNodes(5)), Millis(20)) << "nothing is known";
  for (int i = 0; i < 104; ++i) ProbeAll(i % 50 == 0 ? Millis(40) : Millis(4));
  EXPECT_EQ(fast.Patience(AllNodes(5)), Millis(45));
  for (int i = 0; i < 104; ++i) ProbeAll(i == 50 ? Millis(40) : Millis(4));
  EXPECT_EQ(fast.Patience(AllNodes(5)), Nanos(Millis(4)) * 9 / 8);
  Probes(200, {kUsual, kUsual, Millis(2), kUsual, kUsual});
  EXPECT_EQ(fast.Patience(Bit(0) | Bit(2)), Nanos(Millis(2)) * 9 / 8) << "of the slowest asked";
  EXPECT_EQ(fast.Patience(Bit(0) | Bit(1)), Nanos(kUsual) * 9 / 8);
  for (int i = 0; i < 200; ++i) ProbeAll(Millis(3000));
  EXPECT_EQ(fast.Patience(AllNodes(5)), Millis(100)) << "half a node timeout at most";
}

TEST_F(FastNodesTest, AreJoinedByTheOthersForOneLateAcquireInTenOrAnyThatWaitsForASlowNode) {
  const NodeSet asked = Bit(0) | Bit(1) | Bit(2);
  int saved = 0;
  while (fast.MayAskOthers(asked)) ++saved;
  EXPECT_EQ(saved, 64);
  for (int i = 1; i <= 100; ++i) {
    fast.OnQuorumAsked();
    EXPECT_EQ(fast.MayAskOthers(asked), i % 10 == 0);
  }
  fast.OnAway(2, now);
  EXPECT_TRUE(fast.MayAskOthers(asked));
  EXPECT_FALSE(fast.MayAskOthers(Bit(0) | Bit(1)));
  for (int i = 0; i < 10'000; ++i) fast.OnQuorumAsked();
  for (int i = 0; i < 64; ++i) EXPECT_TRUE(fast.MayAskOthers(Bit(0)));
  EXPECT_FALSE(fast.MayAskOthers(Bit(0)));
}

TEST_F(FastNodesTest, GiveANameTheSameQuorumWhateverTheOrderOfTheList) {
  for (int i = 0; i < 100; ++i) {
    const std::string name = "name " + std::to_string(i);
    const NodeSet first = First(name);
    EXPECT_EQ(Count(first), 3);
    const std::array<std::uint8_t, kMaxNodes> turned{4, 3, 2, 1, 0, 5, 6};
    NodeSet same = 0;
    for (NodeIndex node = 0; node < kNodes; ++node) {
      if ((first & Bit(4 - node)) != 0) same |= Bit(node);
    }
    EXPECT_EQ(fast.First(name, AllNodes(5), turned), same);
  }
  EXPECT_EQ(First("fencepost:{orders}:o-17"), First("fencepost:{orders}:o-17"));
}

TEST_F(FastNodesTest, ChangeOnlyTheNamesOfANodeThatLeaves) {
  int of_it = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string name = "name " + std::to_string(i);
    const NodeSet before = First(name);
    const NodeSet after = First(name, Without(AllNodes(5), Bit(2)));
    of_it += (before & Bit(2)) != 0 ? 1 : 0;
    EXPECT_EQ(Count(after), 3);
    EXPECT_EQ(Without(before, Bit(2)) & ~after, 0) << name;
  }
  EXPECT_GT(of_it, 500);
  EXPECT_LT(of_it, 700);
}

TEST_F(FastNodesTest, AreJoinedBySlowOnesWhereTheyAreTooFew) {
  Probes(3, kWell);
  for (const NodeIndex node : {0, 1, 2}) fast.OnAway(node, now);
  EXPECT_EQ(Count(First("x")), 3);
  EXPECT_EQ(First("x", Bit(0) | Bit(3)), Bit(0) | Bit(3)) << "fewer than a quorum are good";
}

// As the bytes of a name are hashed in every process and build: a worker of each version asks the
// same nodes.
TEST_F(FastNodesTest, PickByAHashThatNeverChanges) {
  EXPECT_EQ(First("fencepost:{orders}:o-1"), 0b01011);
  EXPECT_EQ(First("fencepost:{orders}:o-2"), 0b10011);
}

}  // namespace
}  // namespace fencepost::locking
