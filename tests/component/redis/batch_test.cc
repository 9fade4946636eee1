// Which calls of a batch are written again, and that every op is answered once; no server needed.
#include "locking/redis/node/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "locking/redis/session/node_error.h"

namespace fencepost::locking {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class BatchTest : public ::testing::Test {
 protected:
  void Take(std::initializer_list<OpKind> kinds) {
    for (const OpKind kind : kinds) {
      const auto slot = static_cast<std::uint32_t>(batch.ops().size());
      batch.ops().push_back({.kind = kind, .lock = {slot, 1}, .name = "fencepost:{t}:x"});
    }
    batch.Cut();
  }
  std::size_t Write() { return batch.Write(LockOptions(), wire); }
  void NodeSays(std::string_view letters) {
    ASSERT_TRUE(batch.OnText("1700000000000A" + std::string(letters)).has_value());
  }
  std::map<std::uint32_t, ReplyCode> Codes() {
    std::map<std::uint32_t, ReplyCode> codes;
    for (const Reply& reply : batch.replies()) codes.emplace(reply.lock.slot, reply.code);
    EXPECT_EQ(codes.size(), batch.replies().size()) << "an op was answered twice";
    return codes;
  }

  NodeBatch batch;
  std::string wire;
};

TEST_F(BatchTest, WritesOneCallForEachRunOfOneKind) {
  Take({OpKind::kExtend, OpKind::kAbort, OpKind::kAbort, OpKind::kRelease, OpKind::kAcquire});
  EXPECT_EQ(Write(), 4u);
  NodeSays("E");
  EXPECT_EQ(batch.Next().keys, 2u);
  NodeSays("FX");
  NodeSays("F");
  NodeSays("G");
  EXPECT_THAT(Codes(), ElementsAre(Pair(0, ReplyCode::kExtended), Pair(1, ReplyCode::kFreed),
                                   Pair(2, ReplyCode::kExpired), Pair(3, ReplyCode::kFreed),
                                   Pair(4, ReplyCode::kGranted)));
}

TEST_F(BatchTest, WritesAgainOnlyTheCallsThatLackedTheirScript) {
  Take({OpKind::kExtend, OpKind::kDone, OpKind::kAcquire});
  EXPECT_EQ(Write(), 3u);
  NodeSays("E");
  EXPECT_TRUE(batch.OnNoScript());
  EXPECT_TRUE(batch.OnNoScript());
  ASSERT_TRUE(batch.PrepareResend());
  EXPECT_EQ(Write(), 2u);
  NodeSays("M");
  NodeSays("G");
  EXPECT_THAT(Codes(), ElementsAre(Pair(0, ReplyCode::kExtended), Pair(1, ReplyCode::kMarked),
                                   Pair(2, ReplyCode::kGranted)));
}

TEST_F(BatchTest, DoesNotWriteAgainWhatALaterCallHasOvertakenAndMustNotComeLate) {
  Take({OpKind::kAcquire, OpKind::kDone, OpKind::kAbort});
  EXPECT_EQ(Write(), 3u);
  EXPECT_TRUE(batch.OnNoScript());
  EXPECT_TRUE(batch.OnNoScript());
  NodeSays("X");
  ASSERT_TRUE(batch.PrepareResend());
  ASSERT_EQ(Write(), 1u) << "the mark may come late, the acquire may not";
  NodeSays("N");
  EXPECT_THAT(Codes(), ElementsAre(Pair(0, ReplyCode::kError), Pair(1, ReplyCode::kMarkedLate),
                                   Pair(2, ReplyCode::kExpired)));
}

TEST_F(BatchTest, AnswersErrorWhenAScriptIsLackingTwice) {
  Take({OpKind::kAcquire});
  Write();
  EXPECT_TRUE(batch.OnNoScript());
  ASSERT_TRUE(batch.PrepareResend());
  Write();
  EXPECT_FALSE(batch.OnNoScript());
  EXPECT_FALSE(batch.PrepareResend());
  EXPECT_THAT(Codes(), ElementsAre(Pair(0, ReplyCode::kError)));
}

TEST_F(BatchTest, SettlesWhatIsLeftAndKeepsWhatTheNodeSaid) {
  Take({OpKind::kRelease, OpKind::kAcquire, OpKind::kFill});
  Write();
  NodeSays("F");
  EXPECT_TRUE(batch.OnNoScript());
  EXPECT_EQ(batch.CallsUnsettled(), 2u);
  batch.SettleRest(ReplyCode::kTimeout);
  EXPECT_THAT(Codes(), ElementsAre(Pair(0, ReplyCode::kFreed), Pair(1, ReplyCode::kTimeout),
                                   Pair(2, ReplyCode::kTimeout)));
  batch.Clear();
  EXPECT_FALSE(batch.Active());
}

TEST_F(BatchTest, AnswersErrorToAnAnswerThatIsNotTheScripts) {
  Take({OpKind::kAcquire, OpKind::kAcquire});
  Write();
  EXPECT_FALSE(batch.OnText("1700000000000AG").has_value());
  EXPECT_THAT(Codes(), ElementsAre(Pair(0, ReplyCode::kError), Pair(1, ReplyCode::kError)));
}

TEST(NodeError, IsToldApartByWhatItSaysFirst) {
  EXPECT_EQ(ReadNodeError("NOSENTINEL x").kind, NodeErrorKind::kNoSentinel);
  EXPECT_EQ(ReadNodeError("NOSCRIPT No matching script.").kind, NodeErrorKind::kNoScript);
  EXPECT_EQ(ReadNodeError("OOM command not allowed").reason, CommandError::kOom);
  EXPECT_EQ(ReadNodeError("READONLY You can't write").reason, CommandError::kReadonly);
  EXPECT_EQ(ReadNodeError("NOPERM this user").reason, CommandError::kAuth);
  const auto hint = [](std::string_view text) { return ReadNodeError(text).hint; };
  EXPECT_THAT(hint("NOPERM this user has no permissions to run the 'script|load' command"),
              HasSubstr("grant it +script|load "));
  EXPECT_THAT(hint("ERR ACL failure in script: User x has no permissions to run the 'get' command"),
              HasSubstr("grant it +get "));
  EXPECT_THAT(
      hint("NOPERM this user has no permissions to access one of the keys used as arguments"),
      HasSubstr("grant it ~fencepost:* "));
  EXPECT_EQ(ReadNodeError("ERR something else").reason, CommandError::kOther);
}

TEST(NodeError, ShowsNothingOfWhatTheNodeRepeatsOfTheCall) {
  EXPECT_EQ(
      ReadNodeError("ERR unknown command 'AUTH', with args beginning with: 'bob' 's3cret' ").text,
      "ERR unknown command 'AUTH'");
  EXPECT_EQ(ReadNodeError("WRONGPASS invalid username-password pair").text,
            "WRONGPASS invalid username-password pair");
}

}  // namespace
}  // namespace fencepost::locking
