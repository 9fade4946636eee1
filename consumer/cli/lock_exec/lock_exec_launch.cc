#include "consumer/cli/lock_exec/lock_exec_launch.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "locking/base/descriptors.h"

namespace fencepost::cli {
namespace {

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

}  // namespace

std::vector<int> OpenDescriptors() {
  std::vector<int> open;
  VisitDescriptors([&open](int descriptor) { open.push_back(descriptor); });
  std::sort(open.begin(), open.end());
  open.erase(std::unique(open.begin(), open.end()), open.end());
  return open;
}

void BecomeCommand(const Launch& launch) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launch.parent) _exit(127);  // it died before we asked to be told
  setpgid(0, 0);
  close(launch.parents_end);
  if (ReadByte(launch.tie) == 0) _exit(127);
  if (launch.terminal >= 0) tcsetpgrp(launch.terminal, getpid());  // SIGTTOU is blocked
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
  [[maybe_unused]] const auto told = send(launch.tie, &why, sizeof why, MSG_NOSIGNAL);
  _exit(127);
}

void BecomeGuard(const Guard& guard) {
  setpgid(0, 0);
  for (const int end : guard.ends) close(end);
  VisitDescriptors([&guard](int descriptor) {
    if (descriptor != guard.pipe) close(descriptor);
  });
  if (ReadByte(guard.pipe) == 0) kill(-guard.group, SIGKILL);
  _exit(0);
}

}  // namespace fencepost::cli
