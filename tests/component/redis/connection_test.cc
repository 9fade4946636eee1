// One connection against a real node.
#include "locking/redis/node/connection.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "locking/redis/session/node_error.h"
#include "tests/component/redis/scripted_client.h"

namespace fencepost::locking {
namespace {

using namespace std::chrono_literals;
using fencepost::testing::FreePort;
using fencepost::testing::RedisServer;
using fencepost::testing::RedisServerOptions;

void WriteSentinel(const RedisServer& server) {
  ASSERT_EQ(server.Command({"SET", std::string(kSentinelKey), SentinelText()}), "OK");
}

class ConnectionTest : public ::testing::Test {
 protected:
  explicit ConnectionTest(RedisServerOptions options = {})
      : server(std::move(options)), harness(server.address()), client(harness.client) {
    WriteSentinel(server);
    harness.options.lock.node_timeout = 2000ms;
  }

  void Connect() {
    harness.Start();
    ASSERT_TRUE(harness.RunUntilConnected());
  }
  std::optional<ReplyCode> Ask(OpKind kind, std::uint32_t lock) {
    client.replies.clear();
    client.Queue(kind, lock);
    EXPECT_TRUE(harness.RunUntilReplies(1));
    return client.CodeOf(lock, kind);
  }

  RedisServer server;
  ConnectionHarness harness;
  ScriptedClient& client;
};

TEST_F(ConnectionTest, TellsWhatTheNodeIsBeforeAnythingElse) {
  Connect();
  const NodeInfo& info = client.infos.at(0);
  EXPECT_EQ(info.run_id.size(), 40u);
  EXPECT_EQ(info.maxmemory_policy, "noeviction");
  EXPECT_EQ(info.role, "master");
  EXPECT_EQ(info.sentinel, SentinelText());
  EXPECT_LT(std::chrono::abs(info.call.node_time - ReadClocks().wall), 2s);
  EXPECT_LE(info.call.sent_at, info.call.received_at);
  EXPECT_EQ(client.reconnects, 0);
}

TEST_F(ConnectionTest, SendsOneCallForEachRunOfAKindAndAnswersAllOpsTogether) {
  Connect();
  for (std::uint32_t lock = 1; lock <= 300; ++lock) client.Queue(OpKind::kAcquire, lock);
  ASSERT_TRUE(harness.RunUntilReplies(300));
  for (std::uint32_t lock = 1; lock <= 300; ++lock) {
    EXPECT_EQ(client.CodeOf(lock, OpKind::kAcquire), ReplyCode::kGranted);
  }
  client.Queue(OpKind::kExtend, 1);
  client.Queue(OpKind::kExtend, 301);
  client.Queue(OpKind::kRelease, 2);
  client.Queue(OpKind::kDone, 3);
  client.calls.clear();
  ASSERT_TRUE(harness.RunUntilReplies(304));
  EXPECT_EQ(client.batches, 2u);
  EXPECT_EQ(client.calls, (std::vector<OpKind>{OpKind::kExtend, OpKind::kRelease, OpKind::kDone}));
  EXPECT_EQ(client.CodeOf(1, OpKind::kExtend), ReplyCode::kExtended);
  EXPECT_EQ(client.CodeOf(301, OpKind::kExtend), ReplyCode::kExpired);
  EXPECT_EQ(client.CodeOf(2, OpKind::kRelease), ReplyCode::kFreed);
  EXPECT_EQ(client.CodeOf(3, OpKind::kDone), ReplyCode::kMarked);
}

TEST_F(ConnectionTest, SendsNoLockOperationWhileTheNodeIsNotOpen) {
  client.open = false;
  Connect();
  client.Queue(OpKind::kAcquire, 1);
  client.commands.push_back({StoreCommand::Kind::kProbe, {}});
  ASSERT_TRUE(harness.RunUntilConnected());  // commands go all the same
  EXPECT_TRUE(client.replies.empty());
  client.open = true;
  ASSERT_TRUE(harness.RunUntilReplies(1));
}

TEST_F(ConnectionTest, LoadsTheScriptsAgainAfterAFlushAndResends) {
  Connect();
  ASSERT_EQ(server.Command({"SCRIPT", "FLUSH"}), "OK");
  client.Queue(OpKind::kAcquire, 1);
  client.Queue(OpKind::kDone, 2);
  ASSERT_TRUE(harness.RunUntilReplies(2));
  EXPECT_EQ(client.CodeOf(1, OpKind::kAcquire), ReplyCode::kGranted);
  EXPECT_EQ(client.CodeOf(2, OpKind::kDone), ReplyCode::kMarkedLate);
  EXPECT_EQ(client.replies.size(), 2u);
  EXPECT_EQ(client.infos.size(), 2u) << "run_id is read again before anything is resent";
  EXPECT_EQ(client.Count(CommandError::kNoscript), 2);
  EXPECT_EQ(client.disconnects, 0);
}

TEST_F(ConnectionTest, ResendsNothingToANodeThatIsNoLongerOpen) {
  Connect();
  ASSERT_EQ(server.Command({"SCRIPT", "FLUSH"}), "OK");
  client.Queue(OpKind::kAcquire, 1);
  // Closed by what the store learns in between: Open is asked before the batch, and before
  // resending.
  ASSERT_TRUE(
      harness.RunUntil([&] { return client.Count(CommandError::kNoscript) == 1; }, "NOSCRIPT"));
  client.open = false;
  ASSERT_TRUE(harness.RunUntilReplies(1));
  EXPECT_EQ(client.replies[0].code, ReplyCode::kConnection);
}

TEST_F(ConnectionTest, AnswersTimeoutOfAStoppedNodeAndThrowsItsLateAnswersAway) {
  harness.options.lock.node_timeout = 300ms;
  Connect();
  server.Pause();
  client.Queue(OpKind::kAcquire, 1);
  client.Queue(OpKind::kRelease, 2);
  ASSERT_TRUE(harness.RunUntilReplies(2));
  EXPECT_EQ(client.replies[0].code, ReplyCode::kTimeout);
  EXPECT_EQ(client.replies[1].code, ReplyCode::kTimeout);
  EXPECT_TRUE(client.stalled);
  EXPECT_FALSE(harness.connection->Busy());
  EXPECT_EQ(client.Count(CommandError::kTimeout), 2);

  server.Resume();
  ASSERT_TRUE(harness.RunUntil([&] { return !client.stalled; }, "the late answers"));
  EXPECT_EQ(client.disconnects, 0);
  EXPECT_EQ(client.replies.size(), 2u);
  EXPECT_EQ(Ask(OpKind::kRelease, 1), ReplyCode::kFreed) << "the late acquire had taken effect";
}

TEST_F(ConnectionTest, ClosesTheConnectionAfterTenTimeoutsAndComesBack) {
  harness.options.lock.node_timeout = 30ms;
  Connect();
  server.Pause();
  client.Queue(OpKind::kAcquire, 1);
  ASSERT_TRUE(harness.RunUntil([&] { return client.disconnects == 1; }, "the end"));
  EXPECT_EQ(client.stalls, 1);
  EXPECT_EQ(client.replies.size(), 1u);
  EXPECT_TRUE(client.Noted(server.address() + ": the lock node is unavailable: no answer"));
  server.Resume();
  ASSERT_TRUE(harness.RunUntilConnected());
  EXPECT_EQ(client.reconnects, 1);
  EXPECT_TRUE(client.Noted("redis_node_back"));
}

TEST_F(ConnectionTest, AnswersConnectionWhenTheNodeDiesWithABatchOut) {
  Connect();
  server.Pause();
  client.Queue(OpKind::kAcquire, 1);
  ASSERT_TRUE(harness.RunUntil([&] { return harness.connection->Busy(); }, "the batch"));
  server.Kill();
  ASSERT_TRUE(harness.RunUntilReplies(1));
  EXPECT_EQ(client.replies[0].code, ReplyCode::kConnection);
  EXPECT_EQ(client.disconnects, 1);
  EXPECT_GE(client.Count(CommandError::kConnection), 1);

  server.Start();
  ASSERT_TRUE(harness.RunUntilConnected());
  EXPECT_EQ(client.reconnects, 1);
  EXPECT_NE(client.infos[0].run_id, client.infos[1].run_id);
  EXPECT_EQ(client.infos[1].sentinel, std::nullopt);
}

TEST_F(ConnectionTest, KeepsTryingWhileTheNodeIsAway) {
  server.Kill();
  harness.Start();
  ASSERT_TRUE(harness.RunUntil([&] { return client.Count(CommandError::kConnection) == 4; },
                               "four attempts"));
  EXPECT_EQ(client.notes.size(), 1u) << "one line for one reason";
  EXPECT_TRUE(client.Noted("Connection refused"));
  EXPECT_EQ(client.disconnects, 0);
}

TEST_F(ConnectionTest, WritesTheSentinelAndTellsWhatStandsThere) {
  Connect();
  SentinelWrite write{.expected = SentinelText(), .replacement = SentinelText(1, 3)};
  client.commands.push_back({StoreCommand::Kind::kWrite, write});
  client.commands.push_back({StoreCommand::Kind::kWrite, write});
  ASSERT_TRUE(harness.RunUntil([&] { return client.sentinels.size() == 2; }, "two answers"));
  EXPECT_EQ(client.sentinels[0], SentinelText(1, 3));
  EXPECT_EQ(client.sentinels[1], SentinelText(1, 3));
  EXPECT_EQ(server.Command({"GET", std::string(kSentinelKey)}), SentinelText(1, 3));
}

TEST_F(ConnectionTest, AsksTheNodeAgainWhenTheScriptOfASentinelWriteIsGone) {
  Connect();
  ASSERT_EQ(server.Command({"SCRIPT", "FLUSH"}), "OK");
  client.commands.push_back({StoreCommand::Kind::kWrite,
                             {.expected = SentinelText(), .replacement = SentinelText(1, 3)}});
  ASSERT_TRUE(harness.RunUntilConnected());
  EXPECT_TRUE(client.sentinels.empty());
  EXPECT_EQ(client.disconnects, 0);
}

TEST_F(ConnectionTest, TellsOnceABatchThatTheNodeWasWiped) {
  Connect();
  ASSERT_EQ(server.Command({"FLUSHALL"}), "OK");
  client.Queue(OpKind::kAcquire, 1);
  client.Queue(OpKind::kDone, 2);
  ASSERT_TRUE(harness.RunUntilReplies(2));
  EXPECT_EQ(client.replies[0].code, ReplyCode::kNoSentinel);
  EXPECT_EQ(client.replies[1].code, ReplyCode::kNoSentinel);
  EXPECT_EQ(client.no_sentinels, 1);
}

TEST_F(ConnectionTest, TellsThatAReplicaRefusesAndAsksItsRoleAgain) {
  Connect();
  ASSERT_EQ(server.Command({"REPLICAOF", "127.0.0.1", std::to_string(FreePort())}), "OK");
  EXPECT_EQ(Ask(OpKind::kAcquire, 1), ReplyCode::kError);
  EXPECT_EQ(client.Count(CommandError::kReadonly), 1);
  EXPECT_TRUE(client.Noted("list independent primaries"));
  ASSERT_TRUE(harness.RunUntil([&] { return client.infos.size() == 2; }, "the probe"));
  EXPECT_EQ(client.infos[1].role, "slave");
}

TEST_F(ConnectionTest, RefusesNothingButNewLeasesWhenTheNodeIsFull) {
  Connect();
  EXPECT_EQ(Ask(OpKind::kAcquire, 1), ReplyCode::kGranted);
  ASSERT_EQ(server.Command({"CONFIG", "SET", "maxmemory", "1"}), "OK");
  EXPECT_EQ(Ask(OpKind::kAcquire, 2), ReplyCode::kError);
  EXPECT_EQ(client.Count(CommandError::kOom), 1);
  EXPECT_TRUE(client.Noted("maxmemory"));
  EXPECT_EQ(Ask(OpKind::kExtend, 1), ReplyCode::kExtended);
  EXPECT_EQ(Ask(OpKind::kDone, 1), ReplyCode::kMarked);
  EXPECT_THAT(harness.connection->Refuses(BootClock::now()), ::testing::HasSubstr("OOM"));
  EXPECT_EQ(harness.connection->Refuses(BootClock::now() + 61s), "") << "nobody has asked since";
  ASSERT_EQ(server.Command({"CONFIG", "SET", "maxmemory", "0"}), "OK");
  EXPECT_EQ(Ask(OpKind::kAcquire, 3), ReplyCode::kGranted);
  EXPECT_EQ(harness.connection->Refuses(BootClock::now()), "");
}

TEST_F(ConnectionTest, MayBeDestroyedAtAnyTime) {
  for (int steps = 0; steps < 12; ++steps) {
    harness.Start();
    for (int i = 0; i < steps; ++i) {
      harness.io.restart();
      harness.io.run_one_for(5ms);
      client.Queue(OpKind::kAcquire, 1);
      harness.connection->Pump();
    }
    harness.connection.reset();
    harness.io.restart();
    harness.io.run_for(20ms);
    EXPECT_TRUE(harness.io.stopped()) << "a handler waits on after " << steps << " steps";
  }
}

class LoginTest : public ConnectionTest {
 protected:
  static RedisServerOptions Options() {
    RedisServerOptions options;
    options.config = {
        "user fencepost reset on >secret ~fencepost:* resetchannels -@all +set +get +del +pexpire "
        "+pttl +time +info +eval +evalsha +script|load +ping",
    };
    return options;
  }
  LoginTest() : ConnectionTest(Options()) {}
};

TEST_F(LoginTest, SaysThatThePasswordIsWrongAndNeverPrintsIt) {
  harness.options.username = "fencepost";
  harness.options.password = "hunter2";
  harness.Start();
  ASSERT_TRUE(harness.RunUntil([&] { return !client.notes.empty(); }, "the note"));
  EXPECT_TRUE(client.Noted("WRONGPASS"));
  EXPECT_TRUE(client.Noted("check lock.redis.username and lock.redis.password"));
  EXPECT_FALSE(client.Noted("hunter2"));
  EXPECT_GE(client.Count(CommandError::kAuth), 1);
  EXPECT_TRUE(client.infos.empty());
}

// Redis repeats the arguments of a command that it does not know.
TEST(Login, NeverPrintsThePasswordThatTheNodeRepeats) {
  RedisServerOptions renamed;
  renamed.config = {"rename-command AUTH \"\""};
  const RedisServer server(std::move(renamed));
  ConnectionHarness harness(server.address());
  harness.options.username = "bob";
  harness.options.password = "hunter2";
  harness.Start();
  ASSERT_TRUE(harness.RunUntil([&] { return !harness.client.notes.empty(); }, "the note"));
  EXPECT_TRUE(harness.client.Noted("unknown command 'AUTH'; use Redis"));
  EXPECT_FALSE(harness.client.Noted("hunter2"));
}

// Hints by what the node answers, of nodes that cannot be lock nodes.
TEST(NodeError, NamesAClusterAndASentinel) {
  for (const char* text : {"MOVED 3999 127.0.0.1:6381", "ASK 3999 127.0.0.1:6381",
                           "CROSSSLOT Keys in request don't hash to the same slot",
                           "CLUSTERDOWN Hash slot not served"}) {
    EXPECT_THAT(ReadNodeError(text).hint,
                ::testing::HasSubstr("Redis Cluster (cluster_enabled:1); list independent"))
        << text;
  }
  EXPECT_THAT(ReadNodeError("ERR unknown command 'SCRIPT', with args beginning with:").hint,
              ::testing::EndsWith("and no Sentinel"));
}

TEST(Cluster, IsSeenByItsModeWhereItIsOfOneShard) {
  RedisServerOptions options;
  options.config = {"cluster-enabled yes", fmt::format("cluster-port {}", FreePort())};
  const RedisServer server(std::move(options));
  ASSERT_EQ(server.Command({"CLUSTER", "ADDSLOTSRANGE", "0", "16383"}), "OK");
  ConnectionHarness harness(server.address());
  harness.Start();
  ASSERT_TRUE(harness.RunUntil([&] { return !harness.client.infos.empty(); }, "a probe"));
  EXPECT_EQ(harness.client.infos.front().mode, "cluster");
}

TEST_F(ConnectionTest, SaysThatTheNodeWantsAPassword) {
  ASSERT_EQ(server.Command({"CONFIG", "SET", "requirepass", "secret"}), "OK");
  harness.Start();
  ASSERT_TRUE(harness.RunUntil([&] { return client.Count(CommandError::kAuth) > 0; }, "NOAUTH"));
  EXPECT_TRUE(client.Noted("check lock.redis.username and lock.redis.password"));
}

}  // namespace
}  // namespace fencepost::locking
