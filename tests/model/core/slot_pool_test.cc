// Slots that are reused: whose a LockId is.
#include "locking/core/lock/slot_pool.h"

#include <gtest/gtest.h>

namespace fencepost::locking {
namespace {

class SlotPoolTest : public ::testing::Test {
 protected:
  LockId Begin() {
    const std::uint32_t index = pool.New();
    pool[index].state = LockState::kWaiting;
    return pool.IdOf(index);
  }
  void End(LockId lock) {
    pool[lock.slot].state = LockState::kEnded;
    pool.Reclaim(lock.slot);
  }
  SlotPool pool;
};

TEST_F(SlotPoolTest, ReusesASlotUnderAnotherIdSoThatTheOldOneMeansNothing) {
  const LockId first = Begin();
  EXPECT_TRUE(pool.Live(first));
  End(first);
  EXPECT_FALSE(pool.Live(first));
  const LockId second = Begin();
  EXPECT_EQ(second.slot, first.slot);
  EXPECT_FALSE(pool.Has(first));
  EXPECT_TRUE(pool.Live(second));
}

TEST_F(SlotPoolTest, KeepsASlotWhoseOperationsAreUnanswered) {
  const LockId lock = Begin();
  pool[lock.slot].outstanding = 1;
  End(lock);
  EXPECT_TRUE(pool.Has(lock)) << "its replies still name it";
  EXPECT_FALSE(pool.Live(lock)) << "but users cannot";
  EXPECT_NE(Begin().slot, lock.slot);
  pool[lock.slot].outstanding = 0;
  pool.Reclaim(lock.slot);
  EXPECT_EQ(Begin().slot, lock.slot);
}

TEST_F(SlotPoolTest, ReclaimsASlotOnce) {
  const LockId lock = Begin();
  End(lock);
  pool.Reclaim(lock.slot);
  EXPECT_NE(Begin().slot, Begin().slot);
}

TEST_F(SlotPoolTest, DoesNotReclaimALockThatHasNotEnded) {
  const LockId lock = Begin();
  pool.Reclaim(lock.slot);
  EXPECT_TRUE(pool.Live(lock));
  EXPECT_NE(Begin().slot, lock.slot);
}

TEST_F(SlotPoolTest, KeepsNothingOfTheLockBeforeButItsEntryInTheTimerHeap) {
  const LockId lock = Begin();
  LockSlot& slot = pool[lock.slot];
  slot.name = "x";
  slot.cookie = 7;
  slot.may_hold = 3;
  slot.scheduled = Instant(std::chrono::seconds(5));
  slot.stage = NodeQuestion{};
  End(lock);
  EXPECT_EQ(&pool[Begin().slot], &slot);
  EXPECT_EQ(slot.name, "");
  EXPECT_EQ(slot.cookie, 0U);
  EXPECT_EQ(slot.may_hold, 0);
  EXPECT_EQ(slot.scheduled, Instant(std::chrono::seconds(5)));
  EXPECT_TRUE(std::holds_alternative<LockAttempt>(slot.stage));
}

TEST_F(SlotPoolTest, GivesAGenerationThatIsNeverZero) {
  const LockId lock = Begin();
  pool[lock.slot].generation = LockId::kLastGeneration;
  End(lock);
  EXPECT_EQ(Begin().generation, 1U);
}

TEST_F(SlotPoolTest, KnowsNoLockThatItNeverHad) {
  EXPECT_FALSE(pool.Has({0, 1}));
  EXPECT_FALSE(pool.Has({Begin().slot, 0}));
}

}  // namespace
}  // namespace fencepost::locking
