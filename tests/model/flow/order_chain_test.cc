// The prefix rule of order chains, by themselves. Numbers are PROTOCOL.md's.
#include "consumer/flow/state/order_chain.h"

#include <array>

#include <gtest/gtest.h>

namespace fencepost::consumer {
namespace {

struct AtStage : InFlight {
  void Be(Stage stage) { stage_ = stage; }
};

// a → b → c → d
struct Four {
  Four() {
    for (InFlight& in : records) chain.Join(in);
  }
  AtStage& a() { return records[0]; }
  AtStage& b() { return records[1]; }
  AtStage& c() { return records[2]; }
  AtStage& d() { return records[3]; }
  void AllIn(Stage stage) {
    for (AtStage& in : records) in.Be(stage);
  }
  OrderChain chain;
  std::array<AtStage, 4> records;
};

TEST(OrderChain, KeepsTheOrderOfDeliveryWhoeverLeaves) {
  Four four;
  EXPECT_EQ(four.chain.Leave(four.b()), &four.c());
  EXPECT_EQ(four.c().chain_before, &four.a());
  EXPECT_EQ(four.chain.Leave(four.d()), nullptr);
  EXPECT_EQ(four.chain.tail, &four.c());
  EXPECT_EQ(four.chain.Leave(four.a()), &four.c());
  EXPECT_EQ(four.c().chain_before, nullptr);
  EXPECT_EQ(four.chain.Leave(four.c()), nullptr);
  EXPECT_EQ(four.chain.tail, nullptr);
  four.chain.Join(four.d());
  EXPECT_EQ(four.d().chain_before, nullptr);
}

TEST(OrderChain, HasItsFirstRecordInThePrefixWhateverIsBehindIt) {
  Four four;
  four.AllIn(Stage::kQueued);
  EXPECT_EQ(NotLeasedBefore(four.a()), nullptr);
}

TEST(OrderChain, LetsNoLeaseCountBehindARecordThatHasNone) {  // 15
  Four four;
  four.AllIn(Stage::kGranted);
  EXPECT_EQ(NotLeasedBefore(four.b()), &four.a());
  four.a().Be(Stage::kReady);
  EXPECT_EQ(NotLeasedBefore(four.b()), nullptr);
  EXPECT_EQ(NotLeasedBefore(four.c()), &four.b());
}

TEST(OrderChain, LooksPastWhatIsInOthersHandsForARecordThatFellOutOfThePrefix) {  // 15
  Four four;
  four.AllIn(Stage::kWriting);
  four.a().Be(Stage::kQueued);
  MarkOutOfPrefix(four.a(), true);
  four.d().Be(Stage::kQueued);
  EXPECT_EQ(NotLeasedBefore(four.d()), &four.a());
  four.a().Be(Stage::kReady);
  MarkOutOfPrefix(four.a(), false);
  EXPECT_EQ(NotLeasedBefore(four.d()), nullptr);
}

TEST(OrderChain, CountsARecordThatIsOutOfThePrefixOnceAndForgetsItWhenItLeaves) {
  Four four;
  MarkOutOfPrefix(four.b(), true);
  MarkOutOfPrefix(four.b(), true);
  EXPECT_EQ(four.chain.out_of_prefix, 1u);
  four.chain.Leave(four.b());
  EXPECT_EQ(four.chain.out_of_prefix, 0u);
}

TEST(OrderChain, IsNotNeededToMarkARecordThatHasNoOrder) {
  InFlight alone;
  MarkOutOfPrefix(alone, true);
  EXPECT_FALSE(alone.out_of_prefix);
  EXPECT_EQ(NotLeasedBefore(alone), nullptr);
}

}  // namespace
}  // namespace fencepost::consumer
