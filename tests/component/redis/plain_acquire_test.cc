// Acquires by plain commands against a real node: each is answered as the script would.
#include "locking/redis/node/plain_acquire.h"

#include <gtest/gtest.h>

#include <charconv>

#include "tests/component/redis/scripted_client.h"

namespace fencepost::locking {
namespace {

using namespace std::chrono_literals;
using fencepost::testing::RedisServer;

class PlainAcquireTest : public ::testing::Test {
 protected:
  PlainAcquireTest() : server({.own_clock = true}), harness(server.address()) {
    WriteSentinel(SentinelText());
    harness.options.lock.node_timeout = 2000ms;
    harness.Start();
    EXPECT_TRUE(harness.RunUntilConnected());
  }
  void WriteSentinel(const std::string& sentinel) {
    ASSERT_EQ(server.Command({"SET", std::string(kSentinelKey), sentinel}), "OK");
  }
  Reply Ask(OpKind kind, std::uint32_t lock) {
    client.replies.clear();
    client.Queue(kind, lock);
    EXPECT_TRUE(harness.RunUntilReplies(1));
    return client.replies.at(0);
  }
  // How many scripts the node has run so far.
  std::int64_t Scripts() { return server.Calls("evalsha"); }
  // Until an acquire went without a script: from then on they do, while the machine is quick.
  void Warm() {
    for (int tries = 0; tries < 1000; ++tries) {
      const std::int64_t before = Scripts();
      EXPECT_EQ(Ask(OpKind::kAcquire, ++fresh_).code, ReplyCode::kGranted);
      if (Scripts() == before) return;
    }
    FAIL() << "no acquire went by plain commands";
  }
  // The stored deadline of a held name.
  WallTime Deadline(std::uint32_t lock) {
    const std::string value = server.Command({"GET", NameOf(lock)});
    std::int64_t millis = 0;
    std::from_chars(value.data() + 1, value.data() + 12, millis, 16);
    return WallTime(Millis(millis));
  }

