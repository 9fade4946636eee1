#include "consumer/outputs/writer_queue.h"

#include <string>

#include <gtest/gtest.h>

namespace fencepost::consumer {
namespace {

class WriterQueueTest : public ::testing::Test {
 protected:
  void Write(std::uint64_t id) {
    auto batch = std::make_unique<WriteBatch>();
    batch->id = id;
    queue_.Push(std::move(batch));
  }
  void LookUp() { queue_.Push(std::make_unique<LookupBatch>()); }
  // A batch by its number, a look-up as "?".
  std::string Take() {
    const WriterQueue::Turn turn = queue_.Take();
    if (turn.lookup != nullptr) return "?";
    return turn.batch == nullptr ? "" : std::to_string(turn.batch->id);
  }

  WriterQueue queue_;
};

TEST_F(WriterQueueTest, AWriteWaitsForOneLookUpHoweverManyComeMeanwhile) {
  Write(1);
  Write(2);
  std::string turns;
  for (int i = 0; i < 4; ++i) {
    LookUp();
    LookUp();
    turns += Take();
  }
  EXPECT_EQ(turns, "?1?2");
}

TEST_F(WriterQueueTest, ALookUpWaitsForOneWriteHoweverManyComeMeanwhile) {
  LookUp();
  LookUp();
  std::string turns;
  for (std::uint64_t i = 1; i <= 8; i += 2) {
    Write(i);
    Write(i + 1);
    turns += Take();
  }
  EXPECT_EQ(turns, "?1?2");
}

TEST_F(WriterQueueTest, WhatThereIsOneKindOfComesInItsOrder) {
  EXPECT_TRUE(queue_.Empty());
  EXPECT_EQ(Take(), "");
  for (std::uint64_t i = 1; i <= 3; ++i) Write(i);
  for (const char* next : {"1", "2", "3"}) EXPECT_EQ(Take(), next);
  for (int i = 0; i < 3; ++i) LookUp();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Take(), "?");
  EXPECT_TRUE(queue_.Empty());
}

// Of partitions by their digits: nothing can be written of 1 before 100 ms, of 2 before 200.
TEST(WriterQueue, HasWorkWhereThereIsMoreThanBatchesOfPartitionsThatAreLeftOut) {
  std::vector<TopicPartition> partitions;
  for (int i = 0; i < 4; ++i) partitions.push_back({"orders", i});
  const auto batch = [&](const std::string& of) {
    auto made = std::make_unique<WriteBatch>();
    for (const char c : of) made->request.items.push_back({.where = &partitions.at(c - '0')});
    return made;
  };
  struct Case {
    std::vector<std::string> batches;
    bool lookup;
    int at_ms;
    bool work;
  };
  for (const auto& [batches, lookup, at_ms, work] : {Case{{}, false, 0, false},
                                                     {{"1", "2", "12"}, false, 99, false},
                                                     {{"1", "2"}, false, 100, true},
                                                     {{"2"}, false, 199, false},
                                                     {{"1", "13"}, false, 0, true},
                                                     {{"3"}, false, 0, true},
                                                     {{}, true, 0, true}}) {
    WriterQueue queue;
    const Instant now = locking::BootClock::now();
    queue.LeaveOut(*batch("1"), now + std::chrono::milliseconds(100));
    queue.LeaveOut(*batch("22"), now + std::chrono::milliseconds(200));
    for (const std::string& of : batches) queue.Push(batch(of));
    if (lookup) queue.Push(std::make_unique<LookupBatch>());
    EXPECT_EQ(queue.HasWork(now + std::chrono::milliseconds(at_ms)), work)
        << ::testing::PrintToString(batches) << " at " << at_ms;
  }
}

TEST(LookupTry, AnswersForAllAndNamesThoseThatWereLeftOut) {
  LookupBatch batch{{}, {"a", "b", "c", "d", "e"}, {}, 0};
  LookupTry asked(batch);
  asked.LeaveOut({0, 2});
  EXPECT_EQ(asked.ids(), (std::vector<std::string>{"b", "d", "e"}));
  asked.LeaveOut({1});
  EXPECT_EQ(asked.ids(), (std::vector<std::string>{"b", "e"}));
  const auto all = asked.Answer(batch, {std::nullopt, LedgerEntry{.worker = "w"}});
  ASSERT_EQ(all.size(), 5u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_FALSE(all[i]) << i;
  EXPECT_EQ(all[4]->worker, "w");
  EXPECT_EQ(batch.unread, (std::vector<std::size_t>{0, 2, 3}));
}

}  // namespace
}  // namespace fencepost::consumer
