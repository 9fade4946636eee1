// Acquires by plain commands: when they are used, and what a node's answers make of them. The
// batches that hold them too. No server.
#include "locking/redis/node/plain_acquire.h"

#include <hiredis/hiredis.h>

#include <algorithm>
#include <array>
#include <deque>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "locking/redis/node/batch.h"

namespace fencepost::locking {
namespace {

using Fate = PlainAcquire::Fate;

constexpr WallTime kNodeTime{Millis(1'800'000'000'000)};
constexpr Now kNow{Instant(std::chrono::seconds(100)), kNodeTime};
constexpr Millis kTtl{10'000};

std::string SentinelOf(char state, WallTime quarantine_until = WallTime(), int max_ttl = 30'000) {
  return fmt::format("{}|{:032x}|0|1|00000001|{:040}|{:013}|{:08}", state, 7, 0,
                     quarantine_until.time_since_epoch().count(), max_ttl);
}

// Answers as hiredis gives them, without hiredis.
class Answers {
 public:
  const redisReply& Nil() { return Of(REDIS_REPLY_NIL, ""); }
  const redisReply& Text(std::string_view text) { return Of(REDIS_REPLY_STRING, text); }
  const redisReply& Error(std::string_view text) { return Of(REDIS_REPLY_ERROR, text); }
  const redisReply& Time(WallTime time) {
    const auto millis = time.time_since_epoch().count();
    redisReply& seconds = Of(REDIS_REPLY_STRING, fmt::format("{}", millis / 1000));
    redisReply& micros = Of(REDIS_REPLY_STRING, fmt::format("{}", millis % 1000 * 1000));
    arrays_.push_back({&seconds, &micros});
    redisReply& both = Of(REDIS_REPLY_ARRAY, "");
    both.elements = 2;
    both.element = arrays_.back().data();
    return both;
  }

 private:
  redisReply& Of(int type, std::string_view text) {
    texts_.emplace_back(text);
    redisReply& reply = replies_.emplace_back();
    reply.type = type;
    reply.str = texts_.back().data();
    reply.len = texts_.back().size();
    return reply;
  }
  std::deque<std::string> texts_;
  std::deque<redisReply> replies_;
  std::deque<std::array<redisReply*, 2>> arrays_;
};

class PlainAcquireTest : public ::testing::Test {
 protected:
  PlainAcquireTest() {
    Learn();
    plain.OnSentinel(SentinelOf('C'));
    Ask(1);
  }
  void Learn(Nanos round_trip = Millis(2), WallTime node_time = kNodeTime) {
    plain.OnCall({kNow.boot - round_trip / 2, kNow.boot + round_trip / 2, node_time});
  }
  void Ask(std::size_t count) {
    ops.clear();
    for (std::uint32_t i = 0; i < count; ++i) {
      ops.push_back({.kind = OpKind::kAcquire,
                     .lock = {i, 1},
                     .round = 4,
                     .name = "fencepost:{t}:x",
                     .token = Token(Token::AtWall(kNodeTime).value() + i),
                     .nonce = {{1, i}},
                     .ttl = kTtl});
    }
  }
  bool Suits(Now now = kNow) { return plain.Suits(ops, options, now); }
  // The node answers the only SET, the sentinel and the time so.
  const PlainAcquire::Judgement& Judge(const redisReply& set, const redisReply& sentinel,
                                       const redisReply& time) {
    plain.Write(ops, options, kNow, wire);
    EXPECT_FALSE(plain.OnAnswer(set));
    EXPECT_FALSE(plain.OnAnswer(sentinel));
    EXPECT_TRUE(plain.OnAnswer(time));
    return judgement = plain.Judge(ops, options);
  }
  // The fate of the only op, whose SET wrote, where the node then reads this.
  Fate FateAt(WallTime time, const std::string& sentinel = SentinelOf('C')) {
    Judge(node.Nil(), node.Text(sentinel), node.Time(time));
    return judgement.fates.empty() ? Fate::kRefused : judgement.fates.at(0);
  }

  LockOptions options;
  PlainAcquire plain;
  PlainAcquire::Judgement judgement;
  std::vector<Op> ops;
  std::string wire;
  Answers node;
};

TEST_F(PlainAcquireTest, AsksForANameWithADeadlineByTheNodesClockThenForSentinelAndTime) {
  ASSERT_TRUE(Suits());
  EXPECT_EQ(plain.Write(ops, options, {kNow.boot + Millis(40), kNow.wall}, wire), 3u);
  const auto deadline = kNodeTime + Millis(40) + kTtl + Millis(20);
  const std::string value =
      fmt::format("H{:011x}{:016x}", deadline.time_since_epoch().count(), ops[0].token.value()) +
      std::string("\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0", 16);
  EXPECT_EQ(wire,
            fmt::format("*7\r\n$3\r\nSET\r\n$15\r\nfencepost:{{t}}:x\r\n$44\r\n{}\r\n$2\r\nNX\r\n"
                        "$3\r\nGET\r\n$4\r\nPXAT\r\n$13\r\n{}\r\n"
                        "*2\r\n$3\r\nGET\r\n$19\r\nfencepost::sentinel\r\n*1\r\n$4\r\nTIME\r\n",
                        value, deadline.time_since_epoch().count() + 10'000));
}

TEST_F(PlainAcquireTest, LeavesToTheScriptWhatIsNotComfortable) {
  EXPECT_TRUE(Suits());
  options.max_skew = Millis(60'000);
  EXPECT_TRUE(Suits({kNow.boot + Millis(10'000), kNow.wall}));
  EXPECT_FALSE(Suits({kNow.boot + Millis(10'002), kNow.wall})) << "the estimate is old";
  options = LockOptions();
  Learn(Millis(21));
  EXPECT_FALSE(Suits()) << "a slow call says little of the clock";
  Learn(Millis(2), kNodeTime + Millis(2'500));
  EXPECT_FALSE(Suits()) << "a token half of max_skew behind";
  Learn(Millis(2), kNodeTime - Millis(2'500));
  EXPECT_FALSE(Suits()) << "a token half of max_skew ahead";
  Learn();
  ops[0].ttl = Millis(30'001);
  EXPECT_FALSE(Suits()) << "a ttl above the store's max_ttl";
  Ask(kMaxBatch);
  EXPECT_TRUE(Suits());
  plain.OnSentinel(SentinelOf('F'));
  EXPECT_FALSE(Suits()) << "forming";
  plain.OnSentinel(std::nullopt);
  EXPECT_FALSE(Suits()) << "wiped";
  plain.OnSentinel(SentinelOf('C'));
  EXPECT_TRUE(Suits());
  plain.Forget();
  EXPECT_FALSE(Suits()) << "another connection";
}

TEST_F(PlainAcquireTest, LeavesTheNextRunsToTheScriptAfterANameThatWasNotFree) {
  ASSERT_TRUE(Suits());
  Judge(node.Text("H..."), node.Text(SentinelOf('C')), node.Time(kNodeTime));
  EXPECT_EQ(judgement.fates.at(0), Fate::kAskScript);
  int script_turns = 0;
  while (!Suits()) ++script_turns;
  EXPECT_EQ(script_turns, 8);
}

TEST_F(PlainAcquireTest, GoesOnWhereFewOfManyNamesWereNotFree) {
  const auto suits_after = [this](std::size_t names, std::size_t taken) {
    while (!Suits()) {
    }
    Ask(names);
    plain.Write(ops, options, kNow, wire);
    for (std::size_t i = 0; i < taken; ++i) plain.OnAnswer(node.Text("H..."));
    plain.OnNils(plain.NamesLeft());
    plain.OnAnswer(node.Text(SentinelOf('C')));
    plain.OnAnswer(node.Time(kNodeTime));
    (void)plain.Judge(ops, options);
    return Suits();
  };
  EXPECT_TRUE(suits_after(100, 0));
  EXPECT_TRUE(suits_after(100, 6));
  EXPECT_FALSE(suits_after(100, 7));
  EXPECT_FALSE(suits_after(1, 1));
}

TEST_F(PlainAcquireTest, TakesNilAnswersByTheirNumber) {
  Ask(3);
  plain.Write(ops, options, kNow, wire);
  EXPECT_FALSE(plain.OnAnswer(node.Text("H...")));
  EXPECT_EQ(plain.NamesLeft(), 2u);
  plain.OnNils(2);
  EXPECT_EQ(plain.NamesLeft(), 0u);
  EXPECT_FALSE(plain.OnAnswer(node.Text(SentinelOf('C'))));
  EXPECT_TRUE(plain.OnAnswer(node.Time(kNodeTime)));
  EXPECT_EQ(plain.Judge(ops, options).fates,
            (std::vector<Fate>{Fate::kAskScript, Fate::kGranted, Fate::kGranted}));
}

TEST_F(PlainAcquireTest, CountsAGrantOnlyWithADeadlineThatTheScriptCouldHaveGiven) {
  EXPECT_EQ(FateAt(kNodeTime), Fate::kGranted);
  EXPECT_EQ(judgement.header.node_time, kNodeTime);
  EXPECT_EQ(FateAt(kNodeTime + Millis(20)), Fate::kGranted);
  EXPECT_EQ(FateAt(kNodeTime + Millis(21)), Fate::kLengthen);
  EXPECT_EQ(FateAt(kNodeTime + Millis(4'999)), Fate::kLengthen);
  EXPECT_EQ(FateAt(kNodeTime - Millis(980)), Fate::kGranted);
  EXPECT_EQ(judgement.refusal, "");
  EXPECT_EQ(FateAt(kNodeTime - Millis(981)), Fate::kRefused) << "it would stand too long";
  EXPECT_EQ(FateAt(kNodeTime + Millis(5'001)), Fate::kRefused) << "the token is behind";
  EXPECT_NE(judgement.refusal.find("clock went 5001 ms"), std::string::npos);
  options.max_skew = Millis(900);
  EXPECT_EQ(FateAt(kNodeTime - Millis(901)), Fate::kRefused) << "the token is ahead";
}

TEST_F(PlainAcquireTest, JudgesByTheSentinelThatWasReadAfterTheWrite) {
  EXPECT_EQ(FateAt(kNodeTime, SentinelOf('C', kNodeTime + Millis(1))), Fate::kGranted);
  EXPECT_TRUE(judgement.header.quarantined);
  EXPECT_EQ(FateAt(kNodeTime, SentinelOf('C', kNodeTime)), Fate::kGranted);
  EXPECT_FALSE(judgement.header.quarantined);
  EXPECT_EQ(FateAt(kNodeTime, SentinelOf('C', WallTime(), 9'999)), Fate::kRefused);
  FateAt(kNodeTime, SentinelOf('F'));
  EXPECT_TRUE(judgement.no_sentinel);

  plain.OnSentinel(SentinelOf('C'));
  EXPECT_TRUE(Judge(node.Nil(), node.Nil(), node.Time(kNodeTime)).no_sentinel);
}

TEST_F(PlainAcquireTest, TakesNothingFromANodeThatRefusesTheQuestions) {
  const redisReply& sentinel = node.Text(SentinelOf('C'));
  EXPECT_EQ(Judge(node.Nil(), sentinel, node.Error("NOPERM no time")).error, "NOPERM no time");
  EXPECT_NE(Judge(node.Nil(), sentinel, node.Text("noon")).error, "");
}

// --- in a batch ----------------------------------------------------------------------------------

class PlainBatchTest : public PlainAcquireTest {
 protected:
  std::size_t Write() { return batch.Write(options, wire, &plain, kNow); }
  void Take(std::size_t acquires) {
    Ask(acquires);
    batch.ops().insert(batch.ops().end(), ops.begin(), ops.end());
  }
  std::size_t Send(std::size_t acquires) {
    Take(acquires);
    batch.Cut();
    return Write();
  }
  void NodeSays(std::vector<const redisReply*> to_set, WallTime time = kNodeTime,
                const std::string& sentinel = SentinelOf('C')) {
    for (const redisReply* answer : to_set) {
      ASSERT_TRUE(batch.NextIsPlain());
      plain.OnAnswer(*answer);
    }
    plain.OnAnswer(node.Text(sentinel));
    plain.OnAnswer(node.Time(time));
    batch.OnPlain(plain, options);
  }
  ReplyCode CodeOf(std::uint32_t slot) {
    const auto& all = batch.replies();
    const auto found =
        std::ranges::find_if(all, [&](const Reply& reply) { return reply.lock.slot == slot; });
    EXPECT_EQ(found->kind, OpKind::kAcquire);
    EXPECT_EQ(found->round, 4);
    return found->code;
  }
  NodeBatch batch;
};

TEST_F(PlainBatchTest, AsksTheScriptAtOnceForTheNamesThatWereNotFree) {
  ASSERT_EQ(Send(4), 6u);
  EXPECT_EQ(wire.find("EVALSHA"), std::string::npos);
  NodeSays({&node.Nil(), &node.Text("H"), &node.Error("OOM full"), &node.Nil()});
  EXPECT_EQ(batch.CallsUnsettled(), 1u);
  ASSERT_TRUE(batch.PrepareResend());
  ASSERT_EQ(Write(), 1u);
  EXPECT_FALSE(batch.NextIsPlain());
  EXPECT_EQ(batch.Next().keys, 2u);
  ASSERT_TRUE(batch.OnText("1700000000000AC000000000000002a0000000001500G").has_value());
  EXPECT_EQ(CodeOf(0), ReplyCode::kGranted);
  EXPECT_EQ(CodeOf(1), ReplyCode::kContended);
  EXPECT_EQ(CodeOf(2), ReplyCode::kGranted);
  EXPECT_EQ(CodeOf(3), ReplyCode::kGranted);
}

TEST_F(PlainBatchTest, GivesALaterDeadlineByAnExtensionWhereTheNodeWasSlow) {
  for (const auto& [answer, code] : std::vector<std::pair<std::string, ReplyCode>>{
           {"E", ReplyCode::kGranted},
           {"X", ReplyCode::kError},
           {"O000000000000002a", ReplyCode::kError},
           {"D000000000000002a00000001feedbeef0000000001500", ReplyCode::kDone}}) {
    Send(1);
    NodeSays({&node.Nil()}, kNodeTime + Millis(30));
    wire.clear();
    ASSERT_EQ(Write(), 1u);
    EXPECT_NE(wire.find(ScriptFor(OpKind::kExtend).sha), std::string::npos);
    EXPECT_EQ(batch.Next().kind, OpKind::kAcquire);
    ASSERT_TRUE(batch.OnText("1700000000000Q" + answer).has_value());
    EXPECT_EQ(CodeOf(0), code) << answer;
    batch.Clear();
  }
}

TEST_F(PlainBatchTest, AnswersWithoutACountWhatMustNotCount) {
  Send(1);
  NodeSays({&node.Nil()}, kNodeTime + Millis(60'000));
  EXPECT_EQ(CodeOf(0), ReplyCode::kError);
  EXPECT_EQ(batch.CallsUnsettled(), 0u);
  batch.Clear();

  Send(2);
  NodeSays({&node.Nil(), &node.Text("H")}, kNodeTime, SentinelOf('F'));
  EXPECT_EQ(CodeOf(0), ReplyCode::kNoSentinel);
  EXPECT_EQ(CodeOf(1), ReplyCode::kNoSentinel);
}

TEST_F(PlainBatchTest, TellsThatTheNodeIsInQuarantine) {
  Send(1);
  NodeSays({&node.Nil()}, kNodeTime, SentinelOf('C', kNodeTime + Millis(1)));
  EXPECT_EQ(CodeOf(0), ReplyCode::kGranted);
  EXPECT_TRUE(batch.replies().at(0).quarantined);
}

TEST_F(PlainBatchTest, UsesTheScriptWhereTheEndOfAnAttemptFollows) {
  Take(1);
  batch.ops().push_back(ops[0]);
  batch.ops().back().kind = OpKind::kAbort;
  batch.Cut();
  EXPECT_EQ(Write(), 2u);
  EXPECT_FALSE(batch.NextIsPlain());
}

TEST_F(PlainBatchTest, WritesTheOtherCallsBesideIt) {
  Take(1);
  Op release = ops[0];
  release.kind = OpKind::kRelease;
  release.lock.slot = 7;
  batch.ops().insert(batch.ops().begin(), release);
  batch.Cut();
  EXPECT_EQ(Write(), 4u);
  EXPECT_TRUE(batch.OnNoScript());
  NodeSays({&node.Nil()});
  ASSERT_TRUE(batch.PrepareResend());
  EXPECT_EQ(Write(), 1u) << "only the release";
  ASSERT_TRUE(batch.OnText("1700000000000AF").has_value());
  EXPECT_EQ(CodeOf(0), ReplyCode::kGranted);
}

}  // namespace
}  // namespace fencepost::locking
