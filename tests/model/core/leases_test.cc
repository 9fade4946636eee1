// Leases: how they are kept, how they are lost, how they end. Numbers are PROTOCOL.md's.
#include <gtest/gtest.h>

#include "tests/model/core/transcript.h"

namespace fencepost::locking {
namespace {

TEST(Watchdog, ExtendsAtAThirdOfTheTtlFromBeforeItsRound) {  // 4
  Transcript s;
  const LockId lock = s.Lease();
  const Instant leased = s.now.boot;
  while (s.now.boot < leased + s.options.ttl / 3) s.PassToNext();
  const Instant sent = s.now.boot;
  EXPECT_EQ(s.Send(), "a:extend b:extend c:extend");
  s.Pass(Millis(500));
  s.Answer('a', ReplyCode::kExtended);
  const Instant first_end = s.core.ValidUntil(lock);
  s.Answer('b', ReplyCode::kExtended);
  EXPECT_LT(first_end, s.core.ValidUntil(lock)) << "only a quorum moves it";
  EXPECT_EQ(s.core.ValidUntil(lock), sent + s.options.ttl - s.options.Drift(s.options.ttl));
}

TEST(Watchdog, IsSilentWhereItIsNotWanted) {
  Transcript s;
  s.Lease(false);
  const Instant leased = s.now.boot;
  while (s.now.boot < leased + s.options.ttl / 2) s.PassToNext();
  EXPECT_EQ(s.Send(), "");
}

TEST(Lease, EndsByItsOwnClockWithoutHearingFromAnyNode) {
  Transcript s;
  const LockId lock = s.Lease();
  s.Pass(s.core.ValidUntil(lock) - s.now.boot - Nanos(1));
  EXPECT_TRUE(s.core.Valid(lock, s.now));
  s.Pass(Nanos(1));
  EXPECT_FALSE(s.core.Valid(lock, s.now));
  s.core.OnTime(s.now);
  EXPECT_EQ(s.Events(), "lost:expired");
}

TEST(Lease, NeverComesBackOnceItIsLost) {  // 6
  Transcript s;
  const LockId lock = s.Lease();
  s.core.ExtendNow(lock, s.now);
  s.Send();
  s.Pass(s.options.ttl);
  s.core.OnTime(s.now);
  EXPECT_EQ(s.Events(), "lost:expired");
  s.AnswerAll(ReplyCode::kExtended);
  EXPECT_EQ(s.Events(), "");
  EXPECT_FALSE(s.core.Valid(lock, s.now));
}

TEST(Lease, IsNotKeptByAnAnswerThatComesAfterItsOwnEnd) {  // 6
  Transcript s;
  const LockId lock = s.Lease();
  s.Pass(s.options.ttl / 2);
  s.core.ExtendNow(lock, s.now);
  s.Send();
  s.Pass(s.options.ttl / 2);
  s.AnswerAll(ReplyCode::kExtended);  // nobody had told the core yet that time had passed
  EXPECT_EQ(s.Events(), "lost:expired");
  EXPECT_EQ(s.core.held(), 0u);
}

TEST(Lease, IsFilledWhereItWasNotGrantedAndFillingLengthensNothing) {  // 8
  Transcript s;
  const LockId lock = s.Acquire("x");
  s.Send();
  s.Answer('a', ReplyCode::kGranted);
  s.Answer('b', ReplyCode::kGranted);
  s.Answer('c', ReplyCode::kTimeout);
  s.Events();
  const Instant end = s.core.ValidUntil(lock);
  s.Pass(Millis(100));
  s.core.ExtendNow(lock, s.now);
  EXPECT_EQ(s.Send(), "a:extend b:extend c:fill");
  s.Answer('c', ReplyCode::kFilled);
  s.Answer('a', ReplyCode::kExtended);
  EXPECT_EQ(s.core.ValidUntil(lock), end) << "one extension and one fill are no quorum";
  s.Answer('b', ReplyCode::kNoSentinel);
  EXPECT_EQ(s.core.ValidUntil(lock), end);
  s.core.ExtendNow(lock, s.now);
  EXPECT_EQ(s.Send(), "a:extend b:fill c:extend") << "what was gone is never extended";
}

TEST(Lease, IsLostAtOnceWhenNoQuorumOfNodesHasKeptIt) {  // 6, 8
  using enum ReplyCode;
  const auto round = [](Transcript& s, LockId lock, std::initializer_list<Reply> replies) {
    s.core.ExtendNow(lock, s.now);
    const std::string sent = s.Send();
    char node = 'a';
    for (const Reply& reply : replies) s.Answer(node++, reply);
    return sent + " | " + s.Events();
  };
  const Reply extended{.code = kExtended}, expired{.code = kExpired}, timeout{.code = kTimeout};
  {
    Transcript s;
    EXPECT_EQ(round(s, s.Lease(), {extended, expired, expired}),
              "a:extend b:extend c:extend | lost:node-wiped");
  }
  {  // in two rounds: b may have lacked it while a did
    Transcript s;
    const LockId lock = s.Lease();
    EXPECT_EQ(round(s, lock, {expired, timeout, extended}), "a:extend b:extend c:extend | ");
    EXPECT_EQ(round(s, lock, {{.code = kFilled}, expired, extended}),
              "a:fill b:extend c:extend | lost:node-wiped");
  }
  {  // an extension that counted lies between
    Transcript s;
    const LockId lock = s.Lease();
    EXPECT_EQ(round(s, lock, {expired, extended, extended}), "a:extend b:extend c:extend | ");
    EXPECT_EQ(round(s, lock, {{.code = kFilled}, extended, extended}),
              "a:fill b:extend c:extend | ");
    EXPECT_EQ(round(s, lock, {extended, expired, extended}), "a:extend b:extend c:extend | ");
    EXPECT_TRUE(s.core.Valid(lock, s.now));
  }
  {  // b is silent: it may have lacked it, too, before a was filled
    Transcript s;
    const LockId lock = s.Lease();
    EXPECT_EQ(round(s, lock, {expired, timeout, extended}), "a:extend b:extend c:extend | ");
    EXPECT_EQ(round(s, lock, {{.code = kFilled}, timeout, extended}),
              "a:fill b:extend c:extend | ");
    const Instant end = s.core.ValidUntil(lock);
    s.Pass(Millis(100));
    EXPECT_EQ(round(s, lock, {extended, timeout, extended}), "a:extend b:extend c:extend | ");
    EXPECT_EQ(s.core.ValidUntil(lock), end) << "filled since";
    EXPECT_EQ(round(s, lock, {extended, extended, extended}), "a:extend b:extend c:extend | ");
    EXPECT_GT(s.core.ValidUntil(lock), end);
  }
  {  // wiped nodes keep others out
    Transcript s;
    const LockId lock = s.Lease();
    const Reply quarantined{.code = kExpired, .quarantined = true};
    EXPECT_EQ(round(s, lock, {extended, {.code = kNoSentinel}, quarantined}),
              "a:extend b:extend c:extend | ");
    EXPECT_TRUE(s.core.Valid(lock, s.now));
  }
}

TEST(Lease, CountsTheRepliesOfOneExtensionRoundOnly) {  // 5, 6
  Transcript s;
  const LockId lock = s.Lease();
  const Instant end = s.core.ValidUntil(lock);
  s.Pass(Millis(100));
  s.core.ExtendNow(lock, s.now);
  s.Send();
  const Op old = s.Out('a');
  s.Answer('a', ReplyCode::kExtended);
  s.Answer('b', ReplyCode::kTimeout);
  s.Answer('c', ReplyCode::kTimeout);
  s.Pass(Millis(100));
  s.core.ExtendNow(lock, s.now);
  s.Send();
  EXPECT_NE(s.Out('a').round, old.round);
  s.Answer('b', ReplyCode::kExtended);
  EXPECT_EQ(s.core.ValidUntil(lock), end);
  s.Answer('a', ReplyCode::kExtended);
  EXPECT_GT(s.core.ValidUntil(lock), end);
}

TEST(Lease, IsNotExtendedByALateAnswerToAnEarlierRound) {  // 6
  Transcript s;
  const LockId lock = s.Lease();
  s.Pass(Millis(100));
  s.core.ExtendNow(lock, s.now);
  s.Send();
  s.Answer('a', ReplyCode::kExtended);
  s.Answer('b', ReplyCode::kExtended);
  const Instant end = s.core.ValidUntil(lock);
  s.Pass(Millis(100));
  s.core.ExtendNow(lock, s.now);
  EXPECT_EQ(s.Send(), "a:extend b:extend");
  s.Answer('c', ReplyCode::kExtended);
  s.Answer('a', ReplyCode::kExtended);
  EXPECT_EQ(s.core.ValidUntil(lock), end) << "c has not been asked in this round yet";
  s.Answer('b', ReplyCode::kExtended);
  EXPECT_GT(s.core.ValidUntil(lock), end);
}

TEST(Lease, IsLostAtOnceWhenOthersHoldSoMuchThatNoQuorumIsLeft) {
  Transcript s;
  const LockId lock = s.Lease();
  s.core.ExtendNow(lock, s.now);
  s.Send();
  s.Answer('a', ReplyCode::kStolen);
  s.Answer('b', ReplyCode::kStolen);
  s.Answer('c', ReplyCode::kExtended);
  EXPECT_EQ(s.Events(), "lost:stolen");
}

TEST(Lease, IsDroppedForADoneHeardBeforeTheEffectAndKeptFromTheWriteOn) {  // 11
  for (const Phase phase : {Phase::kHandling, Phase::kWriting}) {
    Transcript s;
    const LockId lock = s.Acquire("x");
    s.Send();
    s.Answer('a', ReplyCode::kGranted);
    s.Answer('b', ReplyCode::kGranted);
    EXPECT_EQ(s.Events(), "leased");
    s.core.SetPhase(lock, phase);
    s.Answer('c', {.code = ReplyCode::kDone, .token = Token(5), .crc = 1});
    EXPECT_EQ(s.Events(), phase == Phase::kHandling ? "done" : "");
    EXPECT_EQ(s.core.Valid(lock, s.now), phase == Phase::kWriting);
  }
}

TEST(Lease, FreesWhatWasStillOnItsWayWhenItWasLost) {  // 7
  Transcript s;
  s.Acquire("x", Millis(0), false);
  s.Send();
  s.Answer('a', ReplyCode::kGranted);
  s.Answer('b', ReplyCode::kGranted);
  s.Events();
  s.Pass(s.options.ttl);
  s.core.OnTime(s.now);
  EXPECT_EQ(s.Events(), "lost:expired");
  EXPECT_EQ(s.Send(), "") << "the nodes keep others out for as long as they promised";
  s.Answer('c', ReplyCode::kGranted);
  EXPECT_EQ(s.Send(), "c:abort");
}

// --- release ------------------------------------------------------------------------------------

std::string Release(std::array<ReplyCode, 3> codes) {
  Transcript s;
  const LockId lock = s.Lease();
  s.core.Release(lock, s.now);
  EXPECT_FALSE(s.core.Valid(lock, s.now));
  EXPECT_EQ(s.Send(), "a:release b:release c:release");
  s.Answer('a', codes[0]);
  s.Answer('b', codes[1]);
  s.Answer('c', codes[2]);
  return s.Events();
}

TEST(Release, TellsHowItWent) {
  using enum ReplyCode;
  EXPECT_EQ(Release({kFreed, kTimeout, kFreed}), "released:released");
  EXPECT_EQ(Release({kStolen, kStolen, kFreed}), "released:stolen");
  EXPECT_EQ(Release({kExpired, kExpired, kFreed}), "released:expired");
  EXPECT_EQ(Release({kFreed, kTimeout, kConnection}), "released:unknown");
}

TEST(Release, IsSettledOnceAQuorumIsFreeButNotBeforeAllAnsweredOtherwise) {
  Transcript s;
  s.core.Release(s.Lease(), s.now);
  s.Send();
  s.Answer('a', ReplyCode::kFreed);
  EXPECT_EQ(s.Events(), "");
  s.Answer('b', ReplyCode::kFreed);
  EXPECT_EQ(s.Events(), "released:released");
  s.Answer('c', ReplyCode::kStolen);
  EXPECT_EQ(s.Events(), "");
}

TEST(Release, FollowsAFillThatIsStillOnItsWay) {  // 7
  Transcript s;
  const LockId lock = s.Acquire("x");
  s.Send();
  s.Answer('a', ReplyCode::kGranted);
  s.Answer('b', ReplyCode::kGranted);
  s.Answer('c', ReplyCode::kTimeout);
  s.Events();
  s.core.ExtendNow(lock, s.now);
  s.Send();
  s.core.Release(lock, s.now);
  s.Answer('c', ReplyCode::kFilled);
  EXPECT_EQ(s.Send(), "c:release");
}

// --- done ---------------------------------------------------------------------------------------

TEST(Done, IsCompletedByAMajorityOfMarks) {
  Transcript s;
  const LockId lock = s.Lease();
  s.core.Done(lock, 9, Millis(60'000), s.now);
  EXPECT_EQ(s.Send(), "a:done b:done c:done");
  EXPECT_EQ(s.Out('a').crc, 9u);
  EXPECT_EQ(s.Out('a').ttl, Millis(60'000));
  s.Answer('a', ReplyCode::kMarked);
  EXPECT_EQ(s.Events(), "");
  s.Answer('b', ReplyCode::kAlreadyDone);
  EXPECT_EQ(s.Events(), "completed");
}

TEST(Done, TellsWhenNoMajorityHasTheMark) {
  Transcript s;
  const LockId lock = s.Lease();
  s.core.Done(lock, 9, Millis(60'000), s.now);
  s.Send();
  s.Answer('a', ReplyCode::kMarked);
  s.Answer('b', ReplyCode::kTimeout);
  s.Answer('c', ReplyCode::kConnection);
  EXPECT_EQ(s.Events(), "completed:no-majority");
}

// --- promises seen broken ------------------------------------------------------------------------

class Violations : public ::testing::Test {
 protected:
  // An extension hears this of nodes a, b and c: who holds the name there.
  std::optional<Invariant> Hear(std::initializer_list<Reply> replies) {
    s.core.ExtendNow(s.Lease(), s.now);
    s.Send();
    char node = 'a';
    for (const Reply& reply : replies) s.Answer(node++, reply);
    for (const LockEvent& event : s.core.events()) {
      if (event.kind == LockEvent::Kind::kLost) return event.broken;
    }
    ADD_FAILURE() << "the lease was not lost";
    return std::nullopt;
  }
  static Reply By(std::uint64_t rival, bool quarantined = false) {
    return {.code = ReplyCode::kStolen, .quarantined = quarantined, .token = Token(rival)};
  }
  Transcript s;
};

TEST_F(Violations, AnotherWithAQuorumBeforeTheLeaseEndsIsADoubleGrant) {  // 1
  EXPECT_EQ(Hear({{.code = ReplyCode::kExtended}, By(7), By(7)}), Invariant::kDoubleGrant);
}

TEST_F(Violations, TwoOthersWithoutAQuorumAreNone) {
  EXPECT_EQ(Hear({{.code = ReplyCode::kExtended}, By(7), By(8)}), std::nullopt);
}

TEST_F(Violations, WhatANodeGaveInQuarantineIsNone) {  // 12
  EXPECT_EQ(Hear({{.code = ReplyCode::kExtended}, By(7), By(7, true)}), std::nullopt);
}

TEST_F(Violations, DoneMarksAreNone) {
  const LockId lock = s.Lease();
  s.core.SetPhase(lock, Phase::kWriting);
  s.core.ExtendNow(lock, s.now);
  s.Send();
  s.AnswerAll(ReplyCode::kDone);
  ASSERT_EQ(s.core.events().size(), 1u);
  EXPECT_EQ(s.core.events()[0].broken, std::nullopt);
}

TEST_F(Violations, ATokenNotAboveThatOfAnEarlierHolderHasRegressed) {  // 2
  for (const bool above : {true, false}) {
    const std::uint64_t later = Token::AtWall(s.now.wall + Millis(60'000)).value();
    s.Acquire("x", Millis(5000));
    s.Send();
    for (const char node : {'a', 'b'}) {
      s.Answer(node, {.code = ReplyCode::kContended, .token = Token(above ? 7 : later)});
    }
    if (!s.out[2].empty()) s.Answer('c', {.code = ReplyCode::kContended, .token = Token(9)});
    for (int i = 0; i < 20 && s.out[0].empty(); ++i) {
      s.Send();
      if (!s.out[0].empty() && s.Out('a').kind == OpKind::kAcquire) break;
      s.AnswerAll(ReplyCode::kExpired);
      s.PassToNext();
    }
    s.AnswerAll(ReplyCode::kGranted);
    bool leased = false;
    for (const LockEvent& event : s.core.events()) {
      if (event.kind != LockEvent::Kind::kLeased) continue;
      leased = true;
      EXPECT_EQ(event.broken.has_value(), !above);
      EXPECT_EQ(event.rival, above ? Token() : Token(later));
    }
    EXPECT_TRUE(leased);
    s.Events();
  }
}

}  // namespace
}  // namespace fencepost::locking
