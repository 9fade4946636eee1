#include "consumer/cli/lock_exec/lock_exec_child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "consumer/cli/lock_exec/lock_exec_signals.h"
#include "locking/base/descriptors.h"

namespace fencepost::cli {
namespace {

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> Environment(const std::vector<std::string>& added) {
  std::vector<std::string> all = added;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('=') + 1);
    const bool replaced = std::any_of(added.begin(), added.end(), [&](const std::string& other) {
      return other.starts_with(name);
    });
    // The command under the lock need not be able to rewrite it.
    if (!replaced && name != "FENCEPOST_REDIS_PASSWORD=") all.push_back(text);
  }
  return all;
}

// Closes, at exec, whatever was not open when we started.
void CloseOthers(const std::vector<int>& keep) {
  VisitDescriptors([&keep](int descriptor) {
    const bool kept = std::binary_search(keep.begin(), keep.end(), descriptor);
    if (descriptor > STDERR_FILENO && !kept) fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  });
}

// What was read; 0 at the end of the stream or where it failed.
ssize_t ReadByte(int from) {
  char byte = 0;
  ssize_t got = 0;
  do {
    got = read(from, &byte, 1);
  } while (got < 0 && errno == EINTR);
  return std::max<ssize_t>(got, 0);
}

// What the fork for the command needs. Nothing may be allocated between fork and exec, as other
// threads run.
struct Launch {
  char* const* argv;
  char* const* envp;
  const ExecChild::Options& options;
  pid_t parent;
  int parents_end;  // of the tie
  // Sockets. The command begins when a byte comes, and the errno of exec is written back; exec
  // closes it.
  int tie;
  int terminal;  // the command takes it; -1: it does not
};

[[noreturn]] void BecomeCommand(const Launch& launch) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launch.parent) _exit(127);  // it died before we asked to be told
  setpgid(0, 0);
  close(launch.parents_end);
  if (ReadByte(launch.tie) == 0) _exit(127);
  if (launch.terminal >= 0) tcsetpgrp(launch.terminal, getpid());  // SIGTTOU is blocked
  CloseOthers(launch.options.descriptors);
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) {
      std::signal(signal, SIG_DFL);
    }
  }
  sigprocmask(SIG_SETMASK, &launch.options.signal_mask, nullptr);
  execvpe(launch.argv[0], launch.argv, launch.envp);
  const int why = errno;
  [[maybe_unused]] const auto told = send(launch.tie, &why, sizeof why, MSG_NOSIGNAL);
  _exit(127);
}

// Ends when a byte comes by `pipe`; at the end of the stream, so does `group`. `ends`: what must
// not stay open in it, whatever else fails.
[[noreturn]] void BecomeGuard(int pipe, const std::array<int, 3>& ends, pid_t group) {
  setpgid(0, 0);
  for (const int end : ends) close(end);
  VisitDescriptors([pipe](int descriptor) {
    if (descriptor != pipe) close(descriptor);
  });
  if (ReadByte(pipe) == 0) kill(-group, SIGKILL);
  _exit(0);
}

}  // namespace

std::vector<int> OpenDescriptors() {
  std::vector<int> open;
  VisitDescriptors([&open](int descriptor) { open.push_back(descriptor); });
  std::sort(open.begin(), open.end());
  open.erase(std::unique(open.begin(), open.end()), open.end());
  return open;
}

