// fencepost lock exec on real nodes: exit codes, signals, loss, and its own sudden end.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <memory>

#include "tests/e2e/lock_cli/lock_cli_test.h"
#include "tests/support/stored_locks.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class LockExec : public LockCliTest {
 protected:
  // One that has the lock of "job" until it is told to end.
  std::unique_ptr<Process> Hold() {
    auto holder =
        Begin({"job", "--", "sh", "-c", "echo in > " + folder_.File("in") + "; exec sleep 120"});
    EXPECT_TRUE(WaitUntil(seconds(10), [&] { return Says("in", "in"); }));
    return holder;
  }
  // A line of /proc/PID/status that is a set of signals.
  static bool Has(pid_t pid, const std::string& line, int signal) {
    const std::string status = ReadFile(fmt::format("/proc/{}/status", pid));
    const std::size_t at = status.find(line + ":\t");
    return at != std::string::npos &&
           (std::stoull(status.substr(at + line.size() + 2, 16), nullptr, 16) >> (signal - 1) &
            1U) != 0;
  }
  static bool IsPending(pid_t pid, int signal) { return Has(pid, "ShdPnd", signal); }
  static ::testing::AssertionResult HeedsSignals(pid_t pid) {
    return WaitUntil(
        seconds(10), [&] { return Has(pid, "SigBlk", SIGTSTP); }, "the signals to be values");
  }
  // `lock exec` in a session of its own, whose parent is in another: its group is an orphaned one.
  class Orphan {
   public:
    Orphan(const LockExec& test, const std::vector<std::string>& more) {
      std::vector<std::string> words = test.Words({"lock", "exec"}, more);
      const std::string pid = test.folder_.File("pid");
      words.insert(words.begin(), {"sh", "-c",
                                   "setsid \"$@\" & echo $! > " + pid + ".new; mv " + pid +
                                       ".new " + pid + "; wait $!",
                                   "sh"});
      parent_ = std::make_unique<Process>(ProcessOptions{.argv = words});
      EXPECT_TRUE(WaitUntil(seconds(10), [&] { return !ReadFile(pid).empty(); }));
      pid_ = std::stoi(ReadFile(pid));
    }
    ~Orphan() {
      if (!ended_) kill(pid_, SIGKILL);
    }
    Orphan(const Orphan&) = delete;
    Orphan& operator=(const Orphan&) = delete;
    [[nodiscard]] pid_t pid() const { return pid_; }
    std::optional<int> Wait() {
      const auto code = parent_->Wait(seconds(20));
      ended_ = code.has_value();
      return code;
    }

   private:
    std::unique_ptr<Process> parent_;
    pid_t pid_ = 0;
    bool ended_ = false;
  };
};

TEST_F(LockExec, EndsWithTheCommandsOwnCode) {
  EXPECT_EQ(Exec({"job", "--", "true"}).exit_code, 0);
  EXPECT_EQ(Exec({"job", "--", "sh", "-c", "exit 42"}).exit_code, 42);
  EXPECT_EQ(Exec({"job", "--", "sh", "-c", "kill -KILL $$"}).exit_code, 128 + SIGKILL);
  EXPECT_EQ(Exec({"job", "--", "no-such-command"}).exit_code, 127);
  const Finished folder = Exec({"job", "--", folder_.path().string()});
  EXPECT_EQ(folder.exit_code, 126);
  EXPECT_THAT(folder.error_output, MatchesRegex("fencepost: [^\n]+\n"));
}

TEST_F(LockExec, TellsTheCommandItsTokenAndPassesWordsAsTheyAre) {
  const Finished run =
      Exec({"job", "--namespace", "jobs", "--", "sh", "-c",
            "echo $FENCEPOST_LOCK $FENCEPOST_TOKEN \"$@\"", "sh", "--ttl", "--", "[a,b]"});
  EXPECT_THAT(run.output, MatchesRegex("job [1-9][0-9]{10,18} --ttl -- \\[a,b\\]\n"));
}

TEST_F(LockExec, RefusesAWrongCommandLine) {
  EXPECT_EQ(Exec({"job"}).exit_code, 2);
  EXPECT_EQ(Exec({"job", "--ttl", "ten", "--", "true"}).exit_code, 2);
  EXPECT_EQ(Exec({"job", "--ttl", "1h", "--", "true"}).exit_code, 2) << "above max_ttl";
  EXPECT_EQ(Exec({"job", "--kill-after", "9s", "--", "true"}).exit_code, 2);
}

TEST_F(LockExec, LetsOneInAtATimeAndSaysSo) {
  const auto first = Hold();
  const Finished second = Exec({"job", "--wait", "200ms", "--", "true"});
  EXPECT_EQ(second.exit_code, 75);
  EXPECT_THAT(second.error_output, HasSubstr("another holds the name; waited 200 ms"));
  first->Kill(SIGTERM);
  EXPECT_EQ(first->Wait(seconds(10)), 128 + SIGTERM);
  EXPECT_EQ(Exec({"job", "--", "true"}).exit_code, 0) << "given back also after a failure";
}

