// The thread that an output runs on, with an output that does what the test says.
#include "consumer/outputs/writer.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/process.h"
#include "tests/unit/outputs/scripted_table.h"

namespace fencepost::consumer {
namespace {

using namespace std::chrono_literals;
using fencepost::testing::WaitUntil;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using enum WriteResult;

class SplitObserver final : public ConsumerObserver {
 public:
  void OnWriteSplit() override { ++splits; }
  std::atomic<int> splits = 0;
};

// The table is touched by the writer's thread alone, from Start to Stop.
class WriterTest : public ::testing::Test {
 protected:
  WriterTest()
      : owned_(std::make_unique<ScriptedTable>()),
        table_(*owned_),
        writer_(std::move(owned_), std::nullopt, &observer_,
                {.written = [this](auto batch,
                                   auto outcomes) { OnWritten(*batch, std::move(outcomes)); },
                 .looked_up =
                     [this](auto lookup, auto) {
                       const std::lock_guard lock(mutex_);
                       unread_ = lookup->unread;
                       ++looked_up_;
                     },
                 .state = [this](bool up, std::string reason) { OnState(up, std::move(reason)); },
                 .fatal = [this](Error error) { OnState(false, "fatal: " + error.what); },
                 .held = [this](std::string why) { OnState(false, "held: " + why); }}) {}

  void Write(const Items& items, std::uint64_t answered = 0, Instant until = Instant::max()) {
    auto batch = std::make_unique<WriteBatch>();
    batch->id = ++batches_;
    batch->answered = answered;
    batch->until = until;
    batch->request.items = items.items();
    writer_.Write(std::move(batch));
  }
  std::vector<std::vector<WriteResult>> Results(std::size_t count) {
    EXPECT_TRUE(WaitUntil(20s, [&] {
      const std::lock_guard lock(mutex_);
      return results_.size() >= count;
    }));
    const std::lock_guard lock(mutex_);
    return results_;
  }
  // Of one batch alone.
  std::vector<WriteResult> ResultsOf(const Items& items) {
    Write(items);
    writer_.Start();
    return Results(1).at(0);
  }
  // A look-up, and until it is answered.
  void LookUp(LookupBatch lookup = {}) {
    int before = 0;
    {
      const std::lock_guard lock(mutex_);
      before = looked_up_;
    }
    writer_.LookUp(std::make_unique<LookupBatch>(std::move(lookup)));
    EXPECT_TRUE(WaitUntil(20s, [&] {
      const std::lock_guard lock(mutex_);
      return looked_up_ > before;
    }));
  }
  std::vector<std::string> States() {
    const std::lock_guard lock(mutex_);
    return states_;
  }
  std::vector<std::size_t> unread_;  // of the last look-up
  SplitObserver observer_;

 private:
  void OnWritten(const WriteBatch& /*batch*/, const std::vector<WriteOutcome>& outcomes) {
    const std::lock_guard lock(mutex_);
    auto& results = results_.emplace_back();
    for (const WriteOutcome& outcome : outcomes) results.push_back(outcome.result);
  }
  void OnState(bool up, std::string reason) {
    const std::lock_guard lock(mutex_);
    states_.push_back(up ? "up" : std::move(reason));
  }

  std::mutex mutex_;
  std::vector<std::vector<WriteResult>> results_;  // guarded by mutex_
  std::vector<std::string> states_;                // guarded by mutex_
  int looked_up_ = 0;                              // guarded by mutex_
  std::unique_ptr<ScriptedTable> owned_;
  std::uint64_t batches_ = 0;

