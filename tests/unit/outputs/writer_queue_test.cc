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

TEST_F(WriterQueueTest, IdsOfALookUpThatArePutOffComeAgainOnceItResumes) {
  LookupBatch lookup{{1, 2, 3}, {"a", "b", "c"}, {Nanos(1), Nanos(2), Nanos(3)}, 7};
  queue_.PutOff(lookup, {0, 2});
  EXPECT_EQ(lookup.ids, std::vector<std::string>{"b"});
  EXPECT_EQ(lookup.references, std::vector<std::uint64_t>{2});
  EXPECT_EQ(lookup.contended, std::vector<Nanos>{Nanos(2)});
  EXPECT_EQ(lookup.epoch, 7u);
  EXPECT_TRUE(queue_.Empty() && queue_.PutsOff());
  queue_.Resume();
  EXPECT_FALSE(queue_.PutsOff());
  const auto again = queue_.Take().lookup;
  EXPECT_EQ(again->ids, (std::vector<std::string>{"a", "c"}));
  EXPECT_EQ(again->references, (std::vector<std::uint64_t>{1, 3}));
  EXPECT_EQ(again->epoch, 7u);
}

}  // namespace
}  // namespace fencepost::consumer
