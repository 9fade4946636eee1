#include "consumer/handlers/batch_queue.h"

#include <map>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fencepost::consumer {
namespace {

using std::chrono::seconds;

// On virtual time, which starts at zero.
class BatchQueueTest : public ::testing::Test {
 protected:
  void Make(int max_records, Millis linger, double rate = 0) {
    queue_.emplace(BatchOptions{.max_records = max_records, .linger = linger}, rate);
  }
  void Add(std::uint64_t id, bool alone = false, std::size_t bytes = 0) {
    HandlerCall call{.id = id, .record_id = std::to_string(id), .alone = alone};
    if (bytes > 0) {
      values_[id] = std::string(bytes, 'x');
      call.record.value = values_[id];
    }
    queue_->Add(std::move(call), now_);
  }
  void AddAll(std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t id = from; id <= to; ++id) Add(id);
  }
  CallBatch Take() {
    BatchQueue::Taken taken = queue_->Take(now_);
    if (!taken.calls.empty()) queue_->OnSent(now_);
    late_ += IdsOf(taken.late);
    return std::move(taken.calls);
  }
  static std::string IdsOf(const CallBatch& batch) {
    std::string ids;
    for (const HandlerCall& call : batch) {
      ids += fmt::format("{}{}", ids.empty() ? "" : " ", call.id);
    }
    return ids;
  }
  // The batches that go out now.
  std::string Out() {
    std::string out;
    for (CallBatch batch = Take(); !batch.empty(); batch = Take()) {
      out += fmt::format("{}{}", out.empty() ? "" : " | ", IdsOf(batch));
    }
    return out;
  }
  void Pass(Millis time) { now_ += time; }

  std::optional<BatchQueue> queue_;
  std::map<std::uint64_t, std::string> values_;
  std::string late_;  // ids of calls that were given as late
  Instant now_{seconds(1000)};
};

TEST_F(BatchQueueTest, ThatTakesOneRecordARequestHoldsNothingBack) {
  Make(1, Millis(0));
  AddAll(1, 3);
  EXPECT_EQ(Out(), "1 | 2 | 3");
  EXPECT_EQ(queue_->Next(now_), Instant::max());
}

TEST_F(BatchQueueTest, GivesAFullBatchAtOnceAndAnotherOnceItsFirstHasLingered) {
  Make(3, Millis(20));
  AddAll(1, 3);
  EXPECT_EQ(Out(), "1 2 3");
  Add(4);
  Pass(Millis(5));
  Add(5);
  EXPECT_EQ(Out(), "");
  EXPECT_EQ(queue_->Next(now_), now_ + Millis(15));
  Pass(Millis(14));
  EXPECT_EQ(Out(), "");
  Pass(Millis(1));
  EXPECT_EQ(Out(), "4 5");
  AddAll(6, 12);
  EXPECT_EQ(Out(), "6 7 8 | 9 10 11");
  Pass(Millis(20));
  EXPECT_EQ(Out(), "12");
}

TEST_F(BatchQueueTest, TakesWhatWaitsWhereNothingLingers) {
  Make(10, Millis(0));
  AddAll(1, 4);
  EXPECT_EQ(Out(), "1 2 3 4");
}

TEST_F(BatchQueueTest, PutsIntoOneBatchOnlyWhatSharesARequest) {
  Make(3, Millis(20));
  queue_->ShareBy([](const HandlerCall& call) { return call.id % 2 == 0 ? "even" : "odd"; });
  AddAll(1, 5);
  EXPECT_EQ(Out(), "1 3 5") << "full, before the others have lingered";
  Pass(Millis(15));
  AddAll(7, 7);
  Pass(Millis(5));
  EXPECT_EQ(Out(), "2 4");
  EXPECT_EQ(queue_->Next(now_), now_ + Millis(15));
  AddAll(8, 8);
  queue_->Halve({{.id = 2}, {.id = 4}}, now_);
  EXPECT_EQ(Out(), "2 | 4 | 7 | 8") << "those of a half go first, then one at a time";
}

TEST_F(BatchQueueTest, GivesACallThatGoesAloneAtOnceAndByItself) {
  Make(3, Millis(20));
  Add(1);
  Add(2, true);
  Add(3);
  Add(4, true);
  EXPECT_EQ(Out(), "2 | 4");
  Add(5);
  EXPECT_EQ(Out(), "1 3 5") << "what goes alone takes no place of theirs";
}

TEST_F(BatchQueueTest, EndsABatchBeforeItsBytesAreTooMany) {
  Make(100, Millis(20));
  constexpr std::size_t kThird = BatchQueue::kMostBytes / 3;
  for (std::uint64_t id = 1; id <= 5; ++id) Add(id, false, kThird);
  EXPECT_EQ(Out(), "1 2 | 3 4") << "with what is around each of them, three are too much";
  Pass(Millis(20));
  EXPECT_EQ(Out(), "5");
  Add(6, false, BatchQueue::kMostBytes + 1);
  Add(7);
  EXPECT_EQ(Out(), "6");
}