 protected:
  ScriptedTable& table_;
  Writer writer_;
};

TEST_F(WriterTest, WhatItsOutputHoldsBackIsToldWhenItChanges) {
  table_.held_after = {"", "a", "a", ""};
  writer_.Start();
  for (int batch = 0; batch < 5; ++batch) {
    const Items items({{.id = batch}});
    Write(items);
    Results(static_cast<std::size_t>(batch) + 1);
  }
  writer_.Stop();
  EXPECT_THAT(States(), ElementsAre("up", "held: a", "held: "));
}

TEST_F(WriterTest, AWriteWithoutAnAnswerIsWrittenAgainUntilItsOutcomeIsKnown) {
  table_.failures.assign(2, ScriptedTable::Failed(WriteFailure::kUnavailable, "cut off"));
  EXPECT_THAT(ResultsOf(Items(Items::Range(0, 3))), Each(kCommitted));
  writer_.Stop();
  EXPECT_THAT(table_.sizes, ElementsAre(3, 3, 3));
  EXPECT_THAT(States(), ElementsAre("up", "cut off", "up"));
}

TEST_F(WriterTest, ABatchWhoseTimeIsOverIsHandedBackAndNothingOfItIsWritten) {
  Write(Items{{1}}, 0, locking::BootClock::now());
  Write(Items{{2}});
  writer_.Start();
  EXPECT_THAT(Results(2), ElementsAre(ElementsAre(kNotWritten), ElementsAre(kCommitted)));
  writer_.Stop();
  EXPECT_EQ(table_.transactions, 1);
}

TEST_F(WriterTest, WhatOneBatchRefusedHoldsItsChainInTheNextThatWasQueuedAlready) {
  table_.refused = {1};
  const Items first{{1, 7}, {2, 8}};
  const Items second{{3, 7}, {4, 8}};
  const Items third{{5, 7}};
  Write(first);
  Write(second);
  Write(third, 2);
  writer_.Start();
  const auto results = Results(3);
  writer_.Stop();
  EXPECT_THAT(results[0], ElementsAre(kBadRecord, kCommitted));
  EXPECT_THAT(results[1], ElementsAre(kNotWritten, kCommitted));
  EXPECT_THAT(results[2], ElementsAre(kCommitted));
  EXPECT_FALSE(table_.committed.contains(3));
}

TEST_F(WriterTest, TheSearchForARefusedRecordIsNoTroubleOfTheOutputs) {
  table_.refused = {3, 40};
  EXPECT_EQ(std::ranges::count(ResultsOf(Items(Items::Range(0, 100))), kBadRecord), 2);
  writer_.Stop();
  EXPECT_EQ(observer_.splits, 1);
  EXPECT_THAT(States(), ElementsAre("up"));
}

TEST_F(WriterTest, AnOutputThatRefusesEverythingIsNotReadyAndTheBatchIsHandedBack) {
  table_.refuses_all = true;
  EXPECT_THAT(ResultsOf(Items(Items::Range(0, 30))), Each(kNotWritten));
  writer_.Stop();
  EXPECT_THAT(States(), ElementsAre("up", HasSubstr("the output refuses every record: refused")));
}

TEST_F(WriterTest, ABatchThatIsOnlyHeldBackDoesNotMakeTheOutputReady) {
  table_.refuses_all = true;
  Items first;
  for (int i = 0; i < 30; ++i) first.Add(i, 7 + static_cast<std::uint64_t>(i));
  const Items second{{40, 7}};
  Write(first);
  Write(second);
  writer_.Start();
  EXPECT_THAT(Results(2)[1], ElementsAre(kNotWritten));
  writer_.Stop();
  EXPECT_THAT(States(), ElementsAre("up", HasSubstr("refuses every record")));
}

TEST_F(WriterTest, ALookUpThatSucceedsDoesNotMakeAnOutputReadyThatRefusesEverything) {
  table_.refuses_all = true;
  EXPECT_THAT(ResultsOf(Items(Items::Range(0, 30))), Each(kNotWritten));
  LookUp();
  writer_.Stop();
  EXPECT_THAT(States(), ElementsAre("up", HasSubstr("refuses every record")));
}

TEST_F(WriterTest, TheTroubleOfALookUpEndsWithItsSuccessThoughNothingIsWritten) {
  table_.lookup_failures = {ScriptedTable::Failed(WriteFailure::kUnavailable, "away")};
  writer_.Start();
  LookUp();
  EXPECT_THAT(States(), ElementsAre("up", "away", "up"));
  writer_.Stop();
}

TEST_F(WriterTest, ALookUpsTroubleHidesThatOfTheWritesOnlyWhileItLasts) {
  table_.refuses_all = true;
  table_.lookup_failures = {ScriptedTable::Failed(WriteFailure::kUnavailable, "away")};
  EXPECT_THAT(ResultsOf(Items(Items::Range(0, 30))), Each(kNotWritten));
  LookUp();
  writer_.Stop();
  const auto refuses = HasSubstr("refuses every record");
  EXPECT_THAT(States(), ElementsAre("up", refuses, "away", refuses));
}

TEST_F(WriterTest, ALookUpIsAnsweredAtOnceAndNamesTheIdsWhoseLogIsUnread) {
  OutputError error = ScriptedTable::Failed(WriteFailure::kUnavailable, "no broker answers");
  error.later = {0};
  table_.lookup_failures = {error};
  writer_.Start();
  LookUp({{1, 2}, {"a", "b"}, {Nanos(0), Nanos(0)}, 0});
  EXPECT_THAT(unread_, ElementsAre(0));
  EXPECT_THAT(States(), ElementsAre("up"));
  writer_.Stop();
}

TEST_F(WriterTest, WhatIsLeftOutKeepsNoWorkOfOthersWaiting) {
  OutputError error = ScriptedTable::Failed(WriteFailure::kUnavailable, "no broker answers");
  error.later = {0};
  table_.failures.assign(200, error);
  const Items unread({1}, 1), others({2}, 2);
  for (int i = 0; i < 200; ++i) Write(unread);
  Write(others);
  const auto began = std::chrono::steady_clock::now();
  writer_.Start();
  EXPECT_THAT(Results(201).back(), ElementsAre(kCommitted));
  EXPECT_LT(std::chrono::steady_clock::now() - began, 200 * 100ms / 2);
  writer_.Stop();
}

TEST_F(WriterTest, StopEndsAWaitAndWhatHasNoOutcomeIsDropped) {
  table_.failures.assign(1000, ScriptedTable::Failed(WriteFailure::kUnavailable, "away"));
  Write(Items{{1}});
  writer_.Start();
  ASSERT_TRUE(WaitUntil(20s, [&] { return States().size() == 2; }));
  writer_.Stop();
  EXPECT_THAT(Results(0), IsEmpty());
  EXPECT_THAT(table_.failures, Not(IsEmpty()));
}

// Its write waits until it is interrupted.
class SilentTable final : public Output {
 public:
  [[nodiscard]] std::size_t max_records() const override { return 500; }
  tl::expected<void, OutputError> Prepare() override { return {}; }
  tl::expected<std::vector<WriteOutcome>, OutputError> Write(const WriteRequest&) override {
    writing = true;
    interrupted_.wait(false);
    return tl::unexpected(ScriptedTable::Failed(WriteFailure::kUnavailable, "interrupted"));
  }
  void Interrupt() override {
    interrupted_ = true;
    interrupted_.notify_all();
  }

