// Leases: how they are kept, how they are lost, how they end. Numbers are PROTOCOL.md's.
#include <gtest/gtest.h>

#include "tests/model/core/transcript.h"

namespace fencepost::locking {
namespace {

using Watchdog = ThreeNodes;
using Lease = ThreeNodes;
using Release = ThreeNodes;
using Done = ThreeNodes;

TEST_F(Watchdog, ExtendsAtAThirdOfTheTtlFromBeforeItsRound) {  // 4
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

TEST_F(Watchdog, IsSilentWhereItIsNotWanted) {
  s.Lease(false);
  const Instant leased = s.now.boot;
  while (s.now.boot < leased + s.options.ttl / 2) s.PassToNext();
  EXPECT_EQ(s.Send(), "");
}

TEST_F(Lease, EndsByItsOwnClockWithoutHearingFromAnyNode) {
  const LockId lock = s.Lease();
  s.Pass(s.core.ValidUntil(lock) - s.now.boot - Nanos(1));
  EXPECT_TRUE(s.core.Valid(lock, s.now));
  s.Pass(Nanos(1));
  EXPECT_FALSE(s.core.Valid(lock, s.now));
  s.core.OnTime(s.now);
  EXPECT_EQ(s.Events(), "lost:expired");
}

TEST_F(Lease, NeverComesBackOnceItIsLost) {  // 6
  const LockId lock = s.Lease();
  s.Extend(lock);
  s.Pass(s.options.ttl);
  s.core.OnTime(s.now);
  EXPECT_EQ(s.Events(), "lost:expired");
  s.AnswerAll(ReplyCode::kExtended);
  EXPECT_EQ(s.Events(), "");
  EXPECT_FALSE(s.core.Valid(lock, s.now));
}

TEST_F(Lease, IsNotKeptByAnAnswerThatComesAfterItsOwnEnd) {  // 6
  const LockId lock = s.Lease();
  s.Pass(s.options.ttl / 2);
  s.Extend(lock);
  s.Pass(s.options.ttl / 2);
  s.AnswerAll(ReplyCode::kExtended);  // nobody had told the core yet that time had passed
  EXPECT_EQ(s.Events(), "lost:expired");
  EXPECT_EQ(s.core.held(), 0u);
}

TEST_F(Lease, IsFilledWhereItWasNotGrantedAndFillingLengthensNothing) {  // 8
  const LockId lock = s.Ask("x");
  s.Answer("ab", ReplyCode::kGranted);
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

TEST_F(Lease, IsLostAtOnceWhenNoQuorumOfNodesHasKeptIt) {  // 6, 8
  using enum ReplyCode;
  const auto round = [](Transcript& t, LockId lock, std::initializer_list<Reply> replies) {
    t.core.ExtendNow(lock, t.now);
    const std::string sent = t.Send();
    char node = 'a';
    for (const Reply& reply : replies) t.Answer(node++, reply);
    return sent + " | " + t.Events();
  };
  const Reply extended{.code = kExtended}, expired{.code = kExpired}, timeout{.code = kTimeout};
  {
    Transcript t;
    EXPECT_EQ(round(t, t.Lease(), {extended, expired, expired}),
              "a:extend b:extend c:extend | lost:node-wiped");
  }
  {  // in two rounds: b may have lacked it while a did
    Transcript t;
    const LockId lock = t.Lease();
    EXPECT_EQ(round(t, lock, {expired, timeout, extended}), "a:extend b:extend c:extend | ");
    EXPECT_EQ(round(t, lock, {{.code = kFilled}, expired, extended}),
              "a:fill b:extend c:extend | lost:node-wiped");
  }
  {  // an extension that counted lies between
    Transcript t;
    const LockId lock = t.Lease();
    EXPECT_EQ(round(t, lock, {expired, extended, extended}), "a:extend b:extend c:extend | ");
    EXPECT_EQ(round(t, lock, {{.code = kFilled}, extended, extended}),
              "a:fill b:extend c:extend | ");
    EXPECT_EQ(round(t, lock, {extended, expired, extended}), "a:extend b:extend c:extend | ");
    EXPECT_TRUE(t.core.Valid(lock, t.now));
  }
  {  // b is silent: it may have lacked it, too, before a was filled
    Transcript t;
    const LockId lock = t.Lease();
    EXPECT_EQ(round(t, lock, {expired, timeout, extended}), "a:extend b:extend c:extend | ");
    EXPECT_EQ(round(t, lock, {{.code = kFilled}, timeout, extended}),
              "a:fill b:extend c:extend | ");
    const Instant end = t.core.ValidUntil(lock);
    t.Pass(Millis(100));
    EXPECT_EQ(round(t, lock, {extended, timeout, extended}), "a:extend b:extend c:extend | ");
    EXPECT_EQ(t.core.ValidUntil(lock), end) << "filled since";
    EXPECT_EQ(round(t, lock, {extended, extended, extended}), "a:extend b:extend c:extend | ");
    EXPECT_GT(t.core.ValidUntil(lock), end);
  }
  {  // wiped nodes keep others out
    Transcript t;
    const LockId lock = t.Lease();
    const Reply quarantined{.code = kExpired, .quarantined = true};
    EXPECT_EQ(round(t, lock, {extended, {.code = kNoSentinel}, quarantined}),
              "a:extend b:extend c:extend | ");
    EXPECT_TRUE(t.core.Valid(lock, t.now));
  }
}

TEST_F(Lease, CountsTheRepliesOfOneExtensionRoundOnly) {  // 5, 6
  const LockId lock = s.Lease();
  const Instant end = s.core.ValidUntil(lock);
  s.Pass(Millis(100));
  s.Extend(lock);
  const Op old = s.Out('a');
  s.Answer('a', ReplyCode::kExtended);
  s.Answer("bc", ReplyCode::kTimeout);
  s.Pass(Millis(100));
  s.Extend(lock);
  EXPECT_NE(s.Out('a').round, old.round);
  s.Answer('b', ReplyCode::kExtended);
  EXPECT_EQ(s.core.ValidUntil(lock), end);
  s.Answer('a', ReplyCode::kExtended);
  EXPECT_GT(s.core.ValidUntil(lock), end);
}

TEST_F(Lease, IsNotExtendedByALateAnswerToAnEarlierRound) {  // 6
  const LockId lock = s.Lease();
  s.Pass(Millis(100));
  s.Extend(lock);
  s.Answer("ab", ReplyCode::kExtended);
  const Instant end = s.core.ValidUntil(lock);
  s.Pass(Millis(100));
  s.core.ExtendNow(lock, s.now);
  EXPECT_EQ(s.Send(), "a:extend b:extend");
  s.Answer("ca", ReplyCode::kExtended);
  EXPECT_EQ(s.core.ValidUntil(lock), end) << "c has not been asked in this round yet";
  s.Answer('b', ReplyCode::kExtended);
  EXPECT_GT(s.core.ValidUntil(lock), end);
}

TEST_F(Lease, IsLostAtOnceWhenOthersHoldSoMuchThatNoQuorumIsLeft) {
  const LockId lock = s.Lease();
  s.Extend(lock);
  s.Answer("ab", ReplyCode::kStolen);
  s.Answer('c', ReplyCode::kExtended);
  EXPECT_EQ(s.Events(), "lost:stolen");
}

TEST_F(Lease, IsDroppedForADoneHeardBeforeTheEffectAndKeptFromTheWriteOn) {  // 11
  for (const Phase phase : {Phase::kHandling, Phase::kWriting}) {
    Transcript t;
    const LockId lock = t.Ask("x");
    t.Answer("ab", ReplyCode::kGranted);
    EXPECT_EQ(t.Events(), "leased");
    t.core.SetPhase(lock, phase);
    t.Answer('c', {.code = ReplyCode::kDone, .token = Token(5), .crc = 1});
    EXPECT_EQ(t.Events(), phase == Phase::kHandling ? "done" : "");
    EXPECT_EQ(t.core.Valid(lock, t.now), phase == Phase::kWriting);
  }
}

TEST_F(Lease, FreesWhatWasStillOnItsWayWhenItWasLost) {  // 7
  s.Ask("x", Millis(0), false);
  s.Answer("ab", ReplyCode::kGranted);
  s.Events();
  s.Pass(s.options.ttl);
  s.core.OnTime(s.now);
  EXPECT_EQ(s.Events(), "lost:expired");
  EXPECT_EQ(s.Send(), "") << "the nodes keep others out for as long as they promised";
  s.Answer('c', ReplyCode::kGranted);
  EXPECT_EQ(s.Send(), "c:abort");
}

// --- release ------------------------------------------------------------------------------------

std::string Released(std::array<ReplyCode, 3> codes) {
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

TEST_F(Release, TellsHowItWent) {
  using enum ReplyCode;
  EXPECT_EQ(Released({kFreed, kTimeout, kFreed}), "released:released");
  EXPECT_EQ(Released({kStolen, kStolen, kFreed}), "released:stolen");
  EXPECT_EQ(Released({kExpired, kExpired, kFreed}), "released:expired");
  EXPECT_EQ(Released({kFreed, kTimeout, kConnection}), "released:unknown");
}

TEST_F(Release, IsSettledOnceAQuorumIsFreeButNotBeforeAllAnsweredOtherwise) {
  s.core.Release(s.Lease(), s.now);
  s.Send();
  s.Answer('a', ReplyCode::kFreed);
  EXPECT_EQ(s.Events(), "");
  s.Answer('b', ReplyCode::kFreed);
  EXPECT_EQ(s.Events(), "released:released");
  s.Answer('c', ReplyCode::kStolen);
  EXPECT_EQ(s.Events(), "");
}

TEST_F(Release, FollowsAFillThatIsStillOnItsWay) {  // 7
  const LockId lock = s.Ask("x");
  s.Answer("ab", ReplyCode::kGranted);
  s.Answer('c', ReplyCode::kTimeout);
  s.Events();
  s.Extend(lock);
  s.core.Release(lock, s.now);
  s.Answer('c', ReplyCode::kFilled);
  EXPECT_EQ(s.Send(), "c:release");
}

// --- done ---------------------------------------------------------------------------------------

TEST_F(Done, IsCompletedByAMajorityOfMarks) {
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

TEST_F(Done, TellsWhenNoMajorityHasTheMark) {
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
    s.Extend(s.Lease());
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
  s.Extend(lock);
  s.AnswerAll(ReplyCode::kDone);
  ASSERT_EQ(s.core.events().size(), 1u);
  EXPECT_EQ(s.core.events()[0].broken, std::nullopt);
}

TEST_F(Violations, ATokenNotAboveThatOfAnEarlierHolderHasRegressed) {  // 2
  for (const bool above : {true, false}) {
    const std::uint64_t later = Token::AtWall(s.now.wall + Millis(60'000)).value();
    s.Ask("x", Millis(5000));
    s.Answer("ab", {.code = ReplyCode::kContended, .token = Token(above ? 7 : later)});
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
