// The rules of a lock node, one by one, on a real redis-server. Clocks: the node's is real, so the
// tests take the tokens from the node's own TIME and use ttls that cannot run out meanwhile, or are
// 0.
#include <filesystem>

#include "tests/component/scripts/node_fixture.h"

namespace fencepost::testing {
namespace {

TEST_F(Node, GrantsAFreshNameAndStoresItWithTheSkewOnTopOfItsDeadline) {
  const Token token = At();
  const Reply reply = Ask(Make(OpKind::kAcquire, token, 1));
  EXPECT_EQ(reply.code, ReplyCode::kGranted);
  EXPECT_EQ(reply.round, 7);
  EXPECT_FALSE(reply.quarantined);
  EXPECT_EQ(Value().size(), 44U);
  EXPECT_EQ(Value()[0], 'H');
  EXPECT_EQ(Value().substr(12, 16), Hex(token));
  EXPECT_EQ(Value().substr(28), std::string("\0\0\0\0\0\xab\xcd\xef\0\0\0\0\0\0\0\x01", 16));
  EXPECT_LE(Pttl(), (kTtl + 2 * kSkew).count());
  EXPECT_GT(Pttl(), (kTtl + 2 * kSkew).count() - 5'000);
}

TEST_F(Node, GrantsAResendWithoutMovingTheDeadline) {
  const Op op = Make(OpKind::kAcquire, At(), 1);
  ASSERT_EQ(Code(op), ReplyCode::kGranted);
  const std::string before = Value();
  Op again = op;
  again.ttl = kMaxTtl;
  EXPECT_EQ(Code(again), ReplyCode::kGranted);
  EXPECT_EQ(Value(), before);
}

TEST_F(Node, TellsARivalWhoHoldsAndForHowLongBeforeItLooksAtTokens) {
  const Token token = At();
  ASSERT_EQ(Code(Make(OpKind::kAcquire, token, 1)), ReplyCode::kGranted);
  for (const Token rival : {At(), Token(1), At(10 * kSkew)}) {
    const Reply reply = Ask(Make(OpKind::kAcquire, rival, 2));
    EXPECT_EQ(reply.code, ReplyCode::kContended);
    EXPECT_EQ(reply.token, token);
    EXPECT_GT(reply.rest, kTtl / 2);
    EXPECT_LE(reply.rest, kTtl);
  }
}

TEST_F(Node, TakesOverAPassedDeadlineOnlyForATokenAboveItsFloor) {
  const Token token = At();
  ASSERT_EQ(Code(Make(OpKind::kAcquire, token, 1, Millis(0))), ReplyCode::kGranted);
  const Reply stale = Ask(Make(OpKind::kAcquire, token, 2));
  EXPECT_EQ(stale.code, ReplyCode::kStale);
  EXPECT_EQ(stale.token, token);
  EXPECT_EQ(Code(Make(OpKind::kAcquire, Token(token.value() + 1), 2)), ReplyCode::kGrantedTakeover);
}

TEST_F(Node, ComparesNeighbouringTokensOfSixtyThreeBitsExactly) {
  // Far ahead of the doubles' 53 bits, and of this century: only fill takes such tokens.
  constexpr std::uint64_t kHigh = 9'223'372'036'854'775'806U;
  ASSERT_EQ(static_cast<double>(kHigh), static_cast<double>(kHigh - 1));
  ASSERT_EQ(Code(Make(OpKind::kFill, Token(kHigh), 1)), ReplyCode::kFilled);
  ASSERT_EQ(Code(Make(OpKind::kRelease, Token(), 1)), ReplyCode::kFreed);
  EXPECT_EQ(Code(Make(OpKind::kAcquire, Token(kHigh - 1), 2)), ReplyCode::kStale);
  EXPECT_EQ(Code(Make(OpKind::kAcquire, Token(kHigh), 2)), ReplyCode::kStale);
  EXPECT_EQ(Code(Make(OpKind::kAcquire, Token(kHigh + 1), 2)), ReplyCode::kRefusedAhead);

  name_ += "-2";
  const Token token = At();
  ASSERT_EQ(Code(Make(OpKind::kAcquire, token, 1)), ReplyCode::kGranted);
  ASSERT_EQ(Code(Make(OpKind::kRelease, token, 1)), ReplyCode::kFreed);
  EXPECT_EQ(Ask(Make(OpKind::kAcquire, token, 2)).token, token);
  EXPECT_EQ(Code(Make(OpKind::kAcquire, Token(token.value() + 1), 2)), ReplyCode::kGranted);
}

// Redis takes the collation of its environment, and Lua compares texts by it. In Danish "aa" comes
// after "z".
TEST(NodeInDenmark, OrdersTokensAsEverywhere) {
  TempDir locales;
  const Finished made =
      RunToEnd({.argv = {"localedef", "-i", "da_DK", "-f", "UTF-8", locales.File("da_DK.UTF-8")}});
  ASSERT_TRUE(std::filesystem::exists(locales.File("da_DK.UTF-8"))) << made.output;
  RedisServerOptions options;
  options.env = {{"LOCPATH", locales.path().string()}, {"LC_ALL", "da_DK.UTF-8"}};
  RedisServer server(options);
  ScriptClient client(server);
  client.Command({"SET", std::string(locking::kSentinelKey), CompleteSentinel(kMaxTtl)});
  const std::uint64_t base = Token::AtWall(client.NodeTime()).value();
  const auto acquire = [&](std::uint64_t low, std::uint64_t nonce) {
    const Op op{.kind = OpKind::kAcquire,
                .lock = {1, 1},
                .name = "fencepost:{orders}:o-17",
                .token = Token(base + low),
                .nonce = {{1, nonce}},
                .ttl = kTtl};
    return op;
  };
  const LockOptions lock{.max_skew = kSkew};
  Op op = acquire(0xabc, 1);
  ASSERT_EQ(client.Ask(op, lock).code, ReplyCode::kGranted);
  op.kind = OpKind::kRelease;
  ASSERT_EQ(client.Ask(op, lock).code, ReplyCode::kFreed);
  EXPECT_EQ(client.Ask(acquire(0xaac, 2), lock).code, ReplyCode::kStale);
  EXPECT_EQ(client.Ask(acquire(0xabd, 3), lock).code, ReplyCode::kGranted);
}

TEST_F(Node, RefusesTokensFromClocksThatAreTooFarOffAndTtlsAboveTheStores) {
  EXPECT_EQ(Code(Make(OpKind::kAcquire, At(kSkew + Millis(1'000)), 1)), ReplyCode::kRefusedAhead);
  EXPECT_EQ(Code(Make(OpKind::kAcquire, At(-kSkew - Millis(1)), 1)), ReplyCode::kRefusedBehind);
  EXPECT_EQ(Code(Make(OpKind::kAcquire, At(), 1, kMaxTtl + Millis(1))), ReplyCode::kRefusedTtl);
  EXPECT_EQ(Value(), "(nil)");
  EXPECT_EQ(Code(Make(OpKind::kAcquire, At(-kSkew + Millis(2'000)), 1, kMaxTtl)),
            ReplyCode::kGranted);
}

TEST_F(Node, AcceptsTheLastMillisecondOfTheSkewButNotTheNext) {
  // The check is against the script's own TIME, so ask until it is the one that was guessed.
  const auto answer_at = [&](Millis offset) {
    for (int i = 0; i < 10'000; ++i) {
      name_ = fmt::format("fencepost:{{orders}}:edge-{}-{}", offset.count(), i);
      const Op op = Make(OpKind::kAcquire, At(offset), 1);
      const CallResult result = client_.Call(op.kind, {&op, 1}, options_);
      if (result.header.node_time + offset == op.token.wall()) return result.replies.at(0).code;
    }
    return ReplyCode::kTimeout;
  };
  EXPECT_EQ(answer_at(kSkew), ReplyCode::kGranted);
  EXPECT_EQ(answer_at(kSkew + Millis(1)), ReplyCode::kRefusedAhead);
  EXPECT_EQ(answer_at(-kSkew), ReplyCode::kGranted);
  EXPECT_EQ(answer_at(-kSkew - Millis(1)), ReplyCode::kRefusedBehind);
}

TEST_F(Node, FreesOnlyTheCallersOwnLock) {
  EXPECT_EQ(Code(Make(OpKind::kRelease, Token(), 1)), ReplyCode::kExpired);
  EXPECT_EQ(Value(), "(nil)");
  const Token token = At();
  ASSERT_EQ(Code(Make(OpKind::kAcquire, token, 1)), ReplyCode::kGranted);
  const std::string held = Value();
  EXPECT_EQ(Code(Make(OpKind::kAbort, At(), 2)), ReplyCode::kStolen);
  EXPECT_EQ(Value(), held);
  EXPECT_EQ(Code(Make(OpKind::kAbort, Token(), 1)), ReplyCode::kFreed);
  EXPECT_EQ(Value(), "F" + Hex(token));
  EXPECT_GT(Pttl(), kTtl.count());
  EXPECT_EQ(Code(Make(OpKind::kRelease, Token(), 1)), ReplyCode::kExpired);
}

TEST_F(Node, PutsBackWhatIsNotTheCallersWithItsExpiry) {
  const auto stays = [&](const std::string& value, ReplyCode code) {
    client_.Command({"SET", name_, value, "PX", "60000"});
    EXPECT_EQ(Code(Make(OpKind::kRelease, At(), 1)), code) << value;
    EXPECT_EQ(Value(), value);
    EXPECT_GT(Pttl(), 50'000);
    EXPECT_LE(Pttl(), 60'000);
  };
  stays("F" + Hex(Token(5)), ReplyCode::kExpired);
  stays("D" + Hex(Token(5)) + "00000001feedbeef", ReplyCode::kStolen);
  stays("H" + std::string(11, '9') + Hex(Token(5)) + std::string(16, 'n'), ReplyCode::kStolen);
  stays("somebody's text", ReplyCode::kForeign);
}

TEST_F(Node, GivesEachNameOfACallItsOwnTtlWhereTheyDiffer) {
  std::vector<std::string> names = {name_ + "-1", name_ + "-2"};
  std::vector<Op> ops = {Make(OpKind::kAcquire, At(), 1, Millis(10'000)),
                         Make(OpKind::kAcquire, At(), 2, Millis(20'000))};
  const auto pttl = [&](int i) { return std::stoll(client_.Command({"PTTL", names[i]})); };
  for (const OpKind kind :
       {OpKind::kAcquire, OpKind::kExtend, OpKind::kFill, OpKind::kDone, OpKind::kForget}) {
    const Millis skew = kind == OpKind::kDone ? Millis(0) : 2 * kSkew;
    if (kind == OpKind::kFill) client_.Command({"DEL", names[0], names[1]});
    for (int i = 0; i < 2; ++i) ops[i].kind = kind, ops[i].name = names[i];
    const CallResult result = client_.Call(kind, ops, options_);
    ASSERT_EQ(result.error, "");
    for (const Reply& reply : result.replies) EXPECT_LT(reply.code, ReplyCode::kNoSentinel);
    for (int i = 0; i < 2; ++i) {
      EXPECT_LE(pttl(i), (ops[i].ttl + skew).count()) << static_cast<int>(kind);
      EXPECT_GT(pttl(i), (ops[i].ttl + skew).count() - 5'000) << static_cast<int>(kind);
    }
  }
}

TEST_F(Node, FreesAnOwnLockPastItsDeadlineAndSaysThatItHadExpired) {
  ASSERT_EQ(Code(Make(OpKind::kAcquire, At(), 1, Millis(0))), ReplyCode::kGranted);
  EXPECT_EQ(Code(Make(OpKind::kRelease, Token(), 1)), ReplyCode::kExpired);
  EXPECT_EQ(Value()[0], 'F');
}

TEST_F(Node, ExtendsByNonceOnlyAndNeverCreatesOrRevives) {
  EXPECT_EQ(Code(Make(OpKind::kExtend, Token(), 1)), ReplyCode::kExpired);
  EXPECT_EQ(Value(), "(nil)");
  const Token token = At();
  ASSERT_EQ(Code(Make(OpKind::kAcquire, token, 1, Millis(10'000))), ReplyCode::kGranted);
  const std::string before = Value();
  EXPECT_EQ(Code(Make(OpKind::kExtend, token, 2)), ReplyCode::kStolen);
  EXPECT_EQ(Value(), before);
  EXPECT_EQ(Code(Make(OpKind::kExtend, Token(), 1)), ReplyCode::kExtended);
  EXPECT_GT(Value().substr(1, 11), before.substr(1, 11));
  EXPECT_EQ(Value().substr(12), before.substr(12));
  EXPECT_GT(Pttl(), (Millis(10'000) + 2 * kSkew).count());
  ASSERT_EQ(Code(Make(OpKind::kExtend, Token(), 1, Millis(0))), ReplyCode::kExtended);
  EXPECT_EQ(Code(Make(OpKind::kExtend, Token(), 1)), ReplyCode::kExpired);
  ASSERT_EQ(Code(Make(OpKind::kRelease, Token(), 1)), ReplyCode::kExpired);
  EXPECT_EQ(Code(Make(OpKind::kExtend, Token(), 1)), ReplyCode::kExpired);
}

TEST_F(Node, FillsBelowAFloorAndKeepsTheFloorButNeverOverAHolder) {
  const Token high = At(Millis(1'000));
  ASSERT_EQ(Code(Make(OpKind::kAcquire, high, 1)), ReplyCode::kGranted);
  const Token low = At(Millis(-1'000));
  const Reply contended = Ask(Make(OpKind::kFill, low, 2));
  EXPECT_EQ(contended.code, ReplyCode::kContended);
  EXPECT_EQ(contended.token, high);
  ASSERT_EQ(Code(Make(OpKind::kAbort, Token(), 1)), ReplyCode::kFreed);
  EXPECT_EQ(Code(Make(OpKind::kFill, low, 2, Millis(10'000))), ReplyCode::kFilled);
  EXPECT_EQ(Value().substr(12, 16), Hex(low));
  EXPECT_EQ(Value().substr(44), Hex(high));
  const std::string filled = Value();
  EXPECT_EQ(Code(Make(OpKind::kFill, low, 2)), ReplyCode::kFilled);
  EXPECT_EQ(Value(), filled) << "a fill lengthens nothing";
  EXPECT_EQ(Code(Make(OpKind::kRelease, low, 2)), ReplyCode::kFreed);
  EXPECT_EQ(Value(), "F" + Hex(high)) << "the floor never falls";
}

TEST_F(Node, KeepsAMarkAgainstEverythingButForget) {
  const Token token = At();
  ASSERT_EQ(Code(Make(OpKind::kAcquire, token, 1)), ReplyCode::kGranted);
  ASSERT_EQ(Code(Make(OpKind::kDone, token, 1)), ReplyCode::kMarked);
  const std::string mark = "D" + Hex(token) + "00000001feedbeef";
  EXPECT_EQ(Value(), mark);
  for (const OpKind kind : {OpKind::kAcquire, OpKind::kFill, OpKind::kExtend}) {
    const Reply reply = Ask(Make(kind, At(), 1));
    EXPECT_EQ(reply.code, ReplyCode::kDone);
    EXPECT_EQ(reply.token, token);
    EXPECT_EQ(reply.crc, 0x1'feedbeef);
    EXPECT_GT(reply.rest, kTtl / 2);
    EXPECT_LE(reply.rest, kTtl);
  }
  EXPECT_EQ(Code(Make(OpKind::kRelease, token, 1)), ReplyCode::kStolen);
  EXPECT_EQ(Code(Make(OpKind::kDone, At(), 2)), ReplyCode::kAlreadyDone);
  Op other = Make(OpKind::kDone, At(), 2);
  other.crc = 0x1'00000001;
  const Reply conflict = Ask(other);
  EXPECT_EQ(conflict.code, ReplyCode::kConflict);
  EXPECT_EQ(conflict.crc, 0x1'feedbeef);
  EXPECT_EQ(Value(), mark);
  other.crc = 1;  // taken of something else: it says nothing of the mark's
  EXPECT_EQ(Code(other), ReplyCode::kAlreadyDone);
  EXPECT_EQ(Value(), mark);

  EXPECT_EQ(Code(Make(OpKind::kForget, Token(), 0)), ReplyCode::kFreed);
  EXPECT_EQ(Value(), "F" + Hex(token));
  EXPECT_EQ(Code(Make(OpKind::kForget, Token(), 0)), ReplyCode::kExpired);
}

TEST_F(Node, MarksWhateverTheStateButSaysWhetherTheCallerStillHeld) {
  EXPECT_EQ(Code(Make(OpKind::kDone, At(), 1)), ReplyCode::kMarkedLate);
  name_ += "-held-by-another";
  ASSERT_EQ(Code(Make(OpKind::kAcquire, At(), 1)), ReplyCode::kGranted);
  EXPECT_EQ(Code(Make(OpKind::kDone, At(), 2)), ReplyCode::kMarkedLate);
  name_ += "-past-its-deadline";
  ASSERT_EQ(Code(Make(OpKind::kAcquire, At(), 1, Millis(0))), ReplyCode::kGranted);
  EXPECT_EQ(Code(Make(OpKind::kDone, At(), 1)), ReplyCode::kMarkedLate);
}

TEST_F(Node, CutsTheTokenOfAMarkThatIsFartherAheadThanTheSkew) {
  const Token before = At(kSkew);
  ASSERT_EQ(Code(Make(OpKind::kDone, Token(9'223'372'036'854'775'807U), 1)),
            ReplyCode::kMarkedLate);
  const Token after = At(kSkew);
  const std::string stored = Value().substr(1, 16);
  EXPECT_GE(stored, Hex(before));
  EXPECT_LE(stored, Hex(after));
}

TEST_F(Node, NeverForgetsAFloorSoonerThanItWouldHave) {
  const auto expires = [&] { return std::stoll(client_.Command({"PEXPIRETIME", name_})); };
  const auto stays = [&](OpKind end, OpKind next, std::uint64_t nonce, ReplyCode code) {
    SCOPED_TRACE(fmt::format("{} after {}", static_cast<int>(next), static_cast<int>(end)));
    client_.Command({"DEL", name_});
    ASSERT_EQ(Code(Make(OpKind::kAcquire, At(), 1)), ReplyCode::kGranted);
    if (end == OpKind::kRelease) {
      ASSERT_EQ(Code(Make(end, Token(), 1)), ReplyCode::kFreed);
    }
    const auto before = expires();
    EXPECT_EQ(Code(Make(next, At(), nonce, Millis(1'000))), code);
    EXPECT_EQ(expires(), before);
  };
  using enum OpKind;
  stays(kAcquire, kExtend, 1, ReplyCode::kExtended);
  stays(kRelease, kFill, 2, ReplyCode::kFilled);
}

TEST(NodeWhoseClockSteps, NeverForgetsAFloorSoonerThanItWouldHave) {
  RedisServer server({.own_clock = true});
  ScriptClient client(server);
  client.Command({"SET", std::string(locking::kSentinelKey), CompleteSentinel(kMaxTtl)});
  const std::string name = "fencepost:{orders}:o-17";
  Op op{.kind = OpKind::kAcquire,
        .lock = {1, 1},
        .name = name,
        .token = Token::AtWall(client.NodeTime()),
        .nonce = {{1, 1}},
        .ttl = kTtl};
  const LockOptions lock{.max_skew = kSkew};
  ASSERT_EQ(client.Ask(op, lock).code, ReplyCode::kGranted);
  const std::string before = client.Command({"PEXPIRETIME", name});
  server.ShiftClock(Millis(-60'000));
  op.kind = OpKind::kExtend;
  ASSERT_EQ(client.Ask(op, lock).code, ReplyCode::kExtended);
  EXPECT_EQ(client.Command({"PEXPIRETIME", name}), before);
  op.kind = OpKind::kDone;
  op.ttl = kMaxTtl + 2 * kSkew;
  ASSERT_EQ(client.Ask(op, lock).code, ReplyCode::kMarked);
  EXPECT_EQ(client.Command({"PEXPIRETIME", name}), before);
}

TEST_F(Node, CarriesAMarkForNoLongerThanItsRestWhateverStoodThere) {
  ASSERT_EQ(Code(Make(OpKind::kAcquire, At(), 1)), ReplyCode::kGranted);
  ASSERT_EQ(Code(Make(OpKind::kAbort, Token(), 1)), ReplyCode::kFreed);
  EXPECT_EQ(Code(Make(OpKind::kDone, At(), 2, Millis(5'000))), ReplyCode::kMarkedLate);
  EXPECT_LE(Pttl(), 5'000);
}

TEST_F(Node, ForgetsOnlyMarksAndNamesAHolder) {
  const Token token = At();
  ASSERT_EQ(Code(Make(OpKind::kAcquire, token, 1)), ReplyCode::kGranted);
  const std::string held = Value();
  const Reply reply = Ask(Make(OpKind::kForget, Token(), 0));
  EXPECT_EQ(reply.code, ReplyCode::kContended);
  EXPECT_EQ(reply.token, token);
  EXPECT_EQ(Value(), held);
}

TEST_F(Node, SaysThatItIsInQuarantineAndAcceptsWritesAllTheSame) {
  WriteSentinel(At().wall() + Millis(60'000));
  const Reply reply = Ask(Make(OpKind::kAcquire, At(), 1));
  EXPECT_EQ(reply.code, ReplyCode::kGranted);
  EXPECT_TRUE(reply.quarantined);
  EXPECT_EQ(Value()[0], 'H');
}

}  // namespace
}  // namespace fencepost::testing
