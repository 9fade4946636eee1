// MultiLock: all or none, in one order everywhere. Batches: what is free, in one go.
#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include <gmock/gmock.h>

#include "locking/recipes/batch_lock.h"
#include "locking/recipes/multi_lock.h"
#include "locking/recipes/reentrant_lock.h"
#include "tests/support/lock_store.h"

namespace fencepost::locking {
namespace {

using namespace std::chrono_literals;
using testing::Code;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::LockStore;
using testing::WaitUntil;

class MultiLockTest : public ::testing::Test {
 protected:
  LockStore store_{3};
  std::unique_ptr<QuorumLock> lock_ = store_.Connect();
  std::unique_ptr<QuorumLock> other_ = store_.Connect();
};

TEST_F(MultiLockTest, HoldsAllNamesEachWithItsOwnToken) {
  EXPECT_NE(lock_->StoreId(), "");
  EXPECT_EQ(lock_->StoreId(), other_->StoreId());
  EXPECT_EQ(lock_->name_space(), "test");
  auto multi = AcquireMulti({{*lock_, "b"}, {*lock_, "a"}, {*lock_, "b"}});
  ASSERT_TRUE(multi) << multi.error().Line();
  ASSERT_EQ(multi->size(), 3U);
  EXPECT_EQ(multi->token(0), multi->token(2));
  EXPECT_NE(multi->token(0), multi->token(1));
  EXPECT_TRUE(multi->valid());
  EXPECT_FALSE(multi->stop_token().stop_requested());
  EXPECT_EQ(Code(other_->Acquire("a")), "contended");
  EXPECT_EQ(Code(other_->Acquire("b")), "contended");
  EXPECT_EQ(Code(multi->Extend()), "");
  EXPECT_THAT(multi->Release(), Each(ReleaseOutcome::kReleased));
  EXPECT_FALSE(multi->valid());
  EXPECT_GT(other_->Acquire("b")->token(), multi->token(0));
  EXPECT_EQ(Code(AcquireMulti({})), "bad_options");
}

// Else the lock would wait for itself, for ever.
using MultiLockDeathTest = MultiLockTest;
TEST_F(MultiLockDeathTest, EndsTheProgramWhereACallbackBlocks) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto in_callback = [&](const std::function<void()>& blocking) {
    std::atomic<bool> over{false};
    lock_->AcquireAsync("a", {}, [&](const QuorumLock::Result&) {
      blocking();
      over = true;
    });
    WaitUntil(10s, [&] { return over.load(); });
  };
  EXPECT_DEATH(in_callback([&] { (void)AcquireMulti({{*lock_, "b"}}); }), "from a callback");
  ReentrantLock reentrant(*lock_);
  EXPECT_DEATH(in_callback([&] { (void)reentrant.Acquire("b", "owner"); }), "from a callback");
}

TEST_F(MultiLockTest, HoldsNothingWhereOneCannotBeAcquired) {
  const auto theirs = other_->Acquire("b");
  ASSERT_TRUE(theirs);
  for (const Millis wait : {0ms, 300ms}) {
    const auto multi = AcquireMulti({{*lock_, "a"}, {*lock_, "b"}, {*lock_, "c"}}, {.wait = wait});
    ASSERT_EQ(Code(multi), "contended");
    EXPECT_EQ(multi.error().where, "b");
    for (const char* name : {"a", "c"}) {
      // Where a node is slow to confirm the release, it comes a moment later; a lease that was kept
      // would be there for its whole TTL.
      auto free = other_->Acquire(name, {.wait = 2s});
      ASSERT_EQ(Code(free), "") << name;
      free->Release();
    }
  }
  auto done = other_->Acquire("d");
  ASSERT_TRUE(done && done->Done());
  EXPECT_EQ(Code(AcquireMulti({{*lock_, "a"}, {*lock_, "d"}}, {.wait = 10s})), "done");
  EXPECT_EQ(Code(other_->Acquire("a", {.wait = 2s})), "");
  // The same name of the same store through two QuorumLocks is one name.
  EXPECT_EQ(Code(AcquireMulti({{*lock_, "a"}, {*other_, "a"}}, {.wait = 10s})), "");
}

TEST_F(MultiLockTest, WaitsForTheFirstThatIsTakenWithoutHoldingWhatComesBehind) {
  auto theirs = other_->Acquire("b");
  ASSERT_TRUE(theirs);
  tl::expected<MultiLease, Error> multi = tl::unexpected(Error{});
  std::thread waiting([&] {
    multi = AcquireMulti({{*lock_, "c"}, {*lock_, "a"}, {*lock_, "b"}}, {.wait = 20s});
  });
  EXPECT_TRUE(
      WaitUntil(10s, "the prefix", [&] { return Code(other_->Acquire("a")) == "contended"; }));
  EXPECT_TRUE(
      WaitUntil(10s, "what comes behind", [&] { return Code(other_->Acquire("c")).empty(); }));
  theirs->Release();
  waiting.join();
  ASSERT_EQ(Code(multi), "");
  EXPECT_TRUE(multi->valid());
}

TEST_F(MultiLockTest, IsNotDeadlockedByCrossingOrdersOverTwoNodeGroups) {
  LockStore second_group(1);
  const auto second = second_group.Connect();
  const auto second_other = second_group.Connect();
  constexpr int kRounds = 40;
  int counter = 0;  // guarded by the names, which is the point
  std::atomic<int> failed{0};
  const auto work = [&](std::vector<LockName> names) {
    for (int round = 0; round < kRounds; ++round) {
      std::rotate(names.begin(), names.begin() + 1, names.end());
      auto multi = AcquireMulti(names, {.wait = 60s});
      if (!multi || !multi->valid()) {
        ++failed;
        continue;
      }
      ++counter;
      multi->Release();
    }
  };
  std::thread one(work, std::vector<LockName>{{*lock_, "a"}, {*second, "x"}, {*lock_, "b"}});
  std::thread two(work,
                  std::vector<LockName>{{*other_, "b"}, {*other_, "a"}, {*second_other, "x"}});
  std::thread three(work, std::vector<LockName>{{*second_other, "x"}, {*other_, "b"}});
  for (std::thread* thread : {&one, &two, &three}) thread->join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(counter, 3 * kRounds);
}

TEST_F(MultiLockTest, StopsItsTokenWhenOneIsLostAndHoldsTheOthers) {
  auto multi = AcquireMulti({{*lock_, "a"}, {*lock_, "b"}}, {.ttl = 900ms});
  ASSERT_TRUE(multi);
  store_.Wrest("b");
  const auto theirs = other_->Acquire("b");
  ASSERT_TRUE(theirs);
  EXPECT_TRUE(WaitUntil(10s, "the loss", [&] { return multi->stop_token().stop_requested(); }));
  EXPECT_FALSE(multi->valid());
  EXPECT_EQ(Code(multi->Extend()), "lost");
  EXPECT_EQ(Code(other_->Acquire("a")), "contended");
  const auto outcomes = multi->Release();
  EXPECT_EQ(outcomes[0], ReleaseOutcome::kReleased);
  EXPECT_NE(outcomes[1], ReleaseOutcome::kReleased);
  EXPECT_TRUE(theirs->valid());
}

TEST_F(MultiLockTest, ReturnsLeasesThatAllHaveMinValidityLeftAfterALongWait) {
  auto theirs = other_->Acquire("b");
  ASSERT_TRUE(theirs);
  tl::expected<MultiLease, Error> multi = tl::unexpected(Error{});
  std::thread waiting([&] {
    multi = AcquireMulti({{*lock_, "a"}, {*lock_, "b"}},
                         {.wait = 20s, .ttl = 3s, .min_validity = 2s, .watchdog = false});
  });
  EXPECT_TRUE(
      WaitUntil(10s, "the prefix", [&] { return Code(other_->Acquire("a")) == "contended"; }));
  const Instant enough = BootClock::now() + 2s;
  EXPECT_TRUE(WaitUntil(10s, [&] { return BootClock::now() > enough; }));
  theirs->Release();
  waiting.join();
  ASSERT_EQ(Code(multi), "");
  EXPECT_GT(multi->valid_until() - BootClock::now(), 1s) << "which the first one's had not";
}

std::vector<std::string> Names(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back("n-" + std::to_string(1000 + i));
  return names;
}

TEST(BatchLock, GivesExactlyThoseThatAreFreeAndMarksThemInOneGo) {
  LockStore store(5);
  const auto other = store.Connect();
  const auto lock = store.Connect();
  auto& observed = store.last_observer();
  const auto names = Names(100);
  const auto theirs = other->Acquire(names[3]);
  auto done = other->Acquire(names[5]);
  ASSERT_TRUE(theirs && done && done->Done());

  Batch batch = AcquireFree(*lock, names);
  ASSERT_EQ(batch.leases.size(), 98U);
  EXPECT_EQ(batch.leases[3].name(), names[4]);
  ASSERT_EQ(batch.left.size(), 2U);
  EXPECT_EQ(batch.left[0].name, names[3]);
  EXPECT_EQ(batch.left[0].error.code, "contended");
  EXPECT_EQ(batch.left[1].error.code, "done");

  for (const auto& marked : batch.Done()) EXPECT_EQ(Code(marked), "");
  // One call each, two where a node was still busy with what came before.
  EXPECT_LE(observed.calls[static_cast<int>(OpKind::kDone)], 2 * 5);
  const Batch again = AcquireFree(*other, names);
  EXPECT_TRUE(again.leases.empty());

  Batch few = AcquireFree(*lock, {"x", "y", "z"}, {.most = 2});
  EXPECT_EQ(few.leases.size(), 2U);
  EXPECT_TRUE(few.left.empty());
  EXPECT_EQ(Code(other->Acquire("z")), "");
  EXPECT_THAT(few.Release(), ElementsAre(ReleaseOutcome::kReleased, ReleaseOutcome::kReleased));
  EXPECT_FALSE(few.leases[0].valid());
}

TEST(BatchLock, SharesAListAmongCrossingWorkersWithoutADouble) {
  LockStore store(7);
  const auto names = Names(300);
  std::mutex mutex;
  std::map<std::string, int> worked;
  const auto work = [&](QuorumLock* lock, bool backwards) {
    std::vector<std::string> pending = names;
    if (backwards) std::reverse(pending.begin(), pending.end());
    while (!pending.empty()) {
      Batch batch = AcquireFree(*lock, pending, {.most = 70});
      {
        const std::lock_guard guard(mutex);
        for (const Lease& lease : batch.leases) ++worked[lease.name()];
      }
      for (const auto& marked : batch.Done()) EXPECT_EQ(Code(marked), "");
      pending.clear();
      for (const Batch::Left& left : batch.left) {
        if (left.error.code != "done") pending.push_back(left.name);
      }
      for (const std::string& name : names) {
        const std::lock_guard guard(mutex);
        if (!worked.contains(name)) pending.push_back(name);
      }
      std::sort(pending.begin(), pending.end());
      pending.erase(std::unique(pending.begin(), pending.end()), pending.end());
      if (backwards) std::reverse(pending.begin(), pending.end());
    }
  };
  const auto first = store.Connect();
  const auto second = store.Connect();
  std::thread one([&] { work(first.get(), false); });
  work(second.get(), true);
  one.join();
  EXPECT_EQ(worked.size(), names.size());
  for (const auto& [name, times] : worked) EXPECT_EQ(times, 1) << name;
}

}  // namespace
}  // namespace fencepost::locking
