// The rules of a lock node that differential_test.cc does not compare, on a real redis-server: what
// is stored, to the letter; tokens of more bits than its clock gives; clocks that step; other
// collations; the expiry of what is not a lock; a full memory.
#include <filesystem>

#include "tests/component/scripts/script_client.h"

namespace fencepost::testing {
namespace {

constexpr Millis kSkew{5'000};
constexpr Millis kTtl{20'000};
constexpr Millis kMaxTtl{30'000};

// One real lock node of a store, and operations on one name of it.
class Node : public ::testing::Test {
 protected:
  Node() { WriteSentinel(); }

  void WriteSentinel(WallTime quarantine_until = WallTime(Millis(0))) {
    client_.Command(
        {"SET", std::string(locking::kSentinelKey), CompleteSentinel(kMaxTtl, quarantine_until)});
  }
  Op Make(OpKind kind, Token token, std::uint64_t nonce, Millis ttl = kTtl) {
    return {.kind = kind,
            .lock = {1, 1},
            .round = 7,
            .name = name_,
            .token = token,
            .nonce = {{0xabcdef, nonce}},
            .ttl = ttl,
            .crc = 0x1'feedbeef};
  }
  Reply Ask(const Op& op) { return client_.Ask(op, options_); }
  ReplyCode Code(const Op& op) { return Ask(op).code; }
  // A token of the node's wall time, moved.
  Token At(Millis offset = Millis(0)) { return Token::AtWall(client_.NodeTime() + offset); }
  std::string Value() { return client_.Command({"GET", name_}); }
  static std::string Hex(Token token) { return fmt::format("{:016x}", token.value()); }
  std::int64_t Pttl() { return std::stoll(client_.Command({"PTTL", name_})); }

  RedisServer server_;
  ScriptClient client_{server_};
  LockOptions options_{.max_skew = kSkew};
  std::string name_ = "fencepost:{orders}:o-17";
};

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

TEST_F(Node, TurnsAcquiresAwayWhenItsMemoryIsFullButNotWhatFreesOrCompletes) {
  const Token token = At();
  const auto code = [&](OpKind kind, const char* name) {
    name_ = fmt::format("fencepost:{{orders}}:{}", name);
    return Code(Make(kind, token, 1));
  };
  ASSERT_EQ(code(OpKind::kAcquire, "held"), ReplyCode::kGranted);
  ASSERT_EQ(client_.Command({"CONFIG", "SET", "maxmemory", "1kb"}), "OK");
  name_ += "-wanted";
  const Op wanted = Make(OpKind::kAcquire, token, 2);
  const std::string error = client_.Call(wanted.kind, {&wanted, 1}, options_).error;
  EXPECT_TRUE(error.starts_with("OOM ")) << error;
  EXPECT_EQ(code(OpKind::kExtend, "held"), ReplyCode::kExtended);
  EXPECT_EQ(code(OpKind::kFill, "filled"), ReplyCode::kFilled);
  EXPECT_EQ(code(OpKind::kAbort, "filled"), ReplyCode::kFreed);
  EXPECT_EQ(code(OpKind::kDone, "held"), ReplyCode::kMarked);
  EXPECT_EQ(code(OpKind::kForget, "held"), ReplyCode::kFreed);
  const std::string sentinel = CompleteSentinel(kMaxTtl);
  EXPECT_NE(client_.WriteSentinel({sentinel, sentinel, Millis(1'000)}).current, sentinel);
}

// What the node refuses is no foreign value.
TEST_F(Node, ReportsWhatTheNodeRefusesToReadAsAnError) {
  std::string script(locking::ScriptFor(OpKind::kInspect).text);
  script.insert(script.find('\n') + 1,
                "local given = redis\n"
                "local redis = {call = given.call, pcall = function(_, key)\n"
                "  return {err = key}\n"
                "end}\n");
  const auto look = [&](const std::string& answer) {
    return client_.Command(
        {"EVAL", script, "2", std::string(locking::kSentinelKey), answer, "1000"});
  };
  EXPECT_EQ(look("NOPERM of this key").substr(0, 6), "NOPERM");
  EXPECT_TRUE(look("WRONGTYPE of this key").ends_with("?"));
}

}  // namespace
}  // namespace fencepost::testing
