// An acquire asks a quorum first, and the others where that cannot decide it, or is late. Numbers
// are PROTOCOL.md's.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "tests/model/core/transcript.h"

namespace fencepost::locking {
namespace {

constexpr Token kHigh(~std::uint64_t{0} >> 1);

struct Seen : LockObserver {
  std::vector<Invariant> broken;
  std::vector<std::string> notes;
  void OnInvariant(Invariant invariant) override { broken.push_back(invariant); }
  void OnNote(Severity, std::string_view event, std::string_view) override {
    notes.emplace_back(event);
  }
};

class AQuorumFirst : public ::testing::Test {
 protected:
  explicit AQuorumFirst(int nodes = 5) : s(nodes, true, {}, &seen, Contact::kQuorum) {}

  std::string Others(const std::string& nodes) {
    std::string others;
    for (const char node : std::string("abcde")) {
      if (nodes.find(node) == std::string::npos) others += node;
    }
    return others;
  }
  std::string Begin() {
    lock = s.Ask("x", Millis(0));
    return s.Asked();
  }
  static std::string All(std::string_view what, const std::string& nodes) {
    std::string text;
    for (const char node : nodes) {
      if (!text.empty()) text += ' ';
      text += node;
      text += ':';
      text += what;
    }
    return text;
  }

