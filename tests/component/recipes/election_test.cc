// Election: one leader at a time, in this process and among processes that are killed and frozen.
// The processes are the failover example.
#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "locking/recipes/election.h"
#include "tests/support/lock_store.h"
#include "tests/support/paths.h"

namespace fencepost::locking {
namespace {

using namespace std::chrono_literals;
using testing::Code;
using ::testing::ElementsAre;
using testing::LockStore;
using testing::Process;
using ::testing::SizeIs;
using testing::TempDir;
using testing::WaitUntil;

// --- in one process ------------------------------------------------------------------------------

class Calls {
 public:
  void Add(const std::string& call) {
    const std::lock_guard guard(mutex_);
    calls_.push_back(call);
  }
  std::vector<std::string> All() const {
    const std::lock_guard guard(mutex_);
    return calls_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> calls_;
};

class ElectionTest : public ::testing::Test {
 protected:
  ElectionOptions Options(Calls& calls) {
    ElectionOptions options;
    options.acquire.ttl = 1500ms;
    options.depose_before = 300ms;
    options.on_elected = [&](const Term&) { calls.Add("elected"); };
    options.on_deposed = [&](const Term&, const Error& why) { calls.Add(why.code); };
    options.on_waiting = [&](const Error& why) { calls.Add("waiting:" + why.code); };
    return options;
  }

