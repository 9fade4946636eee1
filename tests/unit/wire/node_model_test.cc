// What the simulator relies on in NodeModel beyond the replies, which tests/component/scripts
// compares with a real node.
#include "tests/support/node_model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fencepost::testing {

using locking::NodeModel;
namespace {

using locking::CallHeader;
using locking::LockOptions;
using locking::Millis;
using locking::Op;
using locking::OpKind;
using locking::Reply;
using locking::ReplyCode;
using locking::Token;
using locking::WallTime;

constexpr WallTime kStart{Millis(1'763'700'000'000)};
constexpr std::string_view kName = "fencepost:{orders}:1";
const LockOptions kOptions{.max_skew = Millis(100)};

std::string CompleteSentinel() {
  return "C|" + std::string(32, 'a') + "|0|1|00000001|" + std::string(40, 'b') +
         "|0000000000000|00030000";
}

class Model : public ::testing::Test {
 protected:
  Model() { node_.ApplySentinelWrite({std::nullopt, CompleteSentinel(), std::nullopt}, kStart); }

  Reply Ask(OpKind kind, std::uint64_t nonce, WallTime now) {
    const Op op{.kind = kind,
                .lock = {1, 1},
                .round = 2,
                .name = kName,
                .token = Token(Token::AtWall(now).value() + nonce),
                .nonce = {{0, nonce}},
                .ttl = Millis(1'000),
                .crc = 3};
    return node_.Apply(kind, {&op, 1}, kOptions, now, nullptr).at(0);
  }

  NodeModel node_{std::string(40, 'r')};
};

TEST_F(Model, NamesTheHolderUntilItsDeadline) {
  ASSERT_EQ(Ask(OpKind::kAcquire, 1, kStart).code, ReplyCode::kGranted);
  EXPECT_EQ(node_.Holder(kName, kStart)->nonce.bits[1], 1U);
  EXPECT_TRUE(node_.Holder(kName, kStart + Millis(999)));
  EXPECT_FALSE(node_.Holder(kName, kStart + Millis(1'000)));
  EXPECT_EQ(node_.Look(kName, kStart + Millis(1'200)).state, NodeModel::State::kHeld);
  EXPECT_EQ(node_.Look(kName, kStart + Millis(1'201)).state, NodeModel::State::kAbsent);
}

TEST_F(Model, AnswersNothingAfterAWipeAndRemembersOverARestartWithItsData) {
  ASSERT_EQ(Ask(OpKind::kAcquire, 1, kStart).code, ReplyCode::kGranted);
  node_.Restart(std::string(40, 's'), true);
  EXPECT_EQ(node_.run_id(), std::string(40, 's'));
  EXPECT_EQ(Ask(OpKind::kAcquire, 2, kStart).code, ReplyCode::kContended);
  NodeModel copy = node_;
  node_.Restart(std::string(40, 't'), false);
  EXPECT_EQ(Ask(OpKind::kAcquire, 2, kStart).code, ReplyCode::kNoSentinel);
  EXPECT_FALSE(node_.sentinel());
  EXPECT_TRUE(copy.Holder(kName, kStart)) << "a copy is a node of its own";
}

TEST_F(Model, NeverForgetsAFloorSoonerThanItWouldHave) {
  ASSERT_EQ(Ask(OpKind::kAcquire, 1, kStart).code, ReplyCode::kGranted);
  const WallTime stands_until = kStart + Millis(1'200);
  EXPECT_EQ(node_.Look(kName, kStart).expires, stands_until);
  const WallTime stepped_back = kStart - Millis(500);
  for (const OpKind kind : {OpKind::kExtend, OpKind::kRelease, OpKind::kFill}) {
    Ask(kind, 1, stepped_back);
    EXPECT_EQ(node_.Look(kName, stepped_back).expires, stands_until) << static_cast<int>(kind);
  }
}

TEST_F(Model, VisitsWhatStandsAndPurgesWhatDoesNot) {
  ASSERT_EQ(Ask(OpKind::kAcquire, 1, kStart).code, ReplyCode::kGranted);
  const auto count = [&](WallTime now) {
    int units = 0;
    node_.ForEach(now, [&](std::string_view, const NodeModel::Unit&) { ++units; });
    return units;
  };
  EXPECT_EQ(count(kStart), 1);
  EXPECT_EQ(count(kStart + Millis(1'201)), 0);
  node_.Purge(kStart + Millis(1'201));
  EXPECT_EQ(count(kStart), 0);
}

}  // namespace
}  // namespace fencepost::testing
