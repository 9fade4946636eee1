// A handler's failure: tried again after a back-off, so many times, or not at all.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/model/flow/flow_bench.h"

namespace fencepost::consumer {
namespace {

HandlerFailure Failure(const std::string& error_class) {
  return {.error_class = error_class, .text = "it failed", .retry_after = {}};
}

FlowOptions Retrying() {
  FlowOptions options = FlowBench::Handling(Order::kNone);
  options.tuning.retry.attempts = 4;
  options.tuning.retry.give_up_after = Millis(0);
  options.tuning.retry.initial = Millis(100);
  options.tuning.retry.max = Millis(300);
  options.tuning.retry.jitter = Jitter::kNone;
  options.tuning.retry.never = {"4xx"};
  return options;
}

class Retry : public OneWorker {
 protected:
  Retry() : OneWorker(Retrying()) { worker.Deliver(0, {"a"}); }
  // How long until the next call, to 10 ms.
  Millis UntilCalled() {
    Millis waited{0};
    for (; worker.Calls().empty() && waited < Millis(20'000); waited += Millis(10)) {
      worker.Wait(Millis(10));
    }
    return waited;
  }
};

TEST_F(Retry, WaitsLongerEachTimeUpToAMaximum) {
  EXPECT_EQ(worker.calls[0].attempt, 1);
  worker.Fail("a", Failure("503"));
  EXPECT_EQ(UntilCalled(), Millis(100));
  EXPECT_EQ(worker.calls[0].attempt, 2);
  worker.Fail("a", Failure("503"));
  EXPECT_EQ(UntilCalled(), Millis(200));
  worker.Fail("a", Failure("503"));
  EXPECT_EQ(UntilCalled(), Millis(300));
  EXPECT_EQ(worker.told.handler_retries, 3);
}

TEST_F(Retry, WaitsLongerButNoShorterThanItsBackOffWhereTheHandlerWishesIt) {
  HandlerFailure failure = Failure("503");
  failure.retry_after = Millis(10);
  worker.Fail("a", failure);
  EXPECT_EQ(UntilCalled(), Millis(100));
  failure.retry_after = Millis(1500);
  worker.Fail("a", failure);
  EXPECT_EQ(UntilCalled(), Millis(1500));
}

TEST_F(Retry, HoldsTheLeaseMeanwhile) {
  HandlerFailure failure = Failure("503");
  failure.retry_after = world.lock.ttl * 3 / 2;
  worker.Fail("a", failure);
  worker.Wait(world.lock.ttl);
  EXPECT_EQ(worker.Leased(), "a");
}

TEST_F(Retry, EndsInADeadLetterAfterSoManyAttempts) {
  for (int attempt = 1; attempt < 4; ++attempt) {
    worker.Fail("a", Failure("500"));
    UntilCalled();
  }
  worker.Fail("a", Failure("500"));
  ASSERT_EQ(worker.Letters(), "a:500");
  EXPECT_EQ(worker.letters[0].attempts, 4);
  EXPECT_EQ(worker.letters[0].reason, DeadLetterReason::kHandler);
}

TEST_F(Retry, IsNotTriedOfAClassThatNeverHelpsOrWhereTheHandlerSaysThatItWouldFailAgain) {
  worker.Fail("a", Failure("404"));
  worker.Deliver(0, {"b"});
  HandlerFailure failure = Failure("503");
  failure.retry = false;
  worker.Fail("b", failure);
  ASSERT_EQ(worker.Letters(), "a:404 b:503");
  for (const DeadLetter& letter : worker.letters) EXPECT_EQ(letter.attempts, 1);
  EXPECT_EQ(worker.told.handler_retries, 0);
}

TEST_F(Retry, DoesNotCountAnAttemptThatALostLeaseCutShort) {
  for (int lost = 0; lost < 5; ++lost) {
    LoseLease("a");
    ASSERT_EQ(worker.Calls(), "a!");
    worker.Fail("a", Failure("cancelled"));
    worker.Wait(world.lock.ttl * 2);
    ASSERT_EQ(worker.Calls(), "a");
  }
  worker.Fail("a", Failure("503"));
  EXPECT_EQ(worker.StageOf("a"), "retrying") << "that was its first failure";
}

TEST_F(Retry, GoesOnCountingWhereALostLeaseInterruptsIt) {
  HandlerFailure failure = Failure("500");
  failure.retry_after = world.lock.ttl;
  for (int attempt = 1; attempt < 4; ++attempt) {
    worker.Fail("a", failure);
    LoseLease("a");
    EXPECT_EQ(worker.Leased(), "");
    worker.Wait(world.lock.ttl * 2);
    ASSERT_EQ(worker.Calls(), "a");
    EXPECT_EQ(worker.calls[0].attempt, attempt + 1);
  }
  worker.Fail("a", Failure("500"));
  EXPECT_EQ(worker.Letters(), "a:500");
}

TEST(Jitter, DrawsTheWaitFromNothingToTheBackoff) {
  FlowOptions options = Retrying();
  options.tuning.retry.initial = options.tuning.retry.max = Millis(300);
  options.tuning.retry.jitter = Jitter::kFull;
  std::vector<Millis> waits;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SharedWorld world;
    FlowBench worker(world, options);
    worker.random = seed * 0xd1342543de82ef95ULL;
    worker.Assign(0);
    worker.Deliver(0, {"a"});
    worker.Fail("a", Failure("503"));
    waits.emplace_back(0);
    for (; worker.Calls().empty(); waits.back() += Millis(10)) worker.Wait(Millis(10));
  }
  const auto [least, most] = std::minmax_element(waits.begin(), waits.end());
  EXPECT_LT(*least, Millis(60));
  EXPECT_GT(*most, Millis(240));
  EXPECT_LE(*most, Millis(310));
}

}  // namespace
}  // namespace fencepost::consumer