  LockStore store_{3};
  std::unique_ptr<QuorumLock> lock_ = store_.Connect();
  std::unique_ptr<QuorumLock> other_ = store_.Connect();
};

TEST_F(ElectionTest, HandsOverWhenTheLeaderResignsAndStandsAgain) {
  Calls calls;
  Calls others;
  Election one(*lock_, "leader", Options(calls));
  Election two(*other_, "leader", Options(others));
  ASSERT_EQ(Code(one.Start()), "");
  EXPECT_EQ(Code(one.Start()), "bad_options");
  ASSERT_TRUE(WaitUntil(10s, [&] { return one.IsLeader(); }));
  const Token first = one.Current()->token;
  ASSERT_EQ(Code(two.Start()), "");
  EXPECT_FALSE(two.IsLeader());
  two.Resign();  // nothing to give up
  one.Resign(Millis::max());
  ASSERT_TRUE(WaitUntil(10s, "the other", [&] { return two.IsLeader(); }));
  EXPECT_FALSE(one.IsLeader());
  EXPECT_FALSE(one.Current());
  EXPECT_GT(two.Current()->token, first);
  EXPECT_THAT(calls.All(), ElementsAre("elected", "resigned"));
  two.Resign(0ms);
  ASSERT_TRUE(WaitUntil(10s, [&] { return others.All().size() >= 2; }));
  two.Stop();
  two.Stop();
  EXPECT_FALSE(two.IsLeader());
  one.Stop();
  EXPECT_THAT(calls.All(), ElementsAre("elected", "resigned"));
  EXPECT_EQ(Code(lock_->Acquire("leader", {.wait = 10s})), "");
}

TEST_F(ElectionTest, GivesTheLeaseBackOnlyAfterTheLeaderHasStopped) {
  Calls calls;
  auto options = Options(calls);
  options.on_deposed = [&](const Term&, const Error& why) {
    calls.Add(why.code);
    calls.Add(Code(other_->Acquire("leader")));
  };
  Election election(*lock_, "leader", options);
  ASSERT_EQ(Code(election.Start()), "");
  ASSERT_TRUE(WaitUntil(10s, [&] { return election.IsLeader(); }));
  election.Stop();
  EXPECT_THAT(calls.All(), ElementsAre("elected", "stopped", "contended"));
  EXPECT_EQ(Code(other_->Acquire("leader")), "");
}

TEST_F(ElectionTest, DeposesAheadOfTheLeasesEndWhenTheNodesAreGone) {
  Calls calls;
  auto options = Options(calls);
  Instant deposed_at;
  Instant stopped_at;
  std::atomic<bool> deposed{false};
  // on_elected blocks until it is told by the term itself.
  options.on_elected = [&](const Term& term) {
    calls.Add("elected");
    EXPECT_TRUE(WaitUntil(20s, "the term's end", [&] { return term.deposed.stop_requested(); }));
    stopped_at = BootClock::now();
  };
  options.on_deposed = [&](const Term&, const Error& why) {
    deposed_at = BootClock::now();
    calls.Add(why.code);
    deposed = true;
  };
  options.acquire.ttl = 6s;
  options.depose_before = 3s;
  Election election(*lock_, "leader", options);
  ASSERT_EQ(Code(election.Start()), "");
  ASSERT_TRUE(WaitUntil(10s, [&] { return election.IsLeader(); }));
  for (std::size_t i = 0; i < 3; ++i) store_.nodes()[i].Pause();
  const Instant paused_at = BootClock::now();
  ASSERT_TRUE(WaitUntil(10s, "the deposition", [&] { return deposed.load(); }));
  for (std::size_t i = 0; i < 3; ++i) store_.nodes()[i].Resume();
  // No extension was granted after the pause, so the lease ends at most a ttl after it.
  EXPECT_LT(deposed_at, paused_at + options.acquire.ttl);
  EXPECT_LE(stopped_at, deposed_at);
  ASSERT_TRUE(WaitUntil(20s, "the next term", [&] { return calls.All().size() >= 3; }));
  EXPECT_EQ(calls.All()[0], "elected");
  EXPECT_EQ(calls.All()[1], "lost");
  store_.nodes()[0].Command({"PING"});
  election.Stop();
}

TEST_F(ElectionTest, IsDeposedWhenTheNameIsTakenFromIt) {
  Calls calls;
  Election election(*lock_, "leader", Options(calls));
  ASSERT_EQ(Code(election.Start()), "");
  ASSERT_TRUE(WaitUntil(10s, [&] { return election.IsLeader(); }));
  store_.Wrest("leader");
  const auto theirs = other_->Acquire("leader");
  ASSERT_TRUE(theirs);
  ASSERT_TRUE(WaitUntil(10s, [&] { return calls.All().size() >= 2; }));
  EXPECT_EQ(calls.All()[1], "lost");
  EXPECT_TRUE(theirs->valid());
}

TEST_F(ElectionTest, RefusesATermTooShortToBeExtendedAndTellsOfAnOutage) {
  Calls calls;
  auto options = Options(calls);
  options.depose_before = 1000ms;
  EXPECT_EQ(Code(Election(*lock_, "leader", options).Start()), "bad_options");
  for (std::size_t i = 0; i < 3; ++i) store_.nodes()[i].Stop();
  Election election(*lock_, "leader", Options(calls));
  ASSERT_EQ(Code(election.Start()), "");
  ASSERT_TRUE(WaitUntil(20s, [&] { return !calls.All().empty(); }));
  election.Stop();
  EXPECT_EQ(calls.All()[0], "waiting:no_quorum");
}

// --- among processes -----------------------------------------------------------------------------

struct Reign {
  int candidate = 0;
  std::uint64_t elected = 0;  // CLOCK_BOOTTIME, ns
  std::uint64_t deposed = 0;  // 0: never
};

class Candidates {
 public:
  Candidates(const std::string& nodes, int count) {
    for (int i = 0; i < count; ++i) Start(nodes);
  }
  void Start(const std::string& nodes) {
    const std::string binary = testing::BuildPath("example_failover");
    processes_.push_back(std::make_unique<Process>(testing::ProcessOptions{
        .argv = {binary, "--redis", nodes, "--journal", journal(), "--ttl-ms", "1200", "--worker",
                 std::to_string(processes_.size())}}));
  }
  [[nodiscard]] std::string journal() const { return folder_.File("journal"); }
  Process& operator[](int i) { return *processes_.at(static_cast<std::size_t>(i)); }
  [[nodiscard]] int size() const { return static_cast<int>(processes_.size()); }