  RedisServer server;
  ConnectionHarness harness;
  ScriptedClient& client = harness.client;
  std::uint32_t fresh_ = 1000;
};

TEST_F(PlainAcquireTest, TakesANameUntilNoSoonerThanItsLeaseEndsAndLetsItsHolderEndIt) {
  Warm();
  const WallTime before = ReadClocks().wall;
  ASSERT_EQ(Ask(OpKind::kAcquire, 1).code, ReplyCode::kGranted);
  const WallTime after = ReadClocks().wall;
  EXPECT_GE(Deadline(1), before + 10'000ms);
  // 20 ms that it adds, and half of the 20 ms that the call may have taken from which it knows the
  // node's clock.
  EXPECT_LE(Deadline(1), after + 10'030ms);
  EXPECT_EQ(client.calls.back(), OpKind::kAcquire);
  EXPECT_EQ(Ask(OpKind::kExtend, 1).code, ReplyCode::kExtended);
  EXPECT_EQ(Ask(OpKind::kRelease, 1).code, ReplyCode::kFreed);
  EXPECT_TRUE(client.errors.empty());
}

TEST_F(PlainAcquireTest, TellsTheNodesClockAsACallOfTheScriptDoes) {
  bool plain = false;
  for (int tries = 0; tries < 1000 && !plain; ++tries) {
    Warm();
    const std::int64_t before = Scripts();
    client.calls.clear();
    const WallTime asked = ReadClocks().wall;
    ASSERT_EQ(Ask(OpKind::kAcquire, ++fresh_).code, ReplyCode::kGranted);
    plain = Scripts() == before;
    ASSERT_EQ(client.calls, std::vector{OpKind::kAcquire});
    EXPECT_GE(client.node_time, asked);
    EXPECT_LE(client.node_time, ReadClocks().wall);
  }
  EXPECT_TRUE(plain) << "no acquire went by plain commands";
}

TEST_F(PlainAcquireTest, AnswersAsTheScriptWhereTheNameIsNotAbsent) {
  ASSERT_EQ(Ask(OpKind::kDone, 2).code, ReplyCode::kMarkedLate);
  client.Queue(OpKind::kAcquire, 3);  // FREE with a floor above the token that is asked for later
  client.Queue(OpKind::kAcquire, 4);
  ASSERT_TRUE(harness.RunUntilReplies(2));
  server.Command({"SET", NameOf(3), "F7fffffffffffffff", "PX", "60000"});
  server.Command(
      {"SET", NameOf(4), fmt::format("H{:011x}{:016x}{}", 1LL << 43, 42, "another's nonce!")});
  server.Command({"SET", NameOf(5), fmt::format("H{:011x}{:016x}{}", 1, 42, "another's nonce!")});
  server.Command({"RPUSH", NameOf(6), "not a lock"});
  for (int i = 0; i < 10; ++i) {  // past the turns that a name that is taken leaves to the script
    Warm();
    const Reply done = Ask(OpKind::kAcquire, 2);
    EXPECT_EQ(done.code, ReplyCode::kDone);
    EXPECT_EQ(done.crc, 2u);
    Warm();
    EXPECT_EQ(Ask(OpKind::kAcquire, 3).code, ReplyCode::kStale);
    Warm();
    const Reply contended = Ask(OpKind::kAcquire, 4);
    EXPECT_EQ(contended.code, ReplyCode::kContended);
    EXPECT_EQ(contended.token, Token(42));
  }
  EXPECT_TRUE(client.errors.empty());
  Warm();
  EXPECT_EQ(Ask(OpKind::kAcquire, 5).code, ReplyCode::kGrantedTakeover);
  Warm();
  EXPECT_EQ(Ask(OpKind::kAcquire, 6).code, ReplyCode::kForeign);
}

TEST_F(PlainAcquireTest, GrantsASecondTimeWhatItGranted) {
  Warm();
  client.Queue(OpKind::kAcquire, 1);
  ASSERT_TRUE(harness.RunUntilReplies(2));
  const WallTime deadline = Deadline(1);
  const std::string value = server.Command({"GET", NameOf(1)});
  client.replies.clear();
  client.QueueAgain();
  ASSERT_TRUE(harness.RunUntilReplies(1));
  EXPECT_EQ(client.replies[0].code, ReplyCode::kGranted);
  EXPECT_EQ(Deadline(1), deadline);
  EXPECT_EQ(server.Command({"GET", NameOf(1)}), value);
}

TEST_F(PlainAcquireTest, CountsNothingOnAWipedNodeOrOneThatIsForming) {
  Warm();
  ASSERT_EQ(server.Command({"FLUSHALL"}), "OK");
  EXPECT_EQ(Ask(OpKind::kAcquire, 1).code, ReplyCode::kNoSentinel);
  EXPECT_EQ(client.no_sentinels, 1);
  WriteSentinel("F" + SentinelText().substr(1));
  EXPECT_EQ(Ask(OpKind::kAcquire, 2).code, ReplyCode::kNoSentinel);
}

TEST_F(PlainAcquireTest, TellsThatTheNodeIsInQuarantine) {
  Warm();
  std::string sentinel = SentinelText();
  sentinel.replace(kSentinelQuarantineAt, 13, "9999999999999");
  WriteSentinel(sentinel);
  const Reply reply = Ask(OpKind::kAcquire, 1);
  EXPECT_EQ(reply.code, ReplyCode::kGranted);
  EXPECT_TRUE(reply.quarantined);
}

TEST_F(PlainAcquireTest, TakesManyNamesInOneRunAndAsksTheScriptForThoseThatAreNotFree) {
  constexpr std::uint32_t kNames = 400;
  constexpr std::uint32_t kTaken = 137;
  bool seen = false;
  for (std::uint32_t first = 2000; first < 200'000 && !seen; first += kNames) {
    ASSERT_EQ(server.Command({"SET", NameOf(first + kTaken), "something"}), "OK");
    Warm();
    client.replies.clear();
    const std::int64_t before = Scripts();
    for (std::uint32_t i = 0; i < kNames; ++i) client.Queue(OpKind::kAcquire, first + i);
    ASSERT_TRUE(harness.RunUntilReplies(kNames));
    seen = Scripts() == before + 1;  // else the machine was slow
    for (const Reply& reply : client.replies) {
      const bool taken = reply.lock.slot == first + kTaken;
      ASSERT_EQ(reply.code, taken ? ReplyCode::kForeign : ReplyCode::kGranted) << reply.lock.slot;
    }
    ASSERT_EQ(server.Command({"GET", NameOf(first)}).size(), 44u);
    ASSERT_EQ(server.Command({"GET", NameOf(first + kNames - 1)}).size(), 44u);
  }
  EXPECT_TRUE(seen);
}

TEST_F(PlainAcquireTest, CountsNothingThatTheNodesClockHasJumpedOver) {
  bool seen = false;
  for (const auto jump : {60s, -60s}) {
    for (int tries = 0; tries < 100 && !seen; ++tries) {
      server.ShiftClock(0s);
      Ask(OpKind::kAcquire, ++fresh_);  // learns the time
      Warm();
      server.ShiftClock(jump);
      const ReplyCode code = Ask(OpKind::kAcquire, ++fresh_).code;
      seen = code == ReplyCode::kError;  // else the machine was slow, and the script was asked
      const auto refused = jump > 0s ? ReplyCode::kRefusedBehind : ReplyCode::kRefusedAhead;
      if (!seen) {
        ASSERT_EQ(code, refused);
      }
    }
    ASSERT_TRUE(seen);
    EXPECT_TRUE(client.Noted("the node's clock went"));
    EXPECT_NE(Ask(OpKind::kAcquire, ++fresh_).code, ReplyCode::kGranted) << "the script knows";
    seen = false;
  }
}

TEST_F(PlainAcquireTest, LengthensWhatASlowNodeGranted) {
  Warm();
  server.Pause();
  client.replies.clear();
  client.Queue(OpKind::kAcquire, 1);
  const auto asked = std::chrono::steady_clock::now();
  ASSERT_TRUE(harness.RunUntil(
      [&] { return harness.connection->Busy() && std::chrono::steady_clock::now() - asked > 50ms; },
      "the batch to be out for a while"));
  const WallTime resumed = ReadClocks().wall;
  server.Resume();
  ASSERT_TRUE(harness.RunUntilReplies(1));
  EXPECT_EQ(client.replies[0].code, ReplyCode::kGranted);
  EXPECT_GE(Deadline(1), resumed + 10'000ms);
}

}  // namespace
}  // namespace fencepost::locking
