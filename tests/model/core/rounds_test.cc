// From the first try to a lease, or to having left nothing behind. Numbers are PROTOCOL.md's.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/model/core/transcript.h"

namespace fencepost::locking {
namespace {

using Acquire = ThreeNodes;
using Cancel = ThreeNodes;
using PendingAbort = ThreeNodes;
using StalledNode = ThreeNodes;

TEST_F(Acquire, IsLeasedByAQuorumOfTheConfiguredNodes) {  // 5
  Transcript t(5);
  const LockId lock = t.Acquire("x");
  EXPECT_EQ(t.Send(), "a:acquire b:acquire c:acquire d:acquire e:acquire");
  t.Answer("ab", ReplyCode::kGranted);
  EXPECT_EQ(t.Events(), "");
  EXPECT_FALSE(t.core.Valid(lock, t.now));
  t.Answer('e', ReplyCode::kGranted);
  EXPECT_EQ(t.Events(), "leased");
  EXPECT_TRUE(t.core.Valid(lock, t.now));
}

TEST_F(Acquire, WaitsUntilAQuorumIsConnected) {
  Transcript t(3, false);
  t.Connect('b');
  t.Acquire("x", Millis::max());
  EXPECT_EQ(t.Send(), "");
  t.Connect('c');
  EXPECT_EQ(t.Send(), "b:acquire c:acquire");
}

TEST_F(Acquire, DoesNotCountAGrantOfANodeInQuarantine) {  // 12
  Transcript t(3, false);
  t.Connect('a');
  t.Connect('b');
  t.Connect('c', true);
  t.Acquire("x");
  EXPECT_EQ(t.Send(), "a:acquire b:acquire c:acquire");
  t.Answer('a', ReplyCode::kGranted);
  t.Answer('c', {.code = ReplyCode::kGranted, .quarantined = true});
  EXPECT_EQ(t.Events(), "");
  t.Answer('b', {.code = ReplyCode::kContended, .token = Token(~std::uint64_t{0} >> 1)});
  EXPECT_EQ(t.Send(), "a:abort c:abort");
}

TEST_F(Acquire, GivesAWinBackThatCameTooLate) {
  s.Ask("x");
  s.Pass(s.options.ttl - s.options.min_validity);
  s.Answer("ab", ReplyCode::kGranted);
  EXPECT_EQ(s.Events(), "gave-up:too-late");
  EXPECT_EQ(s.Send(), "a:abort b:abort");
  s.Answer('c', ReplyCode::kGranted);
  EXPECT_EQ(s.Send(), "c:abort") << "behind its acquire";
}

TEST_F(Acquire, AbortsWhereItWasGrantedAndWhereNobodyAnswered) {  // 7
  s.Ask("x", Millis::max());
  const Nonce nonce = s.Out('a').nonce;
  s.Answer('a', ReplyCode::kGranted);
  s.Answer('b', {.code = ReplyCode::kContended, .token = Token(~std::uint64_t{0} >> 1)});
  s.Answer('c', ReplyCode::kTimeout);
  EXPECT_EQ(s.Events(), "round-failed:contended");
  EXPECT_EQ(s.Send(), "a:abort c:abort");
  EXPECT_EQ(s.Out('a').nonce, nonce);
  EXPECT_EQ(s.Out('c').nonce, nonce);
}

TEST_F(Acquire, TellsWhatTheNodesSaidLastWhenItsLastRoundAloneGetsNoAnswer) {
  const auto last_answer = [](ReplyCode code) {
    Transcript t;
    t.Ask("x", Millis(60'000));
    t.Answer("abc", {.code = ReplyCode::kContended, .token = Token(~std::uint64_t{0} >> 1)});
    EXPECT_EQ(t.Events(), "round-failed:contended");
    t.PassToNext();
    EXPECT_EQ(t.Send(), "a:acquire b:acquire c:acquire");
    t.Pass(Millis(60'000));  // as by SIGSTOP
    t.AnswerAll(code);
    return t.Events();
  };
  EXPECT_EQ(last_answer(ReplyCode::kTimeout), "gave-up:contended");
  EXPECT_EQ(last_answer(ReplyCode::kConnection), "gave-up:unavailable");
}

TEST_F(Acquire, DrawsANewTokenAndNonceForEveryRound) {
  s.Ask("x", Millis::max());
  const Op first = s.Out('a');
  s.AnswerAll(ReplyCode::kTimeout);
  s.Send();
  s.AnswerAll(ReplyCode::kExpired);
  s.PassToNext();
  EXPECT_EQ(s.Send(), "a:acquire b:acquire c:acquire");
  EXPECT_GT(s.Out('a').token, first.token);
  EXPECT_NE(s.Out('a').nonce, first.nonce);
}

TEST_F(Acquire, HearsNothingOfARoundThatHasEnded) {  // 6
  const LockId lock = s.Ask("x", Millis::max());
  const Token rival(~std::uint64_t{0} >> 1);
  s.Answer("ab", {.code = ReplyCode::kContended, .token = rival});
  EXPECT_EQ(s.Events(), "round-failed:contended");
  s.Answer('c', ReplyCode::kGranted);
  EXPECT_EQ(s.Events(), "");
  EXPECT_FALSE(s.core.Valid(lock, s.now));
  EXPECT_EQ(s.Send(), "c:abort");
}

TEST_F(Acquire, EndsAtTheFirstDoneWithItsTokenAndChecksum) {  // 11
  s.Ask("x");
  s.Answer('a', ReplyCode::kGranted);
  s.Answer('b', {.code = ReplyCode::kDone, .token = Token(5), .crc = 77});
  ASSERT_EQ(s.core.events().size(), 1u);
  EXPECT_EQ(s.core.events()[0].token, Token(5));
  EXPECT_EQ(s.core.events()[0].crc, 77u);
  EXPECT_EQ(s.Events(), "done");
  EXPECT_EQ(s.Send(), "a:abort");
}

TEST_F(Acquire, LiftsItsClockOverAStaleFloorAndTriesAgainAtOnce) {  // 9
  s.Ask("x", Millis::max());
  const Token floor = Token::AtWall(s.now.wall + Millis(4000));
  s.Answer("abc", {.code = ReplyCode::kStale, .token = floor});
  EXPECT_EQ(s.Events(), "round-failed:stale");
  s.core.OnTime(s.now);
  EXPECT_EQ(s.Send(), "a:acquire b:acquire c:acquire");
  EXPECT_GT(s.Out('a').token, floor);
}

TEST_F(Acquire, LeavesOutANodeWhoseFloorIsNotBelievable) {  // 9
  s.Ask("x", Millis::max());
  const Token floor = Token::AtWall(s.now.wall + s.options.max_skew + Millis(1000));
  s.Answer('a', {.code = ReplyCode::kStale, .token = floor});
  s.Answer("bc", ReplyCode::kTimeout);
  s.Send();
  s.AnswerAll(ReplyCode::kExpired);
  s.PassToNext();
  EXPECT_EQ(s.Send(), "b:acquire c:acquire");
  EXPECT_LT(s.Out('b').token, floor);
}

TEST_F(Acquire, DrawsNoTokenAfterFloorsThatAreNotBelievable) {  // 9
  s.Ask("x", Millis::max());
  const Token floor = Token::AtWall(s.now.wall + s.options.max_skew + Millis(1000));
  s.Answer("abc", {.code = ReplyCode::kStale, .token = floor});
  s.core.OnTime(s.now);
  s.Ask("y");
  for (const char node : {'a', 'b', 'c'}) {
    ASSERT_FALSE(s.out[static_cast<std::size_t>(node - 'a')].empty());
    for (const Op& op : s.out[static_cast<std::size_t>(node - 'a')]) {
      EXPECT_LE(op.token, Token::AtWall(s.now.wall + Millis(1))) << op.name;
    }
  }
}

TEST_F(Acquire, StopsAskingWhenAMajorityRefusesItsClock) {
  s.Ask("x", Millis::max());
  s.AnswerAll(ReplyCode::kRefusedBehind);
  EXPECT_FALSE(s.core.Available());
  s.Pass(Millis(900));
  s.core.OnTime(s.now);
  EXPECT_EQ(s.Send(), "");
  s.Pass(Millis(200));
  s.core.OnTime(s.now);  // the nodes' clocks, as the store has seen them, agree
  EXPECT_TRUE(s.core.Available());
  EXPECT_EQ(s.Send(), "a:acquire b:acquire c:acquire");
}

TEST_F(Acquire, GoesOnOnceItsOwnClockThatWasAheadIsFixed) {
  const Millis ahead(3'600'000);
  s.now.wall += ahead;
  s.Ask("x", Millis::max());
  s.AnswerAll(ReplyCode::kRefusedAhead);
  EXPECT_FALSE(s.core.Available());
  s.now.wall -= ahead;
  s.Pass(Millis(1'100));
  s.core.OnTime(s.now);  // the nodes' clocks, as the store has seen them, agree
  EXPECT_TRUE(s.core.Available());
  EXPECT_EQ(s.Send(), "a:acquire b:acquire c:acquire");
  EXPECT_EQ(s.Out('a').token.wall(), s.now.wall);
}

TEST_F(Acquire, IsToldThatItsClockIsOffWhereItWasSteppedBackWrongly) {
  s.Lease();
  s.now.wall -= Millis(3'600'000);
  s.Ask("y", Millis::max());
  s.AnswerAll(ReplyCode::kRefusedBehind);
  EXPECT_FALSE(s.core.Available());
}

TEST_F(Acquire, WinsAnEvenSplitByAskingAgain) {
  s.Ask("x");
  s.Answer('a', ReplyCode::kGranted);
  s.Answer('b', {.code = ReplyCode::kContended, .token = Token(1)});
  s.Answer('c', {.code = ReplyCode::kContended, .token = Token(2)});
  EXPECT_EQ(s.Events(), "") << "it has the highest token: the others give way";
  s.PassToNext();
  EXPECT_EQ(s.Send(), "b:acquire c:acquire");
  s.Answer('c', ReplyCode::kGranted);
  EXPECT_EQ(s.Events(), "leased");
}

TEST_F(Acquire, AsksAgainSoonInAnEvenSplitHoweverOftenItHasLostBefore) {
  s.Ask("x", Millis::max());
  for (int round = 0; round < 8; ++round) {
    s.Answer("abc", {.code = ReplyCode::kContended, .token = Token(1)});
    while (s.Send() != "a:acquire b:acquire c:acquire") s.PassToNext();
  }
  s.Answer('a', ReplyCode::kGranted);
  s.Answer('b', {.code = ReplyCode::kContended, .token = Token(1)});
  s.Answer('c', {.code = ReplyCode::kContended, .token = Token(2)});
  const Instant split = s.now.boot;
  s.PassToNext();
  EXPECT_EQ(s.Send(), "b:acquire c:acquire");
  EXPECT_LE(s.now.boot - split, Millis(2));
}

TEST_F(Acquire, GivesWayInAnEvenSplitToAHigherToken) {
  s.Ask("x");
  s.Answer('a', ReplyCode::kGranted);
  s.Answer('b', {.code = ReplyCode::kContended, .token = Token(1)});
  s.Answer('c', {.code = ReplyCode::kContended, .token = Token(~std::uint64_t{0} >> 1)});
  EXPECT_EQ(s.Events(), "gave-up:contended");
  EXPECT_EQ(s.Send(), "a:abort");
}

TEST_F(Cancel, LeavesNothingBehindAndSaysNothing) {  // 7
  const LockId lock = s.Ask("x", Millis::max());
  s.Answer('a', ReplyCode::kGranted);
  s.core.Cancel(lock, s.now);
  EXPECT_EQ(s.Send(), "a:abort");
  s.Answer('b', ReplyCode::kGranted);
  s.Answer('c', ReplyCode::kTimeout);
  EXPECT_EQ(s.Send(), "b:abort c:abort");
  s.AnswerAll(ReplyCode::kFreed);
  EXPECT_EQ(s.Events(), "");
  EXPECT_EQ(s.core.held(), 0u);
}

// --- nodes that cannot be told -----------------------------------------------------------------

TEST_F(PendingAbort, IsToldByTheNextConnection) {  // 7
  const LockId lock = s.Ask("x", Millis::max());
  const Nonce nonce = s.Out('a').nonce;
  for (NodeIndex node = 0; node < 3; ++node) s.core.OnDisconnected(node, s.now);
  s.AnswerAll(ReplyCode::kConnection);  // the nodes had granted
  s.core.Cancel(lock, s.now);
  s.Connect('a');
  EXPECT_EQ(s.Send(), "a:abort");
  EXPECT_EQ(s.Out('a').nonce, nonce);
  s.core.OnDisconnected(0, s.now);
  s.AnswerAll(ReplyCode::kConnection);
  s.Connect('a');
  EXPECT_EQ(s.Send(), "a:abort") << "this one was not heard, either";
  s.Answer('a', ReplyCode::kFreed);
  s.Pass(s.options.ttl);
  s.Connect('b');
  EXPECT_EQ(s.Send(), "") << "its ttl has ended it";
}

TEST_F(PendingAbort, IsThatOfEveryRoundThatAStalledNodeHasNotHeardTheEndOf) {
  Transcript t(1);
  t.Ask("x", Millis::max());
  const Nonce first = t.Out('a').nonce;
  t.core.OnStalled(0, true, t.now);
  t.Answer('a', ReplyCode::kTimeout);  // it may hold it, from when it goes on
  for (int round = 0; round < 3; ++round) t.PassToNext();
  t.core.OnDisconnected(0, t.now);
  t.Connect('a');
  t.Send();
  ASSERT_FALSE(t.out[0].empty());
  EXPECT_EQ(t.Out('a').kind, OpKind::kAbort);
  EXPECT_EQ(t.Out('a').nonce, first);
}

TEST_F(PendingAbort, IsThatOfALeaseTooAndNeverThatOfALaterRound) {
  const LockId lock = s.Lease();
  s.core.OnDisconnected(0, s.now);
  s.core.Release(lock, s.now);
  EXPECT_EQ(s.Send(), "b:release c:release");
  s.AnswerAll(ReplyCode::kFreed);
  EXPECT_EQ(s.Events(), "released:released");
  s.Acquire("x");
  EXPECT_EQ(s.Send(), "b:acquire c:acquire");
  const Nonce later = s.Out('b').nonce;
  s.Connect('a');
  EXPECT_EQ(s.Send(), "a:abort");
  EXPECT_NE(s.Out('a').nonce, later);
}

TEST_F(StalledNode, FailsWhatMustNotComeLateAndKeepsWhatFrees) {
  const LockId lock = s.Lease();
  s.core.OnStalled(0, true, s.now);
  s.core.Release(lock, s.now);
  s.Acquire("y");
  EXPECT_EQ(s.Send(), "b:release,acquire c:release,acquire");
  for (const char node : {'b', 'c'}) {
    s.Answer(node, ReplyCode::kFreed);
    s.Answer(node, {.code = ReplyCode::kContended, .token = Token(9)});
  }
  EXPECT_EQ(s.Send(), "");
  s.core.OnStalled(0, false, s.now);
  EXPECT_EQ(s.Send(), "a:abort,release") << "an acquire of y may have reached it";
}

// Leases of so many names by the one node, which then stalls and is to free them all.
void StallWithFrees(Transcript& s, int names) {
  std::vector<LockId> locks;
  for (int i = 0; i < names; ++i) {
    locks.push_back(s.Acquire(std::to_string(i), Millis(0), false));
    if ((i + 1) % 512 != 0 && i + 1 != names) continue;
    s.Send();
    s.AnswerAll(ReplyCode::kGranted);
  }
  s.Events();
  s.core.OnStalled(0, true, s.now);
  for (const LockId lock : locks) s.core.Release(lock, s.now);
  s.Events();
}

std::size_t FreesSent(Transcript& s) {
  std::size_t sent = 0;
  while (!s.Send().empty()) {
    sent += s.out[0].size();
    s.AnswerAll(ReplyCode::kFreed);
  }
  return sent;
}

TEST_F(StalledNode, IsToldOfMoreFreesThanItsQueueHolds) {  // 7
  Transcript t(1);
  StallWithFrees(t, 66'000);
  t.core.OnStalled(0, false, t.now);
  EXPECT_EQ(FreesSent(t), 66'000u);
}

class Notes : public LockObserver {
 public:
  void OnNote(Severity, std::string_view event, std::string_view) override {
    if (event == "redis_frees_dropped") ++dropped;
  }
  int dropped = 0;
};

TEST_F(StalledNode, IsOwedABoundedNumberOfFreesAndTheLogSaysThatTheOldestWereDropped) {
  Notes notes;
  Transcript t(1, true, {}, &notes);
  StallWithFrees(t, 2 * 65'536);
  EXPECT_EQ(notes.dropped, 0);
  t.core.OnDisconnected(0, t.now);  // what was queued is owed now, too
  EXPECT_EQ(notes.dropped, 1) << "once, not for each";
  t.Connect('a');
  EXPECT_EQ(FreesSent(t), 65'536u);
}

TEST_F(StalledNode, SlowsNoLockThatTheOthersGrant) {
  s.core.OnStalled(2, true, s.now);
  s.Acquire("x");
  EXPECT_EQ(s.Send(), "a:acquire b:acquire");
  s.AnswerAll(ReplyCode::kGranted);
  EXPECT_EQ(s.Events(), "leased");
}

}  // namespace
}  // namespace fencepost::locking
