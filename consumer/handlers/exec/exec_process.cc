#include "consumer/handlers/exec/exec_process.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "consumer/handlers/runner.h"
#include "consumer/record/text.h"
#include "locking/base/descriptors.h"

extern "C" {
#include <sys/pidfd.h>  // glibc 2.36 forgot to say so itself
}

namespace fencepost::consumer {
namespace {

constexpr std::size_t kMaxErrorLine = 8u << 10;
constexpr std::size_t kChunk = 64u << 10;
constexpr std::size_t kReadAtOnce = 1u << 20;  // the others want their turn

Error CannotRun(const std::string& program, int number) {
  return {.code = "exec_failed",
          .what = fmt::format("cannot run {}: {}", OneLine(program), std::strerror(number)),
          .where = "handler.exec",
          .hint = number == ENOENT    ? "is it there, and the interpreter in its first line?"
                  : number == EACCES  ? "make it executable (chmod +x)"
                  : number == ENOEXEC ? "its first line must name an interpreter (#!/bin/sh)"
                                      : ""};
}

struct Pipe {
  Fd read;
  Fd write;
  static std::optional<Pipe> Make() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
    return Pipe{Fd(ends[0]), Fd(ends[1])};
  }
};

void DoNotBlock(const Fd& fd) { fcntl(fd.get(), F_SETFL, O_NONBLOCK); }

struct Plan {
  char* const* words = nullptr;
  char* const* environment = nullptr;
  pid_t parent = 0;
  int in = -1;
  int out = -1;
  int err = -1;
  int report = -1;
};

// Between fork and exec: only what is async-signal-safe.
[[noreturn]] void BecomeChild(const Plan& plan) {
  setpgid(0, 0);
  signal(SIGPIPE, SIG_DFL);
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == plan.parent && dup2(plan.in, 0) >= 0 &&
      dup2(plan.out, 1) >= 0 && dup2(plan.err, 2) >= 0) {
    VisitDescriptors([](int descriptor) {
      if (descriptor > STDERR_FILENO) fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    });
    execve(plan.words[0], plan.words, plan.environment);
  }
  const int number = errno;
  const ssize_t ignored = write(plan.report, &number, sizeof(number));
  _exit(ignored < 0 ? 126 : 127);
}

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::string HowItEnded(int status) {
  if (!WIFSIGNALED(status)) return fmt::format("with exit code {}", WEXITSTATUS(status));
  const int number = WTERMSIG(status);
  return fmt::format("by signal {} ({})", number, sigdescr_np(number));
}

}  // namespace

bool PipeLines::Read() {
  for (std::size_t taken = 0; taken < kReadAtOnce && open() && !too_long();) {
    if (at_ > 0) {
      buffer_.erase(0, at_);
      scanned_ -= std::min(scanned_, at_);
      at_ = 0;
    }
    const std::size_t before = buffer_.size();
    buffer_.resize(before + kChunk);
    const ssize_t size = read(fd_.get(), buffer_.data() + before, kChunk);
    buffer_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    if (size > 0) {
      taken += static_cast<std::size_t>(size);
      continue;
    }
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    fd_.Close();
  }
  return open() && !too_long();
}

std::optional<std::string> PipeLines::Next() {
  const std::size_t end = buffer_.find('\n', std::max(at_, scanned_));
  if (end == std::string::npos) {
    scanned_ = buffer_.size();
    return std::nullopt;
  }
  std::string line = buffer_.substr(at_, end - at_);
  at_ = end + 1;
  return line;
}

std::string PipeLines::TakePart() {
  std::string part = buffer_.substr(at_);
  buffer_.clear();
  at_ = scanned_ = 0;
  return part;
}

ExecProcess::ExecProcess(pid_t pid, Fd end, Fd in, Fd out, Fd err)
    : pid_(pid),
      end_(std::move(end)),
      in_(std::move(in)),
      out_(std::move(out), kMaxAnswerBytes),
      err_(std::move(err), kMaxErrorLine) {}

ExecProcess::~ExecProcess() {
  Kill();
  if (!ended_) waitpid(pid_, nullptr, 0);
}

