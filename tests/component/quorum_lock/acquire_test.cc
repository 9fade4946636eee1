// QuorumLock: how names are asked for, and what is left behind when it comes to nothing.
#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "tests/component/quorum_lock/lock_fixture.h"

namespace fencepost::locking {
namespace {

using ::testing::HasSubstr;

class QuorumLockTest : public EveryCount {};
class NodesTest : public LockFixture {};

INSTANTIATE_TEST_SUITE_P(Over, QuorumLockTest, kNodeCounts, NodesName);

TEST_P(QuorumLockTest, GivesRisingTokensToOneHolderAfterTheOther) {
  const auto lock = Connect();
  Token last;
  for (int i = 0; i < 3; ++i) {
    auto lease = lock->Acquire("name", {.wait = 5s});
    ASSERT_TRUE(lease) << lease.error().Line();
    EXPECT_TRUE(lease->valid());
    EXPECT_EQ(lease->name(), "name");
    EXPECT_GT(lease->token(), last);
    EXPECT_FALSE(lease->stop_token().stop_requested());
    last = lease->token();
    EXPECT_EQ(lease->Release(), ReleaseOutcome::kReleased);
    EXPECT_FALSE(lease->valid());
    EXPECT_EQ(lease->Release(), ReleaseOutcome::kReleased);
  }
}

TEST_P(QuorumLockTest, SaysContendedWhileAnotherHoldsTheNameAndGetsItAfterwards) {
  const auto first = Connect();
  const auto second = Connect();
  auto held = first->Acquire("name");
  ASSERT_TRUE(held) << held.error().Line();
  EXPECT_EQ(Code(second->Acquire("name")), "contended");
  EXPECT_EQ(Code(second->Acquire("name", {.wait = 100ms})), "contended");
  held->ReleaseAsync();
  auto later = second->Acquire("name", {.wait = 20s});
  ASSERT_TRUE(later) << later.error().Line();
  EXPECT_GT(later->token(), held->token());
}

class ForeignNotes : public NodesUp {
 public:
  std::atomic<int> failures{0};
  std::atomic<int> about_the_name{0};
  std::atomic<int> rounds{0};
  void OnRound(RoundResult, Nanos) override { ++rounds; }
  void OnQuorumFailure(QuorumFailure) override { ++failures; }
  void OnNote(Severity, std::string_view event, std::string_view text) override {
    const bool named = text.find("fencepost:{test}:name ") != std::string_view::npos;
    about_the_name += event == "foreign_value" && named ? 1 : 0;
  }
};

TEST_P(QuorumLockTest, SaysWhichKeyHoldsSomethingThatIsNoLockAndGetsTheNameAfterItsEnd) {
  ForeignNotes told;
  const auto lock = LockFixture::Connect(Options(), told);
  const std::string key = "fencepost:{test}:name";
  for (std::size_t node = 0; node < quorum(); ++node) nodes_[node].Command({"RPUSH", key, "x"});
  const auto got = lock->Acquire("name", {.tries = 3, .delay = {.first = 1ms, .most = 1ms}});
  ASSERT_EQ(Code(got), "foreign");
  EXPECT_THAT(got.error().Line(), HasSubstr("the key " + key + " holds something that is no lock"));
  EXPECT_THAT(got.error().Line(), HasSubstr("DEL it if nobody needs it"));
  EXPECT_EQ(told.rounds, 3);
  EXPECT_EQ(told.about_the_name, 1) << "not one a round";
  EXPECT_EQ(told.failures, 0) << "no outage";
  EXPECT_EQ(Code(lock->Acquire("other", {.wait = 10s})), "");
  for (std::size_t node = 0; node < quorum(); ++node) nodes_[node].Command({"DEL", key});
  EXPECT_EQ(Code(lock->Acquire("name", {.wait = 10s})), "");
}

class CallCounts : public NodesUp {
 public:
  std::atomic<std::size_t> acquire_calls{0};
  std::atomic<std::size_t> acquire_keys{0};
  void OnCall(NodeIndex, OpKind kind, std::size_t keys, Nanos) override {
    if (kind != OpKind::kAcquire) return;
    ++acquire_calls;
    acquire_keys += keys;
  }
};

TEST_P(QuorumLockTest, TakesAThousandNamesInAFewCallsEachForItself) {
  CallCounts counts;
  auto options = Options();
  const auto lock = Connect(options, counts);
  const auto other = Connect();
  const auto taken = other->Acquire("name-500");
  ASSERT_TRUE(taken) << taken.error().Line();
  std::vector<std::string> names;
  for (int i = 0; i < 1000; ++i) names.push_back("name-" + std::to_string(i));
  auto leases = lock->AcquireAll(names, {.ttl = 20s});
  ASSERT_EQ(leases.size(), names.size());
  std::set<Token> tokens;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i == 500) {
      EXPECT_EQ(Code(leases[i]), "contended");
      continue;
    }
    ASSERT_TRUE(leases[i]) << leases[i].error().Line();
    EXPECT_EQ(leases[i]->name(), names[i]);
    tokens.insert(leases[i]->token());
  }
  EXPECT_EQ(tokens.size(), 999U);
  leases.clear();
  ASSERT_TRUE(WaitUntil(10s, "all nodes' answers",
                        [&] { return counts.acquire_keys >= 1000U * nodes_.size(); }));
  EXPECT_LE(counts.acquire_calls, 3U * nodes_.size());  // 512 names a call, one for good measure
}