  std::atomic<bool> writing = false;

 private:
  std::atomic<bool> interrupted_ = false;
};

TEST(Writer, AnswersNothingOfAWriteThatItsStopInterrupted) {
  SplitObserver observer;
  auto owned = std::make_unique<SilentTable>();
  const SilentTable& table = *owned;
  std::atomic<int> answers = 0;
  Writer writer(std::move(owned), std::nullopt, &observer,
                {.written = [&](auto, auto) { ++answers; },
                 .looked_up = [](auto, auto) {},
                 .state = [](bool, std::string) {},
                 .fatal = [](Error) {}});
  const Items items{{1}};
  auto batch = std::make_unique<WriteBatch>();
  batch->id = 1;
  batch->request.items = items.items();
  writer.Write(std::move(batch));
  writer.Start();
  ASSERT_TRUE(WaitUntil(20s, [&] { return table.writing.load(); }));
  writer.Stop();
  EXPECT_EQ(answers, 0);
}

TEST_F(WriterTest, AfterAFatalErrorNothingMoreIsWritten) {
  OutputError fenced = ScriptedTable::Failed(WriteFailure::kUnavailable, "fenced");
  fenced.fatal = true;
  table_.failures = {fenced};
  Write(Items{{1}});
  Write(Items{{2}});
  writer_.Start();
  ASSERT_TRUE(WaitUntil(20s, [&] { return States().size() == 2; }));
  EXPECT_EQ(States()[1], "fatal: fenced");
  writer_.Stop();
  EXPECT_EQ(table_.transactions, 1);
}

}  // namespace
}  // namespace fencepost::consumer