TEST_F(BatchQueueTest, ForgetsACallThatIsCancelled) {
  Make(3, Millis(20));
  AddAll(1, 2);
  Add(3, true);
  EXPECT_TRUE(queue_->Remove(1));
  EXPECT_TRUE(queue_->Remove(3));
  EXPECT_FALSE(queue_->Remove(3));
  EXPECT_EQ(Out(), "");
  Pass(Millis(20));
  EXPECT_EQ(Out(), "2");
  EXPECT_FALSE(queue_->Remove(2)) << "it has gone";
}

TEST_F(BatchQueueTest, GivesWhatIsPutBackFirstAndAtOnce) {
  Make(3, Millis(20));
  AddAll(1, 3);
  CallBatch batch = Take();
  Add(4);
  queue_->PutBack(std::move(batch));
  EXPECT_EQ(Out(), "1 2 3");
}

TEST_F(BatchQueueTest, HalvesWhatWasTooMuchUntilItIsTakenAndForAWhile) {
  Make(8, Millis(20));
  AddAll(1, 8);
  queue_->Halve(Take(), now_);
  CallBatch half = Take();
  EXPECT_EQ(IdsOf(half), "1 2 3 4");
  queue_->Halve(std::move(half), now_);
  EXPECT_EQ(Out(), "1 2 | 3 4 | 5 6 7 8");
  Pass(BatchQueue::kHalvedFor - Millis(1));
  AddAll(9, 16);
  EXPECT_EQ(Out(), "9 10 11 12 | 13 14 15 16");
  Pass(Millis(1));
  AddAll(17, 24);
  EXPECT_EQ(Out(), "17 18 19 20 21 22 23 24");
}

TEST_F(BatchQueueTest, HalvesThreeRecordsToOneEach) {
  Make(3, Millis(20));
  AddAll(1, 3);
  queue_->Halve(Take(), now_);
  EXPECT_EQ(Out(), "1 2 | 3");
}

// One record that is too much by itself is found, and the batches of others stay large.
TEST_F(BatchQueueTest, HalvesTheHalvesWithoutMakingOthersSmaller) {
  Make(8, Millis(20));
  AddAll(1, 16);
  for (int i = 0; i < 3; ++i) queue_->Halve(Take(), now_);
  EXPECT_EQ(Out(), "1 | 2 | 3 4 | 5 6 7 8 | 9 10 11 12 | 13 14 15 16");
}

TEST_F(BatchQueueTest, LetsNoGroupWaitBehindOneThatAlwaysHasAFullBatch) {
  Make(2, Millis(20), 10);
  queue_->ShareBy([](const HandlerCall& call) { return call.id == 5 ? "few" : "many"; });
  AddAll(1, 5);
  EXPECT_EQ(Out(), "1 2");
  for (int i = 0; i < 3; ++i) {
    Pass(Millis(100));
    AddAll(10 + 2 * i, 11 + 2 * i);
  }
  EXPECT_EQ(IdsOf(Take()), "3 4");
  Pass(Millis(100));
  EXPECT_EQ(IdsOf(Take()), "5");
}

TEST_F(BatchQueueTest, GivesBackWhatIsLateWithoutTakingItsPlaceInTheRate) {
  Make(1, Millis(0), 1);
  for (std::uint64_t id = 1; id <= 5; ++id) {
    queue_->Add({.id = id, .valid_until = now_ + seconds(id == 4 ? 9 : 2)}, now_);
  }
  EXPECT_EQ(Out(), "1");
  Pass(seconds(2));
  EXPECT_EQ(Out(), "4");
  EXPECT_EQ(late_, "2 3");
}

TEST_F(BatchQueueTest, LetsACallWaitForOthersForHalfOfItsLeaseAtMost) {
  Make(2, seconds(30));
  queue_->Add({.id = 1, .valid_until = now_ + seconds(8)}, now_);
  EXPECT_EQ(queue_->Next(now_), now_ + seconds(4));
  Pass(seconds(4));
  EXPECT_EQ(Out(), "1");
}

TEST_F(BatchQueueTest, CountsRequestsAgainstItsRateNotRecords) {
  Make(2, Millis(20), 1);
  AddAll(1, 6);
  EXPECT_EQ(Out(), "1 2");
  EXPECT_EQ(queue_->Next(now_), now_ + Millis(1000));
  Pass(Millis(999));
  EXPECT_EQ(Out(), "");
  Pass(Millis(1));
  EXPECT_EQ(Out(), "3 4");
  Pass(Millis(10'000));
  EXPECT_EQ(Out(), "5 6") << "nothing is saved up";
}

TEST_F(BatchQueueTest, IsNotDelayedByARateThatHasChanged) {
  Make(1, Millis(0), 0.001);
  AddAll(1, 3);
  EXPECT_EQ(Out(), "1");
  queue_->SetRate(5);
  EXPECT_EQ(Out(), "2");
  Pass(Millis(200));
  EXPECT_EQ(Out(), "3");
}

}  // namespace
}  // namespace fencepost::consumer