TEST_F(LockExec, StopsOnCtrlZWhileItWaitsAndGoesOnWithTheSameLimit) {
  const auto first = Hold();
  const auto stop = [&](Process& waiter) {
    EXPECT_TRUE(HeedsSignals(waiter.pid()));
    waiter.Kill(SIGTSTP);
    const std::string stat = fmt::format("/proc/{}/stat", waiter.pid());
    EXPECT_TRUE(
        WaitUntil(seconds(10), [&] { return ReadFile(stat).find(") T ") != std::string::npos; }));
  };
  // A child's group of its own is no orphaned one: its parent is in ours, of the same session.
  const auto patient = Begin({"job", "--wait", "120s", "--", "true"});
  const auto hasty = Begin({"job", "--wait", "8s", "--", "true"});
  stop(*hasty);
  stop(*patient);
  const auto stopped = std::chrono::steady_clock::now();
  ASSERT_TRUE(WaitUntil(seconds(20),
                        [&] { return std::chrono::steady_clock::now() > stopped + seconds(8); }));
  EXPECT_TRUE(hasty->Running());
  hasty->Kill(SIGCONT);
  EXPECT_EQ(hasty->Wait(seconds(20)), 75)
      << "its wait went on while it stood: " << hasty->ErrorOutput();
  patient->Kill(SIGCONT);
  first->Kill(SIGTERM);
  EXPECT_EQ(patient->Wait(seconds(20)), 0) << patient->ErrorOutput();
}

TEST_F(LockExec, DoesNotStopOnCtrlZWhereNobodyCouldLetItGoOn) {
  const auto first = Hold();
  const std::string go = Fifo("go");
  // It starts no process while it is stopped: a shell that is in a vfork() cannot stop.
  Orphan waiter(*this, {"job", "--wait", "60s", "--", "sh", "-c",
                        "echo up > " + folder_.File("up") + "; read word < " + go + "; exit 7"});
  ASSERT_TRUE(HeedsSignals(waiter.pid()));
  kill(waiter.pid(), SIGTSTP);
  ASSERT_TRUE(WaitUntil(seconds(10), [&] { return !IsPending(waiter.pid(), SIGTSTP); }));
  first->Kill(SIGTERM);
  ASSERT_TRUE(WaitUntil(seconds(20), [&] { return Says("up", "up"); })) << "stopped as a waiter";
  kill(waiter.pid(), SIGTSTP);  // now the command gets it, and stops
  ASSERT_TRUE(WaitUntil(seconds(10), [&] { return !IsPending(waiter.pid(), SIGTSTP); }));
  GoOn(go);
  EXPECT_EQ(waiter.Wait(), 7) << "stopped with its command";
}

TEST_F(LockExec, LeavesASignalIgnoredThatWasAtItsStart) {
  const auto first = Hold();
  std::vector<std::string> words =
      Words({"lock", "exec"}, {"job", "--wait", "60s", "--", "sh", "-c", "kill -HUP $$; exit 7"});
  words.insert(words.begin(), {"sh", "-c", "trap '' HUP; exec \"$@\"", "sh"});
  Process waiter({.argv = words, .separate_stderr = true});
  ASSERT_TRUE(HeedsSignals(waiter.pid()));
  waiter.Kill(SIGHUP);
  first->Kill(SIGTERM);
  EXPECT_EQ(waiter.Wait(seconds(20)), 7) << waiter.ErrorOutput();
}

// Sent to our group by the kernel where a neighbour in a pipeline reads the terminal that the
// command has got: stopped, we would extend nothing while the command goes on.
TEST_F(LockExec, IsNotStoppedByTheTerminalOnItsNeighboursAccount) {
  const std::string go = Fifo("go");
  const auto run =
      Begin({"job", "--", "sh", "-c", "echo up > " + folder_.File("up") + "; read word < " + go});
  ASSERT_TRUE(WaitUntil(seconds(10), [&] { return Says("up", "up"); }));
  run->Kill(SIGTTIN);
  run->Kill(SIGTTOU);
  GoOn(go);
  EXPECT_EQ(run->Wait(seconds(20)), 0) << run->ErrorOutput();
}

TEST_F(LockExec, EndsWith69WithoutAQuorum) {
  nodes_[0].Stop();
  nodes_[1].Stop();
  const Finished run = Exec({"job", "--", "true"});
  EXPECT_EQ(run.exit_code, 69);
  EXPECT_THAT(run.error_output, MatchesRegex("fencepost: [^\n]+\n"));
}

TEST_F(LockExec, ForwardsSignals) {
  const std::string script = fmt::format(
      "trap 'echo usr1 >> {0}' USR1; trap 'echo hup >> {0}' HUP; trap 'exit 9' INT; echo up >> "
      "{0}; "
      "while :; do sleep 0.05; done",
      folder_.File("heard"));
  const auto run = Begin({"job", "--", "sh", "-c", script});
  ASSERT_TRUE(WaitUntil(seconds(10), [&] { return Says("heard", "up"); }));
  run->Kill(SIGUSR1);
  EXPECT_TRUE(WaitUntil(seconds(10), [&] { return Says("heard", "usr1"); }));
  run->Kill(SIGHUP);
  EXPECT_TRUE(WaitUntil(seconds(10), [&] { return Says("heard", "hup"); }));
  run->Kill(SIGINT);
  EXPECT_EQ(run->Wait(seconds(10)), 9);
}

