// /live of a worker: what a restart mends.
#include <condition_variable>
#include <mutex>

#include <gmock/gmock.h>

#include "consumer/worker/worker.h"
#include "tests/support/process.h"

namespace fencepost::consumer {
namespace {

using namespace std::chrono_literals;
using testing::FreePort;
using testing::WaitUntil;

// Holds the engine thread in its first note, that a lock node is away.
class Holder : public locking::LockObserver {
 public:
  void OnNote(locking::Severity, std::string_view, std::string_view) override {
    std::unique_lock lock(mutex_);
    released_.wait(lock, [this] { return release_; });
  }
  void Release() {
    const std::lock_guard lock(mutex_);
    release_ = true;
    released_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable released_;
  bool release_ = false;
};

TEST(Live, IsNoWorkerWhoseEngineHasNotRunForTenSeconds) {
  const auto nowhere = [] { return fmt::format("127.0.0.1:{}", FreePort()); };
  PipelineOptions options;
  options.name = options.kafka.group = "orders";
  options.kafka.brokers = {nowhere()};
  options.kafka.topics = {"orders"};
  options.lock.redis.nodes = {nowhere()};
  options.output = FileOptions{.path = "/dev/null", .columns = {}};
  Holder holder;
  ConsumerObserver observer;
  Worker worker(options, "worker-1", &holder, &observer);
  const auto from = std::chrono::steady_clock::now();
  ASSERT_TRUE(worker.Start());
  EXPECT_TRUE(worker.Live().first);
  EXPECT_TRUE(WaitUntil(30s, [&] { return !worker.Live().first; }));
  EXPECT_GE(std::chrono::steady_clock::now() - from, 10s);
  EXPECT_EQ(worker.Live().second, "the engine thread has not run for 10 s");
  holder.Release();
  EXPECT_TRUE(WaitUntil(30s, [&] { return worker.Live().first; }));
}

}  // namespace
}  // namespace fencepost::consumer
