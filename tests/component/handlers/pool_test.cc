// Handlers in C++ on a pool of threads.
#include <atomic>
#include <condition_variable>
#include <set>
#include <thread>

#include "consumer/handlers/handler.h"
#include "tests/component/handlers/runner_fixture.h"

namespace fencepost::consumer {
namespace {

using fencepost::testing::WaitUntil;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// "wait" waits for the stop, "late" for it too but then succeeds; anything else is given back.
struct Shared {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::atomic<int> made = 0;
  std::atomic<int> inside = 0;
};

class Scripted : public Handler {
 public:
  explicit Scripted(Shared* shared) : shared_(shared), home_(std::this_thread::get_id()) {
    ++shared_->made;
  }
  HandlerResult Handle(const HandlerRequest& request, const std::stop_token& stop) override {
    EXPECT_EQ(std::this_thread::get_id(), home_) << "another thread than the one that made it";
    EXPECT_EQ(request.where->topic, "orders");
    EXPECT_EQ(request.token, 9'007'199'254'740'993u);
    EXPECT_EQ(request.attempt, 2);
    const std::string_view value = *request.record->value;
    if (value == "fail") {
      return tl::unexpected(HandlerFailure{.error_class = "sold_out", .text = "none left"});
    }
    if (value == "wait") {
      ++shared_->inside;
      std::mutex mutex;
      std::condition_variable_any stopped;
      std::unique_lock lock(mutex);
      stopped.wait(lock, stop, [] { return false; });
      --shared_->inside;
    }
    return HandlerValues{std::string(value), std::string(request.record_id)};
  }

 private:
  Shared* shared_;
  std::thread::id home_;
};

class PoolOfHandlers : public RunnerFixture {
 protected:
  ~PoolOfHandlers() override {
    if (runner_) runner_->Stop();
  }
  void StartPool(int threads) {
    Start(
        {.kind = CustomHandlerOptions{
             .make = [this] { return std::make_unique<Scripted>(&shared_); }, .threads = threads}});
  }
  Shared shared_;
};

TEST_F(PoolOfHandlers, GivesEachThreadItsOwnHandler) {
  StartPool(3);
  EXPECT_EQ(shared_.made, 3);
  EXPECT_THAT(ResultOf("a").value(), ElementsAre("a", "o-1"));
  EXPECT_EQ(FailureOf("fail").error_class, "sold_out");
  EXPECT_EQ(recorder_.handled(), 2);
}

TEST_F(PoolOfHandlers, StopsACallAtItsTimeout) {
  StartPool(1);
  EXPECT_EQ(Told({.value = "wait", .timeout = 50ms}), "timeout, again: no answer within 50 ms");
  EXPECT_THAT(ResultOf("a").value(), ElementsAre("a", "o-1"));
}

TEST_F(PoolOfHandlers, StopsTheSoonerOfTwoCallsFirst) {
  StartPool(2);
  const auto slow = Call({.value = "wait", .timeout = 1h});
  ASSERT_TRUE(WaitUntil(10s, [&] { return shared_.inside == 1; }));
  const auto quick = Call({.value = "wait", .timeout = 50ms});
  EXPECT_EQ(ClassOf(quick), "timeout");
  EXPECT_EQ(shared_.inside, 1);
  Cancel(slow);
  EXPECT_EQ(ClassOf(slow), "cancelled");
}

TEST_F(PoolOfHandlers, CancelsWhatRunsAndWhatWaits) {
  StartPool(1);
  const auto running = Call("wait");
  const auto waiting = Call("a");
  ASSERT_TRUE(WaitUntil(10s, [&] { return shared_.inside == 1; }));
  Cancel(waiting);
  EXPECT_EQ(ClassOf(waiting), "cancelled");
  EXPECT_EQ(recorder_.handled(), 0);
  Cancel(running);
  EXPECT_EQ(ClassOf(running), "cancelled");
  EXPECT_EQ(recorder_.handled(), 1);
  Cancel(running);
  Cancel(4711);
  EXPECT_THAT(ResultOf("b").value(), ElementsAre("b", "o-1"));
}

TEST_F(PoolOfHandlers, IsNotCalledUnderALeaseThatHasEnded) {
  StartPool(1);
  EXPECT_EQ(ClassOf(Call({.value = "wait", .valid_until = Instant()})), "cancelled");
  EXPECT_THAT(ResultOf("a").value(), ElementsAre("a", "o-1"));
}

TEST_F(PoolOfHandlers, StopsWithCallsInside) {
  StartPool(2);
  for (int i = 0; i < 5; ++i) Call("wait");
  ASSERT_TRUE(WaitUntil(10s, [&] { return shared_.inside == 2; }));
  runner_->Stop();
  EXPECT_EQ(shared_.inside, 0);
  EXPECT_THAT(recorder_.answers(), IsEmpty());
}

TEST_F(PoolOfHandlers, RefusesToStartWithoutAHandler) {
  EXPECT_EQ(StartError({.kind = CustomHandlerOptions{.make = [] { return nullptr; }}}),
            "CustomHandlerOptions::make: the program's handler was not made; it must return a "
            "Handler");
  EXPECT_NE(StartError({.kind = CustomHandlerOptions{}}), "it started");
}

}  // namespace
}  // namespace fencepost::consumer
