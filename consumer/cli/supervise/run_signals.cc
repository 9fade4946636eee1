#include "consumer/cli/supervise/run_signals.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "locking/base/planted.h"

namespace fencepost::cli {
namespace {

// Whether the process has a controlling terminal now: a session that was hung up has none.
bool HasTerminal() { return Fd(open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC)).get() >= 0; }

}  // namespace

RunSignals::RunSignals(Options options) : options_(options), had_terminal_(HasTerminal()) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  if (options.children) {
    sigaddset(&set, SIGCHLD);
    std::signal(SIGCHLD, SIG_DFL);  // ignored, their ends would be lost
  }
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  signals_ = Fd(signalfd(-1, &set, SFD_CLOEXEC));
}

// Whether a stop by this sender is one more.
bool RunSignals::Counts(pid_t sender) const {
  if (options_.supervisor == 0 || Planted("one_ctrl_c_counts_twice")) return true;
  const bool first = !std::exchange(stopped_, true);
  return sender == options_.supervisor ? ++stops_ > 1 || first : first;
}

RunSignals::Woken RunSignals::Wait(int milliseconds) const {
  pollfd fds[] = {{signals_.get(), POLLIN, 0}, {wake_up_.fd(), POLLIN, 0}};
  int ready = 0;
  while ((ready = poll(fds, 2, milliseconds)) < 0 && errno == EINTR) {
  }
  if (ready <= 0) return Woken::kNot;
  if ((fds[0].revents & POLLIN) == 0) {
    wake_up_.Taken();
    return Woken::kByWake;
  }
  // A wake-up that came too stays for the next call: it may be the end of a worker.
  signalfd_siginfo info{};
  [[maybe_unused]] const ssize_t n = read(signals_.get(), &info, sizeof info);
  if (info.ssi_signo == SIGCHLD) return Woken::kChild;
  if (info.ssi_signo != SIGHUP) {
    return Counts(static_cast<pid_t>(info.ssi_pid)) ? Woken::kStop : Woken::kNot;
  }
  return had_terminal_ && !HasTerminal() ? Woken::kTerminalGone : Woken::kReload;
}

}  // namespace fencepost::cli
