// fencepost lock exec at a terminal: who has it, who gets it, and Ctrl-Z.
#include <fcntl.h>
#include <pty.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tests/e2e/lock_cli/lock_cli_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;

// A terminal whose session begins with this program. It is hung up with this object.
class Terminal {
 public:
  explicit Terminal(std::vector<std::string> words) {
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_ = forkpty(&us_, nullptr, nullptr, nullptr);
    if (pid_ == 0) {
      execvp(argv[0], argv.data());
      _exit(127);
    }
    EXPECT_GT(pid_, 0);
    fcntl(us_, F_SETFL, O_NONBLOCK);
    fcntl(us_, F_SETFD, FD_CLOEXEC);
  }
  ~Terminal() {
    close(us_);
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void Type(const std::string& text) const {
    EXPECT_EQ(write(us_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  // Within a limit.
  [[nodiscard]] ::testing::AssertionResult Shows(const std::string& text) {
    const auto shown = [&] {
      char piece[4096];
      for (ssize_t got = 0; (got = read(us_, piece, sizeof piece)) > 0;) {
        shown_.append(piece, static_cast<std::size_t>(got));
      }
      return shown_.find(text) != std::string::npos;
    };
    return WaitUntil(seconds(20), shown, text) << "; it shows:\n" << shown_;
  }

 private:
  int us_ = -1;
  pid_t pid_ = -1;
  std::string shown_;
};

class LockExecAtATerminal : public LockCliTest {
 protected:
  // bash runs the script, with job control; "$@" in it is `lock exec job -- COMMAND`.
  [[nodiscard]] std::vector<std::string> Bash(const std::string& script,
                                              const std::vector<std::string>& command) const {
    std::vector<std::string> more{"job", "--ttl", "30s", "--"};
    more.insert(more.end(), command.begin(), command.end());
    std::vector<std::string> words = Words({"lock", "exec"}, more);
    words.insert(words.begin(), {"bash", "-c", "set -m; " + script, "bash"});
    return words;
  }
};

TEST_F(LockExecAtATerminal, GivesItToACommandInAPipelineThatReadsFromIt) {
  Terminal terminal(Bash("\"$@\" | cat; echo ended-${PIPESTATUS[0]}",
                         {"sh", "-c", "echo up; read word; echo got-$word; exit 7"}));
  ASSERT_TRUE(terminal.Shows("up"));
  terminal.Type("hello\n");
  EXPECT_TRUE(terminal.Shows("got-hello"));
  EXPECT_TRUE(terminal.Shows("ended-7"));
}

TEST_F(LockExecAtATerminal, StopsInTheBackgroundWithACommandThatWantsItAndGivesItAfterFg) {
  Terminal terminal(
      Bash("\"$@\" & until [ -n \"$(jobs -s)\" ]; do sleep 0.05; done; echo stands; fg; "
           "echo ended-$?",
           {"sh", "-c", "read word; echo got-$word; exit 7"}));
  ASSERT_TRUE(terminal.Shows("stands"));
  terminal.Type("hello\n");
  EXPECT_TRUE(terminal.Shows("got-hello"));
  EXPECT_TRUE(terminal.Shows("ended-7"));
}

TEST_F(LockExecAtATerminal, SaysSoWhereACommandWantsItAndNobodyCanGiveIt) {
  const std::string go = Fifo("go");
  const std::string pid = folder_.File("pid");
  // What is left of a job whose shell has ended: it has no terminal, and cannot be stopped.
  Terminal terminal(Bash(
      "sh -c '\"$@\" 2> " + folder_.File("said") + " &' sh \"$@\"; echo > " + go + "; read end",
      {"sh", "-c", "echo $PPID > " + pid + "; read go < " + go + "; read word < /dev/tty"}));
  EXPECT_TRUE(WaitUntil(seconds(20), [&] { return Says("said", "it needs the terminal"); }));
  std::string exec = ReadFile(pid);
  ASSERT_THAT(exec, ::testing::EndsWith("\n"));
  exec.pop_back();
  EXPECT_TRUE(Runs(exec));
  kill(std::stoi(exec), SIGTERM);
  EXPECT_TRUE(WaitUntil(seconds(20), [&] { return !Runs(exec); }));
  const std::string said = ReadFile(folder_.File("said"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

TEST_F(LockExecAtATerminal, StopsTheScriptItIsInOnCtrlZ) {
  Terminal terminal(Bash("sh -c '\"$@\"; echo inner-$?' sh \"$@\"; echo stands; fg; echo ended",
                         {"sh", "-c", "echo up; read word; echo got-$word; exit 7"}));
  ASSERT_TRUE(terminal.Shows("up"));
  terminal.Type("\x1a");
  ASSERT_TRUE(terminal.Shows("stands"));
  terminal.Type("hello\n");
  EXPECT_TRUE(terminal.Shows("got-hello"));
  EXPECT_TRUE(terminal.Shows("inner-7"));
  EXPECT_TRUE(terminal.Shows("ended"));
}

TEST_F(LockExecAtATerminal, LeavesItWithTheShellAfterBg) {
  const std::string on = Fifo("on");
  const std::string command =
      "import signal\n"
      "signal.signal(signal.SIGCONT, lambda *_: open('" +
      on +
      "', 'w').write('on\\n'))\n"
      "print('up', flush=True)\n"
      "while True: signal.pause()\n";
  Terminal terminal(Bash("\"$@\"; echo stands; bg; read on < " + on +
                             "; read word; echo shell-$word; kill %1; wait; echo ended",
                         {"/usr/bin/python3", "-c", command}));
  ASSERT_TRUE(terminal.Shows("up"));
  terminal.Type("\x1a");
  ASSERT_TRUE(terminal.Shows("stands"));
  terminal.Type("hello\n");
  EXPECT_TRUE(terminal.Shows("shell-hello"));
  EXPECT_TRUE(terminal.Shows("ended"));
}

}  // namespace
}  // namespace fencepost::testing
