// An acquire that is given up leaves nothing behind, at whatever moment it was cancelled.
#include <atomic>
#include <functional>
#include <mutex>
#include <stop_token>

#include "tests/component/quorum_lock/lock_fixture.h"

namespace fencepost::locking {
namespace {

// Calls back on the lock's thread at moments that a caller cannot see.
class Moments final : public NodesUp {
 public:
  std::function<void()> on_leased;
  std::atomic<int> tokens{0};
  std::atomic<int> timeouts{0};
  std::atomic<int> contended{0};

  void OnLeased(Nanos) override {
    if (on_leased) on_leased();
  }
  void OnTokenIssued() override { ++tokens; }
  void OnRound(RoundResult result, Nanos) override {
    contended += result == RoundResult::kContended ? 1 : 0;
  }
  void OnCommandError(NodeIndex, CommandError error) override {
    timeouts += error == CommandError::kTimeout ? 1 : 0;
  }
};

class CancelTest : public EveryCount {
 protected:
  void Begin(QuorumLock& lock, AcquireOptions options = {}) {
    options.wait = Millis::max();
    options.cancel = cancel_.get_token();
    lock.AcquireAsync("name", options, [this](QuorumLock::Result result) {
      const std::lock_guard guard(mutex_);
      code_ = Code(result);
      if (result) lease_ = std::move(*result);
      ended_ = true;
    });
  }
  void ExpectCancelled() {
    EXPECT_TRUE(WaitUntil(5s, "the cancelled call", [&] { return ended_.load(); }));
    const std::lock_guard guard(mutex_);
    EXPECT_EQ(code_, "cancelled");
  }
  // Others get the name at once, and nothing of ours stands anywhere in the end.
  void ExpectNothingLeft() {
    EXPECT_TRUE(WaitUntil(10s, "the aborts", [&] { return !AnythingHeld(); }));
    const auto other = Connect();
    auto lease = other->Acquire("name", {.tries = 1});
    EXPECT_TRUE(lease) << lease.error().Line();
  }
  void PauseQuorum() {
    for (std::size_t node = 0; node < quorum(); ++node) nodes_[node].Pause();
  }

  std::stop_source cancel_;
  std::atomic<bool> ended_{false};
  std::mutex mutex_;
  std::string code_;
  Lease lease_;
};

INSTANTIATE_TEST_SUITE_P(Over, CancelTest, kNodeCounts, NodesName);

TEST_P(CancelTest, BeforeItBegan) {
  const auto lock = Connect();
  cancel_.request_stop();
  Begin(*lock);
  ExpectCancelled();
  ExpectNothingLeft();
}

TEST_P(CancelTest, AnyNumberOfMicrosecondsAfterItBegan) {
  const auto lock = Connect();
  int cancelled = 0;
  for (int after = 0; after < 60; ++after) {
    cancel_ = std::stop_source();
    ended_ = false;
    Begin(*lock);
    const Instant at = BootClock::now() + std::chrono::microseconds(15 * after);
    while (BootClock::now() < at) continue;
    cancel_.request_stop();
    ASSERT_TRUE(WaitUntil(5s, [&] { return ended_.load(); }));
    const std::lock_guard guard(mutex_);
    if (code_ == "cancelled") {
      ++cancelled;
      EXPECT_FALSE(lease_.valid());
    } else {
      EXPECT_TRUE(lease_.valid()) << "a lease that was granted is not touched";
      lease_.Release();
    }
  }
  EXPECT_GT(cancelled, 0);
  ExpectNothingLeft();
}

TEST_P(CancelTest, WhileSomeNodesHaveGrantedAndTheOthersAreAwaited) {
  Moments moments;
  auto options = Options();
  options.lock.node_timeout = 20s;  // the paused nodes' answers are still awaited
  const auto lock = Connect(options, moments);
  PauseQuorum();
  Begin(*lock);
  EXPECT_TRUE(WaitUntil(10s, "the first grant", [&] {
    return moments.tokens > 0 && (node_count() == 1 || StateAt(nodes_.size() - 1, "name") == 'H');
  }));
  EXPECT_FALSE(ended_);
  cancel_.request_stop();
  ExpectCancelled();
  ResumeAll();
  EXPECT_TRUE(WaitUntil(10s, "the aborts", [&] { return AllNodesSay('F', "name"); }));
  ExpectNothingLeft();
}

TEST_P(CancelTest, AfterNodesHaveTimedOutThatAnswerLate) {
  Moments moments;
  auto options = Options();
  options.lock.node_timeout = 300ms;  // ten of them until the connection is given up
  const auto lock = Connect(options, moments);
  PauseQuorum();
  Begin(*lock);
  EXPECT_TRUE(WaitUntil(10s, "the timeouts",
                        [&] { return moments.timeouts >= static_cast<int>(quorum()); }));
  cancel_.request_stop();
  ExpectCancelled();
  ResumeAll();
  EXPECT_TRUE(WaitUntil(10s, "the late aborts", [&] {
    for (std::size_t node = 0; node < quorum(); ++node) {
      if (StateAt(node, "name") != 'F') return false;  // granted late, then aborted
    }
    return true;
  }));
  ExpectNothingLeft();
}

TEST_P(CancelTest, WhileItWaitsForAnotherHolder) {
  Moments moments;
  const auto lock = Connect(Options(), moments);
  const auto holder = Connect();
  auto held = holder->Acquire("name");
  ASSERT_TRUE(held) << held.error().Line();
  Begin(*lock);
  EXPECT_TRUE(WaitUntil(10s, "rounds", [&] { return moments.contended >= 2; }));
  cancel_.request_stop();
  ExpectCancelled();
  EXPECT_TRUE(held->valid());
  EXPECT_EQ(held->Release(), ReleaseOutcome::kReleased);
  ExpectNothingLeft();
}

TEST_P(CancelTest, BetweenTheGrantAndItsBeingTold) {
  Moments moments;
  moments.on_leased = [this] { cancel_.request_stop(); };
  const auto lock = Connect(Options(), moments);
  Begin(*lock, {.ttl = 20s});
  ExpectCancelled();
  EXPECT_TRUE(WaitUntil(10s, "the releases", [&] { return AllNodesSay('F', "name"); }));
  ExpectNothingLeft();
}

TEST_P(CancelTest, AfterTheGrantTouchesNothing) {
  const auto lock = Connect();
  Begin(*lock, {.ttl = 20s});
  ASSERT_TRUE(WaitUntil(10s, "the lease", [&] { return ended_.load(); }));
  cancel_.request_stop();
  EXPECT_EQ(Code(lock->Acquire("name", {.tries = 2})), "contended");
  EXPECT_TRUE(lease_.valid());
  EXPECT_EQ(lease_.Release(), ReleaseOutcome::kReleased);
}

}  // namespace
}  // namespace fencepost::locking
