// For the threads of runners.
#pragma once

#include <csignal>

namespace fencepost::consumer {

// The calling thread takes no signals: SIGTERM is for main, and writing to a peer that has gone
// must be an error of that write.
inline void BlockSignals() {
  sigset_t all;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP})
    sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

}  // namespace fencepost::consumer
