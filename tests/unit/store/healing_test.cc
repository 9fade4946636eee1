// A healing, step by step: when it begins to read, what it gives back, when it lifts.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "locking/core/store/heal.h"

namespace fencepost::locking {
namespace {

using Kind = Healing::Step::Kind;

constexpr WallTime kQuarantineEnds{Millis(1'800'000'100'000)};
constexpr Millis kMaxTtl{30'000};
constexpr Millis kMaxSkew{5'000};
// From then on every node refuses what was sent to it before the first one forgot.
constexpr WallTime kReadable = kQuarantineEnds - kMaxTtl + kMaxSkew + Millis(1);

class HealingTest : public ::testing::Test {
 protected:
  HealingTest() : healing({0, {RunId(0), RunId(1), RunId(2)}, kMaxSkew}) {
    for (int node = 0; node < 3; ++node) {
      const Sentinel sentinel{.complete = true,
                              .store_id = fmt::format("{:032x}", 7),
                              .index = node,
                              .nodes = 3,
                              .epoch = 1,
                              .run_id = RunId(node),
                              .quarantine_until = node == 0 ? kQuarantineEnds : WallTime(),
                              .max_ttl = kMaxTtl};
      sights.push_back({.time = kReadable, .sentinel = sentinel.Encode(), .values = {}});
    }
  }
  static std::string RunId(int node) { return fmt::format("{:040x}", node + 1); }
  Kind Look() {
    while (healing.Next().kind == Kind::kLook) {
      std::vector<NodeSight> seen;
      for (const NodeIndex node : healing.Next().nodes)
        seen.push_back(sights[static_cast<std::size_t>(node)]);
      const bool last = healing.Next().nodes == std::vector<NodeIndex>{0};
      healing.OnLook(std::move(seen));
      if (last) break;
    }
    return healing.Next().kind;
  }
  // All is read, and there is nothing: what is left is a last look.
  void ScanAll() {
    while (healing.Next().kind == Kind::kScan) healing.OnScan({"0", {}});
    ASSERT_EQ(healing.Next().kind, Kind::kLook);
  }

  Healing healing;
  std::vector<NodeSight> sights;
};

TEST_F(HealingTest, WaitsUntilTheSlowestNodeRefusesWhatWasSentBeforeTheWipe) {  // 22
  sights[2].time -= Millis(700);
  ASSERT_EQ(Look(), Kind::kWait);
  EXPECT_EQ(healing.Next().wait, Millis(700));
  healing.OnWaited();
  sights[2].time += Millis(699);
  ASSERT_EQ(Look(), Kind::kWait);
  healing.OnWaited();
  sights[2].time += Millis(1);
  EXPECT_EQ(Look(), Kind::kScan);
}

TEST_F(HealingTest, LiftsNothingWhereANodeForgotWhileItWasRead) {  // 22
  ASSERT_EQ(Look(), Kind::kScan);
  ScanAll();
  sights[1].sentinel[kSentinelQuarantineAt] = '9';
  ASSERT_EQ(Look(), Kind::kFailed);
  EXPECT_EQ(healing.Next().error.code, "changed");
}

// A quorum of three is the healed node and one other.
TEST(HealPlan, GivesALeaseBackThatOneOfTheOthersHas) {  // 22
  const UnitValue lease{.state = UnitValue::State::kHeld,
                        .token = Token::AtWall(kReadable),
                        .nonce = Nonce{{1, 2}},
                        .deadline = kReadable + Millis(8'000),
                        .floor = Token::AtWall(kReadable)};
  const std::vector<NodeSight::Value> others{{lease.Encode(), Millis(18'000)}, {}};
  const std::vector<WallTime> times{kReadable, kReadable};
  const auto write = PlanHeal("x", others, times, {}, kReadable, {3, kQuarantineEnds, kMaxSkew});
  ASSERT_TRUE(write);
  const auto value = UnitValue::Decode(write->value);
  ASSERT_TRUE(value);
  EXPECT_EQ(value->state, UnitValue::State::kHeld);
  EXPECT_EQ(value->nonce, lease.nonce);
  EXPECT_EQ(value->deadline, kQuarantineEnds);
}

// By a clock that was read before, it would be over here while its client, which asked the other
// node first, may count both.
TEST_F(HealingTest,
       LooksAtTheHealedNodeAfterTheOthersSoThatNoLeaseEndsThereBeforeItDoesWhereItWasRead) {
  const std::vector<NodeIndex> others{1, 2};
  const std::vector<NodeIndex> healed{0};
  ASSERT_EQ(healing.Next().nodes, others);
  healing.OnLook({sights[1], sights[2]});
  EXPECT_EQ(healing.Next().nodes, healed);

  const UnitValue lease{.state = UnitValue::State::kHeld,
                        .token = Token::AtWall(kReadable),
                        .nonce = Nonce{{1, 2}},
                        .deadline = kQuarantineEnds + Millis(300),
                        .floor = Token::AtWall(kReadable)};
  const WallTime later = kReadable + Millis(40);
  const auto write = PlanHeal(
      "x", std::vector<NodeSight::Value>{{lease.Encode(), Millis(60'000)}, {}},
      std::vector<WallTime>{kReadable, kReadable}, {}, later, {3, kQuarantineEnds, kMaxSkew});
  ASSERT_TRUE(write);
  EXPECT_EQ(UnitValue::Decode(write->value)->deadline, lease.deadline + Millis(41));
}

// Each node that has a name brings it up again, and the nodes are not read at one moment.
TEST_F(HealingTest, CountsAMarkOnceWhereItsMemoryIsMadeLonger) {
  const std::string mark =
      UnitValue{.state = UnitValue::State::kDone, .token = Token::AtWall(kReadable)}.Encode();
  const NodeSight::Value other{mark, Millis(60'000)};
  ASSERT_EQ(Look(), Kind::kScan);
  for (const Millis own_left : {Millis(0), Millis(59'997)}) {
    healing.OnScan({"0", {"x"}});
    const bool absent = own_left == Millis(0);
    sights[0].values = {absent ? NodeSight::Value{} : NodeSight::Value{mark, own_left}};
    sights[1].values = sights[2].values = {other};
    ASSERT_EQ(Look(), Kind::kWrite);
    EXPECT_EQ(healing.Next().writes.at(0).left, other.left);
    healing.OnWritten({true});
  }
  EXPECT_EQ(healing.counts().seen, 2U);
  EXPECT_EQ(healing.counts().written, 1U);
  EXPECT_EQ(healing.counts().done, 1U);
}

TEST_F(HealingTest, LiftsOnceAllIsReadAndNothingHasChanged) {
  ASSERT_EQ(Look(), Kind::kScan);
  ScanAll();
  EXPECT_EQ(Look(), Kind::kLift);
}

}  // namespace
}  // namespace fencepost::locking
