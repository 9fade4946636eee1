// What nodes that are away, slow or of different opinions do to a lock. The table of mistakes
// stands in leases_test.cc.
#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "tests/component/pitfalls/pitfall_fixture.h"

namespace fencepost::locking {
namespace {

using testing::TcpProxy;

class NodePitfall : public PitfallTest {
 protected:
  NodePitfall() { contact_ = Contact::kQuorum; }
};

TEST_F(NodePitfall, AnAcquireThatTimedOutLeavesNoOrphan) {
  auto options = Options();
  options.lock.node_timeout = 300ms;
  const auto lock = Connect(options);
  const auto other = Connect();
  nodes_[0].Pause();
  nodes_[1].Pause();
  EXPECT_EQ(Code(lock->Acquire("name", {.wait = 100ms, .ttl = 25s})), "no_quorum");
  ResumeAll();
  // Long before the ttl; the late grants are taken back although nobody waits for them any more.
  EXPECT_TRUE(WaitUntil(10s, "the aborts", [&] {
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (StateAt(node, "name") == 'H') return false;
    }
    return true;
  }));
  EXPECT_EQ(Code(other->Acquire("name", {.wait = 10s})), "");
}

class AnswersOfNode0 : public NodesUp {
 public:
  std::atomic<int> answers{0};
  void OnCall(NodeIndex node, OpKind, std::size_t, Nanos) override { answers += node == 0; }
};

TEST_F(NodePitfall, ANodeThatDoesNotAnswerHoldsUpNoLock) {
  constexpr int kLocks = 50;
  TcpProxy proxy(nodes_[0].port());
  auto options = Options();
  options.redis.nodes[0] = proxy.address();
  options.lock.node_timeout = 25s;  // nothing times out while the test runs
  options.lock.ttl = 20s;
  AnswersOfNode0 observer;
  const auto lock = Connect(options, observer);
  proxy.BlackHole(TcpProxy::Way::kToClient);
  const int before = observer.answers;
  const Instant begun = BootClock::now();
  for (int i = 0; i < kLocks; ++i) {
    auto lease = lock->Acquire("name-" + std::to_string(i % 5), {.wait = 20s});
    ASSERT_TRUE(lease) << i << ": " << lease.error().Line();
    EXPECT_EQ(lease->Release(), ReleaseOutcome::kReleased) << i;
  }
  EXPECT_LT(BootClock::now() - begun, options.lock.node_timeout) << "each waited for it a little";
  EXPECT_LE(observer.answers, before + 1);  // one may have been on the way
  EXPECT_EQ(observer.up, 0b111U);           // nor was it given up: its answers are still awaited
  proxy.Restore();
}

TEST_F(NodePitfall, ContentionAndOutageAreDifferentErrors) {
  auto options = Options();
  options.lock.node_timeout = 300ms;
  const auto lock = Connect(options);
  const auto other = Connect();
  const Lease theirs = Take(*other, "name", {.ttl = 25s});
  EXPECT_EQ(Code(lock->Acquire("name")), "contended");
  EXPECT_EQ(Code(lock->Acquire("name", {.wait = 200ms})), "contended");
  PauseAll();
  EXPECT_EQ(Code(lock->Acquire("name")), "no_quorum");
  EXPECT_EQ(Code(lock->Acquire("free")), "no_quorum");
  ResumeAll();
  testing::RequireWithin(10s, "the nodes to be back",
                         [&] { return Code(lock->Acquire("name")) == "contended"; });
  nodes_[0].Kill();
  EXPECT_EQ(Code(lock->Acquire("name", {.wait = 200ms})), "contended");  // a quorum still says so
  nodes_[1].Kill();
  EXPECT_EQ(Code(lock->Acquire("name", {.wait = 1s})), "no_quorum");
  EXPECT_EQ(Code(lock->Acquire("free", {.wait = 200ms})), "no_quorum");
}

TEST_F(NodePitfall, DestructorsDoNotThrowWhereNoNodeIsLeft) {
  static_assert(std::is_nothrow_destructible_v<Lease>);
  static_assert(std::is_nothrow_destructible_v<QuorumLock>);
  static_assert(std::is_nothrow_move_assignable_v<Lease>);
  auto options = Options();
  options.lock.node_timeout = 300ms;
  auto lock = Connect(options);
  Lease outlives = Take(*lock, "outlives");
  {
    const Lease dropped = Take(*lock, "dropped");
    const Lease frozen = Take(*lock, "frozen");
    for (std::size_t node = 0; node < nodes_.size(); ++node) nodes_[node].Kill();
  }
  // A throw would end the program.
  lock.reset();
  EXPECT_FALSE(outlives.valid());
  outlives = Lease();
}

// Three clients, each next to another node: each gets one grant, and nobody a quorum.
TEST_F(NodePitfall, AnEvenSplitIsResolved) {
  constexpr std::size_t kClients = 3;
  constexpr Millis kFar = 40ms;
  std::array<std::array<std::unique_ptr<TcpProxy>, 3>, kClients> proxies;
  std::vector<std::unique_ptr<QuorumLock>> locks;
  for (std::size_t client = 0; client < kClients; ++client) {
    auto options = Options();
    for (std::size_t node = 0; node < 3; ++node) {
      proxies[client][node] = std::make_unique<TcpProxy>(nodes_[node].port());
      options.redis.nodes[node] = proxies[client][node]->address();
    }
    locks.push_back(Connect(options));
    for (std::size_t node = 0; node < 3; ++node) {
      if (node != client) proxies[client][node]->Delay(kFar, TcpProxy::Way::kToServer);
    }
  }
  for (int round = 0; round < 3; ++round) {
    const std::string name = "name-" + std::to_string(round);
    std::atomic<int> had{0};
    for (const auto& lock : locks) {
      lock->AcquireAsync(name, {.wait = 20s, .ttl = 20s}, [&](QuorumLock::Result result) {
        if (result) ++had;  // given back as it goes
      });
    }
    ASSERT_TRUE(WaitUntil(20s, "each to have had " + name,
                          [&] { return had == static_cast<int>(kClients); }));
  }
}

TEST_F(NodePitfall, AWaiterGoesOnAfterAShortStall) {
  auto options = Options();
  options.lock.node_timeout = 300ms;
  const auto lock = Connect(options);
  const auto other = Connect(options);
  Lease theirs = Take(*other, "name", {.ttl = 25s, .watchdog = false});
  std::atomic<bool> had{false};
  std::string code;
  std::thread waiter([&] {
    code = Code(lock->Acquire("name", {.wait = 30s}));
    had = true;
  });
  PauseAll();
  // Frozen for longer than a call may take: the waiter's questions time out meanwhile.
  const Instant later = BootClock::now() + 3 * options.lock.node_timeout;
  EXPECT_TRUE(WaitUntil(10s, [&] { return BootClock::now() > later; }));
  EXPECT_FALSE(had);
  ResumeAll();
  testing::RequireWithin(10s, "the nodes to answer the holder",
                         [&] { return theirs.Extend().has_value(); });
  EXPECT_EQ(theirs.Release(), ReleaseOutcome::kReleased);
  EXPECT_TRUE(WaitUntil(10s, "the waiter to have it", [&] { return had.load(); }));
  waiter.join();
  EXPECT_EQ(code, "");
}

}  // namespace
}  // namespace fencepost::locking
