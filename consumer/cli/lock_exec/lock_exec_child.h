// The command of `lock exec`: a child in a process group of its own that cannot outlive us.
//
// It dies with us in whatever way we die: the kernel kills the child itself (PR_SET_PDEATHSIG), and
// a second small process, which notices our end by a pipe, kills the rest of its group. What leaves
// the group (setsid) is out of reach, and so is what becomes another user's (sudo). Linux; newer
// system calls (close_range) are not relied on: an old kernel or a seccomp profile refuses them.
// The thread that calls Start must live as long as this.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <signal.h>

#include <tl/expected.hpp>

#include "locking/base/fd.h"

namespace fencepost::cli {

// The file descriptors that are open now, ascending: what a command inherits, and no others.
std::vector<int> OpenDescriptors();

class ExecChild {
 public:
  struct Options {
    std::vector<std::string> command;
    std::vector<std::string> environment;  // NAME=VALUE, added to ours
    std::vector<int> descriptors;          // OpenDescriptors() from before we opened any
    sigset_t signal_mask{};                // what the command starts with
  };
  struct NotStarted {
    int error = 0;         // errno
    bool by_exec = false;  // else for want of a process or a descriptor
  };
  static tl::expected<std::unique_ptr<ExecChild>, NotStarted> Start(const Options& options);
  ExecChild(const ExecChild&) = delete;
  ExecChild& operator=(const ExecChild&) = delete;
  ~ExecChild();  // kills what is left of the command if it has not ended

  // To its whole group. Whether the kernel let us: not where all of it is another user's.
  bool Signal(int signal) const;
  // From now on, what is left of the group is killed when the command itself ends.
  void EndWithItsGroup() { end_with_group_ = true; }
  // The command is in the terminal's foreground.
  [[nodiscard]] bool has_terminal() const { return has_terminal_; }
  // It stopped (as by Ctrl-Z, not by SIGSTOP), stopped since it wants the terminal (SIGTTIN,
  // SIGTTOU), or ended since the last call? Never blocks. Reaps what was left to us, too: we may be
  // the first process of a container.
  enum class Change : std::uint8_t { kNothing, kStopped, kWantsTerminal, kEnded };
  Change Look();
  // As a shell has it: its exit code, or 128 + the signal that ended it.
  [[nodiscard]] int code() const { return code_; }
  // Puts the command in the terminal's foreground, where that is ours to give. Whether it is there.
  bool GiveTerminal();
  // We stop, too, as the command has, and give the terminal to who started us. Returns when we go
  // on, with the terminal given to the command where it had or wanted it and we are in the
  // foreground; the command is still stopped then. False, at once: the kernel does not let us stop
  // (StopAs).
  bool StopWithIt();
  // After StopWithIt or GiveTerminal: the command goes on.
  void GoOn() const;

 private:
  ExecChild(pid_t pid, pid_t guard, Fd guard_pipe);
  [[nodiscard]] int Terminal() const;
  void ReapOthers();

  const pid_t pid_;
  pid_t guard_;
  Fd guard_pipe_;
  Fd terminal_;  // /dev/tty; closed where we have none
  bool has_terminal_ = false;
  int stopped_by_ = 0;
  bool end_with_group_ = false;
  bool ended_ = false;
  int code_ = 0;
};

}  // namespace fencepost::cli
