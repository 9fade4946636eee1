// Between the rounds: how often, how long, and what ends a wait early.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/model/core/transcript.h"

namespace fencepost::locking {
namespace {

using namespace std::chrono_literals;

constexpr Token kRival{~std::uint64_t{0} >> 1};

// All nodes say that one rival holds the name.
void Contend(Transcript& s) {
  s.Send();
  for (auto& at : s.out) {
    const auto node = static_cast<char>('a' + (&at - s.out.data()));
    while (!at.empty()) s.Answer(node, {.code = ReplyCode::kContended, .token = kRival});
  }
}

// The time until the core asks again; negative when it never does.
Nanos PassToRound(Transcript& s) {
  const Instant began = s.now.boot;
  while (s.Send() != "a:acquire b:acquire c:acquire") {
    if (s.core.NextTime() - began > 1h) return Nanos(-1);
    s.now.boot = std::max(s.now.boot, s.core.NextTime());
    s.core.OnTime(s.now);
  }
  return s.now.boot - began;
}

TEST(Tries, LimitTheRoundsWhereThereIsNoWait) {
  Transcript s;
  s.AcquireAs({.name = "x", .tries = 3});
  for (int round = 1; round <= 2; ++round) {
    Contend(s);
    EXPECT_EQ(s.Events(), "round-failed:contended");
    s.PassToNext();
  }
  Contend(s);
  EXPECT_EQ(s.Events(), "gave-up:contended");
  EXPECT_EQ(s.Watched(), "");
}

TEST(Tries, AndWaitEndItWhicheverComesFirst) {
  const DelayPolicy delay{.first = 100ms, .most = 100ms, .jitter = false};
  for (const int tries : {2, 100}) {
    Transcript s;
    s.AcquireAs({.name = "x", .wait = 250ms, .tries = tries, .delay = delay});
    int rounds = 0;
    do {
      ++rounds;
      Contend(s);
      s.PassToNext();
    } while (s.Events() == "round-failed:contended");
    EXPECT_EQ(rounds, tries == 2 ? 2 : 4) << "at 0, 100, 200 and just before 250 ms";
  }
}

TEST(Tries, AreUsedUpWhereThereIsNoQuorumToAskButNotByAWaitForOne) {
  Transcript s(3, false);
  s.AcquireAs({.name = "x", .tries = 2});
  EXPECT_EQ(s.Events(), "round-failed:unavailable");
  s.PassToNext();
  EXPECT_EQ(s.Events(), "gave-up:unavailable");

  Transcript waiting(3, false);
  waiting.AcquireAs({.name = "x", .wait = 10s, .tries = 1});
  EXPECT_EQ(waiting.Events(), "");
  for (const char node : {'a', 'b', 'c'}) waiting.Connect(node);
  Contend(waiting);
  EXPECT_EQ(waiting.Events(), "gave-up:contended");
}

TEST(Tries, AreNotUsedUpByTheRepeatAfterAStaleFloor) {
  Transcript s;
  s.AcquireAs({.name = "x", .tries = 1});
  s.Send();
  s.Answer("abc", {.code = ReplyCode::kStale, .token = Token::AtWall(s.now.wall + 4s)});
  EXPECT_EQ(PassToRound(s), Nanos(0));
  s.Events();
  Contend(s);
  EXPECT_EQ(s.Events(), "gave-up:contended");
}

TEST(Delay, IsExactWithoutJitterAndGrowsToItsMost) {
  Transcript s;
  s.AcquireAs({.name = "x",
               .wait = Millis::max(),
               .delay = {.first = 40ms, .most = 200ms, .multiplier = 1.5, .jitter = false}});
  for (const Nanos delay : {40ms, 60ms, 90ms, 135ms, 200ms, 200ms}) {
    Contend(s);
    EXPECT_EQ(PassToRound(s), delay);
  }
}

TEST(Delay, IsDrawnFromNothingToItsLengthWithJitter) {
  Transcript s;
  s.AcquireAs({.name = "x",
               .wait = Millis::max(),
               .delay = {.first = 50ms, .most = 50ms, .multiplier = 1}});
  Nanos longest{0};
  Nanos shortest{1h};
  for (int round = 0; round < 100; ++round) {
    Contend(s);
    const Nanos delay = PassToRound(s);
    longest = std::max(longest, delay);
    shortest = std::min(shortest, delay);
  }
  EXPECT_LE(longest, 50ms);
  EXPECT_GT(longest, 45ms);
  EXPECT_LT(shortest, 5ms);
}

TEST(MinValidity, IsTheAttemptsOwn) {
  for (const Millis least : {Millis(-1), Millis(500), Millis(9500)}) {
    Transcript s;  // 10 s, of which 2 s must be left
    s.AcquireAs({.name = "x", .min_validity = least});
    s.Send();
    s.Pass(7s);
    s.AnswerAll(ReplyCode::kGranted);
    EXPECT_EQ(s.Events(), least == Millis(9500) ? "gave-up:too-late" : "leased");
    Transcript later;
    later.AcquireAs({.name = "x", .min_validity = least});
    later.Send();
    later.Pass(9s);
    later.AnswerAll(ReplyCode::kGranted);
    EXPECT_EQ(later.Events(), least == Millis(500) ? "leased" : "gave-up:too-late");
  }
}

TEST(Drift, IsTakenOffTheValidity) {
  LockOptions options;
  options.drift_factor = 0.25;
  Transcript s(3, true, options);
  const Instant began = s.now.boot;
  const LockId lock = s.Lease();
  EXPECT_EQ(s.core.ValidUntil(lock), began + 7500ms - 2ms);
}

using Lease = ThreeNodes;

TEST_F(Lease, IsNotExtendedByHandOnceItsTimeIsOver) {  // 6
  const LockId lock = s.Lease();
  s.Pass(s.options.ttl);
  s.core.ExtendNow(lock, s.now);
  EXPECT_EQ(s.Events(), "lost:expired");
  EXPECT_EQ(s.Send(), "") << "the nodes must not keep others out for it";
}

// --- waking ------------------------------------------------------------------------------------

LockOptions WakeUp() {
  LockOptions options;
  options.wake_up = true;
  return options;
}

constexpr DelayPolicy kLong{.first = 20s, .most = 20s, .jitter = false};
constexpr Nanos kSoon = 4ms;  // four round trips, as long as none was measured

TEST(WakeUp, WatchesANameFromTheFirstBackOffToTheLease) {
  Transcript s(3, true, WakeUp());
  s.AcquireAs({.name = "x", .wait = Millis::max(), .delay = kLong});
  EXPECT_EQ(s.Watched(), "");
  Contend(s);
  EXPECT_EQ(s.Watched(), "+x");
  s.PassToNext();
  Contend(s);
  EXPECT_EQ(s.Watched(), "") << "once";
  s.PassToNext();
  s.Send();
  s.AnswerAll(ReplyCode::kGranted);
  EXPECT_EQ(s.Watched(), "-x");
}

TEST(WakeUp, EndsWithTheWaitHoweverItEnds) {
  Transcript s(3, true, WakeUp());
  const LockId cancelled = s.AcquireAs({.name = "x", .wait = Millis::max()});
  Contend(s);
  s.core.Cancel(cancelled, s.now);
  EXPECT_EQ(s.Watched(), "+x -x");
  s.AcquireAs({.name = "x", .wait = 1s, .delay = kLong});
  Contend(s);
  s.Events();
  EXPECT_GT(PassToRound(s), 0ms);
  Contend(s);
  EXPECT_EQ(s.Events(), "gave-up:contended");
  EXPECT_EQ(s.Watched(), "+x -x");
}

TEST(WakeUp, BeginsARoundSoonAfterAQuorumOfNodesHasTold) {
  Transcript s(5, true, WakeUp());
  s.AcquireAs({.name = "x", .wait = Millis::max(), .delay = kLong});
  Contend(s);
  const Instant poll = s.core.NextTime();
  s.core.OnFreed(0, "x", s.now);
  s.core.OnFreed(4, "x", s.now);
  s.core.OnFreed(4, "x", s.now);
  s.core.OnFreed(1, "y", s.now);
  EXPECT_EQ(s.core.NextTime(), poll) << "two of five, however often";
  s.core.OnFreed(2, "x", s.now);
  EXPECT_LE(s.core.NextTime(), s.now.boot + kSoon);
  const Instant soon = s.core.NextTime();
  s.core.OnFreed(3, "x", s.now);
  EXPECT_EQ(s.core.NextTime(), soon) << "once";
}

TEST(WakeUp, CountsWhatWasToldWhileTheRoundWasOut) {
  Transcript s(3, true, WakeUp());
  s.AcquireAs({.name = "x", .wait = Millis::max(), .delay = kLong});
  Contend(s);
  s.PassToNext();
  s.core.OnFreed(0, "x", s.now);
  s.core.OnFreed(1, "x", s.now);
  Contend(s);
  EXPECT_LE(s.core.NextTime(), s.now.boot + kSoon);
  PassToRound(s);
  Contend(s);
  EXPECT_GT(s.core.NextTime(), s.now.boot + kSoon) << "news counts for one round";
}

TEST(WakeUp, SpreadsSeveralWaitersOfOneName) {
  Transcript s(1, true, WakeUp());
  constexpr int kWaiters = 20;
  for (int i = 0; i < kWaiters; ++i) {
    s.AcquireAs({.name = "x", .wait = Millis::max(), .delay = kLong});
  }
  for (int i = 0; i < kWaiters; ++i) Contend(s);
  EXPECT_EQ(s.Watched(), "+x");
  s.core.OnFreed(0, "x", s.now);
  int rounds = 0;
  const Instant told = s.now.boot;
  std::set<Instant> begun;
  while (rounds < kWaiters) {
    s.now.boot = std::max(s.now.boot, s.core.NextTime());
    ASSERT_LE(s.now.boot, told + kWaiters * kSoon);
    s.core.OnTime(s.now);
    std::vector<Op> ops;
    rounds += static_cast<int>(s.core.TakeBatch(0, ops));
    begun.insert(s.now.boot);
  }
  EXPECT_GE(begun.size(), kWaiters / 2U);
}

TEST(Wait, IsUsedToItsEndByALastRoundWhereTheDelayIsLonger) {
  for (const bool wakes : {false, true}) {
    Transcript s(3, true, wakes ? WakeUp() : LockOptions{});
    s.AcquireAs({.name = "x", .wait = 1s, .delay = kLong});
    Contend(s);
    EXPECT_EQ(s.Events(), "round-failed:contended");
    const Nanos asked_after = PassToRound(s);
    EXPECT_LT(asked_after, 1s);
    EXPECT_GT(asked_after, 900ms);
    EXPECT_EQ(s.Events(), "");
    s.Answer("abc", {.code = ReplyCode::kContended});
    EXPECT_EQ(s.Events(), "gave-up:contended");
  }
}

TEST(WakeUp, ComesBeforeTheLastRoundOfTheWaitAndLeavesItOne) {
  Transcript s(3, true, WakeUp());
  s.AcquireAs({.name = "x", .wait = 1s, .delay = kLong});
  Contend(s);
  s.Pass(500ms);
  s.core.OnFreed(0, "x", s.now);
  s.core.OnFreed(1, "x", s.now);
  EXPECT_LT(PassToRound(s), 100ms);
  s.Answer("abc", {.code = ReplyCode::kContended, .token = kRival});
  EXPECT_EQ(s.Events(), "round-failed:contended round-failed:contended");
  EXPECT_GT(PassToRound(s), 300ms);
}

TEST(WakeUp, IsNotAskedForWhereItIsNotWanted) {
  Transcript s;
  s.AcquireAs({.name = "x", .wait = Millis::max()});
  Contend(s);
  EXPECT_EQ(s.Watched(), "");
}

TEST(WakeUp, IsOwedByACancelledLeaseTooButNotByAnAttempt) {
  Transcript s(3, true, WakeUp());
  s.core.Cancel(s.Lease(), s.now);
  EXPECT_EQ(s.Send(), "a:release b:release c:release");
  s.AnswerAll(ReplyCode::kFreed);
  EXPECT_EQ(s.Events(), "");
  const LockId lock = s.AcquireAs({.name = "y", .wait = Millis::max()});
  s.Send();
  s.Answer('a', ReplyCode::kGranted);
  s.core.Cancel(lock, s.now);
  EXPECT_EQ(s.Send(), "a:abort");
}

}  // namespace
}  // namespace fencepost::locking
