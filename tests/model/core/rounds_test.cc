// From the first try to a lease, or to having left nothing behind. Numbers are PROTOCOL.md's.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/model/core/transcript.h"

namespace fencepost::locking {
namespace {

Instant EndOf(const Transcript& s, Instant started) {
  return started + s.options.ttl - s.options.Drift(s.options.ttl);
}

TEST(Acquire, IsLeasedByAQuorumOfTheConfiguredNodes) {  // 5
  Transcript s(5);
  const LockId lock = s.Acquire("x");
  EXPECT_EQ(s.Send(), "a:acquire b:acquire c:acquire d:acquire e:acquire");
  s.Answer('a', ReplyCode::kGranted);
  s.Answer('b', ReplyCode::kGranted);
  EXPECT_EQ(s.Events(), "");
  EXPECT_FALSE(s.core.Valid(lock, s.now));
  s.Answer('e', ReplyCode::kGranted);
  EXPECT_EQ(s.Events(), "leased");
  EXPECT_TRUE(s.core.Valid(lock, s.now));
}

TEST(Acquire, WaitsUntilAQuorumIsConnected) {
  Transcript s(3, false);
  s.Connect('b');
  s.Acquire("x", Millis::max());
  EXPECT_EQ(s.Send(), "");
  s.Connect('c');
  EXPECT_EQ(s.Send(), "b:acquire c:acquire");
}

TEST(Acquire, DoesNotCountAGrantOfANodeInQuarantine) {  // 12
  Transcript s(3, false);
  s.Connect('a');
  s.Connect('b');
  s.Connect('c', true);
  s.Acquire("x");
  EXPECT_EQ(s.Send(), "a:acquire b:acquire c:acquire");
  s.Answer('a', ReplyCode::kGranted);
  s.Answer('c', {.code = ReplyCode::kGranted, .quarantined = true});
  EXPECT_EQ(s.Events(), "");
  s.Answer('b', {.code = ReplyCode::kContended, .token = Token(~std::uint64_t{0} >> 1)});
  EXPECT_EQ(s.Send(), "a:abort c:abort");
}

TEST(Acquire, ReckonsValidityFromBeforeTheTokenWasDrawn) {  // 4
  Transcript s;
  const Instant started = s.now.boot;
  const LockId lock = s.Acquire("x");
  s.Send();
  s.Pass(Millis(3000));
  s.Answer('a', ReplyCode::kGranted);
  s.Pass(Millis(2000));
  s.Answer('b', ReplyCode::kGranted);
  EXPECT_EQ(s.Events(), "leased");
  EXPECT_EQ(s.core.ValidUntil(lock), EndOf(s, started));
}

TEST(Acquire, GivesAWinBackThatCameTooLate) {
  Transcript s;
  s.Acquire("x");
  s.Send();
  s.Pass(s.options.ttl - s.options.min_validity);
  s.Answer('a', ReplyCode::kGranted);
  s.Answer('b', ReplyCode::kGranted);
  EXPECT_EQ(s.Events(), "gave-up:too-late");
  EXPECT_EQ(s.Send(), "a:abort b:abort");
  s.Answer('c', ReplyCode::kGranted);
  EXPECT_EQ(s.Send(), "c:abort") << "behind its acquire";
}

TEST(Acquire, AbortsWhereItWasGrantedAndWhereNobodyAnswered) {  // 7
  Transcript s;
  s.Acquire("x", Millis::max());
  s.Send();
  const Nonce nonce = s.Out('a').nonce;
  s.Answer('a', ReplyCode::kGranted);
  s.Answer('b', {.code = ReplyCode::kContended, .token = Token(~std::uint64_t{0} >> 1)});
  s.Answer('c', ReplyCode::kTimeout);
  EXPECT_EQ(s.Events(), "round-failed:contended");
  EXPECT_EQ(s.Send(), "a:abort c:abort");
  EXPECT_EQ(s.Out('a').nonce, nonce);
  EXPECT_EQ(s.Out('c').nonce, nonce);
}

TEST(Acquire, TellsWhatTheNodesSaidLastWhenItsLastRoundAloneGetsNoAnswer) {
  const auto last_answer = [](ReplyCode code) {
    Transcript s;
    s.Acquire("x", Millis(60'000));
    s.Send();
    for (const char node : {'a', 'b', 'c'}) {
      s.Answer(node, {.code = ReplyCode::kContended, .token = Token(~std::uint64_t{0} >> 1)});
    }
    EXPECT_EQ(s.Events(), "round-failed:contended");
    s.PassToNext();
    EXPECT_EQ(s.Send(), "a:acquire b:acquire c:acquire");
    s.Pass(Millis(60'000));  // as by SIGSTOP
    s.AnswerAll(code);
    return s.Events();
  };
  EXPECT_EQ(last_answer(ReplyCode::kTimeout), "gave-up:contended");
  EXPECT_EQ(last_answer(ReplyCode::kConnection), "gave-up:unavailable");
}

TEST(Acquire, DrawsANewTokenAndNonceForEveryRound) {
  Transcript s;
  s.Acquire("x", Millis::max());
  s.Send();
  const Op first = s.Out('a');
  s.AnswerAll(ReplyCode::kTimeout);
  s.Send();
  s.AnswerAll(ReplyCode::kExpired);
  s.PassToNext();
  EXPECT_EQ(s.Send(), "a:acquire b:acquire c:acquire");
  EXPECT_GT(s.Out('a').token, first.token);
  EXPECT_NE(s.Out('a').nonce, first.nonce);
}

TEST(Acquire, HearsNothingOfARoundThatHasEnded) {  // 6
  Transcript s;
  const LockId lock = s.Acquire("x", Millis::max());
  s.Send();
  const Token rival(~std::uint64_t{0} >> 1);
  s.Answer('a', {.code = ReplyCode::kContended, .token = rival});
  s.Answer('b', {.code = ReplyCode::kContended, .token = rival});
  EXPECT_EQ(s.Events(), "round-failed:contended");
  s.Answer('c', ReplyCode::kGranted);
  EXPECT_EQ(s.Events(), "");
  EXPECT_FALSE(s.core.Valid(lock, s.now));
  EXPECT_EQ(s.Send(), "c:abort");
}

TEST(Acquire, EndsAtTheFirstDoneWithItsTokenAndChecksum) {  // 11
  Transcript s;
  s.Acquire("x");
  s.Send();
  s.Answer('a', ReplyCode::kGranted);
  s.Answer('b', {.code = ReplyCode::kDone, .token = Token(5), .crc = 77});
  ASSERT_EQ(s.core.events().size(), 1u);
  EXPECT_EQ(s.core.events()[0].token, Token(5));
  EXPECT_EQ(s.core.events()[0].crc, 77u);
  EXPECT_EQ(s.Events(), "done");
  EXPECT_EQ(s.Send(), "a:abort");
}

TEST(Acquire, LiftsItsClockOverAStaleFloorAndTriesAgainAtOnce) {  // 9
  Transcript s;
  s.Acquire("x", Millis::max());
  s.Send();
  const Token floor = Token::AtWall(s.now.wall + Millis(4000));
  for (const char node : {'a', 'b', 'c'}) {
    s.Answer(node, {.code = ReplyCode::kStale, .token = floor});
  }
  EXPECT_EQ(s.Events(), "round-failed:stale");
  s.core.OnTime(s.now);
  EXPECT_EQ(s.Send(), "a:acquire b:acquire c:acquire");
  EXPECT_GT(s.Out('a').token, floor);
}

TEST(Acquire, LeavesOutANodeWhoseFloorIsNotBelievable) {  // 9
  Transcript s;
  s.Acquire("x", Millis::max());
  s.Send();
  const Token floor = Token::AtWall(s.now.wall + s.options.max_skew + Millis(1000));
  s.Answer('a', {.code = ReplyCode::kStale, .token = floor});
  s.Answer('b', ReplyCode::kTimeout);
  s.Answer('c', ReplyCode::kTimeout);
  s.Send();
  s.AnswerAll(ReplyCode::kExpired);
  s.PassToNext();
  EXPECT_EQ(s.Send(), "b:acquire c:acquire");
  EXPECT_LT(s.Out('b').token, floor);
}

TEST(Acquire, DrawsNoTokenAfterFloorsThatAreNotBelievable) {  // 9
  Transcript s;
  s.Acquire("x", Millis::max());
  s.Send();
  const Token floor = Token::AtWall(s.now.wall + s.options.max_skew + Millis(1000));
  for (const char node : {'a', 'b', 'c'}) {
    s.Answer(node, {.code = ReplyCode::kStale, .token = floor});
  }
  s.core.OnTime(s.now);
  s.Acquire("y");
  s.Send();
  for (const char node : {'a', 'b', 'c'}) {
    ASSERT_FALSE(s.out[static_cast<std::size_t>(node - 'a')].empty());
    for (const Op& op : s.out[static_cast<std::size_t>(node - 'a')]) {
      EXPECT_LE(op.token, Token::AtWall(s.now.wall + Millis(1))) << op.name;
    }
  }
}

TEST(Acquire, StopsAskingWhenAMajorityRefusesItsClock) {
  Transcript s;
  s.Acquire("x", Millis::max());
  s.Send();
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

TEST(Acquire, GoesOnOnceItsOwnClockThatWasAheadIsFixed) {
  Transcript s;
  const Millis ahead(3'600'000);
  s.now.wall += ahead;
  s.Acquire("x", Millis::max());
  s.Send();
  s.AnswerAll(ReplyCode::kRefusedAhead);
  EXPECT_FALSE(s.core.Available());
  s.now.wall -= ahead;
  s.Pass(Millis(1'100));
  s.core.OnTime(s.now);  // the nodes' clocks, as the store has seen them, agree
  EXPECT_TRUE(s.core.Available());
  EXPECT_EQ(s.Send(), "a:acquire b:acquire c:acquire");
  EXPECT_EQ(s.Out('a').token.wall(), s.now.wall);
}

TEST(Acquire, IsToldThatItsClockIsOffWhereItWasSteppedBackWrongly) {
  Transcript s;
  s.Lease();
  s.now.wall -= Millis(3'600'000);
  s.Acquire("y", Millis::max());
  s.Send();
  s.AnswerAll(ReplyCode::kRefusedBehind);
  EXPECT_FALSE(s.core.Available());
}

TEST(Acquire, WinsAnEvenSplitByAskingAgain) {
  Transcript s;
  s.Acquire("x");
  s.Send();
  s.Answer('a', ReplyCode::kGranted);
  s.Answer('b', {.code = ReplyCode::kContended, .token = Token(1)});
  s.Answer('c', {.code = ReplyCode::kContended, .token = Token(2)});
  EXPECT_EQ(s.Events(), "") << "it has the highest token: the others give way";
  s.PassToNext();
  EXPECT_EQ(s.Send(), "b:acquire c:acquire");
  s.Answer('c', ReplyCode::kGranted);
  EXPECT_EQ(s.Events(), "leased");
}

TEST(Acquire, GivesWayInAnEvenSplitToAHigherToken) {
  Transcript s;
  s.Acquire("x");
  s.Send();
  s.Answer('a', ReplyCode::kGranted);
  s.Answer('b', {.code = ReplyCode::kContended, .token = Token(1)});
  s.Answer('c', {.code = ReplyCode::kContended, .token = Token(~std::uint64_t{0} >> 1)});
  EXPECT_EQ(s.Events(), "gave-up:contended");
  EXPECT_EQ(s.Send(), "a:abort");
}

TEST(Cancel, LeavesNothingBehindAndSaysNothing) {  // 7
  Transcript s;
  const LockId lock = s.Acquire("x", Millis::max());
  s.Send();
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

TEST(PendingAbort, IsToldByTheNextConnection) {  // 7
  Transcript s;
  const LockId lock = s.Acquire("x", Millis::max());
  s.Send();
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

TEST(PendingAbort, IsThatOfEveryRoundThatAStalledNodeHasNotHeardTheEndOf) {
  Transcript s(1);
  s.Acquire("x", Millis::max());
  s.Send();
  const Nonce first = s.Out('a').nonce;
  s.core.OnStalled(0, true, s.now);
  s.Answer('a', ReplyCode::kTimeout);  // it may hold it, from when it goes on
  for (int round = 0; round < 3; ++round) s.PassToNext();
  s.core.OnDisconnected(0, s.now);
  s.Connect('a');
  s.Send();
  ASSERT_FALSE(s.out[0].empty());
  EXPECT_EQ(s.Out('a').kind, OpKind::kAbort);
  EXPECT_EQ(s.Out('a').nonce, first);
}

TEST(PendingAbort, IsThatOfALeaseTooAndNeverThatOfALaterRound) {
  Transcript s;
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

TEST(StalledNode, FailsWhatMustNotComeLateAndKeepsWhatFrees) {
  Transcript s;
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

TEST(StalledNode, IsToldOfMoreFreesThanItsQueueHolds) {  // 7
  Transcript s(1);
  StallWithFrees(s, 66'000);
  s.core.OnStalled(0, false, s.now);
  EXPECT_EQ(FreesSent(s), 66'000u);
}

class Notes : public LockObserver {
 public:
  void OnNote(Severity, std::string_view event, std::string_view) override {
    if (event == "redis_frees_dropped") ++dropped;
  }
  int dropped = 0;
};

TEST(StalledNode, IsOwedABoundedNumberOfFreesAndTheLogSaysThatTheOldestWereDropped) {
  Notes notes;
  Transcript s(1, true, {}, &notes);
  StallWithFrees(s, 2 * 65'536);
  EXPECT_EQ(notes.dropped, 0);
  s.core.OnDisconnected(0, s.now);  // what was queued is owed now, too
  EXPECT_EQ(notes.dropped, 1) << "once, not for each";
  s.Connect('a');
  EXPECT_EQ(FreesSent(s), 65'536u);
}

TEST(StalledNode, SlowsNoLockThatTheOthersGrant) {
  Transcript s;
  s.core.OnStalled(2, true, s.now);
  s.Acquire("x");
  EXPECT_EQ(s.Send(), "a:acquire b:acquire");
  s.AnswerAll(ReplyCode::kGranted);
  EXPECT_EQ(s.Events(), "leased");
}

}  // namespace
}  // namespace fencepost::locking
