// ReentrantLock: one owner, several holds, one lease.
#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "locking/recipes/reentrant_lock.h"
#include "tests/support/lock_store.h"

namespace fencepost::locking {
namespace {

using namespace std::chrono_literals;
using testing::Code;
using testing::LockStore;
using testing::WaitUntil;

class ReentrantLockTest : public ::testing::Test {
 protected:
  LockStore store_{1};
  std::unique_ptr<QuorumLock> lock_ = store_.Connect();
  std::unique_ptr<QuorumLock> elsewhere_ = store_.Connect();
  ReentrantLock reentrant_{*lock_};
};

TEST_F(ReentrantLockTest, CountsTheHoldsOfItsOwnerAndGivesTheNameBackWithTheLast) {
  auto outer = reentrant_.Acquire("name", "job-1");
  ASSERT_TRUE(outer) << outer.error().Line();
  auto inner = reentrant_.Acquire("name", "job-1");
  ASSERT_TRUE(inner);
  EXPECT_EQ(outer->token(), inner->token());
  EXPECT_EQ(inner->count(), 2);
  EXPECT_EQ(Code(reentrant_.Acquire("name", "job-2")), "contended");
  EXPECT_EQ(Code(elsewhere_->Acquire("name")), "contended");

  // In any order: the outer one first.
  EXPECT_EQ(outer->Release(), ReleaseOutcome::kReleased);
  EXPECT_FALSE(outer->valid());
  EXPECT_EQ(Code(outer->Extend()), "ended");
  EXPECT_EQ(outer->Release(), ReleaseOutcome::kReleased);
  EXPECT_EQ(inner->count(), 1);
  EXPECT_TRUE(inner->valid());
  EXPECT_EQ(Code(elsewhere_->Acquire("name")), "contended");

  EXPECT_EQ(inner->Release(), ReleaseOutcome::kReleased);
  const auto theirs = elsewhere_->Acquire("name");
  EXPECT_EQ(Code(theirs), "");
  EXPECT_GT(theirs->token(), inner->token());
}

TEST_F(ReentrantLockTest, GivesTheNameBackByDestructorsAndMovesHolds) {
  {
    auto outer = reentrant_.Acquire("name", "job-1");
    auto inner = reentrant_.Acquire("name", "job-1");
    ASSERT_TRUE(outer && inner);
    *outer = std::move(*inner);
    EXPECT_EQ(outer->count(), 1);
    EXPECT_TRUE(outer->valid());
    EXPECT_FALSE(ReentrantHold().valid());
  }
  EXPECT_EQ(Code(elsewhere_->Acquire("name", {.wait = 10s})), "");
  // While the nodes are still told of the end, the owner's next hold waits for that.
  EXPECT_EQ(Code(reentrant_.Acquire("name", "job-1", {.wait = 10s})), "");
  for (int i = 0; i < 50; ++i) EXPECT_EQ(Code(reentrant_.Acquire("name", "job-1")), "") << i;
}

TEST_F(ReentrantLockTest, ExtendsOneLeaseForAllHolds) {
  auto outer = reentrant_.Acquire("name", "job-1", {.ttl = 5s, .watchdog = false});
  auto inner = reentrant_.Acquire("name", "job-1");
  ASSERT_TRUE(outer && inner);
  const Instant before = outer->valid_until();
  ASSERT_EQ(Code(inner->Extend()), "");
  EXPECT_GT(outer->valid_until(), before);
  inner->Release();
  EXPECT_EQ(Code(inner->Extend()), "ended");
  EXPECT_EQ(Code(outer->Extend()), "");
}

TEST_F(ReentrantLockTest, LosesAllHoldsWithTheLeaseAndRefusesNewOnesBeforeTheyHaveEnded) {
  auto outer = reentrant_.Acquire("name", "job-1", {.ttl = 900ms});
  auto inner = reentrant_.Acquire("name", "job-1");
  ASSERT_TRUE(outer && inner);
  store_.Wrest("name");
  const auto theirs = elsewhere_->Acquire("name");
  ASSERT_TRUE(theirs);
  ASSERT_TRUE(WaitUntil(10s, "the loss", [&] { return inner->stop_token().stop_requested(); }));
  EXPECT_FALSE(outer->valid());
  EXPECT_EQ(Code(reentrant_.Acquire("name", "job-1", {.wait = 10s})), "lost");
  EXPECT_EQ(outer->Release(), ReleaseOutcome::kExpired);
  EXPECT_EQ(Code(reentrant_.Acquire("name", "job-1")), "lost");
  EXPECT_NE(inner->Release(), ReleaseOutcome::kReleased);
  EXPECT_EQ(Code(reentrant_.Acquire("name", "job-1")), "contended");
  EXPECT_TRUE(theirs->valid());
}

TEST_F(ReentrantLockTest, LetsTwoThreadsOfOneOwnerShareTheAnswerToOneQuestion) {
  auto held = elsewhere_->Acquire("name");
  ASSERT_TRUE(held);
  std::atomic<int> asking{0};
  std::vector<ReentrantHold> holds(4);
  std::vector<std::thread> threads;
  for (ReentrantHold& hold : holds) {
    threads.emplace_back([&] {
      ++asking;
      auto got = reentrant_.Acquire("name", "job-1", {.wait = 20s});
      if (got) hold = std::move(*got);
    });
  }
  EXPECT_TRUE(WaitUntil(5s, [&] { return asking == 4; }));
  // One that does not wait, and one that gives up, are not held up by those that do.
  EXPECT_TRUE(WaitUntil(5s, "a refusal",
                        [&] { return Code(reentrant_.Acquire("name", "job-1")) == "contended"; }));
  std::stop_source cancel;
  cancel.request_stop();
  EXPECT_EQ(Code(reentrant_.Acquire("name", "job-1", {.wait = 20s, .cancel = cancel.get_token()})),
            "cancelled");
  held->Release();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(holds[0].count(), 4);
  for (const ReentrantHold& hold : holds) EXPECT_EQ(hold.token(), holds[0].token());
}

TEST_F(ReentrantLockTest, LetsInOneOwnerAtATime) {
  std::atomic<int> inside{0};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, owner = "owner-" + std::to_string(i % 2)] {
      for (int round = 0; round < 10; ++round) {
        auto hold = reentrant_.Acquire("name", owner, {.wait = 30s});
        if (!hold) {
          ++wrong;
          continue;
        }
        // Two threads of one owner may be inside together, two owners not.
        const int mine = owner == "owner-0" ? 1 : 100;
        const int now = inside += mine;
        if (now > 2 && now % 100 != 0) ++wrong;
        inside -= mine;
        hold->Release();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace fencepost::locking
