#include "consumer/cli/lock_exec_child.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "consumer/cli/lock_exec_signals.h"

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
    // Whoever runs under the lock need not be able to rewrite it.
    if (!replaced && name != "FENCEPOST_REDIS_PASSWORD=") all.push_back(text);
  }
  return all;
}

// What the child needs between fork and exec, where nothing may be allocated.
struct Launch {
  char* const* argv;
  char* const* envp;
  const std::vector<int>* descriptors;
  sigset_t mask;
  pid_t parent;
  int failure;  // errno is written here; closed by exec
  bool has_terminal;
};

// Closes, at exec, whatever was not open when we started. The pipe for failures closes itself.
void CloseOthers(const std::vector<int>& keep) {
  int from = STDERR_FILENO + 1;
  for (const int descriptor : keep) {
    if (descriptor < from) continue;
    if (descriptor > from) {
      close_range(static_cast<unsigned>(from), static_cast<unsigned>(descriptor - 1),
                  CLOSE_RANGE_CLOEXEC);
    }
    from = descriptor + 1;
  }
  close_range(static_cast<unsigned>(from), ~0U, CLOSE_RANGE_CLOEXEC);
}

[[noreturn]] void BecomeCommand(const Launch& launch) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launch.parent) _exit(127);  // it died before we asked to be told
  setpgid(0, 0);
  if (launch.has_terminal) tcsetpgrp(STDIN_FILENO, getpid());  // SIGTTOU is blocked
  CloseOthers(*launch.descriptors);
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) {
      std::signal(signal, SIG_DFL);
    }
  }
  sigprocmask(SIG_SETMASK, &launch.mask, nullptr);
  execvpe(launch.argv[0], launch.argv, launch.envp);
  const int why = errno;
  [[maybe_unused]] const auto told = write(launch.failure, &why, sizeof why);
  _exit(127);
}

// Ends when it is told that the command has ended; when we end before that, it kills the command.
[[noreturn]] void Guard(int pipe, pid_t group) {
  setpgid(0, 0);
  close_range(0, static_cast<unsigned>(pipe - 1), 0);
  close_range(static_cast<unsigned>(pipe + 1), ~0U, 0);
  char told = 0;
  ssize_t got = 0;
  do {
    got = read(pipe, &told, 1);
  } while (got < 0 && errno == EINTR);
  if (got == 0) kill(-group, SIGKILL);
  _exit(0);
}

}  // namespace

std::vector<int> OpenDescriptors() {
  std::vector<int> open;
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return {0, 1, 2};
  while (const dirent* const entry = readdir(folder)) {
    const int descriptor = std::atoi(entry->d_name);
    if (entry->d_name[0] != '.' && descriptor != dirfd(folder)) open.push_back(descriptor);
  }
  closedir(folder);
  std::sort(open.begin(), open.end());
  return open;
}

tl::expected<ExecChild, int> ExecChild::Start(const Options& options) {
  std::vector<std::string> words = options.command;
  std::vector<std::string> environment = Environment(options.environment);
  const std::vector<char*> argv = Pointers(words);
  const std::vector<char*> envp = Pointers(environment);
  int failure[2];
  int guard_pipe[2];
  if (pipe2(failure, O_CLOEXEC) != 0) return tl::unexpected(errno);
  // Not a pipe: to write to it when the guard is gone must not be a SIGPIPE.
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, guard_pipe) != 0) {
    return tl::unexpected(errno);
  }
  // In a pipeline the terminal stays with those who read our output.
  const bool has_terminal = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 &&
                            tcgetpgrp(STDIN_FILENO) == getpgrp();
  const Launch launch{argv.data(), envp.data(), &options.descriptors, options.signal_mask,
                      getpid(),    failure[1],  has_terminal};
  const pid_t pid = fork();
  if (pid == 0) BecomeCommand(launch);
  if (pid < 0) return tl::unexpected(errno);
  setpgid(pid, pid);  // whoever is first; the other finds it done
  const pid_t guard = fork();
  if (guard == 0) Guard(guard_pipe[0], pid);
  if (guard < 0) {
    const int no_guard = errno;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return tl::unexpected(no_guard);
  }
  close(failure[1]);
  close(guard_pipe[0]);
  ExecChild child(pid, guard, guard_pipe[1], has_terminal);
  int why = 0;
  ssize_t got = 0;
  do {
    got = read(failure[0], &why, sizeof why);
  } while (got < 0 && errno == EINTR);
  close(failure[0]);
  if (got == sizeof why) return tl::unexpected(why);
  return child;
}

ExecChild::ExecChild(pid_t pid, pid_t guard, int guard_pipe, bool has_terminal)
    : pid_(pid), guard_(guard), guard_pipe_(guard_pipe), has_terminal_(has_terminal) {}

ExecChild::ExecChild(ExecChild&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      guard_(std::exchange(other.guard_, -1)),
      guard_pipe_(std::exchange(other.guard_pipe_, -1)),
      has_terminal_(other.has_terminal_),
      ended_(other.ended_),
      code_(other.code_) {}

ExecChild::~ExecChild() {
  if (pid_ < 0) return;
  if (!ended_) {
    Signal(SIGKILL);
    waitpid(pid_, nullptr, 0);
    ended_ = true;
  }
  if (has_terminal_) TakeTerminal(getpgrp());
  [[maybe_unused]] const auto told = send(guard_pipe_, "e", 1, MSG_NOSIGNAL);
  close(guard_pipe_);
  if (guard_ > 0) waitpid(guard_, nullptr, 0);
}

void ExecChild::Signal(int signal) const { kill(-pid_, signal); }

ExecChild::Change ExecChild::Look() {
  int status = 0;
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
    return WSTOPSIG(status) == SIGSTOP ? Change::kNothing : Change::kStopped;
  }
  ended_ = true;
  code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return Change::kEnded;
}

void ExecChild::TakeTerminal(pid_t group) const {
  tcsetpgrp(STDIN_FILENO, group);  // SIGTTOU is blocked
}

void ExecChild::StopWithIt() const {
  if (has_terminal_) TakeTerminal(getpgrp());
  StopAsCtrlZ();
  if (has_terminal_) TakeTerminal(pid_);
}

void ExecChild::GoOn() const { Signal(SIGCONT); }

}  // namespace fencepost::cli
