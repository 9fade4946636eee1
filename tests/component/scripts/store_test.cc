// The scripts against the store around them: sentinel, memory, permissions.
#include "tests/component/scripts/script_client.h"

namespace fencepost::testing {
namespace {

constexpr Millis kTtl{20'000};
const std::string kSentinel{locking::kSentinelKey};

constexpr OpKind kAllKinds[] = {OpKind::kAcquire, OpKind::kExtend, OpKind::kFill,  OpKind::kRelease,
                                OpKind::kAbort,   OpKind::kDone,   OpKind::kForget};

Op Make(OpKind kind, std::string_view name, Token token = Token(1), std::uint64_t nonce = 1) {
  return {.kind = kind,
          .lock = {1, 1},
          .round = 0,
          .name = name,
          .token = token,
          .nonce = {{0, nonce}},
          .ttl = kTtl,
          .crc = 5};
}

std::string ErrorOf(ScriptClient& client, const Op& op) {
  return client.Call(op.kind, {&op, 1}, LockOptions()).error;
}

TEST(NodeStore, AnswersNoSentinelWhenItWasWipedOrItsStoreIsStillForming) {
  RedisServer server;
  ScriptClient client(server);
  const std::string name = "fencepost:{orders}:1";
  const auto refuses_all = [&] {
    for (const OpKind kind : kAllKinds) {
      EXPECT_TRUE(ErrorOf(client, Make(kind, name)).starts_with("NOSENTINEL "))
          << static_cast<int>(kind) << ": " << ErrorOf(client, Make(kind, name));
    }
    EXPECT_EQ(client.Command({"GET", name}), "(nil)");
  };
  refuses_all();
  std::string sentinel = CompleteSentinel(kTtl);
  client.Command({"SET", kSentinel, "F" + sentinel.substr(1)});
  refuses_all();
  client.Command({"SET", kSentinel, sentinel});
  EXPECT_EQ(ErrorOf(client, Make(OpKind::kDone, name)), "");
  client.Command({"FLUSHALL"});
  refuses_all();
}

TEST(NodeStore, WritesTheSentinelOnlyOverWhatTheWriterRead) {
  RedisServer server;
  ScriptClient client(server);
  const std::string first = CompleteSentinel(kTtl);
  std::string second = first;
  second[2] = 'f';
  EXPECT_EQ(client.WriteSentinel({second, first, {}}).current, std::nullopt) << "it was wiped";
  EXPECT_EQ(client.WriteSentinel({std::nullopt, first, {}}).current, first);
  EXPECT_EQ(client.WriteSentinel({std::nullopt, second, {}}).current, first);
  EXPECT_EQ(client.WriteSentinel({second, second, {}}).current, first);
  EXPECT_EQ(client.WriteSentinel({first, second, {}}).current, second);
  EXPECT_EQ(client.Command({"GET", kSentinel}), second);
  EXPECT_EQ(client.Command({"PTTL", kSentinel}), "-1");
}

TEST(NodeStore, ReckonsTheEndOfAQuarantineByTheNodesOwnClock) {
  RedisServer server;
  ScriptClient client(server);
  const std::string sentinel = CompleteSentinel(kTtl);
  const auto answer = client.WriteSentinel({std::nullopt, sentinel, Millis(40'000)});
  EXPECT_EQ(answer.current, CompleteSentinel(kTtl, answer.node_time + Millis(40'000)));
}

TEST(NodeStore, TurnsAcquiresAwayWhenItsMemoryIsFullButNotWhatFreesOrCompletes) {
  RedisServer server;
  ScriptClient client(server);
  client.Command({"SET", kSentinel, CompleteSentinel(kTtl)});
  const WallTime now = client.NodeTime();
  const Op held = Make(OpKind::kAcquire, "fencepost:{orders}:held", Token::AtWall(now));
  ASSERT_EQ(ErrorOf(client, held), "");
  ASSERT_EQ(client.Command({"CONFIG", "SET", "maxmemory", "1kb"}), "OK");
  ASSERT_TRUE(client.Command({"SET", "x", "y"}).starts_with("OOM "));

  const Op wanted = Make(OpKind::kAcquire, "fencepost:{orders}:wanted", Token::AtWall(now), 2);
  EXPECT_TRUE(ErrorOf(client, wanted).starts_with("OOM ")) << ErrorOf(client, wanted);
  const auto code = [&](OpKind kind, std::string_view name) {
    return client.Ask(Make(kind, name, Token::AtWall(now)), LockOptions()).code;
  };
  EXPECT_EQ(code(OpKind::kExtend, held.name), ReplyCode::kExtended);
  EXPECT_EQ(code(OpKind::kFill, "fencepost:{orders}:filled"), ReplyCode::kFilled);
  EXPECT_EQ(code(OpKind::kAbort, "fencepost:{orders}:filled"), ReplyCode::kFreed);
  EXPECT_EQ(code(OpKind::kDone, held.name), ReplyCode::kMarked);
  EXPECT_EQ(code(OpKind::kForget, held.name), ReplyCode::kFreed);
  const std::string sentinel = CompleteSentinel(kTtl);
  EXPECT_NE(client.WriteSentinel({sentinel, sentinel, Millis(1'000)}).current, sentinel);
}

TEST(NodeStore, NeedsNoMorePermissionsThanThoseThatAreDocumented) {
  RedisServer server(
      {.config = {"user fencepost reset on >secret ~fencepost:* resetchannels -@all +set "
                  "+get +del +pexpire +pttl +time +info +eval +evalsha +script|load +ping"}});
  ScriptClient admin(server);
  ScriptClient client(server, {"fencepost", "secret"});
  ASSERT_TRUE(client.Command({"FLUSHALL"}).starts_with("NOPERM"));
  client.WriteSentinel({std::nullopt, CompleteSentinel(kTtl), Millis(0)});
  const WallTime now = client.NodeTime();
  const auto code = [&](OpKind kind) {
    return client.Ask(Make(kind, "fencepost:{orders}:1", Token::AtWall(now)), LockOptions()).code;
  };
  EXPECT_EQ(code(OpKind::kFill), ReplyCode::kFilled);
  EXPECT_EQ(code(OpKind::kExtend), ReplyCode::kExtended);
  EXPECT_EQ(code(OpKind::kAbort), ReplyCode::kFreed);
  EXPECT_EQ(code(OpKind::kDone), ReplyCode::kMarkedLate);
  EXPECT_EQ(code(OpKind::kAcquire), ReplyCode::kDone);
  EXPECT_EQ(code(OpKind::kForget), ReplyCode::kFreed);
  EXPECT_EQ(code(OpKind::kRelease), ReplyCode::kExpired);
  EXPECT_TRUE(ErrorOf(client, Make(OpKind::kDone, "another:1")).starts_with("NOPERM"));
}

TEST(NodeStore, SaysNoscriptAfterARestartUntilTheScriptsAreLoadedAgain) {
  RedisServer server;
  const Op op = Make(OpKind::kDone, "fencepost:{orders}:1");
  {
    ScriptClient client(server);
    client.Command({"SET", kSentinel, CompleteSentinel(kTtl)});
    client.Command({"SCRIPT", "FLUSH"});
    EXPECT_TRUE(ErrorOf(client, op).starts_with("NOSCRIPT"));
  }
  ScriptClient again(server);
  EXPECT_EQ(ErrorOf(again, op), "");
}

}  // namespace
}  // namespace fencepost::testing
