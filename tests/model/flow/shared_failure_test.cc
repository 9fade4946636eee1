// A request with several records that fails whole: it blames none of them, and each is tried again
// alone.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer/handlers/batch_queue.h"
#include "tests/model/flow/flow_bench.h"

namespace fencepost::consumer {
namespace {

using ::testing::HasSubstr;

constexpr int kBatch = 3;

HandlerFailure Refused(bool shared) {
  return {.error_class = "400",
          .text = "HTTP 400: no",
          .shown = "HTTP 400",
          .retry = false,
          .shared = shared};
}

HandlerFailure Broken(bool shared, std::string status = "500") {
  return {.error_class = std::move(status), .text = "HTTP", .shown = "HTTP", .shared = shared};
}

FlowOptions WithBatches() {
  FlowOptions options = FlowBench::Handling(Order::kKey);
  options.handler.kind = HttpHandlerOptions{.batch = {.max_records = kBatch}};
  options.tuning.concurrency = 2;
  options.tuning.retry.attempts = 3;
  options.tuning.retry.give_up_after = Millis(0);
  options.tuning.retry.initial = Millis(100);
  options.tuning.retry.max = Millis(2000);
  options.tuning.retry.jitter = Jitter::kNone;
  return options;
}

class SharedFailure : public WorkerWith<WithBatches> {
 protected:
  SharedFailure() { worker.Deliver(0, {"a@1", "b@2", "c@3"}); }
  void FailAll(const HandlerFailure& failure) {
    for (const std::string id : {"a", "b", "c"}) worker.Fail(id, failure);
  }
  // Those of the calls that are out that go alone.
  [[nodiscard]] std::string Alone() const {
    std::string ids;
    for (const HandlerCall& call : worker.calls) ids += call.alone ? call.record_id : "";
    std::ranges::sort(ids);
    return ids;
  }
  void NextCalls() {
    for (int i = 0; worker.Calls().empty() && i < 10'000; ++i) worker.Wait(Millis(10));
  }
};

TEST_F(SharedFailure, MakesNoDeadLetterAndItsRecordsAreTriedAgainAlone) {
  EXPECT_EQ(Alone(), "");
  FailAll(Refused(true));
  EXPECT_EQ(worker.Letters(), "");
  EXPECT_EQ(worker.flow.HandlerUnavailable(), "");
  EXPECT_THAT(worker.told.notes.back(), HasSubstr("; so did the others of its request"));
  NextCalls();
  EXPECT_EQ(worker.Calls(), "a b c");
  EXPECT_EQ(Alone(), "abc");
  EXPECT_EQ(worker.calls.front().attempt, 2);
  for (const std::string id : {"a", "c"}) worker.Handle(id);
  worker.Fail("b", Refused(false));
  worker.WriteAll();
  EXPECT_EQ(worker.Letters(), "b:400");
  worker.Acknowledge();
  EXPECT_EQ(worker.Watermark(0), 3);
}

FlowOptions OneAttempt() {
  FlowOptions options = WithBatches();
  options.tuning.retry.attempts = 1;
  options.tuning.retry.never = {"500"};
  return options;
}
using SharedFailureOfOneAttempt = WorkerWith<OneAttempt>;

TEST_F(SharedFailureOfOneAttempt, IsTriedAgainAllTheSame) {
  worker.Deliver(0, {"a@1", "b@2"});
  for (const std::string id : {"a", "b"}) worker.Fail(id, Broken(true));
  EXPECT_EQ(worker.Letters(), "");
  worker.Wait(Millis(200));
  worker.Fail("a", Broken(false));
  EXPECT_EQ(worker.Letters(), "a:500") << "now it is its own";
}

TEST_F(SharedFailure, IsNoAttemptAfterWhichARecordIsGivenUp) {
  FailAll(Broken(true));
  for (int own = 1; own <= 3; ++own) {
    EXPECT_EQ(worker.Letters(), "") << own;
    NextCalls();
    for (const std::string id : {"b", "c"}) {
      if (own == 1) worker.Handle(id);
    }
    worker.WriteAll();
    worker.Fail("a", Broken(false));
  }
  EXPECT_EQ(worker.Letters(), "a:500");
}

TEST_F(SharedFailure, InWhichTheServiceSpeaksOfItselfIsTheServices) {
  FailAll(Broken(true, "503"));
  EXPECT_THAT(worker.flow.HandlerUnavailable(), HasSubstr("its service is unavailable: 503"));
  NextCalls();
  EXPECT_EQ(worker.calls.size(), 1u);
  EXPECT_EQ(Alone().size(), 1u) << "a probe shares its request with no other";
  worker.Handle(worker.Calls());
  NextCalls();
  EXPECT_EQ(worker.calls.size(), 2u);
  EXPECT_EQ(Alone(), "");
}

TEST_F(SharedFailure, OfAServiceThatFailsForAllOpensTheCircuitOnceTheyFailAlone) {
  FailAll(Broken(true));
  NextCalls();
  FailAll(Broken(false));
  EXPECT_THAT(worker.flow.HandlerUnavailable(), HasSubstr("its service is unavailable: 500"));
  for (int probe = 0; probe < 50; ++probe) {
    NextCalls();
    ASSERT_EQ(worker.calls.size(), 1u);
    worker.Fail(worker.Calls(), Broken(false));
  }
  EXPECT_EQ(worker.Letters(), "");
}

TEST_F(SharedFailure, ComesOfAsManyRecordsAsItsRequestsHold) {
  worker.Deliver(0, {"d@4", "e@5", "f@6", "g@7"});
  EXPECT_EQ(worker.Calls(), "a b c d e f") << "two requests with three records each";
}

// One that makes every request with it fail, in a stream of others.
class BadRecordInBatches : public WorkerWith<WithBatches> {
 protected:
  // Answers what is out, a batch after the other, until nothing comes of it at this time.
  void Serve() {
    BatchQueue queue({.max_records = kBatch});
    while (!worker.calls.empty()) {
      for (const HandlerCall& call : worker.calls) queue.Add(call, world.now.boot);
      while (queue.Due(world.now.boot)) Answer(queue.Take(world.now.boot).calls);
    }
    worker.WriteAll();
    while (worker.Acknowledge()) ++letters_;
  }
  void Answer(const CallBatch& batch) {
    ++requests_;
    const bool bad = std::ranges::any_of(
        batch, [](const HandlerCall& call) { return call.record_id.starts_with("bad"); });
    for (const HandlerCall& call : batch) {
      bad ? worker.Fail(call.record_id, Refused(batch.size() > 1)) : worker.Handle(call.record_id);
    }
  }

  int requests_ = 0;
  int letters_ = 0;
};

TEST_F(BadRecordInBatches, BecomesOneDeadLetterAndTheOthersPassWithAFewRequestsMore) {
  constexpr int kRecords = 120;
  for (int i = 0; i < kRecords; ++i) {
    const bool bad = i % 40 == 7;
    worker.Deliver(0, {(bad ? "bad" : "ok") + std::to_string(i) + "@" + std::to_string(i)});
  }
  for (int i = 0; worker.Watermark(0) < kRecords && i < 100; ++i) {
    Serve();
    worker.Wait(Millis(100));
  }
  EXPECT_EQ(worker.Watermark(0), kRecords);
  EXPECT_EQ(letters_, 3);
  EXPECT_LE(requests_, kRecords / kBatch + 3 * (kBatch + 3));
  EXPECT_EQ(worker.flow.HandlerUnavailable(), "");
}

}  // namespace
}  // namespace fencepost::consumer
