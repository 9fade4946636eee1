// Backpressure: how much may be in flight, and which partitions are paused for it.
#include "consumer/flow/state/backpressure.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <utility>

namespace fencepost::consumer {
namespace {

constexpr Millis kHoldAfter{500};

class BackpressureTest : public testing::Test {
 protected:
  Assignment& Assign(PartitionIndex index, std::size_t late = 0) {
    auto& place = partitions_[index];
    place = std::make_unique<Assignment>(
        AssignedPartition{.partition = index, .where = {"orders", 0}, .epoch = 1, .start = 0});
    pressure_.OnAssigned(late);
    return *place;
  }

  InFlight& Deliver(Assignment& partition, std::uint64_t bytes = 1) {
    InFlight& in = records_.emplace_back();
    in.assignment = &partition;
    in.record.offset = partition.position;
    in.BecomeQueued();
    partition.Deliver(in, now_);
    pressure_.OnDelivered(partition);
    pressure_.OnBytes(partition, 0, bytes);
    in.bytes = bytes;
    return in;
  }

  void Deliver(Assignment& partition, int records) {
    for (int i = 0; i < records; ++i) Deliver(partition);
  }

  void Finish(InFlight& in) {
    in.assignment->Finish(in);
    pressure_.OnFinished();
    pressure_.OnBytes(*in.assignment, in.bytes, 0);
  }

  // Finishes the last `count` delivered records that are unfinished.
  void FinishLast(int count) {
    for (auto at = records_.rbegin(); at != records_.rend() && count > 0; ++at) {
      Assignment::Slot& slot = at->assignment->slots[at->slot - at->assignment->first_slot];
      if (slot.record == nullptr) continue;
      Finish(*at);
      --count;
    }
  }

  Nanos Update(bool usable = true) {
    return pressure_.Update(partitions_, usable, now_, {pause_, resume_});
  }

  void Reset() {
    pressure_ = Backpressure(kLimits);
    partitions_.clear();
    records_.clear();
  }

  void After(Millis time) {
    now_ += time;
    Update();
  }

  std::vector<PartitionIndex> TakePaused() { return std::exchange(pause_, {}); }
  std::vector<PartitionIndex> TakeResumed() { return std::exchange(resume_, {}); }
  using Indexes = std::vector<PartitionIndex>;