tl::expected<std::unique_ptr<ExecChild>, ExecChild::NotStarted> ExecChild::Start(
    const Options& options) {
  const auto fail = [](int error) { return tl::unexpected(NotStarted{error, false}); };
  std::vector<std::string> words = options.command;
  std::vector<std::string> environment = Environment(options.environment);
  const std::vector<char*> argv = Pointers(words);
  const std::vector<char*> envp = Pointers(environment);
  // Not pipes: to write to one whose reader is gone must not be a SIGPIPE.
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return fail(errno);
  const Fd tie(ends[0]);
  Fd commands_end(ends[1]);
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return fail(errno);
  const Fd guard_end(ends[0]);
  Fd guard_pipe(ends[1]);
  // In a pipeline the terminal stays with those who read our output, until the command wants it.
  const bool give_terminal = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 &&
                             tcgetpgrp(STDIN_FILENO) == getpgrp();
  const Launch launch{.argv = argv.data(),
                      .envp = envp.data(),
                      .options = options,
                      .parent = getpid(),
                      .parents_end = tie.get(),
                      .tie = commands_end.get(),
                      .terminal = give_terminal ? STDIN_FILENO : -1};
  const pid_t pid = fork();
  if (pid == 0) BecomeCommand(launch);
  if (pid < 0) return fail(errno);
  setpgid(pid, pid);  // parent and child both call it: one of them is first
  const pid_t guard = fork();
  if (guard == 0) BecomeGuard(guard_end.get(), {tie.get(), launch.tie, guard_pipe.get()}, pid);
  if (guard < 0) {
    const int no_guard = errno;
    kill(-pid, SIGKILL);  // it has not begun
    waitpid(pid, nullptr, 0);
    return fail(no_guard);
  }
  setpgid(guard, guard);
  commands_end.Close();
  std::unique_ptr<ExecChild> child(new ExecChild(pid, guard, std::move(guard_pipe)));
  child->has_terminal_ = give_terminal;
  [[maybe_unused]] const auto told = send(tie.get(), "g", 1, MSG_NOSIGNAL);
  int why = 0;
  ssize_t got = 0;
  do {
    got = read(tie.get(), &why, sizeof why);
  } while (got < 0 && errno == EINTR);
  if (got == sizeof why) return tl::unexpected(NotStarted{why, true});
  return child;
}

ExecChild::ExecChild(pid_t pid, pid_t guard, Fd guard_pipe)
    : pid_(pid),
      guard_(guard),
      guard_pipe_(std::move(guard_pipe)),
      terminal_(open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)) {}

ExecChild::~ExecChild() {
  if (!ended_) {
    Signal(SIGKILL);
    waitpid(pid_, nullptr, 0);
    ended_ = true;
  }
  if (has_terminal_) tcsetpgrp(Terminal(), getpgrp());
  [[maybe_unused]] const auto told = send(guard_pipe_.get(), "e", 1, MSG_NOSIGNAL);
  guard_pipe_.Close();
  if (guard_ > 0) waitpid(guard_, nullptr, 0);
}

bool ExecChild::Signal(int signal) const { return kill(-pid_, signal) == 0 || errno != EPERM; }

void ExecChild::ReapOthers() {
  for (;;) {
    siginfo_t seen{};
    const int failed = waitid(P_ALL, 0, &seen, WEXITED | WNOHANG | WNOWAIT);
    if (failed != 0 || seen.si_pid == 0 || seen.si_pid == pid_) return;
    if (seen.si_pid == guard_) guard_ = -1;
    waitpid(seen.si_pid, nullptr, WNOHANG);
  }
}

ExecChild::Change ExecChild::Look() {
  int status = 0;
  ReapOthers();
  if (end_with_group_ && !ended_) {
    // Before it is reaped: the group's number is still ours alone.
    siginfo_t seen{};
    const bool over =
        waitid(P_PID, static_cast<id_t>(pid_), &seen, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        seen.si_pid == pid_;
    if (over) Signal(SIGKILL);
  }
  if (ended_ || waitpid(pid_, &status, WNOHANG | WUNTRACED) != pid_) return Change::kNothing;
  if (WIFSTOPPED(status)) {
    if (WSTOPSIG(status) == SIGSTOP) return Change::kNothing;
    stopped_by_ = WSTOPSIG(status);
    return stopped_by_ == SIGTSTP ? Change::kStopped : Change::kWantsTerminal;
  }
  ended_ = true;
  code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return Change::kEnded;
}

int ExecChild::Terminal() const { return terminal_.open() ? terminal_.get() : STDIN_FILENO; }

bool ExecChild::GiveTerminal() {
  const pid_t foreground = tcgetpgrp(Terminal());
  // SIGTTOU is blocked.
  has_terminal_ =
      foreground == pid_ || (foreground == getpgrp() && tcsetpgrp(Terminal(), pid_) == 0);
  return has_terminal_;
}

bool ExecChild::StopWithIt() {
  const bool wants_terminal = has_terminal_ || stopped_by_ != SIGTSTP;
  if (has_terminal_) tcsetpgrp(Terminal(), getpgrp());
  has_terminal_ = false;
  // What the terminal would have sent to our group went to the command's.
  const bool stopped = StopAs(stopped_by_, wants_terminal);
  if (wants_terminal) GiveTerminal();
  return stopped;
}

void ExecChild::GoOn() const { Signal(SIGCONT); }

}  // namespace fencepost::cli
