// What every test that starts something needs: a process that cannot outlive the test, a free port,
// a temporary folder, and waiting for a condition instead of sleeping. Set-up that fails throws
// std::runtime_error, which GoogleTest reports as the failure of that test.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace fencepost::testing {

using Deadline = std::chrono::milliseconds;  // from now

// A folder of its own under the system's temporary folder, removed with all it holds.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::string File(std::string_view name) const { return (path_ / name).string(); }
  // Writes a file in the folder and returns its path.
  std::string Write(std::string_view name, std::string_view text) const;

 private:
  std::filesystem::path path_;
};

std::string ReadFile(const std::string& path);  // empty when it cannot be read

// A TCP port on 127.0.0.1 that nobody listens on. It lies below the kernel's ephemeral range, so no
// outgoing connection takes it while its server restarts, and it stays reserved among all test
// programs of this machine until this program ends.
int FreePort();

// $FENCEPOST_CACHE or ~/.cache/fencepost: downloads, never removed by tests.
std::filesystem::path CacheDir();

// Limits say how long something takes on a machine that has nothing else to do; a busy one gets so
// many times as long.
constexpr int kPatience = 3;

// Polls `condition` until it holds. Use it as ASSERT_TRUE(WaitUntil(5s, "the third worker to join",
// [&] { … })): when the time runs out, the failure says what was waited for, and how long.
::testing::AssertionResult WaitUntil(Deadline limit, std::string_view what,
                                     const std::function<bool()>& condition);
::testing::AssertionResult WaitUntil(Deadline limit, const std::function<bool()>& condition,
                                     std::string_view what = "the condition");
// Like it, for set-up code: throws.
void RequireWithin(Deadline limit, std::string_view what, const std::function<bool()>& condition);
void RequireWithin(Deadline limit, const std::function<bool()>& condition, std::string_view what);

struct ProcessOptions {
  std::vector<std::string> argv{};           // argv[0] is looked up in PATH
  std::map<std::string, std::string> env{};  // added to ours
  std::string directory{};                   // working directory; empty: ours
  std::string user{};                        // when we are root, run as this user; empty: as we are
  std::string stdin_text{};                  // what it reads on stdin, then the end
  bool separate_stderr = false;              // false: stderr goes to the same file as stdout
};

// A child in a process group of its own. It gets SIGKILL when this object goes, and also when the
// test program dies in any way. Not for use from several threads at once.
class Process {
 public:
  explicit Process(ProcessOptions options);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool Running();
  // Sends a signal to the process alone (not its children). No effect when it has ended. After
  // SIGSTOP none of its threads runs.
  void Kill(int sig = SIGKILL);
  // The exit code, or 128 + signal, when it ended within the limit. Then always the same.
  std::optional<int> Wait(Deadline limit);
  // What it has printed up to now.
  [[nodiscard]] std::string Output() const;
  [[nodiscard]] std::string ErrorOutput() const;  // with separate_stderr

 private:
  TempDir logs_;
  pid_t pid_ = -1;
  std::optional<int> exit_code_;
  std::string name_;
};

// Runs to the end. {exit code, output}; throws when it is not done within the limit.
struct Finished {
  int exit_code = 0;
  std::string output;
  std::string error_output;
};
Finished RunToEnd(ProcessOptions options, Deadline limit = std::chrono::seconds(60));

}  // namespace fencepost::testing
