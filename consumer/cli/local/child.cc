#include "consumer/cli/local/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <thread>

#include "locking/base/check.h"

namespace fencepost::cli {
namespace {

// As the shell tells it.
int CodeOf(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

[[noreturn]] void BecomeChild(const std::vector<std::string>& command, int out, int err) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpgid(0, 0);  // Ctrl-C goes to the command alone, which ends its children in order
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int in = open("/dev/null", O_RDONLY);
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  _exit(127);
}

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string LastLine(const std::string& text) {
  const std::size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return "";
  const std::size_t start = text.rfind('\n', end);
  return text.substr(start == std::string::npos ? 0 : start + 1, end - start);
}

}  // namespace

Child::Child(std::vector<std::string> command, std::filesystem::path log) : log_(std::move(log)) {
  const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
  const int out = open((log_.string() + ".out").c_str(), flags, 0600);
  const int err = open((log_.string() + ".err").c_str(), flags, 0600);
  pid_ = fork();
  if (pid_ == 0) BecomeChild(command, out, err);
  close(out);
  close(err);
  FENCEPOST_CHECK(pid_ > 0, "fork");
}

Child::~Child() {
  if (!Running()) return;
  Signal(SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Child::Signal(int signal) const {
  if (!status_) kill(pid_, signal);
}

void Child::Freeze() {
  Signal(SIGSTOP);
  int status = 0;
  const bool seen = !status_ && waitpid(pid_, &status, WUNTRACED) == pid_;
  if (seen && !WIFSTOPPED(status)) status_ = CodeOf(status);
}

bool Child::Running() { return !Wait(std::chrono::milliseconds(0)).has_value(); }

std::optional<int> Child::Wait(std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!status_) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      status_ = CodeOf(status);
    } else if (std::chrono::steady_clock::now() >= end) {
      return std::nullopt;
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  return status_;
}

std::string Child::Errors() const { return TextOf(log_.string() + ".err"); }

std::string Child::LastWords() const {
  const std::string errors = LastLine(Errors());
  return errors.empty() ? LastLine(TextOf(log_.string() + ".out")) : errors;
}

}  // namespace fencepost::cli
