// How long and how often is tried, and how a waiter is woken.
#include <atomic>
#include <cmath>
#include <future>
#include <limits>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "tests/component/quorum_lock/lock_fixture.h"

namespace fencepost::locking {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Told final : public NodesUp {
 public:
  std::atomic<int> contended{0};
  std::atomic<int> no_wake_up{0};
  void OnRound(RoundResult result, Nanos) override {
    contended += result == RoundResult::kContended ? 1 : 0;
  }
  void OnNote(Severity, std::string_view event, std::string_view) override {
    no_wake_up += event == "redis_wake_up_away" ? 1 : 0;
  }
};

class WaitsTest : public EveryCount {
 protected:
  static Lease Hold(QuorumLock& lock) { return Take(lock, "name"); }
};

INSTANTIATE_TEST_SUITE_P(Over, WaitsTest, kNodeCounts, NodesName);

TEST_P(WaitsTest, TriesOnceWhereNeitherWaitNorTriesAreGiven) {
  Told told;
  const auto holder = Connect();
  const auto lock = Connect(Options(), told);
  const Lease held = Hold(*holder);
  EXPECT_EQ(Code(lock->Acquire("name")), "contended");
  EXPECT_EQ(told.contended, 1);
}

TEST_P(WaitsTest, TriesAsOftenAsItIsToldAtItsInterval) {
  Told told;
  const auto holder = Connect();
  const auto lock = Connect(Options(), told);
  const Lease held = Hold(*holder);
  const Instant began = BootClock::now();
  const DelayPolicy interval{.first = 50ms, .most = 50ms, .jitter = false};
  EXPECT_EQ(Code(lock->Acquire("name", {.tries = 4, .delay = interval})), "contended");
  EXPECT_EQ(told.contended, 4);
  EXPECT_GE(BootClock::now() - began, 150ms);
}

TEST_P(WaitsTest, ServesAHundredThatAskForOneNameAgainAndAgain) {
  const auto one = Connect();
  const auto other = Connect();
  constexpr int kThreads = 100;
  constexpr int kTurns = 5;
  std::atomic<int> had{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&had, &lock = i % 2 == 0 ? *one : *other] {
      for (int turn = 0; turn < kTurns; ++turn) {
        had += lock.Acquire("name", {.wait = 60s}) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(had, kThreads * kTurns);
}

TEST_P(WaitsTest, TellsAGrantThatCameTooLateFromAnOutage) {
  auto options = Options();
  options.lock.node_timeout = 20s;
  const auto lock = Connect(options);
  PauseAll();
  std::promise<QuorumLock::Result> result;
  // 2 s, less 1% and 2 ms: it must be there within 78 ms.
  lock->AcquireAsync("late", {.ttl = 2s, .min_validity = 1900ms},
                     [&](QuorumLock::Result got) { result.set_value(std::move(got)); });
  const auto asked = std::chrono::steady_clock::now();
  EXPECT_TRUE(WaitUntil(20s, [&] { return std::chrono::steady_clock::now() > asked + 150ms; }));
  ResumeAll();
  const auto got = result.get_future().get();
  ASSERT_EQ(Code(got), "too_late");
  EXPECT_THAT(got.error().Line(), HasSubstr("less than min_validity left"));
  EXPECT_TRUE(WaitUntil(20s, [&] { return AllNodesSay('F', "late"); })) << "given back";
}

TEST_P(WaitsTest, RefusesInOneLineWhatItCannotKeep) {
  const auto lock = Connect();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<AcquireOptions> wrong = {
      {.tries = -1},
      {.delay = {.multiplier = 0.99}},
      {.delay = {.multiplier = nan}},
      {.delay = {.first = -1ms}},
      {.delay = {.most = 0ms}},
      {.ttl = -5ms},
      {.ttl = 10s, .min_validity = 9898ms},  // 10 s less 1% and 2 ms
  };
  for (const AcquireOptions& options : wrong) {
    const auto refused = lock->Acquire("name", options);
    ASSERT_EQ(Code(refused), "refused");
    EXPECT_FALSE(refused.error().hint.empty()) << refused.error().Line();
    EXPECT_THAT(refused.error().Line(), Not(HasSubstr("\n")));
  }
  EXPECT_EQ(Code(lock->Acquire("name", {.ttl = 10s, .min_validity = 8s})), "");
  for (const double factor : {-0.01, 0.5, nan}) {
    auto options = Options();
    options.lock.drift_factor = factor;
    const auto refused = QuorumLock::Connect(options);
    ASSERT_EQ(Code(refused), "bad_options");
    EXPECT_THAT(refused.error().Line(), HasSubstr("drift_factor"));
  }
  auto options = Options();
  options.lock.drift_factor = 0.49;
  options.lock.ttl = 10s;
  options.lock.min_validity = 5s;
  EXPECT_EQ(Code(QuorumLock::Connect(options)), "");
  options.lock.min_validity = 5099ms;
  EXPECT_EQ(Code(QuorumLock::Connect(options)), "bad_options");
}

// --- waking
// ---------------------------------------------------------------------------------------

// A waiter that would not ask again by itself in the time of a test.
constexpr DelayPolicy kLong{.first = 60s, .most = 60s, .jitter = false};

class WakeUpTest : public WaitsTest {
 protected:
  QuorumLock::Options Waking() {
    auto options = Options();
    options.lock.wake_up = true;
    return options;
  }
  // Everywhere; in an order that does not matter.
  bool SubscribersAre(int count, const std::string& name = "name") {
    const std::string channel = "fencepost:{test}:" + name;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      const std::string said = nodes_[node].Command({"PUBSUB", "NUMSUB", channel});
      if (!said.ends_with("\n" + std::to_string(count))) return false;
    }
    return true;
  }
  int PubSubConnections(std::size_t node) {
    const std::string list = nodes_[node].Command({"CLIENT", "LIST", "TYPE", "pubsub"});
    return static_cast<int>(std::count(list.begin(), list.end(), '\n'));
  }
};

INSTANTIATE_TEST_SUITE_P(Over, WakeUpTest, kNodeCounts, NodesName);

TEST_P(WakeUpTest, GivesAReleasedLockToWhoWaitsLongBeforeItWouldAskAgain) {
  const auto holder = Connect(Waking());
  const auto lock = Connect(Waking());
  Lease held = Hold(*holder);
  std::atomic<bool> got{false};
  Lease lease;
  lock->AcquireAsync("name", {.wait = 50s, .delay = kLong}, [&](QuorumLock::Result result) {
    if (result) lease = std::move(*result);
    got = true;
  });
  ASSERT_TRUE(WaitUntil(10s, "the subscriptions", [&] { return SubscribersAre(1); }));
  EXPECT_FALSE(got);
  EXPECT_EQ(held.Release(), ReleaseOutcome::kReleased);
  ASSERT_TRUE(WaitUntil(10s, "the lease", [&] { return got.load(); }));
  EXPECT_TRUE(lease.valid());
  EXPECT_TRUE(WaitUntil(10s, "nobody waits any more", [&] { return SubscribersAre(0); }));
}

TEST_P(WakeUpTest, CostsNoConnectionWhereNobodyWaits) {
  const auto lock = Connect(Waking());
  for (int i = 0; i < 10; ++i) Hold(*lock);
  for (std::size_t node = 0; node < nodes_.size(); ++node) EXPECT_EQ(PubSubConnections(node), 0);
}

TEST_P(WakeUpTest, PollsNodesThatRefuseItAndSaysSoOnceEach) {
  Spoil();
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    ASSERT_EQ(nodes_[node].Command({"ACL", "SETUSER", "default", "resetchannels"}), "OK");
  }
  Told told;
  const auto holder = Connect(Waking());
  const auto lock = Connect(Waking(), told);
  Lease held = Hold(*holder);
  std::atomic<bool> got{false};
  const DelayPolicy poll{.first = 50ms, .most = 50ms};
  lock->AcquireAsync("name", {.wait = 50s, .delay = poll}, [&](QuorumLock::Result) { got = true; });
  ASSERT_TRUE(WaitUntil(10s, "the notes", [&] { return told.no_wake_up == node_count(); }));
  EXPECT_EQ(held.Release(), ReleaseOutcome::kReleased) << "it cannot publish either";
  EXPECT_TRUE(WaitUntil(10s, "the lease", [&] { return got.load(); }));
  EXPECT_EQ(told.no_wake_up, node_count());
}

TEST_P(WakeUpTest, HandsANameThroughManyWaitersOneByOne) {
  const auto holder = Connect(Waking());
  const std::vector<std::unique_ptr<QuorumLock>> locks = [this] {
    std::vector<std::unique_ptr<QuorumLock>> made;
    for (int i = 0; i < 3; ++i) made.push_back(Connect(Waking()));
    return made;
  }();
  Lease held = Hold(*holder);
  constexpr int kEach = 4;
  std::atomic<int> inside{0};
  std::atomic<int> had{0};
  std::atomic<int> wrong{0};
  // Polls now and then: a wake-up that met a rival is not followed by another before his release.
  const AcquireOptions waiting{.wait = 60s, .delay = {.first = 400ms, .most = 400ms}};
  const auto use = [&](QuorumLock::Result result) {
    if (!result || ++inside != 1) ++wrong;
    --inside;
    ++had;
    if (result) result->ReleaseAsync();
  };
  for (const auto& lock : locks) {
    for (int i = 0; i < kEach; ++i) lock->AcquireAsync("name", waiting, use);
  }
  ASSERT_TRUE(WaitUntil(10s, "the subscriptions", [&] { return SubscribersAre(3); }));
  held.Release();
  EXPECT_TRUE(WaitUntil(30s, "all of them", [&] { return had == 3 * kEach; }));
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace fencepost::locking
