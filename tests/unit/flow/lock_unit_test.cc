// Lock units by themselves: who goes ahead, what a unit knows of its lease, and when it is over.
#include "consumer/flow/state/lock_unit.h"

#include <array>

#include <gtest/gtest.h>

namespace fencepost::consumer {
namespace {

using locking::LockId;
using locking::Token;

constexpr LockId kLock{.slot = 3, .generation = 1};
constexpr LockId kLater{.slot = 4, .generation = 1};

// Three records of one unit.
struct Unit {
  explicit Unit(Sharing sharing = Sharing::kExclusive) {
    std::uint32_t place = 0;
    for (InFlight& in : records) {
      units.Join(in, "lock:a", sharing, sharing == Sharing::kShared ? place++ : 0);
    }
  }
  LockUnit& unit() { return *records[1].unit; }
  void Lease() {
    unit().BecomeAcquiring(kLock);
    unit().BecomeLeased(Token(7));
  }
  LockUnits units;
  std::array<InFlight, 3> records;
};

TEST(LockUnit, LetsOneRecordAtATimeGoAheadWhereItIsExclusive) {
  Unit id;
  id.Lease();
  EXPECT_TRUE(Leased(id.records[0]));
  EXPECT_EQ(TokenOf(id.records[0]), Token(7));
  EXPECT_FALSE(Leased(id.records[1]));
  EXPECT_EQ(TokenOf(id.records[1]), Token());
}

TEST(LockUnit, LetsAllItsRecordsGoAheadWhereItIsShared) {
  Unit block(Sharing::kShared);
  block.Lease();
  for (const InFlight& in : block.records) {
    EXPECT_TRUE(Leased(in));
    EXPECT_EQ(TokenOf(in), Token(7));
  }
  block.unit().BecomeLost(locking::Instant(std::chrono::seconds(5)));
  for (const InFlight& in : block.records) EXPECT_TRUE(Has(in, Lease::kLost));
}

TEST(LockUnit, GivesTheTurnInTheOrderInWhichTheRecordsCame) {
  Unit id;
  EXPECT_TRUE(id.unit().LeaseEndsWith(id.records[0]));
  EXPECT_FALSE(id.unit().LeaseEndsWith(id.records[1])) << "it has nothing that could end";
  EXPECT_EQ(id.units.Leave(id.records[0]), &id.records[1]);
  EXPECT_TRUE(id.unit().MayProceed(id.records[1]));
  EXPECT_EQ(id.records[0].unit, nullptr);
  EXPECT_EQ(id.units.Leave(id.records[2]), nullptr) << "it had not gone ahead";
  EXPECT_EQ(id.units.Leave(id.records[1]), nullptr);
}

TEST(LockUnit, KeepsASharedLeaseUntilTheLastRecordLeaves) {
  Unit block(Sharing::kShared);
  block.Lease();
  for (const int first : {0, 2}) {
    EXPECT_FALSE(block.unit().LeaseEndsWith(block.records[first]));
    block.units.Leave(block.records[first]);
  }
  EXPECT_TRUE(Leased(block.records[1]));
  EXPECT_TRUE(block.unit().LeaseEndsWith(block.records[1]));
}

TEST(LockUnit, HearsOfTheLockThatItHasAndOfNoFormerOne) {
  Unit id;
  id.Lease();
  LockUnit& unit = id.unit();
  EXPECT_EQ(id.units.Find(unit.cookie(), kLock), &unit);
  EXPECT_EQ(id.units.Find(unit.cookie(), kLater), nullptr);
  EXPECT_EQ(id.units.Find(unit.cookie() + 1, kLock), nullptr);
  EXPECT_EQ(id.units.Find(0, kLock), nullptr);
  unit.BecomeNone();
  EXPECT_EQ(id.units.Find(unit.cookie(), kLock), nullptr);
}

TEST(LockUnit, IsLeasedNoMoreOnceItIsLost) {
  Unit id;
  id.Lease();
  const locking::Instant at(std::chrono::seconds(5));
  id.unit().BecomeLost(at);
  EXPECT_FALSE(Leased(id.records[0]));
  EXPECT_EQ(id.unit().lost_at(), at);
  EXPECT_EQ(TokenOf(id.records[0]), Token(7)) << "what is in others' hands was done under it";
  EXPECT_EQ(id.units.Find(id.unit().cookie(), kLock), nullptr);
}

TEST(LockUnit, KnowsWhoseAMarkIs) {
  Unit id;
  id.unit().BecomeAcquiring(kLock);
  id.unit().BecomeDone(Token(9), 0xabc);
  EXPECT_TRUE(FoundDone(id.records[0]));
  EXPECT_FALSE(FoundDone(id.records[1]));
  EXPECT_EQ(id.unit().done_crc(), 0xabcu);
  EXPECT_EQ(TokenOf(id.records[0]), Token(9));
}

TEST(LockUnit, ForgetsAFailedRoundWithItsLock) {
  Unit id;
  id.unit().BecomeAcquiring(kLock);
  id.records[0].BecomeQueued();
  id.records[0].BecomeLocking();
  EXPECT_TRUE(LeaseMayArriveSoon(id.records[0]));
  id.unit().FailRound();
  EXPECT_FALSE(LeaseMayArriveSoon(id.records[0]));
  id.unit().BecomeNone();
  id.unit().BecomeAcquiring(kLater);
  EXPECT_TRUE(LeaseMayArriveSoon(id.records[0]));
}

TEST(LockUnit, IsGoneWithItsLastRecordAndMadeAnewInItsPlace) {
  LockUnits units;
  InFlight a, b;
  LockUnit& former = units.Join(a, "lock:a", Sharing::kExclusive);
  const std::uint64_t cookie = former.cookie();
  EXPECT_EQ(units.Leave(a), nullptr);
  LockUnit& next = units.Join(b, "lock:b", Sharing::kShared);
  EXPECT_EQ(next.cookie(), cookie);
  EXPECT_EQ(next.name(), "lock:b");
  units.Join(a, "lock:a", Sharing::kExclusive);
  EXPECT_NE(a.unit, b.unit);
}

TEST(LockUnitDeathTest, RefusesASecondLeaseAndALeaseWithoutARecord) {
  Unit id;
  id.Lease();
  EXPECT_DEATH(id.unit().BecomeAcquiring(kLater), "while its unit has one");
  id.unit().BecomeLost({});
  EXPECT_DEATH(id.unit().BecomeLost({}), "lost that was not held");
  InFlight alone;
  id.units.Join(alone, "lock:b", Sharing::kExclusive).BecomeAcquiring(kLater);
  EXPECT_DEATH(id.units.Leave(alone), "a lease without a record");
}

}  // namespace
}  // namespace fencepost::consumer