TEST_F(LockExec, StopsTheCommandBeforeALeaseThatCannotBeExtendedEnds) {
  const std::string script =
      fmt::format("trap 'echo term > {0}' TERM; echo up > {0}; while :; do sleep 0.05; done",
                  folder_.File("said"));
  const auto run = Begin({"job", "--ttl", "2s", "--kill-after", "700ms", "--", "sh", "-c", script});
  ASSERT_TRUE(WaitUntil(seconds(10), [&] { return Says("said", "up"); }));
  nodes_[0].Pause();
  nodes_[1].Pause();
  EXPECT_TRUE(WaitUntil(seconds(10), [&] { return Says("said", "term"); }));
  EXPECT_EQ(run->Wait(seconds(10)), 76) << "it does not heed SIGTERM";
  EXPECT_THAT(run->ErrorOutput(), HasSubstr("lock was lost; the command was stopped"));
  nodes_[0].Resume();
  nodes_[1].Resume();
}

TEST_F(LockExec, EndsWhatACommandLeavesBehindThatDoesNotHeedSigterm) {
  const std::string script =
      fmt::format("sh -c 'trap \"\" TERM; echo $$ > {0}; while :; do sleep 0.05; done'; true",
                  folder_.File("pid"));
  const auto run = Begin({"job", "--ttl", "2s", "--", "sh", "-c", script});
  const auto left_behind = [&] {
    const std::string text = testing::ReadFile(folder_.File("pid"));
    return text.ends_with('\n') ? std::stoi(text) : 0;
  };
  ASSERT_TRUE(WaitUntil(seconds(10), [&] { return left_behind() > 0; }));
  const int pid = left_behind();
  nodes_[0].Pause();
  nodes_[1].Pause();
  EXPECT_EQ(run->Wait(seconds(10)), 76);
  // Killed before the lease ended; its remains are reaped by whoever reaps orphans.
  const auto gone = [&] {
    const std::string stat = testing::ReadFile(fmt::format("/proc/{}/stat", pid));
    return stat.empty() || stat.find(") Z ") != std::string::npos;
  };
  EXPECT_TRUE(WaitUntil(seconds(5), gone));
  nodes_[0].Resume();
  nodes_[1].Resume();
}

TEST_F(LockExec, StopsTheCommandWhenAnotherHasTheName) {
  const auto run = Begin({"job", "--ttl", "2s", "--", "sh", "-c",
                          "echo up > " + folder_.File("said") + "; exec sleep 60"});
  ASSERT_TRUE(WaitUntil(seconds(10), [&] { return Says("said", "up"); }));
  const std::string another = HeldValue(locking::Token(8'000'000'000'000'000'000),
                                        locking::WallTime(locking::Millis(9'999'999'999'999)));
  for (std::size_t node = 0; node < 2; ++node) {
    nodes_[node].Command({"SET", Key("job"), another, "PX", "60000"});
  }
  EXPECT_EQ(run->Wait(seconds(10)), 76);
}

TEST_F(LockExec, LeavesNothingRunningWhenItIsKilled) {
  const std::string pids = folder_.File("pids");
  const auto run = Begin({"job", "--", "sh", "-c",
                          fmt::format("sleep 300 & echo $! > {0}; echo $$ >> {0}; wait", pids)});
  const auto lines = [&] {
    const std::string text = ReadFile(pids);
    return std::count(text.begin(), text.end(), '\n');
  };
  ASSERT_TRUE(WaitUntil(seconds(10), [&] { return lines() == 2; }));
  const std::string text = ReadFile(pids);
  const std::string sleeper = text.substr(0, text.find('\n'));
  const std::string shell = text.substr(sleeper.size() + 1, text.size() - sleeper.size() - 2);
  ASSERT_TRUE(Runs(sleeper) && Runs(shell));
  run->Kill(SIGKILL);
  EXPECT_TRUE(WaitUntil(seconds(10), [&] { return !Runs(shell) && !Runs(sleeper); }));
}

TEST_F(LockExec, RunsAJobOnceWithDone) {
  const std::vector<std::string> job{
      "nightly", "--done", "--",
      "sh",      "-c",     "echo ran >> " + folder_.File("runs") + "; exit ${CODE:-0}"};
  EXPECT_EQ(
      RunToEnd({.argv = Words({"lock", "exec"}, job), .env = {{"CODE", "3"}}}, kLong).exit_code, 3);
  EXPECT_EQ(Exec(job).exit_code, 0) << "one that failed is run again";
  const Finished again = Exec(job);
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_THAT(again.error_output, HasSubstr("nightly is done already"));
  EXPECT_EQ(ReadFile(folder_.File("runs")), "ran\nran\n");
}

}  // namespace
}  // namespace fencepost::testing
