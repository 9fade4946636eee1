// Mistakes that other lock libraries make, or made, each with the test that shows it is not made
// here. (redis-plus-plus, Redisson, RedLock.net, node-redlock, redsync, redlock-rb, redlock-py.)
// clang-format off
//
//   mistake                                       test
//   unlock by name, not by owner                  ReleaseLeavesTheNameToWhoeverHoldsItNow, EndsTest
//   extend says success though it is another's    AnExtensionFailsWhereAnotherHoldsTheName
//   a lost extension is signalled to nobody       AnExtensionThatIsLostStopsTheHolder
//   the watchdog outlives the unlock              TheWatchdogEndsWithTheRelease
//   a cancelled attempt skips the unlock          CancelTest (component/quorum_lock)
//   extension re-creates a key that was lost      AnExtensionDoesNotBringBackAKeyThatWasLost,
//                                                 TheWatchdogDoesNotBringBackAKeyThatWasLost
//   token keys that never expire, a fencing       NothingButTheSentinelStays (names_test.cc)
//   counter key left for each name
//   an acquire that timed out leaves an orphan    AnAcquireThatTimedOutLeavesNoOrphan
//                                                 (nodes_test.cc)
//   quorum counted from the reachable nodes       ContentionAndOutageAreDifferentErrors (ditto)
//   one slow node slows every lock                ANodeThatDoesNotAnswerHoldsUpNoLock (ditto)
//   contention and outage are the same error      ContentionAndOutageAreDifferentErrors (ditto)
//   destructors that throw                        DestructorsDoNotThrowWhereNoNodeIsLeft (ditto)
//   even splits that never resolve                AnEvenSplitIsResolved (ditto)
//   a wait hangs after a short server stall       AWaiterGoesOnAfterAShortStall (ditto)
// clang-format on
#include <atomic>

#include <gmock/gmock.h>

#include "tests/component/pitfalls/pitfall_fixture.h"

namespace fencepost::locking {
namespace {

class LeasePitfall : public PitfallTest {};

TEST_F(LeasePitfall, ReleaseLeavesTheNameToWhoeverHoldsItNow) {
  const auto lock = Connect();
  const auto other = Connect();
  Lease old = Take(*lock, "released", {.ttl = 500ms, .watchdog = false});
  AwaitLoss(old);
  {
    Lease dropped = Take(*lock, "dropped", {.ttl = 500ms, .watchdog = false});
    AwaitLoss(dropped);
    AwaitExpiredEverywhere("dropped");
    const Lease now = Take(*other, "dropped");
    AwaitOneHolder("dropped");
    const std::string values = ValuesOf("dropped");
    dropped = Lease();
    EXPECT_EQ(Code(lock->Acquire("dropped")), "contended");  // behind it on the same connections
    EXPECT_EQ(ValuesOf("dropped"), values);
    EXPECT_TRUE(now.valid());
  }
  AwaitExpiredEverywhere("released");
  const Lease now = Take(*other, "released");
  AwaitOneHolder("released");
  const std::string values = ValuesOf("released");
  EXPECT_EQ(old.Release(), ReleaseOutcome::kExpired);
  EXPECT_EQ(Code(lock->Acquire("released")), "contended");
  EXPECT_EQ(ValuesOf("released"), values);
  EXPECT_TRUE(now.valid());
}

TEST_F(LeasePitfall, AnExtensionFailsWhereAnotherHoldsTheName) {
  const auto lock = Connect();
  const auto other = Connect();
  Lease mine = TakeEverywhere(*lock, "name");
  const Lease theirs = Wrest(*other, "name");
  const std::string values = ValuesOf("name");
  const Instant end = mine.valid_until();
  EXPECT_EQ(Code(mine.Extend()), "lost");
  EXPECT_LE(mine.valid_until(), end);
  EXPECT_FALSE(mine.valid());
  EXPECT_EQ(ValuesOf("name"), values);
  EXPECT_TRUE(theirs.valid());
}

TEST_F(LeasePitfall, AnExtensionThatIsLostStopsTheHolder) {
  const auto lock = Connect();
  const auto other = Connect();
  const Lease mine = Take(*lock, "name", {.ttl = 6s});
  std::atomic<bool> told{false};
  std::atomic<Instant> told_at{Instant::max()};
  const std::stop_callback callback(mine.stop_token(), [&] {
    told_at = BootClock::now();
    told = true;
  });
  AwaitEverywhere('H', "name");
  const Lease theirs = Wrest(*other, "name");
  const Instant end = mine.valid_until();
  ASSERT_TRUE(WaitUntil(20s, "the holder to be told", [&] { return told.load(); }));
  EXPECT_LT(told_at.load(), end) << "told by its own clock alone";
  EXPECT_FALSE(mine.valid());
  EXPECT_TRUE(theirs.valid());
}

TEST_F(LeasePitfall, TheWatchdogEndsWithTheRelease) {
  constexpr Millis kTtl = 600ms;
  ExtendCalls extends;
  const auto lock = Connect(Options(), extends);
  const auto other = Connect();
  Lease mine = Take(*lock, "name", {.ttl = kTtl});
  ASSERT_TRUE(WaitUntil(20s, "the watchdog", [&] { return extends.calls >= 3; }));
  EXPECT_EQ(mine.Release(), ReleaseOutcome::kReleased);
  AwaitEverywhere('F', "name");
  const int before = extends.calls;
  const Lease theirs = TakeEverywhere(*other, "name");
  const std::string values = ValuesOf("name");
  const Instant later = BootClock::now() + 2 * kTtl;
  ASSERT_TRUE(WaitUntil(20s, [&] { return BootClock::now() > later; }));
  EXPECT_LE(extends.calls, before);
  EXPECT_EQ(ValuesOf("name"), values);
}

TEST_F(LeasePitfall, AnExtensionDoesNotBringBackAKeyThatWasLost) {
  const auto lock = Connect();
  Lease mine = TakeEverywhere(*lock, "name");
  DeleteEverywhere("name");
  const Instant end = mine.valid_until();
  EXPECT_EQ(Code(mine.Extend()), "lost");
  EXPECT_FALSE(mine.valid()) << "it stood for another to take";
  EXPECT_LE(mine.valid_until(), end);
  EXPECT_EQ(Code(mine.Extend()), "lost");
  EXPECT_TRUE(AllNodesSay('(', "name"));
}

TEST_F(LeasePitfall, TheWatchdogDoesNotBringBackAKeyThatWasLost) {
  const auto lock = Connect();
  const auto other = Connect();
  const Lease mine = Take(*lock, "name", {.ttl = 6s});
  AwaitEverywhere('H', "name");
  {
    Lease theirs = Wrest(*other, "name");
    EXPECT_EQ(theirs.Release(), ReleaseOutcome::kReleased);
    AwaitEverywhere('F', "name");
  }
  const std::string values = ValuesOf("name");
  AwaitLoss(mine);
  EXPECT_EQ(Code(lock->Acquire("other")), "");  // behind it on the same connections
  EXPECT_EQ(ValuesOf("name"), values);
}

}  // namespace
}  // namespace fencepost::locking
