// Names of nodes: looked up at every connect, by whoever is asked, however long it takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>

#include <atomic>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <thread>

#include <asio/post.hpp>

#include "locking/redis/wake/subscriber.h"
#include "tests/component/redis/scripted_client.h"

namespace fencepost::locking {
namespace {

using namespace std::chrono_literals;
using fencepost::testing::FreePort;
using fencepost::testing::RedisServer;
using fencepost::testing::TempDir;
using ::testing::HasSubstr;

asio::ip::tcp::endpoint At(const std::string& ip, int port) {
  return {asio::ip::make_address(ip), static_cast<std::uint16_t>(port)};
}

// Nodes at one port of several addresses.
class NameTest : public ::testing::Test {
 protected:
  NameTest() : harness(fmt::format("redis-a:{}", first.port())) {}
  [[nodiscard]] std::unique_ptr<RedisServer> On(const std::string& ip) const {
    return std::make_unique<RedisServer>(
        fencepost::testing::RedisServerOptions{.bind = ip, .port = first.port()});
  }
  void KnowAs(LookUp look_up) { harness.options.look_up = std::move(look_up); }

  RedisServer first;
  ConnectionHarness harness;
  ScriptedClient& client = harness.client;
};

TEST_F(NameTest, IsLookedUpAgainAtEveryConnectSoThatANodeMayMove) {
  std::mutex mutex;
  std::string address = "127.0.0.1";
  std::atomic<int> asked = 0;
  KnowAs([&](const std::string& host, const std::string& port) -> LookedUp {
    ++asked;
    EXPECT_EQ(host, "redis-a");
    const std::lock_guard lock(mutex);
    return TcpEndpoints{At(address, std::stoi(port))};
  });
  harness.Start();
  ASSERT_TRUE(harness.RunUntilConnected());
  EXPECT_EQ(asked, 1);
  const auto second = On("127.0.0.2");
  {
    const std::lock_guard lock(mutex);
    address = "127.0.0.2";
  }
  first.Kill();
  ASSERT_TRUE(harness.RunUntilConnected());
  EXPECT_NE(client.infos[0].run_id, client.infos[1].run_id);
  EXPECT_EQ(client.reconnects, 1);
  EXPECT_GE(asked, 2);
}

// As it does after a failover. The node says so when it is looked at, or when a lock is asked for;
// one that has lost its primary refuses to be read, too.
TEST_F(NameTest, IsLookedUpAgainWhereItsNodeHasBecomeAReplica) {
  const auto second = On("127.0.0.2");
  std::string address;
  KnowAs([&](const std::string&, const std::string& port) -> LookedUp {
    return TcpEndpoints{At(address, std::stoi(port))};
  });
  const auto look = [&] { client.commands.emplace_back(); };
  const auto ask = [&] { client.Queue(OpKind::kAcquire, 1); };
  for (const auto& [serves, notice] :
       {std::pair("yes", std::function<void()>(look)), std::pair("yes", std::function<void()>(ask)),
        std::pair("no", std::function<void()>(look)),
        std::pair("no", std::function<void()>(ask))}) {
    address = "127.0.0.1";
    client.infos.clear();
    harness.Start();
    ASSERT_TRUE(harness.RunUntilConnected());
    address = "127.0.0.2";
    first.Command({"CONFIG", "SET", "replica-serve-stale-data", serves});
    first.Command({"REPLICAOF", "127.0.0.1", std::to_string(FreePort())});
    notice();
    ASSERT_TRUE(harness.RunUntil([&] { return client.infos.size() == 3; }, "the other node"));
    EXPECT_EQ(client.infos[1].role, "slave") << "the store is told";
    EXPECT_EQ(client.infos[2].role, "master");
    EXPECT_NE(client.infos[1].run_id, client.infos[2].run_id);
    EXPECT_TRUE(client.Open());
    first.Command({"REPLICAOF", "NO", "ONE"});
  }
}

TEST_F(NameTest, MayHaveSeveralAddressesOfWhichOneAnswers) {
  KnowAs([](const std::string&, const std::string& port) -> LookedUp {
    return TcpEndpoints{At("127.0.0.9", std::stoi(port)), At("127.0.0.1", std::stoi(port))};
  });
  harness.Start();
  ASSERT_TRUE(harness.RunUntilConnected());
  EXPECT_TRUE(client.errors.empty()) << "one attempt was enough";
}

TEST_F(NameTest, HasItsOtherAddressesTriedNextWhenSomeAnswerNothing) {
  const auto second = On("127.0.0.2");
  const auto third = On("127.0.0.3");
  first.Pause();  // takes connections, and says nothing
  second->Pause();
  KnowAs([](const std::string&, const std::string& port) -> LookedUp {
    const int at = std::stoi(port);
    return TcpEndpoints{At("127.0.0.1", at), At("127.0.0.2", at), At("127.0.0.3", at)};
  });
  harness.Start();
  ASSERT_TRUE(harness.RunUntilConnected());
  EXPECT_EQ(client.Count(CommandError::kTimeout), 2);
  third->Kill();
  second->Resume();
  ASSERT_TRUE(harness.RunUntilConnected());
}

// Its users are at different addresses: what answers one of them must not make another forget which
// address swallowed everything.
TEST_F(NameTest, RemembersForEachOfItsUsersWhichAddressToLeaveForLater) {
  NameLookup names(harness.io);
  const TcpEndpoints found{At("127.0.0.1", 1), At("127.0.0.2", 1), At("127.0.0.3", 1)};
  const TcpEndpoints later{At("127.0.0.2", 1), At("127.0.0.3", 1), At("127.0.0.1", 1)};
  const int connection = 0;
  const int subscriber = 0;
  names.Trying(&connection, found[0]);
  names.Trying(&subscriber, found[1]);
  names.Worked(&subscriber);
  EXPECT_EQ(names.InTurn(&connection, found), later);
  EXPECT_EQ(names.InTurn(&subscriber, found), found);
  names.Worked(&connection);
  EXPECT_EQ(names.InTurn(&connection, found), found);
}

TEST_F(NameTest, ThatCannotBeResolvedIsSaid) {
  std::atomic<bool> known = false;
  KnowAs([&](const std::string&, const std::string& port) -> LookedUp {
    if (!known) return tl::unexpected(std::string("Name or service not known"));
    return TcpEndpoints{At("127.0.0.1", std::stoi(port))};
  });
  harness.Start();
  ASSERT_TRUE(harness.RunUntil([&] { return !client.notes.empty(); }, "the note"));
  EXPECT_THAT(client.notes[0],
              HasSubstr(fmt::format(
                  "redis-a:{}: the lock node is unavailable: the name cannot be resolved: "
                  "Name or service not known",
                  first.port())));
  known = true;
  ASSERT_TRUE(harness.RunUntilConnected());
}

TEST_F(NameTest, WhoseLookupHangsHoldsUpNeitherTheThreadNorTheEnd) {
  struct Hang {
    std::mutex mutex;
    std::condition_variable changed;
    bool over = false;
    int running = 0;
    int most = 0;
  };
  const auto hang = std::make_shared<Hang>();
  KnowAs([hang](const std::string&, const std::string& port) -> LookedUp {
    std::unique_lock lock(hang->mutex);
    hang->most = std::max(hang->most, ++hang->running);
    hang->changed.notify_all();
    hang->changed.wait(lock, [&] { return hang->over; });
    --hang->running;
    hang->changed.notify_all();
    return TcpEndpoints{At("127.0.0.1", std::stoi(port))};
  });
  harness.Start();
  int turns = 0;
  const std::function<void()> turn = [&] {
    ++turns;
    asio::post(harness.io, turn);
  };
  asio::post(harness.io, turn);
  // Timed out, and tried again, while the first lookup still hangs.
  ASSERT_TRUE(harness.RunUntil([&] { return client.errors.size() >= 2; }, "two timeouts"));
  EXPECT_GT(turns, 100) << "the loop goes on";
  EXPECT_TRUE(client.Noted("no connection and login within the timeout, at: looking the name up"));
  const auto began = std::chrono::steady_clock::now();
  harness.connection.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s) << "the lookup hangs until this is over";
  std::unique_lock lock(hang->mutex);
  EXPECT_EQ(hang->most, 1) << "one lookup at a time";
  hang->over = true;
  hang->changed.notify_all();
  EXPECT_TRUE(hang->changed.wait_for(lock, 10s, [&] { return hang->running == 0; }));
}

class NobodyWaits final : public SubscriberClient {
 public:
  void OnFreed(std::string_view) override {}
  void OnNote(Severity, std::string_view, std::string_view) override {}
};

TEST_F(NameTest, IsLookedUpOnceForAllThatConnectToTheNode) {
  struct Hang {
    std::mutex mutex;
    std::condition_variable changed;
    bool over = false;
    int asked = 0;
  };
  const auto hang = std::make_shared<Hang>();
  harness.options.names = std::make_shared<NameLookup>(
      harness.io, [hang](const std::string&, const std::string& port) -> LookedUp {
        std::unique_lock lock(hang->mutex);
        ++hang->asked;
        hang->changed.wait(lock, [&] { return hang->over; });
        return TcpEndpoints{At("127.0.0.1", std::stoi(port))};
      });
  harness.Start();
  NobodyWaits nobody;
  Subscriber subscriber(harness.io, harness.options, nobody);
  subscriber.Watch("a");
  // Both have timed out and tried again.
  ASSERT_TRUE(harness.RunUntil([&] { return client.errors.size() >= 2; }, "two timeouts"));
  {
    const std::lock_guard lock(hang->mutex);
    EXPECT_EQ(hang->asked, 1);
    hang->over = true;
    hang->changed.notify_all();
  }
  ASSERT_TRUE(harness.RunUntilConnected());
  EXPECT_TRUE(harness.RunUntil([&] { return subscriber.Listening(); }, "the subscription"));
}

// What /etc/hosts says to this thread, and to those it starts, alone.
bool OwnHosts(const std::string& file) {
  return unshare(CLONE_FS | CLONE_NEWNS) == 0 &&
         mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount(file.c_str(), "/etc/hosts", nullptr, MS_BIND, nullptr) == 0;
}

TEST_F(NameTest, FollowsTheSystemsOwnResolver) {
  const TempDir dir;
  const std::string hosts = dir.Write("hosts", "127.0.0.1 redis-a\n");
  bool may = true;
  std::thread([&] {
    may = OwnHosts(hosts);
    if (!may) return;
    harness.Start();
    ASSERT_TRUE(harness.RunUntilConnected());
    const auto second = On("127.0.0.2");
    std::ofstream(hosts) << "127.0.0.2 redis-a\n";  // in place: it is mounted
    first.Kill();
    ASSERT_TRUE(harness.RunUntilConnected());
    EXPECT_NE(client.infos[0].run_id, client.infos[1].run_id);
  }).join();
  if (!may) GTEST_SKIP() << "needs the right to mount (root)";
}

}  // namespace
}  // namespace fencepost::locking
