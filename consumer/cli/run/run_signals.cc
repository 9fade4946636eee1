#include "consumer/cli/run/run_signals.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace fencepost::cli {
namespace {

// Whether the process has a controlling terminal now: a session that was hung up has none.
bool HasTerminal() { return Fd(open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC)).get() >= 0; }

}  // namespace

RunSignals::RunSignals() : had_terminal_(HasTerminal()) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  signals_ = Fd(signalfd(-1, &set, SFD_CLOEXEC));
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
  if (info.ssi_signo != SIGHUP) return Woken::kStop;
  return had_terminal_ && !HasTerminal() ? Woken::kTerminalGone : Woken::kReload;
}

}  // namespace fencepost::cli
