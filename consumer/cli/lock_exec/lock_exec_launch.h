// What `lock exec` becomes when it forks: the command, and the guard that does not let the command
// outlive us. Nothing may be allocated between fork and exec, as other threads run. Linux; newer
// system calls (close_range) are not relied on: an old kernel or a seccomp profile refuses them.
#pragma once

#include <sys/types.h>

#include <vector>

#include <signal.h>

namespace fencepost::cli {

// The file descriptors that are open now, ascending: what a command inherits, and no others.
std::vector<int> OpenDescriptors();

struct Launch {
  char* const* argv;
  char* const* envp;
  const std::vector<int>* descriptors;
  sigset_t mask;
  pid_t parent;
  int parents_end;  // of the tie
  // Sockets. The command begins when a byte comes, and the errno of exec is written back; exec
  // closes it.
  int tie;
  int terminal;  // the command takes it; -1: it does not
};
[[noreturn]] void BecomeCommand(const Launch& launch);

struct Guard {
  int pipe;     // it ends when a byte comes; at the end of the stream, the command's group does
  int ends[3];  // what must not stay open in it, whatever else fails
  pid_t group;
};
[[noreturn]] void BecomeGuard(const Guard& guard);

}  // namespace fencepost::cli