TEST_P(QuorumLockTest, RefusesWhatItCannotLock) {
  const auto lock = Connect();
  EXPECT_EQ(Code(lock->Acquire("")), "refused");
  EXPECT_EQ(Code(lock->Acquire(std::string(513, 'x'))), "refused");
  EXPECT_EQ(Code(lock->Acquire("name", {.ttl = 50ms})), "refused");
  const auto too_long = lock->Acquire("name", {.wait = Millis::max(), .ttl = 31s});
  ASSERT_EQ(Code(too_long), "refused");
  EXPECT_THAT(too_long.error().Line(), HasSubstr("max_ttl of 30000 ms"));
  const auto twice = lock->AcquireAll({"a", "a"});
  EXPECT_EQ(Code(twice[0]), "");
  EXPECT_EQ(Code(twice[1]), "refused");
  EXPECT_TRUE(lock->AcquireAll({}).empty());
}

TEST_P(QuorumLockTest, EndsWaitingCallsAndGivesBackItsLeasesWhenItIsDestroyed) {
  const auto other = Connect();
  auto lock = Connect();
  auto held = lock->Acquire("held", {.ttl = 30s});
  ASSERT_TRUE(held);
  const auto elsewhere = other->Acquire("name");
  ASSERT_TRUE(elsewhere);
  {
    std::atomic<int> closed{0};
    const auto count = [&](QuorumLock::Result result) { closed += Code(result) == "closed"; };
    lock->AcquireAsync("name", {.wait = Millis::max()}, count);
    lock->AcquireAsync("held", {.wait = Millis::max()}, count);
    lock.reset();
    EXPECT_EQ(closed, 2);
  }
  // The lease outlives its lock, and is lost.
  EXPECT_FALSE(held->valid());
  EXPECT_TRUE(held->stop_token().stop_requested());
  EXPECT_EQ(Code(held->Extend()), "closed");
  EXPECT_EQ(Code(held->Done()), "closed");
  EXPECT_EQ(held->Release(), ReleaseOutcome::kReleased);
  EXPECT_EQ(Code(other->Acquire("held")), "");
}

TEST_P(QuorumLockTest, IsDestroyedWithinANodeTimeoutWhenNoNodeAnswers) {
  auto options = Options();
  options.lock.node_timeout = 500ms;
  auto lock = Connect(options);
  const auto held = lock->Acquire("name");
  ASSERT_TRUE(held);
  // With an acquire still unanswered somewhere, its release could not be sent in time.
  ASSERT_TRUE(WaitUntil(10s, "the grants", [&] { return AllNodesSay('H', "name"); }));
  PauseAll();
  const Instant start = BootClock::now();
  lock.reset();
  EXPECT_LT(BootClock::now() - start, 2s);
  EXPECT_TRUE(held->stop_token().stop_requested());
  ResumeAll();
  // What was sent is read in the end.
  EXPECT_TRUE(WaitUntil(10s, "the releases", [&] { return AllNodesSay('F', "name"); }));
}

TEST_F(NodesTest, SaysWhatIsWrongWithTheNodes) {
  auto options = Options();
  options.redis.nodes.resize(2);
  EXPECT_EQ(Code(QuorumLock::Connect(options)), "bad_options");
  options = Options();
  options.redis.nodes[1] = options.redis.nodes[0];
  EXPECT_EQ(Code(QuorumLock::Connect(options)), "bad_options");
  options = Options();
  options.name_space = "Not Good";
  EXPECT_EQ(Code(QuorumLock::Connect(options)), "bad_options");
  options = Options();
  options.lock.remember_done = -1s;
  EXPECT_EQ(QuorumLock::Connect(options).error().Line(),
            "remember_done of -1000 ms cannot be kept; at least 1 ms");

  // One of the three alone is another list than the store was made with.
  options = Options();
  options.redis.nodes.resize(1);
  auto lock = QuorumLock::Connect(options);
  ASSERT_TRUE(lock);
  auto ready = (*lock)->WaitReady(2s);
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().code, "foreign_store") << ready.error().Line();
  EXPECT_EQ(ready.error().what, "it belongs to a lock store of 3 nodes, but 1 is listed");
  EXPECT_THAT(ready.error().hint, ::testing::HasSubstr("`fencepost locks init FILE --force`"));
  EXPECT_EQ(ready.error().where, "lock node a (" + options.redis.nodes[0] + ")");
  const auto refused = (*lock)->Acquire("name");
  EXPECT_EQ(Code(refused), "no_quorum");

  options = Options();
  options.redis.nodes[0] = "127.0.0.1:" + std::to_string(testing::FreePort());
  options.redis.nodes[1] = "127.0.0.1:" + std::to_string(testing::FreePort());
  lock = QuorumLock::Connect(options);
  ASSERT_TRUE(lock);
  ready = (*lock)->WaitReady(1s);
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().code, "no_quorum");
  EXPECT_THAT(ready.error().what,
              HasSubstr(options.redis.nodes[1] + ": the lock node is unavailable: Connection"));
}

TEST_F(NodesTest, IsReadyOnlyWhereThereIsAStore) {
  const RedisServers empty(1);
  auto options = Options();
  options.redis.nodes = empty.addresses();
  const auto lock = QuorumLock::Connect(options);
  ASSERT_TRUE(lock);
  const auto ready = (*lock)->WaitReady(2s);
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().code, "no_store") << ready.error().Line();
}

}  // namespace
}  // namespace fencepost::locking
