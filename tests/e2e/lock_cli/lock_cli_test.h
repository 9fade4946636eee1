// What the tests of `lock exec` and `locks` share: real nodes with a store, and the real binary.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/support/paths.h"
#include "tests/support/process.h"
#include "tests/support/redis_server.h"
#include "tests/support/worker_process.h"

namespace fencepost::testing {

inline constexpr std::chrono::seconds kLong{20};

class LockCliTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(Tool({"locks", "init"}).exit_code, 0); }

  // The words, then --redis and the nodes, then `more`.
  [[nodiscard]] std::vector<std::string> Words(std::vector<std::string> words,
                                               const std::vector<std::string>& more) const {
    words.insert(words.begin(), testing::FencepostBinary());
    words.insert(words.end(), {"--redis", nodes_.list()});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  [[nodiscard]] Finished Tool(std::vector<std::string> words,
                              const std::vector<std::string>& more = {}) const {
    return RunToEnd({.argv = Words(std::move(words), more), .separate_stderr = true}, kLong);
  }
  [[nodiscard]] Finished Exec(const std::vector<std::string>& more) const {
    return Tool({"lock", "exec"}, more);
  }
  [[nodiscard]] std::unique_ptr<Process> Begin(const std::vector<std::string>& more) const {
    return BeginBehind({}, more);
  }
  // By way of a program that starts `lock exec`.
  [[nodiscard]] std::unique_ptr<Process> BeginBehind(std::vector<std::string> words,
                                                     const std::vector<std::string>& more) const {
    const std::vector<std::string> ours = Words({"lock", "exec"}, more);
    words.insert(words.end(), ours.begin(), ours.end());
    return std::make_unique<Process>(ProcessOptions{.argv = words, .separate_stderr = true});
  }
  // A pipe that a command reads from to stall, until GoOn writes a line into it.
  std::string Fifo(const std::string& name) const {
    std::string path = folder_.File(name);
    EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
    return path;
  }
  static void GoOn(const std::string& fifo) {
    int end = -1;
    const auto reads = [&] { return (end = open(fifo.c_str(), O_WRONLY | O_NONBLOCK)) >= 0; };
    ASSERT_TRUE(WaitUntil(std::chrono::seconds(20), reads, "the command to read " + fifo));
    EXPECT_EQ(write(end, "on\n", 3), 3);
    close(end);
  }
  [[nodiscard]] bool Says(const std::string& file, const std::string& text) const {
    return ReadFile(folder_.File(file)).find(text) != std::string::npos;
  }
  [[nodiscard]] static bool Runs(const std::string& pid) {
    const std::string stat = ReadFile("/proc/" + pid + "/stat");
    return !stat.empty() && stat.find(") Z ") == std::string::npos;
  }
  [[nodiscard]] static std::string Key(const std::string& name) {
    return "fencepost:{default}:" + name;
  }

  RedisServers nodes_{3};
  TempDir folder_;
};

}  // namespace fencepost::testing
