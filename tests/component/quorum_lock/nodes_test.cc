// The ways in which a QuorumLock's nodes are named.
#include <fcntl.h>

#include <filesystem>
#include <mutex>
#include <set>

#include <gmock/gmock.h>

#include "tests/component/quorum_lock/lock_fixture.h"

namespace fencepost::locking {
namespace {

using fencepost::testing::FreePort;
using ::testing::HasSubstr;
using ::testing::Not;

class Notes final : public NodesUp {
 public:
  void OnNote(Severity, std::string_view, std::string_view text) override {
    const std::lock_guard lock(mutex_);
    all_ += std::string(text) + "\n";
  }
  std::string All() {
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  std::mutex mutex_;
  std::string all_;
};

class WhereNodesAre : public LockFixture {
 protected:
  // Taken, extended and released on all three.
  void ExpectWorks(QuorumLock& lock) {
    auto lease = lock.Acquire("name", {.wait = 10s});
    ASSERT_TRUE(lease) << lease.error().Line();
    EXPECT_TRUE(lease->Extend());
    EXPECT_TRUE(WaitUntil(10s, "the lock on all nodes", [&] { return AllNodesSay('H', "name"); }));
    EXPECT_EQ(lease->Release(), ReleaseOutcome::kReleased);
  }
  // The three with a user of its own.
  std::vector<std::string> Urls(const std::string& password) {
    std::vector<std::string> urls;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      nodes_[node].Command({"ACL", "SETUSER", "u", "on", ">hunter2", "~fencepost:*", "+@all"});
      urls.push_back("redis://u:" + password + "@" + nodes_[node].address());
    }
    return urls;
  }
};

TEST_F(WhereNodesAre, AreReachedByUnixSocketsAndAgainAfterARestart) {
  auto options = Options();
  options.redis.nodes = nodes_.unix_addresses();
  options.creation = StoreCreation::kQuarantined;  // may write to a sentinel
  Notes notes;
  const auto lock = LockFixture::Connect(options, notes);
  ExpectWorks(*lock);
  nodes_[1].Kill();
  ASSERT_TRUE(WaitUntil(20s, "the end of the node", [&] { return notes.up == 0b101; }));
  nodes_[1].Start();
  EXPECT_TRUE(WaitUntil(20s, "the node that was restarted", [&] { return notes.up == 0b111; }))
      << notes.All();
  ExpectWorks(*lock);
}

TEST_F(WhereNodesAre, AreReachedByUrlsWithUsersOfTheirOwn) {
  auto options = Options();
  options.redis.nodes = Urls("hunter2");
  options.redis.nodes[2] = nodes_[2].unix_address();
  const auto lock = Connect(options);
  ExpectWorks(*lock);
}

TEST_F(WhereNodesAre, AreOnConnectionsThatNoChildProcessInherits) {
  const auto open_now = [] {
    std::set<int> open;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      open.insert(std::stoi(entry.path().filename()));
    }
    return open;
  };
  const std::set<int> before = open_now();
  auto options = Options();
  options.redis.nodes[2] = nodes_[2].unix_address();
  options.lock.wake_up = true;
  const auto lock = Connect(options);
  ExpectWorks(*lock);
  int sockets = 0;
  for (const int descriptor : open_now()) {
    const int flags = fcntl(descriptor, F_GETFD);
    if (before.contains(descriptor) || flags < 0) continue;  // that of the folder itself is gone
    ++sockets;
    EXPECT_NE(flags & FD_CLOEXEC, 0) << descriptor;
  }
  EXPECT_GE(sockets, node_count());
}

TEST_F(WhereNodesAre, AreShownWithoutUserAndPassword) {
  auto options = Options();
  options.redis.nodes = Urls("hunter3");
  Notes notes;
  options.observer = &notes;
  const auto lock = QuorumLock::Connect(options);
  ASSERT_TRUE(lock);
  const auto ready = (*lock)->WaitReady(1s);
  ASSERT_FALSE(ready);
  EXPECT_THAT(ready.error().Line(), HasSubstr("redis://" + nodes_[0].address() +
                                              ": the lock node "
                                              "is unavailable: login: the node says: WRONGPASS"));
  for (const std::string& text : {ready.error().Line(), notes.All()}) {
    EXPECT_THAT(text, HasSubstr(nodes_[0].address()));
    EXPECT_THAT(text, Not(HasSubstr("hunter")));
    EXPECT_THAT(text, Not(HasSubstr("@")));
  }
}

TEST_F(WhereNodesAre, AreRefusedWhenTwoAreTheSameInAnotherSpelling) {
  auto options = Options();
  options.redis.nodes[2] = "redis://u:hunter2@" + nodes_[0].address() + "/0";
  const auto lock = QuorumLock::Connect(options);
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().code, "bad_options");
  EXPECT_THAT(lock.error().Line(), HasSubstr("is listed twice: as " + nodes_[0].address()));
  EXPECT_THAT(lock.error().Line(), Not(HasSubstr("hunter2")));
}

TEST_F(WhereNodesAre, AreRefusedWithTlsFilesThatCannotBeUsed) {
  auto options = Options();
  options.redis.tls_ca = "/nowhere/ca.pem";
  const auto lock = QuorumLock::Connect(options);
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().code, "bad_options");
  EXPECT_THAT(lock.error().Line(),
              HasSubstr("/nowhere/ca.pem: the CA file cannot be used: No such"));
}

}  // namespace
}  // namespace fencepost::locking
