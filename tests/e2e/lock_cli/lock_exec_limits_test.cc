// fencepost lock exec where the system refuses it something: system calls, processes, descriptors,
// the right to signal; and as the first process of a container.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <sstream>

#include "tests/e2e/lock_cli/lock_cli_test.h"
#include "tests/support/paths.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

// close_range as on a kernel that does not have it: ENOSYS, by seccomp.
constexpr const char* kWithoutCloseRange = R"(
import ctypes, os, struct, sys
code = struct.pack('HBBI' * 4, 0x20, 0, 0, 0, 0x15, 0, 1, 436, 6, 0, 0, 0x50000 | 38,
                   6, 0, 0, 0x7fff0000)
class Program(ctypes.Structure):
    _fields_ = [('length', ctypes.c_ushort), ('code', ctypes.c_char_p)]
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Program(4, code)), 0, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])
)";
// Orphans become its children, as those of a container's first process do.
constexpr const char* kAsFirstProcess = R"(
import ctypes, os, sys
assert ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])
)";
constexpr const char* kPython = "/usr/bin/python3";

class LockExecLimits : public LockCliTest {
 protected:
  static std::vector<std::string> ChildrenOf(pid_t pid) {
    std::istringstream list(ReadFile(fmt::format("/proc/{0}/task/{0}/children", pid)));
    std::vector<std::string> pids;
    for (std::string child; list >> child;) pids.push_back(child);
    return pids;
  }
  static bool MayChangeUser(std::vector<std::string> behind) {
    behind.insert(behind.end(), {"setpriv", "--reuid", "1", "--clear-groups", "true"});
    return RunToEnd({.argv = behind}).exit_code == 0;
  }
};

TEST_F(LockExecLimits, PassesOnNoDescriptorOfItsOwnWithoutCloseRange) {
  const auto run = BeginBehind(
      {kPython, "-c", kWithoutCloseRange, "sh", "-c", "exec 7< /dev/null; exec \"$@\"", "sh"},
      {"job", "--", "sh", "-c", "for f in /proc/$$/fd/*; do readlink $f; done; exit 42"});
  EXPECT_EQ(run->Wait(seconds(20)), 42) << run->ErrorOutput();
  EXPECT_THAT(run->Output(), HasSubstr("/dev/null\n"));
  EXPECT_THAT(run->Output(), Not(AnyOf(HasSubstr("socket:"), HasSubstr("anon_inode:"))));
}

TEST_F(LockExecLimits, HeedsSignalsAndLeavesNothingRunningWithoutCloseRange) {
  for (const int signal : {SIGTERM, SIGKILL}) {
    const auto run =
        BeginBehind({kPython, "-c", kWithoutCloseRange},
                    {fmt::format("job-{}", signal), "--", "sh", "-c", "echo up; exec sleep 60"});
    ASSERT_TRUE(WaitUntil(seconds(20), [&] { return run->Output() == "up\n"; }));
    const std::vector<std::string> children = ChildrenOf(run->pid());
    ASSERT_EQ(children.size(), 2U) << "the command and its guard";
    run->Kill(signal);
    EXPECT_EQ(run->Wait(seconds(20)), 128 + signal);
    for (const std::string& child : children) {
      EXPECT_TRUE(WaitUntil(seconds(20), [&] { return !Runs(child); }));
    }
  }
}

TEST_F(LockExecLimits, EndsWith1AndHoldsNothingWhereItHasTooFewDescriptors) {
  constexpr int kFewest = 4;  // what it takes to be loaded
  constexpr int kEnough = 24;
  std::vector<std::unique_ptr<Process>> runs;
  const auto name = [](int limit) { return fmt::format("job-{}", limit); };
  for (int limit = kFewest; limit <= kEnough; ++limit) {
    runs.push_back(BeginBehind({"sh", "-c", fmt::format("ulimit -n {}; exec \"$@\"", limit), "sh"},
                               {name(limit), "--", "echo", "ran"}));
  }
  for (int limit = kFewest; limit <= kEnough; ++limit) {
    Process& run = *runs[static_cast<std::size_t>(limit - kFewest)];
    const auto code = run.Wait(kLong);
    ASSERT_TRUE(code.has_value()) << limit << " descriptors: it does not end";
    EXPECT_THAT(*code, AnyOf(0, 1, 69)) << limit << ": " << run.ErrorOutput();
    EXPECT_EQ(run.Output(), *code == 0 ? "ran\n" : "") << limit;
    if (*code == 0) continue;
    EXPECT_THAT(run.ErrorOutput(), MatchesRegex("fencepost: [^\n]+\n")) << limit;
    EXPECT_EQ(Exec({name(limit), "--", "true"}).exit_code, 0) << limit << ": it left a lock";
  }
  EXPECT_EQ(runs.front()->Wait(kLong), 1);
  EXPECT_EQ(runs.back()->Wait(kLong), 0) << runs.back()->ErrorOutput();
}

