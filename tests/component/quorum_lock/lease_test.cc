// Lease: how long it lasts, how it is lost, and how it ends.
#include <atomic>
#include <type_traits>
#include <utility>

#include <gmock/gmock.h>

#include "tests/component/quorum_lock/lock_fixture.h"

namespace fencepost::locking {
namespace {

static_assert(!std::is_copy_constructible_v<Lease> && !std::is_copy_assignable_v<Lease>);
static_assert(std::is_nothrow_move_constructible_v<Lease> &&
              std::is_nothrow_move_assignable_v<Lease> && std::is_nothrow_destructible_v<Lease>);

class LeaseTest : public EveryCount {
 protected:
  static ::testing::AssertionResult IsStopped(const Lease& lease, Millis limit) {
    return WaitUntil(limit, "the loss", [&] { return lease.stop_token().stop_requested(); });
  }
};

INSTANTIATE_TEST_SUITE_P(Over, LeaseTest, kNodeCounts, NodesName);

TEST_P(LeaseTest, LastsBeyondItsTtlByTheWatchdog) {
  const auto lock = Connect();
  const auto other = Connect();
  const Lease lease = Take(*lock, "name", {.ttl = 1200ms});
  const Instant first_end = lease.valid_until();
  ASSERT_TRUE(WaitUntil(15s, [&] { return BootClock::now() > first_end + 200ms; }));
  EXPECT_TRUE(lease.valid());
  EXPECT_FALSE(lease.stop_token().stop_requested());
  EXPECT_EQ(Code(other->Acquire("name")), "contended");
}

TEST_P(LeaseTest, EndsByItsOwnClockWithoutAWatchdog) {
  const auto lock = Connect();
  Lease lease = Take(*lock, "name", {.ttl = 500ms, .watchdog = false});
  std::atomic<bool> told{false};
  const Instant end = lease.valid_until();
  Instant told_at;
  const std::stop_callback callback(lease.stop_token(), [&] {
    told_at = BootClock::now();
    told = true;
  });
  ASSERT_TRUE(WaitUntil(10s, "the loss", [&] { return told.load(); }));
  EXPECT_GE(told_at, end);
  EXPECT_LT(told_at, end + 2s);
  EXPECT_FALSE(lease.valid());
  EXPECT_EQ(Code(lease.Extend()), "lost");
  EXPECT_EQ(Code(lease.Done()), "lost");
  EXPECT_EQ(lease.Release(), ReleaseOutcome::kExpired);
}

TEST_P(LeaseTest, IsExtendedByHand) {
  const auto lock = Connect();
  Lease lease = Take(*lock, "name", {.ttl = 5s, .watchdog = false});
  const Instant before = lease.valid_until();
  const auto extended = lease.Extend();
  ASSERT_TRUE(extended) << extended.error().Line();
  EXPECT_GT(lease.valid_until(), before);
  EXPECT_LT(lease.valid_until(), BootClock::now() + 5s);
}

TEST_P(LeaseTest, IsNotExtendedWhereNoQuorumAnswers) {
  auto options = Options();
  options.lock.node_timeout = 150ms;
  const auto lock = Connect(options);
  Lease lease = Take(*lock, "name", {.ttl = 20s, .watchdog = false});
  const Instant before = lease.valid_until();
  PauseAll();
  EXPECT_EQ(Code(lease.Extend()), "no_quorum");
  EXPECT_EQ(lease.valid_until(), before);
  EXPECT_TRUE(lease.valid());
  EXPECT_EQ(lease.Release(), ReleaseOutcome::kUnknown);
  ResumeAll();
  EXPECT_TRUE(WaitUntil(10s, "the late releases", [&] { return AllNodesSay('F', "name"); }));
}

TEST_P(LeaseTest, IsLostWhenTheNodesLoseTheirMemory) {
  const auto lock = Connect();
  Spoil();
  Lease lease = Take(*lock, "name", {.ttl = 900ms});
  for (std::size_t node = 0; node < nodes_.size(); ++node) nodes_[node].Command({"FLUSHALL"});
  EXPECT_TRUE(IsStopped(lease, 10s));
  EXPECT_FALSE(lease.valid());
  EXPECT_EQ(Code(lease.Done()), "lost");
}

TEST_P(LeaseTest, IsLostWhenAllNodesAreFrozenPastItsTtl) {
  const auto lock = Connect();
  Lease lease = Take(*lock, "name", {.ttl = 700ms});
  PauseAll();
  EXPECT_TRUE(IsStopped(lease, 10s));
  EXPECT_FALSE(lease.valid());
  ResumeAll();
  EXPECT_EQ(Code(lease.Extend()), "lost");
  EXPECT_FALSE(lease.valid());
}

TEST_P(LeaseTest, IsReleasedByItsDestructorAndByMoveAssignment) {
  const auto lock = Connect();
  const auto other = Connect();
  { const Lease lease = Take(*lock, "a", {.ttl = 30s}); }
  EXPECT_EQ(Code(other->Acquire("a", {.wait = 10s})), "");

  Lease lease = Take(*lock, "a", {.ttl = 30s});
  Lease second = Take(*lock, "b", {.ttl = 30s});
  const Token token = second.token();
  lease = std::move(second);
  EXPECT_EQ(lease.name(), "b");
  EXPECT_EQ(lease.token(), token);
  EXPECT_TRUE(lease.valid());
  EXPECT_EQ(Code(other->Acquire("a", {.wait = 10s})), "");
  const Lease third = std::move(lease);
  EXPECT_TRUE(third.valid());
  EXPECT_EQ(Code(other->Acquire("b")), "contended");
}

TEST_P(LeaseTest, IsNothingWhenEmpty) {
  Lease lease;
  EXPECT_FALSE(lease.valid());
  EXPECT_EQ(lease.token(), Token());
  EXPECT_EQ(lease.name(), "");
  EXPECT_TRUE(lease.stop_token().stop_requested());
  EXPECT_EQ(Code(lease.Extend()), "ended");
  EXPECT_EQ(Code(lease.Done()), "ended");
  EXPECT_EQ(lease.Release(), ReleaseOutcome::kUnknown);
}

TEST_P(LeaseTest, MarksTheNameDone) {
  const auto lock = Connect();
  Lease lease = Take(*lock, "name", {});
  const auto done = lease.Done(0xabcd, 60s);
  ASSERT_TRUE(done) << done.error().Line();
  EXPECT_FALSE(lease.valid());
  EXPECT_EQ(Code(lease.Done()), "ended");
  EXPECT_EQ(Code(lease.Extend()), "ended");
  EXPECT_EQ(lease.Release(), ReleaseOutcome::kUnknown);
  EXPECT_TRUE(WaitUntil(10s, "the marks", [&] { return AllNodesSay('D', "name"); }));
  const auto again = lock->Acquire("name", {.wait = 10s});
  ASSERT_EQ(Code(again), "done");
  EXPECT_THAT(again.error().what, ::testing::HasSubstr("0000abcd"));
}

TEST_P(LeaseTest, CanBeTakenAndGivenBackFromCallbacks) {
  const auto lock = Connect();
  std::atomic<int> rounds{0};
  std::function<void()> next = [&] {
    lock->AcquireAsync("name", {.wait = 10s}, [&](QuorumLock::Result result) {
      if (!result) return;
      result->ReleaseAsync([&](ReleaseOutcome outcome) {
        if (outcome != ReleaseOutcome::kReleased) return;
        if (++rounds < 20) next();
      });
    });
  };
  next();
  EXPECT_TRUE(WaitUntil(20s, "20 rounds", [&] { return rounds == 20; }));
}

}  // namespace
}  // namespace fencepost::locking
