#include "consumer/cli/lock_exec/lock_exec_signals.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace fencepost::cli {
namespace {

constexpr int kSignals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT, SIGWINCH, SIGTSTP};

bool Ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

bool Ends(int signal) {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

bool StopAs(int signal, bool whole_group) {
  struct sigaction standard {};
  struct sigaction before {};
  standard.sa_handler = SIG_DFL;
  sigaction(signal, &standard, &before);
  sigset_t stop;
  sigset_t mask;
  sigemptyset(&stop);
  sigaddset(&stop, signal);
  pthread_sigmask(SIG_BLOCK, &stop, &mask);
  kill(whole_group ? 0 : getpid(), signal);      // takes a SIGCONT that is pending away
  pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);  // here
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  sigaction(signal, &before, nullptr);
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, SIGCONT) == 1;  // it is blocked
}

Signals::Signals() {
  sigset_t mask;
  sigemptyset(&mask);
  for (const int signal : kSignals) {
    if (!Ignored(signal)) sigaddset(&mask, signal);
  }
  sigaddset(&mask, SIGCONT);  // it goes on even if it is ignored, and we must know
  sigaddset(&mask, SIGCHLD);
  if (Ignored(SIGCHLD)) signal(SIGCHLD, SIG_DFL);  // else the command's end would be lost
  // By a neighbour in our group that has lost the terminal to the command: not our business.
  sigaddset(&mask, SIGTTOU);
  sigaddset(&mask, SIGTTIN);
  sigprocmask(SIG_BLOCK, &mask, &before_);
  sigdelset(&mask, SIGTTOU);
  sigdelset(&mask, SIGTTIN);
  descriptor_ = Fd(signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!descriptor_.open()) error_ = errno;
}

int Signals::Take() const {
  signalfd_siginfo info{};
  const bool got = read(descriptor_.get(), &info, sizeof info) == sizeof info;
  return got ? static_cast<int>(info.ssi_signo) : 0;
}

Signals::Received Signals::DrainSignals() const {
  Received received;
  for (int signal = Take(); signal != 0; signal = Take()) {
    if (signal == SIGTSTP && received.end == 0 && StopAs(SIGTSTP, false)) received.stopped = true;
    if (Ends(signal)) received.end = signal;
  }
  return received;
}

void Signals::Poll(std::chrono::milliseconds limit) const {
  std::array<pollfd, 2> waiting{{{descriptor_.get(), POLLIN, 0}, {wake_up_->fd(), POLLIN, 0}}};
  poll(waiting.data(), waiting.size(), static_cast<int>(limit.count()));
}

}  // namespace fencepost::cli