TEST_F(LockExecLimits, RunsNothingWhereItHasTooFewProcesses) {
  // A user of its own, as the limit is on all that a user runs.
  const auto as_somebody = [](int limit) -> std::vector<std::string> {
    return {"env",           "ASAN_OPTIONS=detect_leaks=0",
            "prlimit",       fmt::format("--nproc={}", limit),
            "setpriv",       fmt::format("--reuid={}", 50'000 + getpid() % 10'000),
            "--clear-groups"};
  };
  std::vector<std::string> probe = as_somebody(9);
  probe.insert(probe.end(), {testing::FencepostBinary(), "version"});
  if (RunToEnd({.argv = probe}).exit_code != 0) GTEST_SKIP() << "needs to change its user (root)";
  std::vector<int> codes;
  for (const int limit : {1, 2, 3, 4}) {  // its threads, the command, the guard
    const auto run = BeginBehind(as_somebody(limit), {"job", "--", "echo", "ran"});
    codes.push_back(run->Wait(kLong).value_or(-1));
    EXPECT_EQ(run->Output(), codes.back() == 0 ? "ran\n" : "") << limit;
    EXPECT_THAT(run->ErrorOutput(),
                MatchesRegex(codes.back() == 0 ? "" : "fencepost: [^\n]+ the limits? on [^\n]+\n"))
        << limit;
  }
  EXPECT_THAT(codes, ::testing::ElementsAre(1, 1, 1, 0));
}

TEST_F(LockExecLimits, SaysThatACommandOfAnotherUserCannotBeStopped) {
  // Root without the right to signal others, and a command that becomes somebody else.
  const std::vector<std::string> without_kill{"setpriv", "--bounding-set", "-kill"};
  if (!MayChangeUser(without_kill)) GTEST_SKIP() << "needs to change its user (root)";
  const auto run =
      BeginBehind(without_kill, {"job", "--ttl", "2s", "--", "setpriv", "--reuid", "1",
                                 "--clear-groups", "sh", "-c", "echo $$; exec sleep 60"});
  ASSERT_TRUE(WaitUntil(seconds(20), [&] { return run->Output().ends_with('\n'); }));
  run->Kill(SIGUSR1);
  const auto says = [&](const std::string& what) {
    return WaitUntil(seconds(20),
                     [&] { return run->ErrorOutput().find(what) != std::string::npos; });
  };
  EXPECT_TRUE(says("cannot be signalled"));
  nodes_[0].Pause();
  nodes_[1].Pause();
  EXPECT_TRUE(says("runs on without it"));
  EXPECT_TRUE(run->Running());
  kill(std::stoi(run->Output()), SIGINT);
  EXPECT_EQ(run->Wait(seconds(20)), 76);
  EXPECT_TRUE(says("not all of the command could be stopped"));
  EXPECT_THAT(run->ErrorOutput(), MatchesRegex("(fencepost: [^\n]+\n){3}"));
  nodes_[0].Resume();
  nodes_[1].Resume();
}

TEST_F(LockExecLimits, SaysThatAPartOfTheCommandIsAnotherUsersAndRunsOn) {
  const std::vector<std::string> without_kill{"setpriv", "--bounding-set", "-kill"};
  if (!MayChangeUser(without_kill)) GTEST_SKIP() << "needs to change its user (root)";
  const auto run = BeginBehind(
      without_kill, {"job", "--ttl", "2s", "--", "sh", "-c",
                     "setpriv --reuid 1 --clear-groups sh -c 'echo $$; exec sleep 60'; true"});
  ASSERT_TRUE(WaitUntil(seconds(20), [&] { return run->Output().ends_with('\n'); }));
  nodes_[0].Pause();
  nodes_[1].Pause();
  EXPECT_EQ(run->Wait(seconds(20)), 76);
  EXPECT_THAT(run->ErrorOutput(), HasSubstr("not all of the command could be stopped"));
  kill(std::stoi(run->Output()), SIGKILL);
  nodes_[0].Resume();
  nodes_[1].Resume();
}

TEST_F(LockExecLimits, ReapsWhatIsLeftToItAsAContainersFirstProcess) {
  const std::string go = Fifo("go");
  const std::string pid = folder_.File("pid");
  const std::string orphan =
      folder_.Write("orphan", fmt::format("echo $$ > {0}.new; mv {0}.new {0}\n", pid));
  const std::string job =
      folder_.Write("job", fmt::format("sh -c 'sh {} &'\nread word < {}\nexit 7\n", orphan, go));
  const auto run = BeginBehind({kPython, "-c", kAsFirstProcess}, {"job", "--", "sh", job});
  ASSERT_TRUE(WaitUntil(seconds(20), [&] { return !ReadFile(pid).empty(); }));
  const std::string stat = fmt::format("/proc/{}/stat", std::stoi(ReadFile(pid)));
  EXPECT_TRUE(WaitUntil(
      seconds(20), [&] { return ReadFile(stat).empty(); }, "it to be reaped"));
  GoOn(go);
  EXPECT_EQ(run->Wait(seconds(20)), 7) << run->ErrorOutput();
}

}  // namespace
}  // namespace fencepost::testing