  // By token.
  [[nodiscard]] std::map<std::uint64_t, Reign> Reigns() const {
    std::map<std::uint64_t, Reign> reigns;
    for (int i = 0; i < size(); ++i) {
      std::istringstream lines(processes_[static_cast<std::size_t>(i)]->Output());
      for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string what;
        std::uint64_t token = 0;
        std::uint64_t at = 0;
        if (!(words >> what >> token >> at)) continue;
        if (what == "elected") reigns[token] = {.candidate = i, .elected = at};
        if (what == "deposed") reigns[token].deposed = at;
      }
    }
    return reigns;
  }
  // The candidate of a reign after the first `count`.
  [[nodiscard]] int LeaderAfter(std::size_t count) const {
    int leader = -1;
    EXPECT_TRUE(WaitUntil(20s, "the next leader", [&] { return Reigns().size() > count; }));
    const auto reigns = Reigns();
    if (!reigns.empty()) leader = reigns.rbegin()->second.candidate;
    return leader;
  }
  // Lines of the journal with a token below one before them: the reader skips them.
  [[nodiscard]] int LateLines() const {
    std::istringstream lines(testing::ReadFile(journal()));
    std::uint64_t highest = 0;
    int late = 0;
    for (std::string line; std::getline(lines, line);) {
      const std::uint64_t token = std::strtoull(line.c_str(), nullptr, 10);
      if (token < highest) ++late;
      highest = std::max(highest, token);
    }
    return late;
  }

 private:
  TempDir folder_;
  std::vector<std::unique_ptr<Process>> processes_;
};

TEST(ElectionAmongProcesses, HasOneLeaderAtATimeOverKillsAndAFreeze) {
  LockStore store(3);
  Candidates candidates(store.list(), 5);
  std::vector<int> killed;
  std::size_t reigns = 0;
  for (int round = 0; round < 2; ++round) {
    killed.push_back(candidates.LeaderAfter(reigns));
    ASSERT_GE(killed.back(), 0);
    reigns = candidates.Reigns().size();
    candidates[killed.back()].Kill();
  }
  const int frozen = candidates.LeaderAfter(reigns);
  ASSERT_GE(frozen, 0);
  const std::string frozen_worker = " " + std::to_string(frozen) + "\n";
  ASSERT_TRUE(WaitUntil(10s, [&] {
    return testing::ReadFile(candidates.journal()).find(frozen_worker) != std::string::npos;
  }));
  reigns = candidates.Reigns().size();
  candidates[frozen].Kill(SIGSTOP);
  const int next = candidates.LeaderAfter(reigns);
  ASSERT_GE(next, 0);
  ASSERT_NE(next, frozen);
  const std::string next_worker = " " + std::to_string(next) + "\n";
  ASSERT_TRUE(WaitUntil(10s, [&] {
    return testing::ReadFile(candidates.journal()).find(next_worker) != std::string::npos;
  }));
  EXPECT_EQ(candidates.LateLines(), 0);
  candidates[frozen].Kill(SIGCONT);
  // What the frozen leader still writes is known by its token.
  EXPECT_TRUE(WaitUntil(10s, "the late write", [&] { return candidates.LateLines() > 0; }));
  EXPECT_TRUE(WaitUntil(10s, "the frozen leader's deposition", [&] {
    const auto all = candidates.Reigns();
    return std::any_of(all.begin(), all.end(), [&](const auto& reign) {
      return reign.second.candidate == frozen && reign.second.deposed != 0;
    });
  }));
  candidates[next].Kill(SIGTERM);
  EXPECT_EQ(candidates[next].Wait(10s), 0);
  EXPECT_GE(candidates.LeaderAfter(reigns + 1), 0);

  const auto all = candidates.Reigns();
  ASSERT_GE(all.size(), 5U);
  const Reign* before = nullptr;
  for (const auto& [token, reign] : all) {
    // In the order of the tokens, each began after the one before had ended.
    if (before != nullptr) {
      EXPECT_LT(before->elected, reign.elected);
      const bool crashed =
          before->candidate == frozen ||
          std::find(killed.begin(), killed.end(), before->candidate) != killed.end();
      if (!crashed) {
        EXPECT_LE(before->deposed, reign.elected) << token;
        EXPECT_NE(before->deposed, 0U) << token;
      }
    }
    before = &reign;
  }
}

}  // namespace
}  // namespace fencepost::locking
