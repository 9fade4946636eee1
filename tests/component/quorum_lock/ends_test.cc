// How a lease ends: what its user is told of a loss, and of a release.
#include <mutex>
#include <stop_token>
#include <vector>

#include "tests/component/quorum_lock/lock_fixture.h"

namespace fencepost::locking {
namespace {

using Codes = std::vector<std::string>;

class EndsTest : public EveryCount {
 protected:
  // A lease whose loss is written down.
  Lease Take(QuorumLock& lock, AcquireOptions options) {
    options.on_lost = [this](const Error& why) {
      const std::lock_guard guard(mutex_);
      told_.push_back(why.code);
      token_stopped_before_ = token_.stop_requested();
    };
    Lease lease = LockFixture::Take(lock, "name", options);
    token_ = lease.stop_token();
    return lease;
  }
  std::vector<std::string> Told() {
    const std::lock_guard guard(mutex_);
    return told_;
  }
  ::testing::AssertionResult IsTold() {
    return WaitUntil(10s, "on_lost", [&] { return !Told().empty(); });
  }
  // What the nodes keep of the name, gone as by an operator's hand.
  void Forget() {
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      nodes_[node].Command({"DEL", "fencepost:{test}:name"});
    }
  }

  std::mutex mutex_;
  std::stop_token token_;
  std::vector<std::string> told_;
  bool token_stopped_before_ = false;
};

INSTANTIATE_TEST_SUITE_P(Over, EndsTest, kNodeCounts, NodesName);

TEST_P(EndsTest, ALossIsToldOnceAfterTheStopTokenAndIsForGood) {
  auto lock = Connect();
  Lease lease = Take(*lock, {.ttl = 300ms, .watchdog = false});
  ASSERT_TRUE(IsTold());
  EXPECT_TRUE(token_stopped_before_);
  EXPECT_EQ(Code(lease.Extend()), "lost");
  EXPECT_FALSE(lease.valid()) << "it never comes back";
  EXPECT_EQ(Code(lease.Done()), "lost");
  lease.Release();
  lock.reset();
  EXPECT_EQ(Told(), Codes({"lost"})) << "once";
}

TEST_P(EndsTest, AMarkOfAnotherIsToldAsDone) {
  const auto lock = Connect();
  const auto other = Connect();
  Lease lease = Take(*lock, {.ttl = 900ms});
  Forget();
  auto theirs = other->Acquire("name", {.wait = 10s});
  ASSERT_TRUE(theirs) << theirs.error().Line();
  ASSERT_TRUE(theirs->Done());
  ASSERT_TRUE(IsTold());
  EXPECT_EQ(Told(), Codes({"done"}));
  EXPECT_EQ(Code(lease.Extend()), "done");
}

TEST_P(EndsTest, TheEndOfTheQuorumLockIsToldAsClosed) {
  auto lock = Connect();
  const Lease lease = Take(*lock, {.ttl = 20s});
  lock.reset();
  EXPECT_EQ(Told(), Codes({"closed"}));
  EXPECT_TRUE(token_stopped_before_);
}

TEST_P(EndsTest, NothingIsToldOfALeaseThatItsUserEnded) {
  auto lock = Connect();
  {
    Lease released = Take(*lock, {.ttl = 400ms, .watchdog = false});
    EXPECT_EQ(released.Release(), ReleaseOutcome::kReleased);
    Lease given_back = Take(*lock, {.ttl = 400ms, .watchdog = false});
  }
  const Instant over = BootClock::now() + 450ms;
  Lease done = Take(*lock, {.ttl = 400ms, .watchdog = false});
  ASSERT_TRUE(done.Done());
  ASSERT_TRUE(WaitUntil(10s, [&] { return BootClock::now() > over; }));
  lock.reset();
  EXPECT_EQ(Told(), Codes());
  EXPECT_FALSE(token_.stop_requested());
}

TEST_P(EndsTest, AReleaseTellsHowItWent) {
  auto options = Options();
  options.lock.node_timeout = 150ms;
  const auto lock = Connect(options);
  const auto other = Connect();
  const AcquireOptions held{.ttl = 20s, .watchdog = false};

  Lease lease = Take(*lock, held);
  EXPECT_EQ(lease.Release(), ReleaseOutcome::kReleased);

  lease = Take(*lock, held);
  Forget();
  EXPECT_EQ(lease.Release(), ReleaseOutcome::kExpired) << "the nodes had ended it before";

  lease = Take(*lock, held);
  Forget();
  const auto theirs = other->Acquire("name", {.wait = 10s});
  ASSERT_TRUE(theirs) << theirs.error().Line();
  EXPECT_EQ(lease.Release(), ReleaseOutcome::kStolen);
  EXPECT_TRUE(theirs->valid());
  EXPECT_EQ(Code(lock->Acquire("name")), "contended") << "it was left untouched";
}

}  // namespace
}  // namespace fencepost::locking
