#include "consumer/cli/lock_exec_signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

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

bool StopAsCtrlZ() {
  struct sigaction standard {};
  struct sigaction before {};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGTSTP, &standard, &before);
  raise(SIGTSTP);  // takes a SIGCONT that is pending away
  sigset_t stop;
  sigset_t mask;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  pthread_sigmask(SIG_UNBLOCK, &stop, &mask);  // here
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  sigaction(SIGTSTP, &before, nullptr);
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
  sigaddset(&mask, SIGTTOU);
  sigprocmask(SIG_BLOCK, &mask, &before_);
  sigdelset(&mask, SIGTTOU);
  descriptor_ = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
}

Signals::~Signals() { close(descriptor_); }

int Signals::Take() const {
  signalfd_siginfo info{};
  return read(descriptor_, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo)
                                                              : 0;
}

Signals::Heard Signals::HearWhileWaiting() const {
  Heard heard;
  for (int signal = Take(); signal != 0; signal = Take()) {
    if (signal == SIGTSTP && heard.end == 0 && StopAsCtrlZ()) heard.stopped = true;
    if (Ends(signal)) heard.end = signal;
  }
  return heard;
}

}  // namespace fencepost::cli
