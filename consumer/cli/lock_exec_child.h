// The command of `lock exec`: a child in a process group of its own that cannot outlive us.
//
// It dies with us in whatever way we die: the kernel kills the child itself (PR_SET_PDEATHSIG), and
// a second small process, which notices our end by a pipe, kills the rest of its group. What leaves
// the group (setsid) is out of reach. Linux. The thread that calls Start must live as long as this.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include <signal.h>

#include <tl/expected.hpp>

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
  // The errno of exec.
  static tl::expected<ExecChild, int> Start(const Options& options);
  ExecChild(ExecChild&& other) noexcept;
  ExecChild& operator=(ExecChild&&) = delete;
  ExecChild(const ExecChild&) = delete;
  ExecChild& operator=(const ExecChild&) = delete;
  ~ExecChild();  // kills what is left of the command if it has not ended

  void Signal(int signal) const;  // to its whole group
  // From now on, what is left of the group is killed when the command itself ends.
  void EndWithItsGroup() { end_with_group_ = true; }
  // Stdin is a terminal, and the command has it.
  [[nodiscard]] bool has_terminal() const { return has_terminal_; }
  // It stopped (as by Ctrl-Z, not by SIGSTOP) or ended since the last call? Never blocks.
  enum class Change : std::uint8_t { kNothing, kStopped, kEnded };
  Change Look();
  // As a shell has it: its exit code, or 128 + the signal that ended it.
  [[nodiscard]] int code() const { return code_; }
  // We stop, too, as the command has, and give the terminal to who started us; returns when we go
  // on, at once where the kernel does not let us stop (StopAsCtrlZ). The command is still stopped
  // then.
  void StopWithIt() const;
  // After StopWithIt: the command goes on.
  void GoOn() const;

 private:
  ExecChild(pid_t pid, pid_t guard, int guard_pipe, bool has_terminal);
  void TakeTerminal(pid_t group) const;

  pid_t pid_;
  pid_t guard_;
  int guard_pipe_;
  bool has_terminal_;  // stdin is a terminal, and we were in its foreground
  bool end_with_group_ = false;
  bool ended_ = false;
  int code_ = 0;
};

}  // namespace fencepost::cli
