// A machine that sleeps: CLOCK_BOOTTIME and the wall clock go on, CLOCK_MONOTONIC does not.
// This program's own clock_gettime stands in front of the C library's, so that its clocks can be
// put forward; the nodes, which did not sleep, get the same wall clock by the shim.
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <ctime>

#include <gmock/gmock.h>

#include "locking/quorum_lock/quorum_lock.h"
#include "tests/support/redis_server.h"

namespace {

std::atomic<std::int64_t> slept_ns{0};

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* at) noexcept {
  if (syscall(SYS_clock_gettime, clock, at) != 0) return -1;
  if (clock != CLOCK_BOOTTIME && clock != CLOCK_REALTIME) return 0;
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t all = at->tv_sec * kSecond + at->tv_nsec + slept_ns;
  at->tv_sec = all / kSecond;
  at->tv_nsec = all % kSecond;
  return 0;
}

namespace fencepost::locking {
namespace {

using namespace std::chrono_literals;
using fencepost::testing::RedisServers;
using fencepost::testing::RequireWithin;
using fencepost::testing::WaitUntil;

class NodesUp : public LockObserver {
 public:
  std::atomic<unsigned> up{0};
  void OnNode(NodeIndex node, bool is_up, bool /*quarantined*/) override {
    is_up ? up |= 1U << node : up &= ~(1U << node);
  }
};

class AMachineThatSleeps : public ::testing::Test {
 protected:
  AMachineThatSleeps() { slept_ns = 0; }
  ~AMachineThatSleeps() override {
    lock_.reset();
    slept_ns = 0;
  }
  QuorumLock& Lock() {
    QuorumLock::Options options;
    options.redis.nodes = nodes_.addresses();
    options.creation = StoreCreation::kImmediate;
    options.observer = &up_;
    lock_ = std::move(*QuorumLock::Connect(options));
    RequireWithin(
        20s, [this] { return up_.up == 7 && lock_->WaitReady(0ms); }, "all nodes");
    return *lock_;
  }
  // Wakes up that much later. What the nodes would say has not come yet.
  void Sleep(Millis time) {
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      nodes_[node].Pause();
      nodes_[node].ShiftClock(time);
    }
    slept_ns += std::chrono::nanoseconds(time).count();
  }

  RedisServers nodes_{3, {.own_clock = true}};
  NodesUp up_;
  std::unique_ptr<QuorumLock> lock_;
};

TEST_F(AMachineThatSleeps, FindsItsLeaseExpiredAsSoonAsItWakesAndMayLockAgain) {
  QuorumLock& lock = Lock();
  auto lease = lock.Acquire("name", {.wait = 5s, .ttl = 30s});
  ASSERT_TRUE(lease);
  ASSERT_TRUE(lease->valid());
  Sleep(30s);
  EXPECT_FALSE(lease->valid()) << "no node and no thread needs to have said so";
  EXPECT_TRUE(WaitUntil(  // long before the monotonic clock has seen 30 s
      15s, [&] { return lease->stop_token().stop_requested(); }, "the loss to be told"));
  for (std::size_t node = 0; node < nodes_.size(); ++node) nodes_[node].Resume();
  EXPECT_TRUE(lock.Acquire("name", {.wait = 10s})) << "the nodes' clocks have not stepped";
}

TEST_F(AMachineThatSleeps, KeepsALeaseThatOutlastsTheSleep) {
  auto lease = Lock().Acquire("name", {.wait = 5s, .ttl = 30s});
  ASSERT_TRUE(lease);
  Sleep(10s);
  EXPECT_TRUE(lease->valid());
  EXPECT_FALSE(lease->stop_token().stop_requested());
}

}  // namespace
}  // namespace fencepost::locking