  static constexpr Backpressure::Limits kLimits{
      .records = 100, .bytes = 10'000, .finished_behind = 50, .hold_after = kHoldAfter};
  Backpressure pressure_{kLimits};
  Backpressure::Partitions partitions_;
  std::deque<InFlight> records_;
  Instant now_{std::chrono::hours(1)};
  Indexes pause_, resume_;
};

TEST_F(BackpressureTest, AllArePausedWhenFullAndResumeAtThreeQuarters) {
  Deliver(Assign(1), 100);
  Update();
  EXPECT_EQ(TakePaused(), Indexes{1});
  EXPECT_EQ(pressure_.Room(), 0u);

  FinishLast(24);
  Update();
  EXPECT_EQ(TakeResumed(), Indexes{}) << "76 of 100";
  FinishLast(1);
  Update();
  EXPECT_EQ(TakeResumed(), Indexes{1});
}

TEST_F(BackpressureTest, BytesCountAsRecordsDo) {
  InFlight& first = Deliver(Assign(1), std::uint64_t{9'999});
  Update();
  EXPECT_EQ(pressure_.RoomBytes(), 1u);
  Deliver(*partitions_[1], std::uint64_t{1});
  Update();
  EXPECT_EQ(pressure_.Room(), 0u);
  EXPECT_EQ(TakePaused(), Indexes{1});

  Finish(first);
  Update();
  EXPECT_EQ(TakeResumed(), Indexes{1});
  EXPECT_EQ(pressure_.bytes(), 1u);
  EXPECT_EQ(partitions_[1]->bytes, 1u);
}

TEST_F(BackpressureTest, APartitionOverItsShareStopsAllForAMomentAndThenItselfAlone) {
  Assign(1);
  Assign(2);
  Deliver(*partitions_[1], 80);  // three times the 20 that are left, and more
  Update();
  EXPECT_EQ(TakePaused(), (Indexes{1, 2})) << "it may be a busy one";
  EXPECT_EQ(pressure_.NextTime(), now_ + kHoldAfter);

  After(kHoldAfter);
  EXPECT_EQ(TakeResumed(), Indexes{2});
  EXPECT_EQ(pressure_.NextTime(), Instant::max());
  EXPECT_GT(pressure_.Room(), 0u);

  FinishLast(40);
  Update();
  EXPECT_EQ(TakeResumed(), Indexes{1}) << "40 is less than twice the 60 that are left";
}

// Kafka's thread hears of it some moments later: one record at a time, a partition that is over its
// share would take all that is left until then, and the others would have none for ever.
TEST_F(BackpressureTest, LeavesNoRoomWhileAllArePaused) {
  Assignment& stuck = Assign(0);
  Assign(1);
  Deliver(stuck, 76);
  Update();
  ASSERT_EQ(TakePaused(), (Indexes{0, 1}));
  EXPECT_EQ(pressure_.Room(), 0u);
  EXPECT_EQ(pressure_.RoomBytes(), 0u);
  After(kHoldAfter);
  EXPECT_EQ(TakeResumed(), Indexes{1});
  EXPECT_GT(pressure_.Room(), 0u);
}

TEST_F(BackpressureTest, WhatIsGivenAsRoomNeverPutsAPartitionOverItsShare) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    SCOPED_TRACE(seed);
    Reset();
    std::mt19937_64 random(seed);
    for (PartitionIndex index = 0; index < 3; ++index) Assign(index);
    Update();
    for (int round = 0; round < 500; ++round) {
      const auto room = static_cast<int>(pressure_.Room());
      Deliver(*partitions_[static_cast<PartitionIndex>(random() % 3)], room - 1);
      Update();
      ASSERT_EQ(pressure_.NextTime(), Instant::max()) << "round " << round;
      FinishLast(static_cast<int>(random() % 40));
      Update();
    }
  }
}

TEST_F(BackpressureTest, KeepsRoomForPartitionsThatAreToldLater) {
  Assign(1, 1);
  Update();
  EXPECT_EQ(pressure_.Room(), 75u) << "as with two partitions";
  Assign(2);
  Update();
  EXPECT_EQ(pressure_.Room(), 75u);
}

TEST_F(BackpressureTest, APartitionWithTooManyFinishedRecordsBehindItsOldestIsPausedAlone) {
  Assign(1);
  Assign(2);
  const auto finish_behind = [&](int records) {
    InFlight& oldest = Deliver(*partitions_[1]);
    for (int i = 0; i < records; ++i) Finish(Deliver(*partitions_[1]));
    return &oldest;
  };
  InFlight* const first = finish_behind(30);
  InFlight* const second = finish_behind(26);
  finish_behind(0);
  Update();
  EXPECT_EQ(TakePaused(), Indexes{1});

  Finish(*first);
  partitions_[1]->AdvanceWatermark(now_);
  Update();
  EXPECT_EQ(TakeResumed(), Indexes{}) << "26 are more than half of the limit";
  Finish(*second);
  partitions_[1]->AdvanceWatermark(now_);
  Update();
  EXPECT_EQ(TakeResumed(), Indexes{1});
}

TEST_F(BackpressureTest, AnOutageStopsAllAndIsNotCountedAsBackpressure) {
  Assign(1);
  EXPECT_EQ(Update(false), Nanos(0));
  EXPECT_EQ(TakePaused(), Indexes{1});
  now_ += Millis(10);
  EXPECT_EQ(Update(), Nanos(0));
  EXPECT_EQ(TakeResumed(), Indexes{1});

  Deliver(*partitions_[1], 100);
  EXPECT_EQ(Update(), Nanos(0));
  now_ += Millis(20);
  EXPECT_EQ(Update(), Millis(20));
}

}  // namespace
}  // namespace fencepost::consumer
