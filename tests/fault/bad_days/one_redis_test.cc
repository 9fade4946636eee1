// One Redis where the ledger decides: a primary, a replica and a Sentinel that promotes it. Workers
// reach them at one address that follows the primary, as that of a managed Redis does.
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <thread>

#include "tests/support/pipeline_test.h"
#include "tests/support/tcp_proxy.h"

namespace fencepost::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

class ManagedRedis {
 public:
  ManagedRedis() {
    AwaitReplica();
    follower_ = std::thread([this] { Follow(); });
  }
  ~ManagedRedis() {
    ended_ = true;
    follower_.join();
  }
  ManagedRedis(const ManagedRedis&) = delete;
  ManagedRedis& operator=(const ManagedRedis&) = delete;

  [[nodiscard]] std::string address() const { return address_.address(); }

  // The primary is gone, with what it wrote since its replica last heard from it.
  void LosePrimary() {
    RedisServer& lost = primary();
    RedisServer& next = replica();
    next.Pause();
    AwaitWrites(lost);
    lost.Kill();
    next.Resume();
    AwaitPrimary(next);
    lost.Start();  // empty, until it has the copy
    lost.Command({"REPLICAOF", "127.0.0.1", std::to_string(next.port())});
    AwaitReplica();
  }
  // As for maintenance: the former primary lives, and becomes the replica.
  void SwitchOver() {
    RedisServer& next = replica();
    AwaitWrites(primary());
    sentinel_.Command({"SENTINEL", "failover", "m"});
    AwaitPrimary(next);
    AwaitReplica();
  }

 private:
  RedisServer& primary() { return to_ == primary_.port() ? primary_ : replica_; }
  RedisServer& replica() { return to_ == primary_.port() ? replica_ : primary_; }
  static void AwaitWrites(const RedisServer& server) {
    const std::int64_t before = server.Calls("set");
    RequireWithin(seconds(20), "locks", [&] { return server.Calls("set") > before + 20; });
  }
  void Follow() {
    RequireWithin(std::chrono::hours(1), "the end of the test", [this] {
      const std::string now = sentinel_.Command({"SENTINEL", "get-master-addr-by-name", "m"});
      const std::size_t line = now.find('\n');
      const int port = line == now.npos ? to_.load() : std::stoi(now.substr(line + 1));
      if (port != to_) {
        address_.Forward(port);
        address_.Cut();
        to_ = port;
      }
      return ended_.load();
    });
  }
  void AwaitPrimary(const RedisServer& server) const {
    RequireWithin(seconds(30), "Sentinel to promote the replica",
                  [&] { return to_ == server.port(); });
  }
  // Sentinel knows that it has a copy: it promotes no other.
  void AwaitReplica() const {
    RequireWithin(seconds(30), "the replica to have a copy", [&] {
      const std::string known = sentinel_.Command({"SENTINEL", "replicas", "m"});
      return known.find("master-link-status\nok") != std::string::npos;
    });
  }

  RedisServer primary_;
  RedisServer replica_{{.config = {fmt::format("replicaof 127.0.0.1 {}", primary_.port())}}};
  RedisServer sentinel_{
      {.config = {fmt::format("sentinel monitor m 127.0.0.1 {} 1", primary_.port()),
                  "sentinel down-after-milliseconds m 500", "sentinel failover-timeout m 5000"},
       .sentinel = true}};
  TcpProxy address_{primary_.port()};
  std::atomic<int> to_ = primary_.port();
  std::atomic<bool> ended_ = false;
  std::thread follower_;
};

class OneRedis : public PipelineTest {
 protected:
  OneRedis() : orders_(Kafka().bootstrap(), name_, 4, 5, 0.05) {}

  // Records come, and meanwhile the trouble; says how long there was no effect at most.
  void Round(const char* what, const std::function<void()>& trouble) {
    const auto produced = std::async(std::launch::async, [this] { orders_.Produce(8000); }).share();
    const auto over = std::async(std::launch::async, trouble).share();
    auto last = Clock::now();
    auto longest = Clock::duration::zero();
    int rows = -1;
    EXPECT_TRUE(WaitUntil(seconds(90), "all effects", [&] {
      const int now = table_->Count();
      if (now != rows) {
        longest = std::max(longest, Clock::now() - last);
        last = Clock::now();
      }
      rows = now;
      const auto done = [](const auto& one) {
        return one.wait_for(seconds(0)) == std::future_status::ready;
      };
      return done(produced) && done(over) && rows >= orders_.unique();
    })) << team_->Tails();
    EXPECT_NO_THROW(over.get());
    fmt::print("{}: {} ms without an effect\n", what, longest / milliseconds(1));
  }

  Orders orders_;
  std::optional<WorkerTeam> team_;
};

TEST_F(OneRedis, ThatFailsOverUnderLoadAndKillsLosesAndDoublesNothing) {
  ManagedRedis redis;
  PipelineText text = Text(4);
  text.nodes = redis.address();
  text.tokens = false;
  team_.emplace(Worker(text));
  orders_.Produce(2000);
  team_->Start(3);
  ASSERT_TRUE(Effects(orders_.unique())) << team_->Tails();
  Round("the primary is killed", [&] { redis.LosePrimary(); });
  Round("a switchover", [&] { redis.SwitchOver(); });
  Round("the primary and a worker are killed", [&] {
    (*team_)[1].Kill();
    redis.LosePrimary();
  });
  EXPECT_TRUE(AllCommitted()) << team_->Tails();
  team_->Look();
  ExpectAllDone(*team_, orders_.unique());
  EXPECT_EQ(team_->Sum("fencepost_invariant_violations_total"), 0);
  EXPECT_GT(team_->Sum("fencepost_redis_node_restarts_detected_total"), 0);
}

}  // namespace
}  // namespace fencepost::testing
