// What waits for one node, by itself: operations in their order, and aborts that it was not sent.
#include "locking/core/lock/node_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace fencepost::locking {
namespace {

using namespace std::chrono_literals;

constexpr OpKind kAllKinds[] = {OpKind::kInspect, OpKind::kFill,  OpKind::kAcquire,
                                OpKind::kForget,  OpKind::kDone,  OpKind::kRelease,
                                OpKind::kAbort,   OpKind::kExtend};

Op OpNumber(std::uint32_t number, OpKind kind) { return {.kind = kind, .lock = {number, 1}}; }

class NodeQueueTest : public ::testing::Test {
 protected:
  using Order = std::vector<std::uint32_t>;

  // Taken as far as one batch goes: the numbers of the operations.
  Order Take() {
    std::vector<Op> batch;
    const std::size_t taken = queue.Take(batch);
    EXPECT_EQ(taken, batch.size());
    return Numbers(batch);
  }
  static Order Numbers(const std::vector<Op>& ops) {
    Order numbers;
    for (const Op& op : ops) numbers.push_back(op.lock.slot);
    return numbers;
  }
  void PushAllKinds() {
    for (const OpKind kind : kAllKinds) ASSERT_TRUE(queue.Push(OpNumber(next++, kind)));
  }

  NodeQueue queue;
  std::uint32_t next = 0;
};

TEST_F(NodeQueueTest, SendsExtensionsThenWhatFreesThenWhatTakesThenQuestions) {
  PushAllKinds();
  PushAllKinds();
  EXPECT_EQ(Take(), (Order{7, 15, 6, 14, 5, 13, 4, 12, 3, 11, 2, 10, 1, 9, 0, 8}));
  EXPECT_TRUE(queue.Empty());
}

TEST_F(NodeQueueTest, HandsOutEveryOperationOnceInBatchesThatAreNeverTooLong) {
  constexpr std::uint32_t kOps = 20 * kMaxBatch + 7;
  std::vector<bool> seen(kOps);
  for (std::uint32_t i = 0; i < kOps; ++i) {
    ASSERT_TRUE(queue.Push(OpNumber(i, i % 3 == 0 ? OpKind::kExtend : OpKind::kAcquire)));
  }
  while (!queue.Empty()) {
    const Order batch = Take();
    ASSERT_LE(batch.size(), kMaxBatch);
    for (const std::uint32_t number : batch) {
      ASSERT_FALSE(seen[number]) << number;
      seen[number] = true;
    }
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), kOps);
}

TEST_F(NodeQueueTest, SendsExtensionsThatCameLaterFirst) {
  for (std::uint32_t i = 0; i < kMaxBatch; ++i) {
    ASSERT_TRUE(queue.Push(OpNumber(i, OpKind::kAcquire)));
  }
  ASSERT_TRUE(queue.Push(OpNumber(9'999, OpKind::kExtend)));
  EXPECT_EQ(Take().front(), 9'999U);
  EXPECT_EQ(Take(), Order{kMaxBatch - 1});
}

TEST_F(NodeQueueTest, FailsWhatMustNotComeLateWhenTheNodeStallsAndKeepsTheRestInOrder) {
  PushAllKinds();
  EXPECT_EQ(Numbers(queue.Stall()), (Order{7, 1, 2}));
  EXPECT_EQ(Take(), Order{}) << "nothing is sent to a node that is stalled";
  queue.Resume();
  EXPECT_EQ(Take(), (Order{6, 5, 4, 3, 0}));
}

TEST_F(NodeQueueTest, RefusesWhatMustNotComeLateWhileTheNodeIsStalled) {
  ASSERT_TRUE(queue.Stall().empty());
  for (const OpKind kind : kAllKinds) {
    EXPECT_EQ(queue.Push(OpNumber(0, kind)), !MustNotComeLate(kind));
  }
}

TEST_F(NodeQueueTest, HoldsALimitedNumberForAStalledNodeAndAnyForOneThatAnswers) {
  ASSERT_TRUE(queue.Stall().empty());
  for (std::size_t i = 0; i < NodeQueue::kMostWhileStalled; ++i) {
    ASSERT_TRUE(queue.Push(OpNumber(0, OpKind::kRelease)));
  }
  EXPECT_FALSE(queue.Push(OpNumber(0, OpKind::kRelease)));
  queue.Resume();
  EXPECT_TRUE(queue.Push(OpNumber(0, OpKind::kRelease)));
}

TEST_F(NodeQueueTest, GivesBackAllThatWasNotTakenWhenItIsCleared) {
  for (std::uint32_t i = 0; i < kMaxBatch; ++i) {
    ASSERT_TRUE(queue.Push(OpNumber(i, OpKind::kDone)));
  }
  ASSERT_TRUE(queue.Push(OpNumber(1'000, OpKind::kDone)));
  Take();
  ASSERT_TRUE(queue.Push(OpNumber(1'001, OpKind::kExtend)));
  EXPECT_EQ(Numbers(queue.Clear()), (Order{1'001, 1'000}));
  EXPECT_TRUE(queue.Empty());
  EXPECT_EQ(Take(), Order{});
}

constexpr Instant kNow{1000s};

PendingAbort UntilAfter(Nanos rest) { return {.name = "x", .until = kNow + rest}; }

TEST(PendingAborts, AreTakenOnceOldestFirstWithoutThoseWhoseTimeIsOver) {
  PendingAborts pending;
  for (const Nanos rest : {3s, 1s, 2s}) EXPECT_FALSE(pending.Keep(UntilAfter(rest), kNow));
  const auto taken = pending.Take(kNow + 1s);
  ASSERT_EQ(taken.size(), 2U);
  EXPECT_EQ(taken[0].until, kNow + 3s);
  EXPECT_EQ(taken[1].until, kNow + 2s);
  EXPECT_TRUE(pending.Empty());
  EXPECT_TRUE(pending.Take(kNow).empty());
}

TEST(PendingAborts, AreLimitedAndTellOnceUntilTheyAreTakenThatOneWasDropped) {
  PendingAborts pending;
  for (int time = 0; time < 2; ++time) {
    for (std::size_t i = 0; i < PendingAborts::kMost; ++i) {
      ASSERT_FALSE(pending.Keep(UntilAfter(std::chrono::seconds(i + 1)), kNow));
    }
    EXPECT_TRUE(pending.Keep(UntilAfter(1s), kNow));
    EXPECT_FALSE(pending.Keep(UntilAfter(1s), kNow)) << "told already";
    const auto taken = pending.Take(kNow);
    EXPECT_EQ(taken.size(), PendingAborts::kMost);
    EXPECT_EQ(taken.front().until, kNow + 3s) << "the oldest two were dropped";
  }
}

TEST(PendingAborts, SayNothingOfADroppedOneWhoseTimeWasOver) {
  PendingAborts pending;
  for (std::size_t i = 0; i < PendingAborts::kMost; ++i) {
    ASSERT_FALSE(pending.Keep(UntilAfter(1s), kNow));
  }
  EXPECT_FALSE(pending.Keep(UntilAfter(5s), kNow + 1s));
}

}  // namespace
}  // namespace fencepost::locking