tl::expected<std::unique_ptr<ExecProcess>, Error> ExecProcess::Start(const Command& command) {
  const std::vector<char*> words = Pointers(command.words);
  const std::vector<char*> environment = Pointers(command.environment);
  auto in = Pipe::Make();
  auto out = Pipe::Make();
  auto err = Pipe::Make();
  auto report = Pipe::Make();
  if (!in || !out || !err || !report) return tl::unexpected(CannotRun(command.words[0], errno));
  const Plan plan{.words = words.data(),
                  .environment = environment.data(),
                  .parent = getpid(),
                  .in = in->read.get(),
                  .out = out->write.get(),
                  .err = err->write.get(),
                  .report = report->write.get()};
  const pid_t pid = fork();
  if (pid == 0) BecomeChild(plan);
  if (pid < 0) return tl::unexpected(CannotRun(command.words[0], errno));
  setpgid(pid, pid);  // parent and child both call it: Kill needs the group
  report->write.Close();
  int number = 0;
  ssize_t size = 0;
  do {
    size = read(report->read.get(), &number, sizeof(number));
  } while (size < 0 && errno == EINTR);
  Fd end(pidfd_open(pid, 0));
  if (size == 0 && !end.open()) number = errno;
  if (size > 0 || !end.open()) {
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return tl::unexpected(CannotRun(command.words[0], number));
  }
  for (const Fd* fd : {&in->write, &out->read, &err->read}) DoNotBlock(*fd);
  return std::unique_ptr<ExecProcess>(new ExecProcess(pid, std::move(end), std::move(in->write),
                                                      std::move(out->read), std::move(err->read)));
}

void ExecProcess::Send(const std::string& line) {
  last_line_ = line.size();
  if (!in_.open()) unconsumed_ += line.size();
  unsent_.erase(0, std::exchange(sent_, 0));  // of a record that it answered unread
  unsent_.append(line);
  Write();
}

void ExecProcess::Write() {
  while (unsent()) {
    const ssize_t size = write(in_.get(), unsent_.data() + sent_, unsent_.size() - sent_);
    if (size >= 0) {
      sent_ += static_cast<std::size_t>(size);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;
    } else if (errno != EINTR) {
      unconsumed_ = Unconsumed();
      in_.Close();  // it reads no more; its end will be seen
    }
  }
  unsent_.clear();
  if (unsent_.capacity() > kChunk) unsent_.shrink_to_fit();
  sent_ = 0;
}

std::size_t ExecProcess::Unconsumed() const {
  if (!in_.open()) return unconsumed_;
  int in_pipe = 0;
  if (ioctl(in_.get(), FIONREAD, &in_pipe) != 0) in_pipe = 0;
  return static_cast<std::size_t>(in_pipe) + unsent_.size() - sent_;
}

void ExecProcess::Kill() {
  if (ended_) return;  // the number may be another's by now
  kill(-pid_, SIGKILL);
}

std::optional<std::string> ExecProcess::Ended() {
  if (ended_) return ended_;
  // Looked at first, reaped after its group was killed: until then the group's number is ours.
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
      info.si_pid == 0) {
    return std::nullopt;
  }
  kill(-pid_, SIGKILL);  // whom it left behind
  int status = 0;
  ended_ = waitpid(pid_, &status, 0) == pid_ ? HowItEnded(status) : "and was reaped by another";
  return ended_;
}

tl::expected<std::string, Error> FindProgram(const std::string& name) {
  const auto runnable = [](const std::string& path) {
    struct stat about {};
    return stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode) &&
           access(path.c_str(), X_OK) == 0;
  };
  if (name.find('/') != std::string::npos) {
    if (runnable(name)) return name;
    struct stat about {};
    return tl::unexpected(CannotRun(name, stat(name.c_str(), &about) == 0 ? EACCES : ENOENT));
  }
  const char* path = std::getenv("PATH");
  std::string_view folders = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  while (!name.empty()) {
    const std::size_t end = std::min(folders.find(':'), folders.size());
    const std::string folder(end == 0 ? "." : folders.substr(0, end));
    if (std::string found = folder + "/" + name; runnable(found)) return found;
    if (end == folders.size()) break;
    folders.remove_prefix(end + 1);
  }
  return tl::unexpected(Error{.code = "exec_failed",
                              .what = fmt::format("no program {} in PATH", OneLine(name)),
                              .where = "handler.exec",
                              .hint = "write its path, as in [./transform.py]"});
}

}  // namespace fencepost::consumer
