// Processes that a command starts. They die with it, however it ends (PR_SET_PDEATHSIG). Start them
// from the main thread: the death signal is tied to the thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace fencepost::cli {

class Child {
 public:
  // stdout and stderr go to `log`.out and `log`.err.
  Child(std::vector<std::string> command, std::filesystem::path log);
  ~Child();  // SIGKILL, and waits
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void Signal(int signal) const;
  // SIGSTOP, and waits until the kernel has stopped every thread: until then one may still take a
  // lock.
  void Freeze();
  [[nodiscard]] bool Running();
  // The exit status as the shell tells it (128 + n for a signal); nothing when it still runs then.
  std::optional<int> Wait(std::chrono::milliseconds limit);
  [[nodiscard]] std::string Errors() const;  // stderr so far
  // The last line of stderr, or where that is empty, of stdout.
  [[nodiscard]] std::string LastWords() const;

 private:
  const std::filesystem::path log_;
  pid_t pid_ = -1;
  std::optional<int> status_;
};

}  // namespace fencepost::cli