  Seen seen;
  Transcript s;
  LockId lock;
};

TEST_F(AQuorumFirst, IsAllThatIsAskedWhereItGrants) {
  const std::string first = Begin();
  ASSERT_EQ(first.size(), 3u);
  s.Answer(first, ReplyCode::kGranted);
  EXPECT_EQ(s.Events(), "leased");
  EXPECT_EQ(s.Send(), "");
  s.core.Release(lock, s.now);
  EXPECT_EQ(s.Send(), All("release", first));
  s.AnswerAll(ReplyCode::kFreed);
  EXPECT_EQ(s.Events(), "released:released");
}

TEST_F(AQuorumFirst, IsAskedWhereMoreThanAFewLocksAreAtWork) {
  Transcript t(5, true, {}, nullptr, Contact::kQuorum, 3);
  const auto nodes_asked = [&t](const std::string& name) {
    t.Acquire(name);
    const std::string sent = t.Send();
    t.AnswerAll(ReplyCode::kGranted);
    return std::ranges::count(sent, ':');
  };
  const LockId first = t.Ask("a");
  t.AnswerAll(ReplyCode::kGranted);
  EXPECT_EQ(nodes_asked("b"), 5);
  EXPECT_EQ(nodes_asked("c"), 5);
  EXPECT_EQ(nodes_asked("d"), 3);
  t.core.Leave(first, t.now);
  EXPECT_EQ(nodes_asked("e"), 3) << "b, c and d are held";
}

TEST_F(AQuorumFirst, IsTheSameForEveryClientAndSpreadOverAllNodes) {
  Transcript other(5, true, {}, nullptr, Contact::kQuorum);
  other.random = 12345;
  std::map<char, int> asked;
  for (int i = 0; i < 1000; ++i) {
    const std::string name = "fencepost:{orders}:o-" + std::to_string(i);
    s.Acquire(name);
    other.Acquire(name);
    const std::string sent = s.Send();
    ASSERT_EQ(sent, other.Send());
    for (const char node : s.Asked()) ++asked[node];
    s.AnswerAll(ReplyCode::kGranted);
    other.AnswerAll(ReplyCode::kGranted);
  }
  for (const char node : std::string("abcde")) {
    EXPECT_GT(asked[node], 500) << node;
    EXPECT_LT(asked[node], 700) << node;
  }
}

TEST_F(AQuorumFirst, IsFollowedByTheRestAtOnceWhereANodeIsInDoubt) {
  using enum ReplyCode;
  const Reply doubts[] = {{.code = kStale, .token = Token(5)},
                          {.code = kRefusedAhead},
                          {.code = kRefusedBehind},
                          {.code = kForeign},
                          {.code = kNoSentinel},
                          {.code = kError},
                          {.code = kConnection},
                          {.code = kTimeout},
                          {.code = kGranted, .quarantined = true},
                          {.code = kGrantedTakeover, .quarantined = true}};
  for (const Reply& doubt : doubts) {
    Transcript t(5, true, {}, nullptr, Contact::kQuorum);
    t.Ask("x");
    const std::string first = t.Asked();
    const std::string rest = Others(first);
    const Op op = t.Out(first[0]);
    t.Answer(first[0], doubt);
    EXPECT_EQ(t.Send(), All("acquire", rest)) << static_cast<int>(doubt.code);
    EXPECT_EQ(t.Out(rest[0]).nonce, op.nonce);
    EXPECT_EQ(t.Out(rest[0]).token, op.token);
    EXPECT_EQ(t.Out(rest[0]).round, op.round);
    t.Answer(first[1], kGranted);
    t.Answer(rest[0], kGranted);
    EXPECT_EQ(t.Events(), "") << "two of five";
    t.Answer(rest[1], kGranted);
    EXPECT_EQ(t.Events(), "leased");
  }
}

TEST_F(AQuorumFirst, DecidesAloneThatARivalHasTheName) {
  const std::string first = Begin();
  s.Answer(first, {.code = ReplyCode::kContended, .token = kHigh});
  EXPECT_EQ(s.Events(), "gave-up:contended");
  EXPECT_EQ(s.Send(), "") << "nobody else was asked, and nothing stands anywhere";
}

TEST_F(AQuorumFirst, IsFollowedByTheRestWhereItIsSplit) {
  const std::string first = Begin();
  s.Answer(first[0], {.code = ReplyCode::kContended, .token = Token(7)});
  EXPECT_EQ(s.Send(), "") << "it may be that all three are the rival's";
  s.Answer(first[1], ReplyCode::kGranted);
  const std::string rest = Others(first);
  EXPECT_EQ(s.Send(), All("acquire", rest));
  s.Answer(first[2], {.code = ReplyCode::kContended, .token = Token(7)});
  s.Answer(rest[0], {.code = ReplyCode::kContended, .token = Token(7)});
  EXPECT_EQ(s.Events(), "gave-up:contended") << "three of five are one rival's";
  EXPECT_EQ(s.Send(), std::string(1, first[1]) + ":abort");
  s.Answer(rest[1], ReplyCode::kGranted);
  EXPECT_EQ(s.Send(), std::string(1, rest[1]) + ":abort") << "behind its acquire";
}

TEST_F(AQuorumFirst, IsAskedAgainInAnEvenSplitLikeAllNodes) {
  const std::string first = Begin();
  const std::string rest = Others(first);
  s.Answer(first[0], {.code = ReplyCode::kContended, .token = Token(7)});
  s.Answer(first[1], ReplyCode::kGranted);
  s.Answer(first[2], ReplyCode::kGranted);
  s.Send();
  s.Answer(rest[0], {.code = ReplyCode::kContended, .token = Token(9)});
  s.Answer(rest[1], ReplyCode::kTimeout);
  EXPECT_EQ(s.Events(), "");
  s.PassToNext();
  std::string again{first[0], rest[0]};
  std::sort(again.begin(), again.end());
  EXPECT_EQ(s.Send(), All("acquire", again));
  s.Answer(first[0], ReplyCode::kGranted);
  EXPECT_EQ(s.Events(), "leased");
}

TEST_F(AQuorumFirst, IsNotWaitedForLongerThanIsUsual) {  // 4
  const Instant started = s.now.boot;
  const std::string first = Begin();
  const std::string rest = Others(first);
  s.Answer(first[0], ReplyCode::kGranted);
  s.Answer(first[1], ReplyCode::kGranted);
  s.PassToNext();
  EXPECT_EQ(s.Send(), All("acquire", rest));
  EXPECT_LT(s.now.boot - started, s.options.node_timeout);
  s.Answer(rest[0], ReplyCode::kGranted);
  EXPECT_EQ(s.Events(), "leased");
  EXPECT_EQ(s.core.ValidUntil(lock), started + s.options.ttl - s.options.Drift(s.options.ttl))
      << "from before the token was drawn, whenever a node was asked";
  s.Answer(rest[1], ReplyCode::kGranted);
  s.core.Release(lock, s.now);
  EXPECT_EQ(s.Send(), All("release", [&] {
              std::string held = rest + first.substr(0, 2);
              std::sort(held.begin(), held.end());
              return held;
            }()));
  s.Answer(first[2], ReplyCode::kGranted);
  EXPECT_EQ(s.Send(), std::string(1, first[2]) + ":release") << "behind its acquire";
}

TEST_F(AQuorumFirst, IsAloneWhereAllNodesAreLateTogetherUntilOneTimesOut) {
  constexpr std::size_t kLocks = 100;
  const auto operations = [this] {
    std::vector<Op> ops;
    for (NodeIndex node = 0; node < 5; ++node) {
      while (s.core.TakeBatch(node, ops) > 0) continue;
    }
    return ops.size();
  };
  for (std::size_t i = 0; i < kLocks; ++i) s.Acquire("x" + std::to_string(i));
  EXPECT_EQ(operations(), 3 * kLocks);
  s.PassToNext();
  EXPECT_EQ(operations(), 2 * 64) << "a few";
  s.PassToNext();
  EXPECT_EQ(operations(), 0);
  for (NodeIndex node = 0; node < 2; ++node) s.core.OnStalled(node, true, s.now);
  s.PassToNext();
  EXPECT_GT(operations(), 0) << "those that wait for the stalled ones";
}

TEST_F(AQuorumFirst, IsOfOthersThanASlowNodeWhichIsToldOnceItLasts) {
  const char slow = Begin().front();
  const auto tell = [&] {
    s.core.OnTime(s.now);
    return std::ranges::count(seen.notes, "redis_node_slow");
  };
  for (int cycle = 0; cycle < 20; ++cycle) {
    if (cycle > 0) Begin();
    const std::string asked = s.Asked();
    for (const char node : asked) {
      if (node != slow) s.Answer(node, ReplyCode::kGranted);
    }
    s.Pass(Millis(cycle < 10 ? 0 : 100));
    if (asked.find(slow) != std::string::npos) s.Answer(slow, ReplyCode::kGranted);
    s.core.Release(lock, s.now);
    s.Send();
    s.AnswerAll(ReplyCode::kFreed);
    s.Events();
  }
  EXPECT_EQ(Begin().find(slow), std::string::npos);
  s.Answer(s.Asked(), ReplyCode::kGranted);
  EXPECT_EQ(tell(), 0) << "a moment is nothing";
  s.Pass(std::chrono::seconds(10));
  EXPECT_EQ(tell(), 1);
  EXPECT_EQ(tell(), 1);
}

TEST_F(AQuorumFirst, TellsOfNoNodeThatWasAwayAsSlow) {
  s.core.OnStalled(0, true, s.now);
  s.Pass(std::chrono::seconds(11));
  s.core.OnStalled(0, false, s.now);
  EXPECT_EQ(std::ranges::count(seen.notes, "redis_node_slow"), 0);
}

TEST_F(AQuorumFirst, LeavesOutNodesThatAreAwayInQuarantineOrStalled) {
  s.core.OnDisconnected(0, s.now);
  s.core.OnStalled(1, true, s.now);
  for (int i = 0; i < 20; ++i) {
    s.Acquire("name " + std::to_string(i));
    s.Send();
    EXPECT_EQ(s.Asked(), "cde");
    s.AnswerAll(ReplyCode::kGranted);
  }
}

TEST_F(AQuorumFirst, IsEveryNodeThereIsWhereNoQuorumIsGood) {
  for (const char node : std::string("cde")) s.Connect(node, true);
  // The store has no quorum then, and acquires wait; but one that began just before asks all.
  EXPECT_FALSE(s.core.Available());
  Transcript t(5, true, {}, nullptr, Contact::kQuorum);
  for (const NodeIndex node : {0, 1, 2}) t.core.OnStalled(node, true, t.now);
  t.Acquire("x");
  EXPECT_EQ(t.Send(), "d:acquire e:acquire") << "the others have failed: they are stalled";
}

TEST_F(AQuorumFirst, IsMarkedDoneOnAllNodes) {  // 16: a mark is memory
  const std::string first = Begin();
  s.Answer(first, ReplyCode::kGranted);
  s.core.Done(lock, 1, Millis(60'000), s.now);
  EXPECT_EQ(s.Send(), "a:done b:done c:done d:done e:done");
}

TEST_F(AQuorumFirst, IsFilledUpToAllNodesByTheFirstExtension) {  // 8
  const std::string first = Begin();
  s.Answer(first, ReplyCode::kGranted);
  const Instant leased = s.now.boot;
  while (s.now.boot < leased + s.options.ttl / 3) s.PassToNext();
  s.Send();
  for (const char node : std::string("abcde")) {
    const bool held = first.find(node) != std::string::npos;
    EXPECT_EQ(s.Out(node).kind, held ? OpKind::kExtend : OpKind::kFill) << node;
  }
}

// Of a lease on exactly a quorum.
TEST_F(AQuorumFirst, KeepsItsLeaseWhereOneOfItsNodesDiesOrIsWipedBeforeTheFirstExtension) {
  for (const Reply& gone :
       {Reply{.code = ReplyCode::kTimeout}, Reply{.code = ReplyCode::kNoSentinel},
        Reply{.code = ReplyCode::kExpired, .quarantined = true}}) {
    Transcript t(5, true, {}, nullptr, Contact::kQuorum);
    const LockId held = t.Ask("x");
    t.AnswerAll(ReplyCode::kGranted);
    const Instant end = t.core.ValidUntil(held);
    t.Events();
    const auto round = [&](bool first_one) {
      while (t.Send().empty()) t.PassToNext();
      bool failed = false;
      for (char node = 'a'; node <= 'e'; ++node) {
        if (t.out[static_cast<std::size_t>(node - 'a')].empty()) continue;
        const bool fill = t.Out(node).kind == OpKind::kFill;
        const bool fails = first_one && !fill && !std::exchange(failed, true);
        t.Answer(node,
                 fails ? gone : Reply{.code = fill ? ReplyCode::kFilled : ReplyCode::kExtended});
      }
    };
    round(true);
    EXPECT_EQ(t.core.ValidUntil(held), end);
    round(false);
    EXPECT_GT(t.core.ValidUntil(held), end) << static_cast<int>(gone.code);
    EXPECT_EQ(t.Events(), "");
  }
}

// One node of the three forgot it without anybody knowing, and a rival got it and the other two.
TEST_F(AQuorumFirst, SeesByItsFillsThatAnotherHoldsAQuorumToo) {  // double_grant
  const std::string first = Begin();
  s.Answer(first, ReplyCode::kGranted);
  EXPECT_EQ(s.Events(), "leased");
  s.Extend(lock);
  s.Answer(first[0], ReplyCode::kExtended);
  s.Answer(first[1], ReplyCode::kExtended);
  s.Answer(first[2], {.code = ReplyCode::kStolen, .token = kHigh});
  EXPECT_EQ(s.Events(), "") << "one node of five";
  const std::string rest = Others(first);
  s.Answer(rest[0], {.code = ReplyCode::kContended, .token = kHigh});
  EXPECT_EQ(s.Events(), "");
  s.Answer(rest[1], {.code = ReplyCode::kContended, .token = kHigh});
  EXPECT_EQ(s.Events(), "lost:stolen");
  EXPECT_EQ(seen.broken, std::vector{Invariant::kDoubleGrant});
}

TEST_F(AQuorumFirst, KeepsALeaseThatAQuorumExtendsWhateverFillsFind) {
  const std::string first = Begin();
  s.Answer(first, ReplyCode::kGranted);
  s.Events();
  s.Extend(lock);
  s.Answer(Others(first), {.code = ReplyCode::kContended, .token = kHigh});
  s.AnswerAll(ReplyCode::kExtended);
  EXPECT_EQ(s.Events(), "");
  EXPECT_TRUE(s.core.Valid(lock, s.now));
}

TEST_F(AQuorumFirst, SeesATokenThatIsNotAboveThatOfAnEarlierHolder) {  // token_regressed
  lock = s.Ask("x", Millis::max());
  s.Answer(s.Asked(), {.code = ReplyCode::kContended, .token = kHigh});
  EXPECT_EQ(s.Events(), "round-failed:contended");
  s.PassToNext();
  s.Send();
  s.AnswerAll(ReplyCode::kGranted);
  EXPECT_EQ(s.Events(), "leased");
  EXPECT_EQ(seen.broken, std::vector{Invariant::kTokenRegressed});
}

TEST_F(AQuorumFirst, WakesAWaiterWhenItsNodesAreFreed) {
  LockOptions options;
  options.wake_up = true;
  Transcript t(5, true, options, nullptr, Contact::kQuorum);
  t.Ask("x", Millis(60'000));
  const std::string first = t.Asked();
  t.Answer(first, {.code = ReplyCode::kContended, .token = kHigh});
  EXPECT_EQ(t.Events(), "round-failed:contended");
  for (const char node : first) t.core.OnFreed(node - 'a', "x", t.now);
  EXPECT_LE(t.core.NextTime() - t.now.boot, Millis(5)) << "at four round trips";
}

// Operations that one lease costs: what keeps a node's work from creeping back.
TEST(Operations, OfOneCycleAreTwoAtEachNodeOfAQuorum) {
  for (const int nodes : {1, 3, 5, 7}) {
    Transcript s(nodes, true, {}, nullptr, Contact::kQuorum);
    int operations = 0;
    const auto answer = [&](ReplyCode code) {
      s.Send();
      for (const auto& at : s.out) operations += static_cast<int>(at.size());
      s.AnswerAll(code);
    };
    constexpr int kCycles = 100;
    for (int i = 0; i < kCycles; ++i) {
      const LockId lock = s.Acquire("x" + std::to_string(i));
      answer(ReplyCode::kGranted);
      s.core.Release(lock, s.now);
      answer(ReplyCode::kFreed);
      s.Pass(Millis(2));  // what was armed for the cycle is due, and does nothing
      s.core.OnTime(s.now);
    }
    EXPECT_EQ(operations, 2 * Quorum(nodes) * kCycles) << nodes << " nodes";
  }
}

// Virtual time: five nodes, of which one answers late, or not at all.
struct Measured {
  Nanos longest{0};
  Nanos whole{0};
  int operations = 0;
};
Measured Cycles(int cycles, Nanos usual, Nanos slow, bool dead) {
  Transcript s(5, true, {}, nullptr, Contact::kQuorum);
  Measured measured;
  std::array<Instant, 5> due{};
  const auto begun = s.now.boot;
  const auto run = [&](std::string_view until) {
    for (;;) {
      s.Send();
      for (std::size_t i = 0; i < 5; ++i) {
        if (s.out[i].empty())
          due[i] = Instant::max();
        else if (due[i] == Instant::max()) {
          measured.operations += static_cast<int>(s.out[i].size());
          due[i] =
              i == 2 ? (dead ? Instant::max() - Nanos(1) : s.now.boot + slow) : s.now.boot + usual;
        }
      }
      if (s.Events().find(until) != std::string::npos) return;
      const auto next = std::min_element(due.begin(), due.end());
      const Instant at = std::min(*next, s.core.NextTime());
      s.now.wall += std::chrono::floor<Millis>(at - s.now.boot);
      s.now.boot = std::max(s.now.boot, at);
      if (s.core.NextTime() <= s.now.boot) s.core.OnTime(s.now);
      const auto i = static_cast<std::size_t>(next - due.begin());
      if (*next > s.now.boot) continue;
      while (!s.out[i].empty()) {
        const OpKind kind = s.out[i].front().kind;
        s.Answer(static_cast<char>('a' + i),
                 kind == OpKind::kAcquire ? ReplyCode::kGranted : ReplyCode::kFreed);
      }
      due[i] = Instant::max();
    }
  };
  due.fill(Instant::max());
  for (int i = 0; i < cycles; ++i) {
    const Instant started = s.now.boot;
    const LockId lock = s.Acquire("name " + std::to_string(i));
    run("leased");
    measured.longest = std::max(measured.longest, s.now.boot - started);
    s.core.Release(lock, s.now);
    run("released");
  }
  measured.whole = s.now.boot - begun;
  return measured;
}

TEST(Operations, TakeAtMostATenthLongerWhereOneNodeIsSlowOrDead) {
  constexpr int kCycles = 2000;
  constexpr Nanos kUsual{Millis(1)};
  const Measured well = Cycles(kCycles, kUsual, kUsual, false);
  const Measured slow = Cycles(kCycles, kUsual, Millis(100), false);
  const Measured dead = Cycles(kCycles, kUsual, kUsual, true);
  EXPECT_EQ(well.operations, 6 * kCycles);
  EXPECT_LE(slow.whole, well.whole * 11 / 10);
  EXPECT_LE(dead.whole, well.whole * 11 / 10);
  EXPECT_LE(slow.operations, well.operations * 11 / 10);
  EXPECT_LE(dead.operations, well.operations * 11 / 10);
  EXPECT_LT(slow.longest, Millis(30));
}

}  // namespace
}  // namespace fencepost::locking
